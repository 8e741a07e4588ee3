/* SPDX-License-Identifier: MIT
 * umount: unmounts, and waits until the serving process has closed the store, which is
 * when its lock on the store file is gone. */
#include "daemon/core/command.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/user.h"
#include "daemon/mount/mountinfo.h"
#include "daemon/mount/recover.h"
#include "daemon/serve/mounted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_US 10000
#define LONG_POLLS 300 /* three seconds, then say why it takes so long */

/* False while another process holds the store. */
static bool is_free(const char *store)
{
	int fd = open(store, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return true; /* nothing that could be waited for */
	bool free_now = flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
	close(fd);
	return free_now;
}

/* source: of the mount. */
static int wait_closed(const char *source, unsigned device)
{
	const char *store = source;
	char shadow[PATH_MAX];
	struct stat st;
	if (elsewhere_is(source) && mounted_shadow("umount", source, shadow))
		store = shadow;
	if (store[0] != '/' || stat(store, &st) != 0 || !S_ISREG(st.st_mode))
		return EXIT_DONE;
	for (unsigned polls = 0; !is_free(store); polls++) {
		pid_t holder = store_holder(store);
		/* Another mount of it is left: in another namespace, or of a directory in it. */
		if (mountinfo_elsewhere(holder, device))
			return EXIT_DONE;
		pid_t who = polls == LONG_POLLS ? mountinfo_process(device) : 0;
		if (who > 0 && holder > 0)
			return command_fail(stderr, "umount",
				"it is unmounted here, but process %d has it mounted in a "
				"namespace of its own, and '%s' is not closed before that ends; "
				"to end it everywhere: kill %d",
				(int)who, store, (int)holder);
		if (polls == LONG_POLLS)
			fprintf(stderr, "rowfs umount: waiting for '%s' to be closed ...\n", store);
		usleep(POLL_US);
	}
	return EXIT_DONE;
}

static int unmount(const char *given, const char *dir, struct mount_entry *m)
{
	switch (recover_dir(dir, NULL, "umount", true, m)) {
	case RECOVERY_FAILED:
		return EXIT_FAILED;
	case RECOVERY_ALIVE:
		break;
	case RECOVERY_NOTHING:
	case RECOVERY_DONE:
		return wait_closed(m->source, m->device);
	}
	int code = mount_detach(dir, false);
	if (code == EBUSY)
		return command_fail(
			stderr, "umount", "'%s' is in use; see: fuser -vm %s", given, given);
	char user[USER_TEXT_MAX];
	if (code == EPERM)
		return command_fail(stderr, "umount",
			"'%s' was mounted by user %s; that user and root alone can unmount it: %s",
			given, user_text(m->user, user), strerrordesc_np(code));
	if (code != 0)
		return command_fail(stderr, "umount", "'%s': %s", given, strerrordesc_np(code));
	return wait_closed(m->source, m->device);
}

static int run(const struct args *args)
{
	const char *given = args->words[0];
	char dir[PATH_MAX];
	struct mount_entry *m = malloc(sizeof(*m));
	int code;
	if (m == NULL)
		code = command_fail(stderr, "umount", "out of memory");
	else if (!path_absolute_patiently("umount", given, dir))
		code = command_fail(stderr, "umount", "'%s': %s", given, strerrordesc_np(errno));
	else if (!mountinfo_find(dir, m))
		code = command_fail(stderr, "umount", "'%s': %s", given,
			access(dir, F_OK) == 0 ? "nothing is mounted there"
					       : strerrordesc_np(errno));
	else if (strcmp(m->type, MOUNT_TYPE) != 0)
		code = command_fail(stderr, "umount",
			"'%s' is not a mount of rowfs, but of type %s", given, m->type);
	else
		code = unmount(given, dir, m);
	free(m);
	return code;
}

const struct command command_umount = {
	.name = "umount",
	.topic = TOPIC_START,
	.synopsis = "DIR",
	.summary = "Unmounts; returns when the store is closed",
	.min_words = 1,
	.max_words = 1,
	.local = run,
};
