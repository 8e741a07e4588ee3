/* SPDX-License-Identifier: MIT
 * Making a store file.  It is built under another name beside its place, then linked to
 * its own, so that a store is whole or not there.  The surprising one: a log left by a
 * store that was removed by hand would be replayed into the new one, so it is refused. */
#include "base/new_file.h"
#include "store/sqlite/engine.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err check_absent(const char *path, const char *tail, struct err_detail *detail)
{
	struct stat st;
	char *name;
	if (asprintf(&name, "%s%s", path, tail) < 0)
		return ERR_NO_MEMORY;
	enum err e = ERR_OK;
	if (lstat(name, &st) == 0)
		e = err_set(detail, ERR_NAME_EXISTS,
			tail[0] ? "%s exists: it belongs to a store that is not there any more"
				: "%s exists already; a store is never made over anything",
			name);
	else if (errno != ENOENT)
		e = err_set(detail, err_from_errno(errno), "%s", strerrordesc_np(errno));
	free(name);
	return e;
}

static enum err fill(const char *path)
{
	struct sql_conn *c;
	enum err e = sql_conn_open(path, SQL_MODE_NEW, &c);
	if (e != ERR_OK)
		return e;
	e = sql_schema_create(c);
	if (e == ERR_OK)
		e = sql_exec(c, "PRAGMA wal_checkpoint(TRUNCATE)");
	sql_conn_close(c);
	return e;
}

static enum err sync_file(const char *path)
{
	int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CLOEXEC));
	if (fd < 0)
		return err_from_errno(errno);
	enum err e = TEMP_FAILURE_RETRY(fsync(fd)) == 0 ? ERR_OK : err_from_errno(errno);
	(void)close(fd);
	return e;
}

/* temp has room for the tails: without memory, too, nothing is left behind. */
static void remove_with(char *temp, const char *tail)
{
	size_t n = strlen(temp);
	memcpy(temp + n, tail, strlen(tail) + 1);
	(void)unlink(temp);
	temp[n] = '\0';
}

static enum err build(char *temp, const char *path)
{
	int fd = mkostemp(temp, O_CLOEXEC); /* mode 0600, less the umask */
	if (fd < 0)
		return err_from_errno(errno);
	(void)fchmod(fd, 0600);
	(void)close(fd);
	enum err e = fill(temp);
	if (e == ERR_OK)
		e = sync_file(temp);
	remove_with(temp, "-journal");
	remove_with(temp, "-wal");
	remove_with(temp, "-shm");
	if (e == ERR_OK)
		e = new_file_place(temp, path, false);
	if (e != ERR_OK) {
		(void)unlink(temp);
		return e;
	}
	e = new_file_sync_name(path);
	if (e != ERR_OK)
		(void)unlink(path);
	return e;
}

/* Why the file cannot be made, where the text of the error speaks of a store or a row. */
static const char *reason(enum err e)
{
	return e == ERR_NOT_FOUND    ? "there is no such directory"
		: e == ERR_READ_ONLY ? "the file system is read-only"
		: e == ERR_ACCESS    ? "permission denied"
				     : err_text(e);
}

enum err sql_store_create(const char *path, struct err_detail *detail)
{
	enum err e = check_absent(path, "", detail);
	if (e == ERR_OK)
		e = check_absent(path, "-wal", detail);
	if (e == ERR_OK)
		e = check_absent(path, "-journal", detail);
	if (e != ERR_OK)
		return e;
	size_t n = strlen(path) + sizeof(".new-XXXXXX-journal");
	char *temp = malloc(n);
	if (!temp)
		return ERR_NO_MEMORY;
	(void)snprintf(temp, n, "%s.new-XXXXXX", path);
	e = build(temp, path);
	free(temp);
	if (e == ERR_OK)
		return e;
	return err_set(detail, e, "%s", reason(e));
}
