/* SPDX-License-Identifier: MIT
 * Holding a store, and finding out who holds it: /proc/locks names the process that took
 * the lock, by the file's device and inode. */
#include "store/sqlite/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A line of /proc/locks: "7: FLOCK  ADVISORY  WRITE 4242 fe:01:12345 0 EOF". */
static bool line_names(const char *line, const struct stat *st, pid_t *ret)
{
	int pid;
	unsigned major_nr, minor_nr;
	unsigned long inode;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
	if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major_nr, &minor_nr, &inode) !=
		4)
		return false;
	*ret = (pid_t)pid;
	return pid > 0 && inode == st->st_ino && major_nr == major(st->st_dev) &&
		minor_nr == minor(st->st_dev);
}

/* 0: not known (another pid namespace, or it has just let go). */
static pid_t find_holder(int fd)
{
	struct stat st;
	pid_t pid = 0;
	char line[256];
	FILE *f = fstat(fd, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
	if (!f)
		return 0;
	while (pid == 0 && fgets(line, sizeof(line), f)) {
		if (!line_names(line, &st, &pid))
			pid = 0;
	}
	(void)fclose(f);
	return pid;
}

static void name_of(pid_t pid, char out[64])
{
	char path[64];
	out[0] = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(out, 64, f))
		out[strcspn(out, "\n")] = 0;
	(void)fclose(f);
}

static enum err busy(int fd, pid_t *ret_holder, struct err_detail *detail)
{
	char name[64];
	pid_t pid = find_holder(fd);
	if (ret_holder)
		*ret_holder = pid;
	if (pid == 0)
		return err_set(detail, ERR_BUSY, "the store is being served by another process");
	name_of(pid, name);
	return err_set(detail, ERR_BUSY, "the store is being served by process %d%s%s%s", (int)pid,
		name[0] ? " (" : "", name, name[0] ? ")" : "");
}

static enum err open_failed(const char *path, int code, bool read_only, struct err_detail *detail)
{
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		return err_set(detail, ERR_NOT_FOUND, "there is no store at %s", path);
	case EISDIR:
		return err_set(
			detail, ERR_NOT_A_STORE, "%s is a directory, not a rowfs store", path);
	case ENXIO:
		return err_set(detail, ERR_NOT_A_STORE, "%s is not a regular file", path);
	case EROFS:
		return err_set(detail, ERR_READ_ONLY, "%s is on a read-only file system", path);
	case EACCES:
	case EPERM:
		if (!read_only && access(path, R_OK) == 0)
			return err_set(detail, ERR_READ_ONLY, "%s may not be written", path);
		return err_set(detail, ERR_ACCESS, "%s: permission denied", path);
	default:
		return err_set(detail, err_from_errno(code), "cannot open %s", path);
	}
}

static enum err take_lock(int fd, const char *path, pid_t *ret_holder, struct err_detail *detail)
{
	struct stat st;
	if (TEMP_FAILURE_RETRY(fstat(fd, &st)) != 0)
		return err_set(detail, err_from_errno(errno), "cannot stat %s", path);
	if (S_ISDIR(st.st_mode))
		return open_failed(path, EISDIR, false, detail);
	if (!S_ISREG(st.st_mode))
		return open_failed(path, ENXIO, false, detail);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return ERR_OK;
	if (errno == EWOULDBLOCK)
		return busy(fd, ret_holder, detail);
	return err_set(detail, err_from_errno(errno), "cannot lock %s", path);
}

enum err sql_hold(
	const char *path, bool read_only, int *ret_fd, pid_t *ret_holder, struct err_detail *detail)
{
	if (ret_holder)
		*ret_holder = 0;
	int flags = (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = (int)TEMP_FAILURE_RETRY(open(path, flags));
	if (fd < 0)
		return open_failed(path, errno, read_only, detail);
	enum err e = take_lock(fd, path, ret_holder, detail);
	if (e != ERR_OK) {
		(void)close(fd);
		return e;
	}
	*ret_fd = fd;
	return ERR_OK;
}
