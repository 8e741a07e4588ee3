/* SPDX-License-Identifier: MIT
 * One process that does one thing to many files, and prints what it took: the client of the
 * figures of a mount.  Rows are named as memfs.c names them.
 *
 *   fsops OP DIR [--first=I] [--count=N] [--step=S] [--modulo=M] [--behind=B] [--bytes=B]
 *     [--salt=K] [--buffer=BYTES]
 *
 * OP over rows I, I+S, ... (modulo M):  cat  stat  create  overwrite
 *   replace (temporary file + rename)  rename (rowI.json to rowI.json with prefix "r-")
 *   unlink  append  sync (write, fsync, close)
 * With --behind the row is another one, right behind that in the order of keys.
 * OP on DIR:  list (names only)  list-stat (getdents, then fstatat of each)
 *   cat-file (DIR is a file; read with --buffer)
 *
 * Prints: operations, microseconds for one, bytes or entries seen. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct run {
	const char *dir;
	int dir_fd;
	unsigned long first, count, step, modulo, behind, bytes, salt, buffer;
	char *bytes_read, *document;
	unsigned long seen; /* bytes or entries */
};

static void fail(const char *what, const char *name) __attribute__((noreturn));
static void fail(const char *what, const char *name)
{
	fprintf(stderr, "fsops: %s %s: %m\n", what, name);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- on one row ---- */

/* As cat(1): open, fstat, read until nothing comes, close. */
static void read_all(struct run *r, int at, const char *name)
{
	struct stat st;
	ssize_t n;
	int fd = openat(at, name, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0)
		fail("open", name);
	unsigned long total = 0;
	while ((n = read(fd, r->bytes_read, r->buffer)) > 0)
		total += (unsigned long)n;
	if (n < 0 || total != (unsigned long)st.st_size || close(fd) != 0)
		fail("read", name);
	r->seen += total;
}

static void cat_row(struct run *r, const char *name)
{
	read_all(r, r->dir_fd, name);
}

static void stat_row(struct run *r, const char *name)
{
	struct stat st;
	if (fstatat(r->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		fail("stat", name);
	r->seen += (unsigned long)st.st_size;
}

/* A document of exactly so many bytes, other ones each time. */
static void make_document(struct run *r, const char *name)
{
	int n = snprintf(r->document, r->bytes, "{\"row\":\"%s\",\"salt\":\"%010lu\",\"text\":\"",
		name, r->salt);
	unsigned long end = (unsigned long)n;
	if (end + 4 > r->bytes) {
		errno = EINVAL;
		fail("--bytes is too small for", name);
	}
	for (; end < r->bytes - 3; end++)
		r->document[end] = (char)('a' + (end + r->salt) % 26);
	memcpy(r->document + end, "\"}\n", 3);
}

static void write_row(struct run *r, const char *name, int flags, bool sync)
{
	make_document(r, name);
	int fd = openat(r->dir_fd, name, O_WRONLY | flags, 0644);
	if (fd < 0)
		fail("open", name);
	if (write(fd, r->document, r->bytes) != (ssize_t)r->bytes)
		fail("write", name);
	if (sync && fsync(fd) != 0)
		fail("fsync", name);
	if (close(fd) != 0)
		fail("close", name);
	r->seen += r->bytes;
}

static void create_row(struct run *r, const char *name)
{
	write_row(r, name, O_CREAT | O_EXCL, false);
}

static void overwrite_row(struct run *r, const char *name)
{
	write_row(r, name, O_TRUNC, false);
}

static void sync_row(struct run *r, const char *name)
{
	write_row(r, name, O_CREAT | O_TRUNC, true);
}

static void append_row(struct run *r, const char *name)
{
	write_row(r, name, O_CREAT | O_APPEND, false);
}

static void replace_row(struct run *r, const char *name)
{
	char temporary[64];
	snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
	write_row(r, temporary, O_CREAT | O_EXCL, false);
	if (renameat(r->dir_fd, temporary, r->dir_fd, name) != 0)
		fail("rename", name);
}

static void rename_row(struct run *r, const char *name)
{
	char other[64];
	snprintf(other, sizeof(other), "r-%s", name);
	if (renameat(r->dir_fd, name, r->dir_fd, other) != 0)
		fail("rename", name);
}

static void unlink_row(struct run *r, const char *name)
{
	if (unlinkat(r->dir_fd, name, 0) != 0)
		fail("unlink", name);
}

static const struct {
	const char *name;
	void (*fn)(struct run *r, const char *name);
} row_ops[] = { { "cat", cat_row }, { "stat", stat_row }, { "create", create_row },
	{ "overwrite", overwrite_row }, { "replace", replace_row }, { "rename", rename_row },
	{ "unlink", unlink_row }, { "append", append_row }, { "sync", sync_row } };

static bool run_rows(struct run *r, const char *op)
{
	char name[64];
	for (size_t k = 0; k < sizeof(row_ops) / sizeof(row_ops[0]); k++) {
		if (strcmp(row_ops[k].name, op) != 0)
			continue;
		for (unsigned long i = 0; i < r->count; i++) {
			unsigned long row = r->first + i * r->step;
			row = r->modulo != 0 ? row % r->modulo : row;
			if (r->behind != 0)
				snprintf(name, sizeof(name), "row%07lu-%lu.json", row, r->behind);
			else
				snprintf(name, sizeof(name), "row%07lu.json", row);
			row_ops[k].fn(r, name);
		}
		return true;
	}
	return false;
}

/* ---- on a directory ---- */

static void list(struct run *r, bool with_stat)
{
	struct stat st;
	long n;
	int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		fail("open", r->dir);
	while ((n = syscall(SYS_getdents64, fd, r->bytes_read, r->buffer)) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64 *e = (const void *)(r->bytes_read + at);
			if (with_stat && fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
				fail("stat", e->d_name);
			r->seen++;
			at += e->d_reclen;
		}
	}
	if (n < 0)
		fail("getdents", r->dir);
	close(fd);
}

static bool run_directory(struct run *r, const char *op)
{
	bool names = strcmp(op, "list") == 0;
	if (!names && strcmp(op, "list-stat") != 0)
		return false;
	list(r, !names);
	r->count = r->seen > 0 ? r->seen : 1;
	return true;
}

static bool run_file(struct run *r, const char *op)
{
	if (strcmp(op, "cat-file") != 0)
		return false;
	for (unsigned long i = 0; i < r->count; i++)
		read_all(r, AT_FDCWD, r->dir);
	return true;
}

int main(int argc, char **argv)
{
	struct run r = { .count = 1, .step = 1, .bytes = 300, .buffer = 131072 };
	const struct option options[] = { { "first", required_argument, NULL, 0 },
		{ "count", required_argument, NULL, 1 }, { "step", required_argument, NULL, 2 },
		{ "bytes", required_argument, NULL, 3 }, { "salt", required_argument, NULL, 4 },
		{ "buffer", required_argument, NULL, 5 }, { "modulo", required_argument, NULL, 6 },
		{ "behind", required_argument, NULL, 7 }, { 0 } };
	unsigned long *const values[] = { &r.first, &r.count, &r.step, &r.bytes, &r.salt, &r.buffer,
		&r.modulo, &r.behind };
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == '?')
			return 2;
		*values[c] = strtoul(optarg, NULL, 10);
	}
	if (optind != argc - 2) {
		fprintf(stderr, "usage: fsops OP DIR [OPTION...]; see fsops.c\n");
		return 2;
	}
	const char *op = argv[optind];
	r.dir = argv[optind + 1];
	r.bytes_read = malloc(r.buffer);
	r.document = malloc(r.bytes + 64);
	r.dir_fd = open(r.dir, strcmp(op, "cat-file") == 0 ? O_PATH : O_RDONLY | O_DIRECTORY);
	if (r.bytes_read == NULL || r.document == NULL || r.dir_fd < 0)
		fail("open", r.dir);
	double start = now_us();
	if (!run_rows(&r, op) && !run_directory(&r, op) && !run_file(&r, op)) {
		fprintf(stderr, "fsops: unknown operation: %s\n", op);
		return 2;
	}
	double us = now_us() - start;
	printf("%lu %.4f %lu\n", r.count, us / (double)r.count, r.seen);
	return 0;
}
