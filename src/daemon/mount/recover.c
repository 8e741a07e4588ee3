/* SPDX-License-Identifier: MIT */
#include "daemon/mount/recover.h"

#include "daemon/core/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_TRIES 200
#define LOCK_WAIT_US 25000
#define MOUNTS_MAX 64 /* of one store, at a time */

/* The directory above: the mount point itself may be dead. */
int mount_lock(const char *dir)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(dir, '/');
	size_t n = slash != NULL && slash > dir ? (size_t)(slash - dir) : 1;
	if (n >= sizeof(parent))
		return -1;
	memcpy(parent, dir, n);
	parent[n] = '\0';
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int tries = 0; fd >= 0 && tries < LOCK_TRIES; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			break;
		usleep(LOCK_WAIT_US);
	}
	return fd;
}

void mount_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

static enum recovery detach(const char *dir, const char *command)
{
	int code = mount_detach(dir, true);
	if (code == 0) {
		(void)command_fail(stderr, command,
			"'%s' was the mount of a server that was killed; it is unmounted now", dir);
		return RECOVERY_DONE;
	}
	(void)command_fail(stderr, command,
		"'%s' is the mount of a server that was killed, and cannot be unmounted: %s", dir,
		strerrordesc_np(code));
	return RECOVERY_FAILED;
}

static bool is_ours(const char *dir, struct mount_entry *ret)
{
	return mountinfo_find(dir, ret) && strcmp(ret->type, MOUNT_TYPE) == 0;
}

static bool is_dead(const struct mount_entry *m, const char *store, const char *command)
{
	return mount_ask(m->dir, m->source[0] == '/' ? m->source : store, command) == ENOTCONN;
}

enum recovery recover_dir(const char *dir, const char *store, const char *command, bool patient,
	struct mount_entry *ret)
{
	const char *waits = patient ? command : NULL;
	if (!is_ours(dir, ret))
		return RECOVERY_NOTHING;
	if (!is_dead(ret, store, waits))
		return RECOVERY_ALIVE;
	int lock = mount_lock(dir);
	enum recovery result = !is_ours(dir, ret) ? RECOVERY_NOTHING
		: !is_dead(ret, store, waits)     ? RECOVERY_ALIVE
						  : detach(dir, command);
	mount_unlock(lock);
	return result;
}

void recover_store(const char *store, const char *command)
{
	struct mount_entry *m = malloc(sizeof(*m));
	/* From the top: where mounts are stacked, the next round finds the one below. */
	for (size_t skip = 0, n = 0; m != NULL && n < MOUNTS_MAX; n++) {
		if (!mountinfo_of_store(store, skip, m))
			break;
		char *dir = strdup(m->dir);
		if (dir == NULL || recover_dir(dir, store, command, false, m) != RECOVERY_DONE)
			skip++;
		free(dir);
	}
	free(m);
}
