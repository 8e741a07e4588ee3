/* SPDX-License-Identifier: MIT
 * Making a store file.  It is built under another name beside its place, then linked to
 * its own, so that a store is whole or not there.  The surprising one: a log left by a
 * store that was removed by hand would be replayed into the new one, so it is refused. */
#include "store/sqlite/create.h"

#include "store/sqlite/engine.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum err sql_sync_directory(const char *path)
{
	char *copy = strdup(path);
	if (!copy)
		return ERR_NO_MEMORY;
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(copy);
	/* A directory that may not be read cannot be synced: not worth refusing it. */
	if (fd < 0)
		return errno == EACCES ? ERR_OK : err_from_errno(errno);
	enum err e = fsync(fd) == 0 || errno == EINVAL ? ERR_OK : err_from_errno(errno);
	(void)close(fd);
	return e;
}

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
		e = err_set(detail, err_from_errno(errno), "cannot make %s", path);
	free(name);
	return e;
}

static enum err fill(const char *path)
{
	struct sql_conn *c;
	enum err e = sql_conn_open(path, SQL_MODE_WRITER, &c);
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
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_from_errno(errno);
	enum err e = fsync(fd) == 0 ? ERR_OK : err_from_errno(errno);
	(void)close(fd);
	return e;
}

static enum err put_in_place(const char *temp, const char *path)
{
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return ERR_OK;
	if (errno == EEXIST)
		return ERR_NAME_EXISTS;
	/* A file system without that flag. */
	if (link(temp, path) != 0)
		return errno == EEXIST ? ERR_NAME_EXISTS : err_from_errno(errno);
	(void)unlink(temp);
	return ERR_OK;
}

static void remove_with(const char *temp, const char *tail)
{
	char *name;
	if (asprintf(&name, "%s%s", temp, tail) < 0)
		return;
	(void)unlink(name);
	free(name);
}

static enum err build(char *temp, const char *path)
{
	int fd = mkostemp(temp, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return err_from_errno(errno);
	(void)close(fd);
	enum err e = fill(temp);
	if (e == ERR_OK)
		e = sync_file(temp);
	if (e == ERR_OK)
		e = put_in_place(temp, path);
	if (e == ERR_OK)
		return sql_sync_directory(path);
	remove_with(temp, "");
	remove_with(temp, "-wal");
	remove_with(temp, "-shm");
	return e;
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
	char *temp;
	if (asprintf(&temp, "%s.new-XXXXXX", path) < 0)
		return ERR_NO_MEMORY;
	e = build(temp, path);
	free(temp);
	if (e == ERR_OK)
		return e;
	return err_set(detail, e, "cannot make %s: %s", path, err_text(e));
}
