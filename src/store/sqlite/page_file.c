/* SPDX-License-Identifier: MIT
 * A layer over the methods of SQLite's own file.  Only reads and writes of whole pages are looked
 * at; the few bytes of the header that SQLite reads by themselves are read again with their page.
 * A page that the header counts and the file has no more is as wrong as a changed one. */
#include "store/sqlite/page_file.h"

#include "store/sqlite/page_sum.h"

#include <stdbool.h>
#include <string.h>

struct page_file {
	sqlite3_file base;          /* first: SQLite's view of it */
	bool sealed;                /* its pages have sums */
	void (*on_read)(void *arg); /* or NULL */
	void *on_read_arg;
	sqlite3_file real[];
};

const int sql_page_file_size = (int)sizeof(struct page_file);

static sqlite3_file *real(sqlite3_file *file)
{
	return ((struct page_file *)file)->real;
}

static bool is_page(int n, sqlite3_int64 at)
{
	return n == PAGE_BYTES && at % PAGE_BYTES == 0;
}

static uint32_t number_of(sqlite3_int64 at)
{
	return (uint32_t)(at / PAGE_BYTES) + 1;
}

/* SQLite from 3.45 on reads the later pages of a long value past its cache, each without its end
 * (SQLITE_DIRECT_OVERFLOW_READ). */
static bool is_part_of_page(int n, sqlite3_int64 at)
{
	return at >= PAGE_BYTES && n < PAGE_BYTES && at % PAGE_BYTES + n <= PAGE_BYTES;
}

static int page_read_whole(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
	int rc = real(file)->pMethods->xRead(real(file), p, n, at);
	if (rc == SQLITE_IOERR_CORRUPTFS)
		rc = SQLITE_IOERR_READ; /* EIO is no damage of the store yet */
	if (!((struct page_file *)file)->sealed || !is_page(n, at))
		return rc;
	if (rc == SQLITE_IOERR_SHORT_READ)
		return SQLITE_IOERR_DATA;
	return rc == SQLITE_OK && !page_is_whole(p, number_of(at)) ? SQLITE_IOERR_DATA : rc;
}

static int page_read(sqlite3_file *file, void *p, int n, sqlite3_int64 at)
{
	const struct page_file *f = (struct page_file *)file;
	unsigned char page[PAGE_BYTES];
	if (f->on_read)
		f->on_read(f->on_read_arg);
	if (!f->sealed || !is_part_of_page(n, at))
		return page_read_whole(file, p, n, at);
	int rc = page_read_whole(file, page, sizeof(page), at - at % PAGE_BYTES);
	if (rc == SQLITE_OK)
		memcpy(p, page + at % PAGE_BYTES, (size_t)n);
	return rc;
}

static int page_write(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
	struct page_file *f = (struct page_file *)file;
	unsigned char page[PAGE_BYTES];
	if (is_page(n, at) && at == 0)
		f->sealed = ((const unsigned char *)p)[PAGE_RESERVED_AT] == PAGE_SUM_BYTES;
	if (f->sealed && is_page(n, at)) {
		memcpy(page, p, sizeof(page));
		page_seal(page, number_of(at));
		p = page;
	}
	return f->real->pMethods->xWrite(f->real, p, n, at);
}

void sql_page_file_watch(sqlite3 *db, void (*fn)(void *arg), void *arg)
{
	sqlite3_file *file = NULL;
	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
		!file)
		return;
	struct page_file *f = (struct page_file *)file;
	f->on_read = fn;
	f->on_read_arg = arg;
}

/* ---- as it is below ---- */

static int page_close(sqlite3_file *file)
{
	return real(file)->pMethods->xClose(real(file));
}

static int page_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return real(file)->pMethods->xTruncate(real(file), size);
}

static int page_sync(sqlite3_file *file, int flags)
{
	return real(file)->pMethods->xSync(real(file), flags);
}

static int page_size(sqlite3_file *file, sqlite3_int64 *ret)
{
	return real(file)->pMethods->xFileSize(real(file), ret);
}

static int page_lock(sqlite3_file *file, int level)
{
	return real(file)->pMethods->xLock(real(file), level);
}

static int page_unlock(sqlite3_file *file, int level)
{
	return real(file)->pMethods->xUnlock(real(file), level);
}

static int page_is_locked(sqlite3_file *file, int *ret)
{
	return real(file)->pMethods->xCheckReservedLock(real(file), ret);
}

static int page_control(sqlite3_file *file, int op, void *arg)
{
	return real(file)->pMethods->xFileControl(real(file), op, arg);
}

static int page_sector_size(sqlite3_file *file)
{
	return real(file)->pMethods->xSectorSize(real(file));
}

static int page_device(sqlite3_file *file)
{
	return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int page_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
	return real(file)->pMethods->xShmMap(real(file), region, size, extend, ret);
}

static int page_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return real(file)->pMethods->xShmLock(real(file), offset, n, flags);
}

static void page_shm_barrier(sqlite3_file *file)
{
	real(file)->pMethods->xShmBarrier(real(file));
}

static int page_shm_unmap(sqlite3_file *file, int remove)
{
	return real(file)->pMethods->xShmUnmap(real(file), remove);
}

/* Without xFetch: what is mapped could not be looked at. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = page_close,
	.xRead = page_read,
	.xWrite = page_write,
	.xTruncate = page_truncate,
	.xSync = page_sync,
	.xFileSize = page_size,
	.xLock = page_lock,
	.xUnlock = page_unlock,
	.xCheckReservedLock = page_is_locked,
	.xFileControl = page_control,
	.xSectorSize = page_sector_size,
	.xDeviceCharacteristics = page_device,
	.xShmMap = page_shm_map,
	.xShmLock = page_shm_lock,
	.xShmBarrier = page_shm_barrier,
	.xShmUnmap = page_shm_unmap,
};

int sql_page_file_open(
	sqlite3_vfs *below, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct page_file *f = (struct page_file *)file;
	unsigned char head[PAGE_RESERVED_AT + 1];
	f->base.pMethods = NULL;
	f->sealed = false;
	f->on_read = NULL;
	int rc = below->xOpen(below, name, f->real, flags, ret_flags);
	if (rc != SQLITE_OK)
		return rc; /* SQLite's own file has no methods then */
	f->base.pMethods = &methods;
	/* Where it cannot be opened for writing SQLite opens it for reading: who serves a store has
	 * nothing of that. */
	if (flags & SQLITE_OPEN_READWRITE && ret_flags && !(*ret_flags & SQLITE_OPEN_READWRITE)) {
		rc = SQLITE_IOERR;
	} else {
		rc = real(file)->pMethods->xRead(f->real, head, sizeof(head), 0);
		f->sealed = rc == SQLITE_OK && head[PAGE_RESERVED_AT] == PAGE_SUM_BYTES;
	}
	/* A new file has none yet: its first page says. */
	if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ)
		return SQLITE_OK;
	(void)page_close(file);
	f->base.pMethods = NULL;
	return rc == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : rc;
}
