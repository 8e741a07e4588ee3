/* SPDX-License-Identifier: MIT
 * The log is written by one connection at a time: for each page a header of 24 bytes and the
 * page, one behind the other.  The header of a commit's last page says so, and nobody reads a
 * page before that: until then they are gathered.  Whatever else is asked of the file comes after
 * what was gathered.  An error is told by the call that writes, which is of the same transaction.
 * What was lost then SQLite may believe written: nothing behind it is read or written until a
 * header is written in its place, for the transaction was rolled back. */
#include "store/sqlite/log_file.h"

#include "store/sqlite/page_file.h"

#include <sqlite3.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX(a_, b_) ((a_) > (b_) ? (a_) : (b_))

#define HEADER 24
#define HEADER_OF_LOG 32
#define PAGE 4096
#define FRAMES 16
#define GATHER ((size_t)FRAMES * (HEADER + PAGE))

struct log_file {
	sqlite3_file base;  /* first: SQLite's view of it */
	char *gathered;     /* GATHER bytes, from the first write on; NULL */
	sqlite3_int64 from; /* where they belong */
	size_t n;
	bool commit;           /* they end with the header of a commit's last page */
	int error;             /* SQLITE_OK, or why what belongs from `from` on was lost */
	sqlite3_int64 read_at; /* where was read last */
	sqlite3_file real[];
};

static struct log_file *of(sqlite3_file *f)
{
	return (struct log_file *)f;
}

static int write_out(struct log_file *f)
{
	int rc = SQLITE_OK;
	if (f->n > 0)
		rc = f->error = f->real->pMethods->xWrite(f->real, f->gathered, (int)f->n, f->from);
	f->n = 0;
	f->commit = false;
	return rc;
}

/* Whether all that SQLite believes written in [at, at + n) is. */
static int check(struct log_file *f, int n, sqlite3_int64 at)
{
	int rc = write_out(f);
	return rc == SQLITE_OK && at + n > f->from ? f->error : rc;
}

static int write_through(struct log_file *f, const void *p, int n, sqlite3_int64 at)
{
	int rc = check(f, n, at);
	return rc == SQLITE_OK ? f->real->pMethods->xWrite(f->real, p, n, at) : rc;
}

static bool ends_commit(const unsigned char *header)
{
	return (header[4] | header[5] | header[6] | header[7]) != 0;
}

static int log_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
	struct log_file *f = of(file);
	if (n <= HEADER_OF_LOG && at <= f->from)
		f->error = SQLITE_OK;
	/* A commit that wrote a page twice ends by reading each frame and writing its header anew:
	 * no page follows there. */
	if (f->error != SQLITE_OK || (n == HEADER && at == f->read_at))
		return write_through(f, p, n, at);
	bool header = n == HEADER, page = n == PAGE && f->n % (HEADER + PAGE) == HEADER;
	bool next = f->n > 0 && at == f->from + (sqlite3_int64)f->n;
	if (!(header && (f->n == 0 || (next && f->n % (HEADER + PAGE) == 0))) && !(page && next))
		return write_through(f, p, n, at);
	if (f->gathered == NULL && (f->gathered = malloc(GATHER)) == NULL)
		return write_through(f, p, n, at);
	if (f->n == 0)
		f->from = at;
	memcpy(f->gathered + f->n, p, (size_t)n);
	f->n += (size_t)n;
	if (header)
		f->commit = ends_commit(p);
	return page && (f->commit || f->n == GATHER) ? write_out(f) : SQLITE_OK;
}

static int log_close(sqlite3_file *file)
{
	struct log_file *f = of(file);
	(void)write_out(f);
	free(f->gathered);
	f->gathered = NULL;
	return f->real->pMethods->xClose(f->real);
}

static int log_read(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
	struct log_file *f = of(file);
	int rc = check(f, n, at);
	f->read_at = at;
	if (rc == SQLITE_OK)
		rc = f->real->pMethods->xRead(f->real, p, n, at);
	return rc == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : rc; /* EIO is no damage yet */
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	int rc = write_out(of(file));
	return rc == SQLITE_OK ? of(file)->real->pMethods->xTruncate(of(file)->real, size) : rc;
}

static int log_sync(sqlite3_file *file, int flags)
{
	int rc = write_out(of(file));
	return rc == SQLITE_OK ? of(file)->real->pMethods->xSync(of(file)->real, flags) : rc;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	int rc = write_out(of(file));
	return rc == SQLITE_OK ? of(file)->real->pMethods->xFileSize(of(file)->real, ret) : rc;
}

static int log_control(sqlite3_file *file, int op, void *arg)
{
	return of(file)->real->pMethods->xFileControl(of(file)->real, op, arg);
}

static int log_sector_size(sqlite3_file *file)
{
	return of(file)->real->pMethods->xSectorSize(of(file)->real);
}

static int log_device(sqlite3_file *file)
{
	return of(file)->real->pMethods->xDeviceCharacteristics(of(file)->real);
}

static int lock_nothing(sqlite3_file *file, int level)
{
	(void)file;
	(void)level;
	return SQLITE_OK;
}

static int is_locked(sqlite3_file *file, int *ret)
{
	(void)file;
	*ret = 0;
	return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xLock = lock_nothing,
	.xUnlock = lock_nothing,
	.xCheckReservedLock = is_locked,
	.xFileControl = log_control,
	.xSectorSize = log_sector_size,
	.xDeviceCharacteristics = log_device,
};

static int open_file(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	sqlite3_vfs *below = vfs->pAppData;
	if (flags & SQLITE_OPEN_MAIN_DB)
		return sql_page_file_open(below, name, file, flags, ret_flags);
	if (!(flags & SQLITE_OPEN_WAL) || strcmp(vfs->zName, SQL_VFS_RO) == 0)
		return below->xOpen(below, name, file, flags, ret_flags);
	struct log_file *f = of(file);
	memset(f, 0, sizeof(*f));
	int rc = below->xOpen(below, name, f->real, flags, ret_flags);
	/* As in page_file.c: SQLite's second choice is no use. */
	if (rc == SQLITE_OK && ret_flags && !(*ret_flags & SQLITE_OPEN_READWRITE)) {
		(void)f->real->pMethods->xClose(f->real);
		return SQLITE_IOERR;
	}
	if (f->real->pMethods != NULL)
		f->base.pMethods = &methods;
	return rc;
}

static bool add(sqlite3_vfs *vfs, const char *name, const char *below)
{
	sqlite3_vfs *found = sqlite3_vfs_find(below);
	if (found == NULL)
		return false;
	*vfs = *found;
	vfs->zName = name;
	vfs->pNext = NULL;
	vfs->pAppData = found;
	vfs->szOsFile += MAX((int)sizeof(struct log_file), sql_page_file_size);
	vfs->xOpen = open_file;
	return sqlite3_vfs_register(vfs, 0) == SQLITE_OK;
}

bool sql_log_file_register(void)
{
	static sqlite3_vfs all, read_only;
	return add(&all, SQL_VFS, "unix-excl") && add(&read_only, SQL_VFS_RO, "unix");
}
