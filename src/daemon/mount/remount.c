/* SPDX-License-Identifier: MIT
 * The server checks the options (and whether it can write at all), the kernel lets writers in or
 * no more, or says why not; then the server does the same for its other front ends. */
#include "daemon/mount/remount.h"

#include "base/buf.h"
#include "base/log.h"
#include "daemon/control/control.h"
#include "daemon/control/wire.h"
#include "daemon/core/path.h"
#include "daemon/core/signals.h"
#include "daemon/core/user.h"
#include "daemon/mount/mountinfo.h"
#include "daemon/mount/recover.h"
#include "service/core/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int remount_here(struct cmd_env *env, const struct args *args)
{
	struct mount_options *o = malloc(sizeof(*o));
	struct store_info info;
	int code = EXIT_FAILED;
	const struct mount_options *now = env->served != NULL ? env->served->mounted : NULL;
	if (o == NULL || !mount_options_parse(args, o, env->err))
		goto out;
	if (now == NULL || !o->remount) {
		(void)command_fail(env->err, "mount", "'%s' is served without a mount", env->store);
		goto out;
	}
	if (!mount_options_unchanged(now, args, env->err))
		goto out;
	store_info(service_store(env->service), &info);
	if (o->access_given && !o->fs.read_only && (info.abilities & STORE_READ_ONLY) != 0) {
		(void)command_fail(env->err, "mount",
			"'%s' was opened read-only when it was mounted: unmount it, and mount it "
			"again without ro",
			env->store);
		goto out;
	}
	if (o->access_given && !o->remount_check) {
		service_set_read_only(env->service, o->fs.read_only);
		log_info("remounted %s", o->fs.read_only ? "read-only" : "writable");
	}
	code = EXIT_DONE;
out:
	free(o);
	return code;
}

/* Has the server do its part; check: it only looks at the options. */
static int tell_server(const struct args *args, char *dir, const struct stat *st, bool check)
{
	char store[PATH_MAX];
	struct buf options = BUF_INIT(CONTROL_WORDS_MAX / 2);
	for (int i = 0; i < args->ngiven; i++)
		if (strcmp(args->given[i].spec->name, "options") == 0)
			buf_addf(&options, "%s,", args->given[i].value);
	buf_add_str(&options, check ? "remount=check" : "remount");
	(void)snprintf(store, sizeof(store), "%s", args->words[0]);
	int fds[] = { fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
		fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) };
	struct ucred server;
	signals_catch("mount");
	int sock = control_connect(store, st, &server), code = EXIT_FAILED;
	enum control_result result = CONTROL_NOT_TAKEN;
	if (sock >= 0 && buf_ok(&options)) {
		char *argv[] = { (char[]){ "mount" }, (char[]){ "-o" }, options.data,
			(char[]){ "--" }, store, dir, NULL };
		result = control_call(sock, &server, store, 6, argv, fds, 2, &code);
	} else if (sock >= 0) {
		close(sock);
	}
	signals_release();
	close(fds[0]);
	close(fds[1]);
	buf_fini(&options);
	if (result == CONTROL_DONE)
		return code;
	if (result == CONTROL_REFUSED)
		return user_refused("mount", store, &server);
	return command_fail(
		stderr, "mount", "the process that serves '%s' cannot be reached", store);
}

/* What mount(2) is to be told, so that only what was asked for changes. */
static bool flags_of(const char *dir, const struct mount_options *o, unsigned long *ret)
{
	static const struct {
		unsigned long shown, flag;
	} names[] = {
		{ ST_RDONLY, MS_RDONLY },
		{ ST_NOSUID, MS_NOSUID },
		{ ST_NODEV, MS_NODEV },
		{ ST_NOEXEC, MS_NOEXEC },
		{ ST_NOATIME, MS_NOATIME },
		{ ST_NODIRATIME, MS_NODIRATIME },
		{ ST_RELATIME, MS_RELATIME },
	};
	struct statvfs st;
	if (statvfs(dir, &st) != 0)
		return false;
	*ret = 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((st.f_flag & names[i].shown) != 0)
			*ret |= names[i].flag;
	*ret = (*ret & ~o->flags_clear) | o->flags_set;
	if (o->access_given)
		*ret = (*ret & ~(unsigned long)MS_RDONLY) | (o->fs.read_only ? MS_RDONLY : 0);
	return true;
}

static int tell_kernel(const char *dir, const struct mount_options *o)
{
	unsigned long flags;
	if (flags_of(dir, o, &flags) && mount(NULL, dir, NULL, MS_REMOUNT | flags, NULL) == 0)
		return EXIT_DONE;
	if (errno == EBUSY)
		return command_fail(stderr, "mount",
			"'%s' cannot become read-only while files in it are open for writing; "
			"see: fuser -vm %s",
			dir, dir);
	if (errno == EPERM)
		return command_fail(stderr, "mount",
			"only root can remount '%s'; unmount it, and mount it again", dir);
	return command_fail(
		stderr, "mount", "'%s' cannot be remounted: %s", dir, strerrordesc_np(errno));
}

/* The store of the mount, as a file. */
static int check(const char *given, const char *dir, struct stat *ret)
{
	struct mount_entry *m = malloc(sizeof(*m));
	char *path = malloc(PATH_MAX);
	bool found = path != NULL && path_of_store(given, path) && path_stat_store(path, ret);
	int code = EXIT_DONE;
	if (m == NULL || path == NULL)
		code = command_fail(stderr, "mount", "out of memory");
	else if (!mountinfo_find(dir, m) || strcmp(m->type, MOUNT_TYPE) != 0)
		code = command_fail(stderr, "mount", "'%s' is no mount of rowfs to remount", dir);
	else if (!found)
		code = command_fail(stderr, "mount", "'%s': %s%s", given, strerrordesc_np(errno),
			strcmp(given, m->source) == 0
				? "; the mount hides its store behind fsname: say which it is, as in: "
				  "mount -t rowfs -o remount,ro STORE DIR"
				: "");
	else if (m->source[0] == '/' && strcmp(m->source, path) != 0)
		code = command_fail(stderr, "mount", "'%s' is a mount of '%s', not of '%s'", dir,
			m->source, path);
	else if (mount_ask(dir, path, "mount") == ENOTCONN)
		code = command_fail(stderr, "mount",
			"the server of '%s' was killed; mount it again with: rowfs mount %s %s",
			dir, given, dir);
	free(path);
	free(m);
	return code;
}

int remount(const struct args *args, const struct mount_options *o)
{
	char dir[PATH_MAX];
	struct stat st;
	if (!path_absolute_patiently("mount", args->words[1], dir))
		return command_fail(
			stderr, "mount", "'%s': %s", args->words[1], strerrordesc_np(errno));
	int lock = mount_lock(dir);
	int code = check(args->words[0], dir, &st);
	if (code == EXIT_DONE)
		code = tell_server(args, dir, &st, true);
	if (code == EXIT_DONE && !o->remount_check)
		code = tell_kernel(dir, o);
	if (code == EXIT_DONE && !o->remount_check)
		code = tell_server(args, dir, &st, false);
	mount_unlock(lock);
	return code;
}
