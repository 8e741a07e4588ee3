/* SPDX-License-Identifier: MIT
 * Copies, then upgrades, in one opening: so the copy is the last state of the older schema, and there
 * is one for each upgrade.  Who is killed between the two finds the copy again by its bytes. */
#include "store/sqlite/upgrade.h"

#include "base/new_file.h"
#include "store/sqlite/copy.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX 100

static enum err upgrade_schema(struct sql_writer *w)
{
	struct sql_counters before = w->now;
	size_t unused;
	enum err e = sql_do(w->conn, SQL_BEGIN);
	if (e == ERR_OK)
		e = sql_apply_set(w, NULL, 0, &unused);
	if (e == ERR_OK)
		e = sql_do(w->conn, SQL_COMMIT);
	if (e == ERR_OK)
		return e;
	if (!sqlite3_get_autocommit(w->conn->db))
		(void)sql_do(w->conn, SQL_ROLLBACK);
	sql_dirs_drop(w);
	w->now = before;
	return e;
}

static bool same_bytes(int a, int b)
{
	char x[8192], y[8192];
	for (off_t at = 0;; at += (off_t)sizeof(x)) {
		ssize_t n = TEMP_FAILURE_RETRY(pread(a, x, sizeof(x), at));
		if (n < 0 || pread(b, y, sizeof(y), at) != n || memcmp(x, y, (size_t)n) != 0)
			return false;
		if (n < (ssize_t)sizeof(x))
			return true;
	}
}

static bool is_same_file(const char *path, int fd)
{
	int there = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool same = there >= 0 && same_bytes(there, fd);
	if (there >= 0)
		(void)close(there);
	return same;
}

/* Gives the copy the first name that is free, into *ret. */
static enum err name_copy(const char *part, int fd, const char *stem, char **ret)
{
	for (int i = 1; i <= NAMES_MAX; i++) {
		char number[16] = "";
		if (i > 1)
			(void)snprintf(number, sizeof(number), ".%d", i);
		if (asprintf(ret, "%s%s", stem, number) < 0) {
			*ret = NULL;
			return ERR_NO_MEMORY;
		}
		enum err e = new_file_place(part, *ret, false);
		if (e == ERR_NAME_EXISTS && is_same_file(*ret, fd)) {
			(void)unlink(part);
			e = ERR_OK;
		}
		if (e == ERR_OK)
			return new_file_sync_name(*ret);
		free(*ret);
		*ret = NULL;
		if (e != ERR_NAME_EXISTS)
			return e;
	}
	return ERR_NAME_EXISTS;
}

static enum err copy_now(struct sql_conn *c, int fd)
{
	int64_t unused;
	enum err e = sql_do(c, SQL_BEGIN_READ);
	if (e == ERR_OK) /* the first read fixes the moment */
		e = sql_meta_get(c, "next_id", &unused);
	if (e == ERR_OK)
		e = sql_copy_from(c, fd, NULL, NULL);
	enum err end = sql_end_reading(c);
	return e == ERR_OK ? end : e;
}

/* The store is held, so nobody else has this name. */
static enum err keep_copy(struct sql_store *st, const char *stem)
{
	char *part;
	if (asprintf(&part, "%s.part", stem) < 0)
		return ERR_NO_MEMORY;
	(void)unlink(part);
	int fd = (int)TEMP_FAILURE_RETRY(
		open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
	enum err e = fd >= 0 ? ERR_OK : err_from_errno(errno);
	if (e == ERR_OK)
		e = copy_now(st->writer.conn, fd);
	if (e == ERR_OK)
		e = name_copy(part, fd, stem, &st->kept_copy);
	if (fd >= 0)
		(void)close(fd);
	if (fd >= 0 && e != ERR_OK)
		(void)unlink(part);
	free(part);
	return e;
}

static bool is_unwanted(const char *stem)
{
	struct stat st;
	return lstat(stem, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

enum err sql_upgrade(struct sql_store *st, struct err_detail *detail)
{
	char *stem;
	int from = st->writer.now.schema;
	if (from >= SQL_SCHEMA_UNSEALED)
		return ERR_OK;
	if (asprintf(&stem, "%s.v%d", st->path, from) < 0)
		return ERR_NO_MEMORY;
	enum err e = is_unwanted(stem) ? ERR_OK : keep_copy(st, stem);
	if (e != ERR_OK)
		(void)err_set(detail, e,
			"no copy of schema version %d can be kept: %s  Make an empty file to go "
			"without: %s",
			from, err_text(e), stem);
	free(stem);
	if (e == ERR_OK)
		e = upgrade_schema(&st->writer);
	if (e == ERR_OK)
		st->upgraded_from = from;
	return e;
}
