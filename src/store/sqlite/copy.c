/* SPDX-License-Identifier: MIT
 * SQLite copies the pages (sqlite3_backup_step()) from the moment of a read transaction, so
 * writers go on and the copy never begins anew.  It writes to a descriptor, not to a name: who
 * asked for the copy has opened the file with his own rights.  Hence a VFS whose only file that
 * is.  There is no journal: who finds the copying failed throws the file away. */
#include "store/sqlite/copy.h"

#include "store/sqlite/page_file.h"
#include "store/sqlite/page_sum.h"
#include "store/sqlite/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_VFS "rowfs-copy"
#define STEP_PAGES 256

struct copy_file {
	sqlite3_file base; /* first: SQLite's view of it */
	int fd;            /* borrowed */
	bool sealed;       /* pages get their sums: those out of the log have an older one's */
};

static int fd_of(sqlite3_file *f)
{
	return ((struct copy_file *)f)->fd;
}

static int close_nothing(sqlite3_file *f)
{
	(void)f;
	return SQLITE_OK;
}

static int copy_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	ssize_t got = TEMP_FAILURE_RETRY(pread(fd_of(f), p, (size_t)n, at));
	if (got < 0)
		return SQLITE_IOERR_READ;
	if (got == n)
		return SQLITE_OK;
	memset((char *)p + got, 0, (size_t)(n - got));
	return SQLITE_IOERR_SHORT_READ;
}

static int copy_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	const char *from = p;
	unsigned char page[PAGE_BYTES];
	if (((struct copy_file *)f)->sealed && n == PAGE_BYTES) {
		memcpy(page, p, sizeof(page));
		page_seal(page, (uint32_t)(at / PAGE_BYTES) + 1);
		from = (const char *)page;
	}
	while (n > 0) {
		ssize_t put = pwrite(fd_of(f), from, (size_t)n, at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return errno == ENOSPC || errno == EDQUOT ? SQLITE_FULL
								  : SQLITE_IOERR_WRITE;
		from += put;
		at += put;
		n -= (int)put;
	}
	return SQLITE_OK;
}

static int copy_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return ftruncate(fd_of(f), size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

/* Once, at the end: sql_copy_from(). */
static int sync_nothing(sqlite3_file *f, int flags)
{
	(void)f;
	(void)flags;
	return SQLITE_OK;
}

static int copy_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct stat st;
	if (fstat(fd_of(f), &st) != 0)
		return SQLITE_IOERR_FSTAT;
	*ret = st.st_size;
	return SQLITE_OK;
}

static int lock_nothing(sqlite3_file *f, int level)
{
	(void)f;
	(void)level;
	return SQLITE_OK;
}

static int is_locked(sqlite3_file *f, int *ret)
{
	(void)f;
	*ret = 0;
	return SQLITE_OK;
}

static int control_nothing(sqlite3_file *f, int op, void *arg)
{
	(void)f;
	(void)op;
	(void)arg;
	return SQLITE_NOTFOUND;
}

static int has_no_abilities(sqlite3_file *f)
{
	(void)f;
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = close_nothing,
	.xRead = copy_read,
	.xWrite = copy_write,
	.xTruncate = copy_truncate,
	.xSync = sync_nothing,
	.xFileSize = copy_size,
	.xLock = lock_nothing,
	.xUnlock = lock_nothing,
	.xCheckReservedLock = is_locked,
	.xFileControl = control_nothing,
	.xSectorSize = has_no_abilities,
	.xDeviceCharacteristics = has_no_abilities,
};

static int open_copy(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	(void)vfs;
	struct copy_file *f = (struct copy_file *)file;
	f->base.pMethods = NULL;
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	f->fd = (int)sqlite3_uri_int64(name, "fd", -1);
	f->sealed = sqlite3_uri_boolean(name, "sealed", 0);
	f->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

/* There are no other files. */
static int is_there(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*ret = 0;
	return SQLITE_OK;
}

static int same_name(sqlite3_vfs *vfs, const char *name, int n, char *out)
{
	(void)vfs;
	return snprintf(out, (size_t)n, "%s", name) < n ? SQLITE_OK : SQLITE_CANTOPEN;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* SQLite is at work already: there is what is copied from. */
static void register_vfs(void)
{
	static sqlite3_vfs vfs;
	const sqlite3_vfs *unix_vfs = sqlite3_vfs_find(NULL);
	BUG_ON(unix_vfs == NULL);
	vfs = *unix_vfs; /* time, randomness, sleep */
	vfs.zName = COPY_VFS;
	vfs.pNext = NULL;
	vfs.szOsFile = (int)sizeof(struct copy_file);
	vfs.xOpen = open_copy;
	vfs.xAccess = is_there;
	vfs.xFullPathname = same_name;
	(void)sqlite3_vfs_register(&vfs, 0); /* else it cannot be opened */
}

/* Not known is not unsealed: pages out of the log would go without their sums. */
static enum err is_sealed(struct sql_conn *c, bool *ret)
{
	unsigned char head[PAGE_RESERVED_AT + 1];
	sqlite3_file *f = NULL;
	(void)sqlite3_file_control(c->db, NULL, SQLITE_FCNTL_FILE_POINTER, &f);
	BUG_ON(f == NULL);
	int rc = f->pMethods->xRead(f, head, sizeof(head), 0);
	*ret = rc == SQLITE_OK && head[PAGE_RESERVED_AT] == PAGE_SUM_BYTES;
	return sql_error(NULL, rc);
}

static enum err open_target(int fd, bool sealed, sqlite3 **ret)
{
	static const char set_up[] = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
				     "PRAGMA cache_size=-1024";
	char uri[64];
	(void)snprintf(
		uri, sizeof(uri), "file:copy?vfs=" COPY_VFS "&fd=%d&sealed=%d", fd, (int)sealed);
	(void)pthread_once(&once, register_vfs);
	int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
	int rc = sqlite3_open_v2(uri, ret, flags, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(*ret, set_up, NULL, NULL, NULL);
	return sql_error(*ret, rc);
}

static enum err copy_pages(sqlite3 *to, struct sql_conn *from, store_copy_fn fn, void *arg)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from->db, "main");
	if (b == NULL)
		return sql_error(to, sqlite3_errcode(to));
	int rc;
	bool stopped = false;
	while ((rc = sqlite3_backup_step(b, STEP_PAGES)) == SQLITE_OK && !stopped) {
		uint64_t total = (uint64_t)sqlite3_backup_pagecount(b);
		uint64_t left = (uint64_t)sqlite3_backup_remaining(b);
		stopped = fn != NULL && !fn(arg, (total - left) * PAGE_BYTES, total * PAGE_BYTES);
	}
	int end = sqlite3_backup_finish(b);
	if (stopped)
		return ERR_CANCELLED;
	return sql_error(to, rc == SQLITE_DONE ? end : rc);
}

enum err sql_copy_from(struct sql_conn *from, int fd, store_copy_fn fn, void *arg)
{
	sqlite3 *to = NULL;
	bool sealed;
	enum err e = is_sealed(from, &sealed);
	if (e == ERR_OK)
		e = open_target(fd, sealed, &to);
	if (e == ERR_OK)
		e = copy_pages(to, from, fn, arg);
	(void)sqlite3_close(to);
	if (e == ERR_OK && TEMP_FAILURE_RETRY(fsync(fd)) != 0)
		e = err_from_errno(errno);
	return e;
}

enum err sql_copy(struct store *s, struct store_view *v, int fd, store_copy_fn fn, void *arg)
{
	(void)s;
	return sql_copy_from(sql_view_conn(v), fd, fn, arg);
}
