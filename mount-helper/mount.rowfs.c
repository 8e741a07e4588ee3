/* SPDX-License-Identifier: MIT
 * The helper of mount(8) and umount(8) for the type rowfs.  umount(8) runs it as umount.fuse.rowfs.
 * It calls "rowfs mount" or "rowfs umount" and translates the arguments and the exit code.
 *
 * It is a program of its own: mount(8) fixes the arguments, and -f means "fake" here.  It takes
 * nothing from the environment.  It looks for rowfs beside its own directory and in fixed
 * places. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

/* From mount(8), "EXIT STATUS". */
enum {
	MOUNT_OK = 0,
	MOUNT_USAGE = 1,
	MOUNT_SYSTEM = 2,
	MOUNT_INTERRUPTED = 8,
	MOUNT_FAIL = 32
};

#define WORDS_MAX 64

struct arguments {
	const char *me; /* name of this program, for messages */
	const char *positional[2];
	int npositional;
	const char *options[WORDS_MAX]; /* the values of -o */
	int noptions;
	const char *namespace;
	bool fake, lazy, force;
};

static int complain(const struct arguments *c, const char *what, const char *about)
{
	fprintf(stderr, "%s: %s%s\n", c->me, what, about);
	return MOUNT_USAGE;
}

/* getopt(3) cannot be used: STORE and DIR come before the options. */
static int parse(struct arguments *c, int argc, char **argv, bool unmounting)
{
	const char *flags = unmounting ? "nvflr" : "fnsv";
	const char *valued = unmounting ? "tN" : "otN";
	int want = unmounting ? 1 : 2;
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if (a[0] != '-' || a[1] == '\0') {
			if (c->npositional == want)
				return complain(c, "too many words: ", a);
			c->positional[c->npositional++] = a;
			continue;
		}
		for (a++; *a != '\0'; a++) {
			c->fake = c->fake || (*a == 'f' && !unmounting);
			c->force = c->force || (*a == 'f' && unmounting);
			c->lazy = c->lazy || *a == 'l';
			if (strchr(flags, *a) != NULL)
				continue;
			if (strchr(valued, *a) == NULL)
				return complain(c, "unknown option in ", argv[i]);
			const char *value = a[1] != '\0' ? a + 1 : i + 1 < argc ? argv[++i] : NULL;
			if (value == NULL)
				return complain(c, "a value is missing behind ", argv[i]);
			if (*a == 'o' && c->noptions == WORDS_MAX)
				return complain(c, "too many options", "");
			if (*a == 'o')
				c->options[c->noptions++] = value;
			else if (*a == 'N')
				c->namespace = value;
			break;
		}
	}
	if (c->npositional < want)
		return complain(c, "something is missing; usage: ",
			unmounting ? "umount.fuse.rowfs DIR [-flnrv]"
				   : "mount.rowfs STORE DIR [-fnsv] [-o OPTION,...]");
	return MOUNT_OK;
}

/* Finds the rowfs of this installation. */
static bool find_rowfs(char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		char *slash = strrchr(self, '/');
		if (slash != NULL)
			*slash = '\0';
		static const char *const near[] = { "../bin/rowfs", "rowfs",
			"../src/daemon/rowfs" };
		for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
			int len = snprintf(path, PATH_MAX, "%s/%s", self, near[i]);
			if (len > 0 && len < PATH_MAX && access(path, X_OK) == 0)
				return true;
		}
	}
	static const char *const fixed[] = { "/usr/local/bin/rowfs", "/usr/bin/rowfs",
		"/bin/rowfs" };
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (access(fixed[i], X_OK) == 0) {
			snprintf(path, PATH_MAX, "%s", fixed[i]);
			return true;
		}
	}
	return false;
}

static bool enter_namespace(const char *path)
{
	if (path == NULL)
		return true;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && setns(fd, CLONE_NEWNS) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Runs rowfs and returns an exit code of mount(8). */
static int run(const struct arguments *c, const char *const *argv)
{
	pid_t child = fork();
	if (child == 0) {
		execv(argv[0], (char *const *)(uintptr_t)argv);
		fprintf(stderr, "%s: cannot run %s: %s\n", c->me, argv[0], strerrordesc_np(errno));
		_exit(MOUNT_SYSTEM + 100);
	}
	int status;
	pid_t done;
	do
		done = child < 0 ? -1 : waitpid(child, &status, 0);
	while (done < 0 && errno == EINTR);
	if (done < 0) {
		(void)complain(c, "cannot run rowfs: ", strerrordesc_np(errno));
		return MOUNT_SYSTEM;
	}
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGINT ? MOUNT_INTERRUPTED : MOUNT_FAIL;
	switch (WEXITSTATUS(status)) {
	case 0:
		return MOUNT_OK;
	case 1:
		return MOUNT_FAIL;
	case 2:
		return MOUNT_USAGE;
	default:
		return MOUNT_SYSTEM;
	}
}

/* Returns true if the comma-separated list contains the option. */
static bool has(const char *list, const char *option)
{
	size_t n = strlen(option);
	for (const char *at = list; (at = strstr(at, option)) != NULL; at += n)
		if ((at == list || at[-1] == ',') && (at[n] == '\0' || at[n] == ','))
			return true;
	return false;
}

static int do_mount(const struct arguments *c, const char *rowfs)
{
	const char *argv[2 * WORDS_MAX + 10] = { rowfs, "mount" };
	int n = 2;
	/* mount(8) passes the complete list at a remount: an option outside it is off. */
	bool again = false;
	for (int i = 0; i < c->noptions; i++)
		again = again || has(c->options[i], "remount");
	if (again) {
		argv[n++] = "-o";
		argv[n++] = "exec,atime";
	}
	for (int i = 0; i < c->noptions; i++) {
		argv[n++] = "-o";
		argv[n++] = c->options[i];
	}
	argv[n++] = "--";
	argv[n++] = c->positional[0];
	argv[n] = c->positional[1];
	return c->fake ? MOUNT_OK : run(c, argv);
}

static int do_umount(const struct arguments *c, const char *rowfs)
{
	const char *dir = c->positional[0];
	if (c->lazy || c->force) {
		/* -l and -f ask not to wait for the server. */
		int flags = (c->lazy ? MNT_DETACH : 0) | (c->force ? MNT_FORCE : 0);
		if (umount2(dir, flags | UMOUNT_NOFOLLOW) == 0)
			return MOUNT_OK;
		(void)complain(c, "cannot unmount: ", strerrordesc_np(errno));
		return MOUNT_FAIL;
	}
	const char *argv[] = { rowfs, "umount", "--", dir, NULL };
	return run(c, argv);
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	struct arguments c = { .me = slash != NULL ? slash + 1 : "mount.rowfs" };
	if (slash == NULL && argc > 0)
		c.me = argv[0];
	bool unmounting = strncmp(c.me, "umount", 6) == 0;
	int code = parse(&c, argc, argv, unmounting);
	if (code != MOUNT_OK)
		return code;
	char rowfs[PATH_MAX];
	if (!find_rowfs(rowfs)) {
		(void)complain(&c, "cannot find the program rowfs", "");
		return MOUNT_SYSTEM;
	}
	if (!enter_namespace(c.namespace)) {
		(void)complain(&c, "cannot enter the namespace ", c.namespace);
		return MOUNT_SYSTEM;
	}
	return unmounting ? do_umount(&c, rowfs) : do_mount(&c, rowfs);
}
