/* SPDX-License-Identifier: MIT */
#include "daemon/mount/mountinfo.h"

#include "daemon/core/path.h"
#include "store/engines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 1500 /* after which rowfs asks whether an answer can come at all */
#define LOOKS 2      /* then it is said, or not waited for a server that lives */

/* mountinfo writes blanks and backslashes as \ooo. */
static void unescape(const char *text, char *out, size_t cap)
{
	size_t n = 0;
	while (*text != '\0' && n + 1 < cap) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] != '\0' &&
			text[3] != '\0') {
			out[n++] = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 +
				(text[3] - '0'));
			text += 4;
		} else {
			out[n++] = *text++;
		}
	}
	out[n] = '\0';
}

/* id parent major:minor root DIR options [tags...] - TYPE SOURCE options */
static bool parse(char *line, struct mount_entry *ret)
{
	char *field[16], *save = NULL;
	size_t n = 0;
	char *dash = strstr(line, " - ");
	if (dash == NULL)
		return false;
	*dash = '\0';
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
	if (sscanf(line, "%*u %*u %*u:%u", &ret->device) != 1)
		return false;
	for (char *f = strtok_r(line, " \n", &save); f != NULL && n < 5;
		f = strtok_r(NULL, " \n", &save))
		field[n++] = f;
	char *type = strtok_r(dash + 3, " \n", &save);
	char *source = strtok_r(NULL, " \n", &save);
	char *options = strtok_r(NULL, " \n", &save);
	if (n < 5 || type == NULL || source == NULL)
		return false;
	const char *user = options != NULL ? strstr(options, "user_id=") : NULL;
	ret->user = user != NULL ? (uid_t)strtoul(user + strlen("user_id="), NULL, 10) : 0;
	unescape(field[4], ret->dir, sizeof(ret->dir));
	unescape(type, ret->type, sizeof(ret->type));
	unescape(source, ret->source, sizeof(ret->source));
	return true;
}

struct search {
	const char *dir, *source; /* NULL: any */
	unsigned device;          /* 0: any */
	size_t number;            /* of those that fit; LAST: the one on top */
};

#define LAST SIZE_MAX

static bool fits(const struct mount_entry *m, const struct search *s)
{
	return (s->dir == NULL || strcmp(m->dir, s->dir) == 0) &&
		(s->source == NULL || strcmp(m->source, s->source) == 0) &&
		(s->device == 0 || (m->device == s->device && strcmp(m->type, MOUNT_TYPE) == 0));
}

static bool find(const char *table, const struct search *s, struct mount_entry *ret)
{
	FILE *f = fopen(table, "re");
	struct mount_entry *one = malloc(sizeof(*one));
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	for (size_t n = 0; f != NULL && one != NULL && getline(&line, &cap, f) > 0;) {
		if (!parse(line, one) || !fits(one, s))
			continue;
		if (s->number == LAST || n == s->number) {
			*ret = *one;
			found = true;
		}
		n++;
	}
	free(line);
	free(one);
	if (f != NULL)
		(void)fclose(f);
	return found;
}

#define OWN_TABLE "/proc/self/mountinfo"

bool mountinfo_find(const char *dir, struct mount_entry *ret)
{
	return find(OWN_TABLE, &(struct search){ .dir = dir, .number = LAST }, ret);
}

bool mountinfo_of_store(const char *store, size_t number, struct mount_entry *ret)
{
	return find(OWN_TABLE, &(struct search){ .source = store, .number = number }, ret);
}

bool mountinfo_of_device(unsigned device, struct mount_entry *ret)
{
	return device != 0 &&
		find(OWN_TABLE, &(struct search){ .device = device, .number = LAST }, ret);
}

bool mountinfo_elsewhere(pid_t pid, unsigned device)
{
	char table[64];
	struct mount_entry *m = malloc(sizeof(*m));
	(void)snprintf(table, sizeof(table), "/proc/%d/mountinfo", (int)pid);
	bool has = m != NULL && device != 0 && find(table, &(struct search){ .device = device }, m);
	free(m);
	return has;
}

pid_t mountinfo_process(unsigned device)
{
	DIR *all = opendir("/proc");
	struct dirent *d;
	pid_t found = 0;
	while (all != NULL && found == 0 && (d = readdir(all)) != NULL) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		if (pid > 0 && mountinfo_elsewhere(pid, device))
			found = pid;
	}
	if (all != NULL)
		(void)closedir(all);
	return found;
}

bool mountinfo_shows(const char *store)
{
	struct mount_entry *m = malloc(sizeof(*m));
	bool shows = m != NULL && mountinfo_of_store(store, 0, m);
	free(m);
	return shows;
}

pid_t store_holder(const char *path)
{
	struct err_detail why = { 0 };
	struct store *store;
	pid_t holder = 0;
	if (store_is_remote(path))
		return 0; /* its holder may be on another machine */
	enum err e = store_open(path, STORE_OPEN_READ_ONLY, &store, &holder, &why);
	if (e == ERR_OK)
		store_close(store);
	return e == ERR_BUSY && holder > 0 ? holder : 0;
}

/* Whether the process that holds the store has been killed and cannot end. */
static bool is_half_dead(const char *path)
{
	char file[64], state = 0;
	pid_t holder = store_holder(path);
	if (holder == 0)
		return false;
	(void)snprintf(file, sizeof(file), "/proc/%d/stat", (int)holder);
	FILE *f = fopen(file, "re");
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
	bool read = f != NULL && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
	if (f != NULL)
		(void)fclose(f);
	return read && state == 'Z';
}

/* The findings of a process beside this one. */
struct finding {
	int code; /* errno */
	bool ok;
	char path[PATH_MAX];
};

static void ask(const char *dir, struct finding *ret)
{
	struct statx st;
	/* A question that was on its way when the server died is told so in another word. */
	for (int tries = 0; tries < 2; tries++) {
		int flags = AT_STATX_FORCE_SYNC;
		ret->ok = statx(AT_FDCWD, dir, flags, STATX_BASIC_STATS, &st) == 0;
		ret->code = ret->ok ? 0 : errno;
		if (ret->code != ECONNABORTED)
			break;
	}
}

static void resolve(const char *path, struct finding *ret)
{
	ret->ok = path_absolute(path, ret->path);
	ret->code = errno;
}

/* A process that nobody waits for, which sends the answer through the pipe: the call itself could
 * not be broken off, and not even be killed.  It keeps nothing of the caller's open: a reader of
 * our output would wait for it.  Returns the pipe's other end, or -1. */
static int find_aside(void (*fn)(const char *path, struct finding *ret), const char *path)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		if (fork() == 0) {
			struct finding found = { 0 };
			if (fds[1] > 0)
				(void)close_range(0, (unsigned)fds[1] - 1, 0);
			(void)close_range((unsigned)fds[1] + 1, ~0u, 0);
			fn(path, &found);
			(void)!write(fds[1], &found, sizeof(found));
		}
		_exit(0);
	}
	int code = child > 0 && waitpid(child, NULL, 0) == child ? 0 : errno;
	close(fds[1]);
	if (code == 0)
		return fds[0];
	close(fds[0]);
	errno = code;
	return -1;
}

/* Takes the answer; EIO where the process has ended without one. */
static void take_finding(int fd, struct finding *ret)
{
	char *at = (char *)ret;
	size_t n = 0;
	ssize_t got;
	while (n < sizeof(*ret) && (got = read(fd, at + n, sizeof(*ret) - n)) > 0)
		n += (size_t)got;
	if (n < sizeof(*ret))
		*ret = (struct finding){ .code = EIO };
}

bool path_absolute_patiently(const char *command, const char *path, char ret[PATH_MAX])
{
	struct finding found;
	int fd = find_aside(resolve, path);
	if (fd < 0)
		return false;
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	for (int n = 1; poll(&answer, 1, LOOK_MS) == 0; n++)
		if (n == LOOKS)
			(void)fprintf(stderr, "rowfs %s: waiting for '%s' to answer ...\n", command,
				path);
	take_finding(fd, &found);
	close(fd);
	memcpy(ret, found.path, sizeof(found.path));
	errno = found.code;
	return found.ok;
}

int mount_ask(const char *dir, const char *store, const char *command)
{
	struct finding found;
	int fd = find_aside(ask, dir);
	if (fd < 0)
		return errno;
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	bool dead = false, late = false;
	for (int n = 1; !dead && !late && poll(&answer, 1, LOOK_MS) == 0; n++) {
		dead = store != NULL && is_half_dead(store);
		late = command == NULL && n == LOOKS;
		if (n == LOOKS && !dead && command != NULL)
			(void)fprintf(stderr,
				"rowfs %s: waiting for the server of '%s' to answer ...\n", command,
				dir);
	}
	if (dead || late)
		found.code = dead ? ENOTCONN : ETIMEDOUT;
	else
		take_finding(fd, &found);
	close(fd);
	return found.code;
}

static int run_fusermount(const char *dir, bool lazy)
{
	char program[] = "fusermount3", plain[] = "-u", at_once[] = "-uz", end[] = "--";
	char *argv[] = { program, lazy ? at_once : plain, end, strdup(dir), NULL };
	if (argv[3] == NULL)
		return ENOMEM;
	pid_t pid;
	int status = 0;
	/* Its own message would only repeat ours. */
	posix_spawn_file_actions_t quiet;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	int code = posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (code == 0 && waitpid(pid, &status, 0) == pid && status != 0)
		code = EBUSY;
	free(argv[3]);
	return code;
}

/* Where nobody has mounted fusectl, as in many containers: a mount of our own, which is attached
 * nowhere.  For root. */
static int open_fusectl(void)
{
	int fs = fsopen("fusectl", FSOPEN_CLOEXEC);
	int root = fs >= 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0
		? fsmount(fs, FSMOUNT_CLOEXEC, 0)
		: -1;
	int code = errno;
	if (fs >= 0)
		close(fs);
	errno = code;
	return root;
}

int connection_open(unsigned device)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", device);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int root = fd < 0 ? open_fusectl() : -1;
	if (root < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "%u/abort", device);
	fd = openat(root, path, O_WRONLY | O_CLOEXEC);
	close(root);
	return fd;
}

void connection_cut(int connection)
{
	if (connection >= 0)
		(void)!write(connection, "1", 1);
}

/* As the force of umount(2), for who mounted it without being root. */
static void cut(const char *dir)
{
	struct mount_entry *m = malloc(sizeof(*m));
	int connection = m != NULL && mountinfo_find(dir, m) && strcmp(m->type, MOUNT_TYPE) == 0
		? connection_open(m->device)
		: -1;
	connection_cut(connection);
	if (connection >= 0)
		close(connection);
	free(m);
}

static bool is_of_another_user(const char *dir)
{
	struct mount_entry *m = malloc(sizeof(*m));
	bool other = m != NULL && mountinfo_find(dir, m) && m->user != geteuid();
	free(m);
	return other;
}

int mount_detach(const char *dir, bool lazy)
{
	/* Force first: it cuts the connection, which wakes all that wait for an answer; after a
	 * detach nothing could reach it any more. */
	if (lazy && umount2(dir, UMOUNT_NOFOLLOW | MNT_FORCE) == 0)
		return 0;
	if (umount2(dir, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno != EPERM)
		return errno;
	if (lazy)
		cut(dir);
	int code = run_fusermount(dir, lazy);
	return code != 0 && is_of_another_user(dir) ? EPERM : code;
}
