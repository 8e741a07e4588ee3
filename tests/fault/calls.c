/* SPDX-License-Identifier: MIT
 * Each function here goes by the name that it stands in for: both names of those that there are
 * with 32 and 64 bits, and none that the headers would turn into another. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include "calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 4096 /* descriptors that can be watched */
#define NAME_SIZE 120

static struct calls_control own_control, *control = &own_control;
static char prefix[PATH_MAX], folder[PATH_MAX];
static bool watching;
static int record_fd = -1;
/* "": not watched.  The folder itself is ".". */
static char names[FILES][NAME_SIZE];

/* ---- the real ones ---- */

#define REAL(ret, name, ...) \
	static ret (*real_##name)(__VA_ARGS__); \
	static ret (*get_##name(void))(__VA_ARGS__) \
	{ \
		if (!real_##name) \
			*(void **)&real_##name = dlsym(RTLD_NEXT, #name); \
		return real_##name; \
	}

REAL(void *, malloc, size_t)
REAL(void *, calloc, size_t, size_t)
REAL(void *, realloc, void *, size_t)
REAL(int, pthread_getattr_np, pthread_t, pthread_attr_t *)
REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
REAL(int, openat, int, const char *, int, ...)
REAL(int, close, int)
REAL(ssize_t, read, int, void *, size_t)
REAL(ssize_t, pread64, int, void *, size_t, off64_t)
REAL(ssize_t, write, int, const void *, size_t)
REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
REAL(int, ftruncate64, int, off64_t)
REAL(int, fallocate64, int, int, off64_t, off64_t)
REAL(int, posix_fallocate64, int, off64_t, off64_t)
REAL(int, fsync, int)
REAL(int, fdatasync, int)
REAL(int, sync_file_range, int, off64_t, off64_t, unsigned)
REAL(int, unlink, const char *)
REAL(int, rename, const char *, const char *)
REAL(int, renameat2, int, const char *, int, const char *, unsigned)
REAL(int, link, const char *, const char *)
REAL(int, stat64, const char *, struct stat64 *)
REAL(int, fstat64, int, struct stat64 *)
REAL(int, access, const char *, int)
REAL(int, fcntl64, int, int, ...)
REAL(void *, mmap64, void *, size_t, int, int, int, off64_t)
REAL(int, sqlite3_step, void *)
REAL(int, sqlite3_exec, void *, const char *, int (*)(void *, int, char **, char **), void *,
	char **)

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* ---- what is watched ---- */

static const char *name_of(int fd)
{
	return fd >= 0 && fd < FILES && names[fd][0] ? names[fd] : NULL;
}

/* From the folder on; NULL: none of the store's. */
static const char *watched(const char *path)
{
	if (!watching || !path)
		return NULL;
	if (folder[0] && strcmp(path, folder) == 0)
		return ".";
	size_t n = strlen(prefix);
	if (strncmp(path, prefix, n) != 0)
		return NULL;
	return n == 0 ? path : path + strlen(folder) + 1;
}

void calls_watch(const char *path)
{
	memset(names, 0, sizeof(names));
	snprintf(prefix, sizeof(prefix), "%s", path);
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	else
		folder[0] = '\0';
	watching = true;
}

/* ---- what happens ---- */

static __attribute__((noreturn)) void die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

/* COUNT: the call is made.  Errors and the end before a call are dealt with here. */
static enum calls_what strike(unsigned kind, const char *call, const char *name, size_t size)
{
	struct calls_control *c = control;
	enum calls_what what = __atomic_load_n(&c->what, __ATOMIC_ACQUIRE);
	if (!(c->mask & kind) || (c->thread && c->thread != thread_id()) ||
		(kind == CALLS_MEMORY && size < c->least))
		return CALLS_COUNT;
	uint32_t count = __atomic_add_fetch(&c->count, 1, __ATOMIC_RELAXED);
	uint32_t last = c->last ? c->last : c->n;
	if (what == CALLS_COUNT || c->n == 0 || count < c->n || count > last)
		return CALLS_COUNT;
	if (what == CALLS_SHORT && (!(kind & (CALLS_READ | CALLS_WRITE)) || size < 2))
		return CALLS_COUNT;
	__atomic_add_fetch(&c->struck, 1, __ATOMIC_RELAXED);
	/* No snprintf: it may allocate. */
	size_t at = 0;
	for (const char *p = call; *p && at < sizeof(c->call) - 2; p++)
		c->call[at++] = *p;
	c->call[at++] = ' ';
	for (const char *p = name ? name : ""; *p && at < sizeof(c->call) - 1; p++)
		c->call[at++] = *p;
	c->call[at] = '\0';
	if (what == CALLS_KILL_BEFORE || (what == CALLS_KILL_TORN && !(kind & CALLS_WRITE)))
		die();
	while (what == CALLS_STALL) {
		usleep(1000);
		if (__atomic_load_n(&c->what, __ATOMIC_ACQUIRE) != CALLS_STALL)
			return CALLS_COUNT;
	}
	if (what == CALLS_FAIL)
		errno = (int)c->error;
	return what;
}

static void after(enum calls_what what)
{
	if (what == CALLS_KILL_AFTER || what == CALLS_KILL_TORN)
		die();
}

static void arm(
	enum calls_what what, unsigned mask, bool mine, unsigned n, unsigned last, int error)
{
	struct calls_control *c = control;
	c->what = CALLS_COUNT;
	c->count = c->struck = 0;
	c->mask = mask;
	c->n = n;
	c->last = last;
	c->error = (uint32_t)error;
	c->least = 0;
	c->thread = mine ? thread_id() : 0;
	c->call[0] = '\0';
	__atomic_store_n(&c->what, what, __ATOMIC_RELEASE);
}

void calls_strike(enum calls_what what, unsigned mask, bool mine, unsigned n, int error)
{
	arm(what, mask, mine, n, n, error);
}

void calls_strike_on(enum calls_what what, unsigned mask, bool mine, unsigned n, int error)
{
	arm(what, mask, mine, n, UINT32_MAX, error);
}

unsigned calls_stop(void)
{
	__atomic_store_n(&control->what, CALLS_COUNT, __ATOMIC_RELEASE);
	control->mask = 0;
	return control->count;
}

const struct calls_control *calls_now(void)
{
	return control;
}

/* ---- the record ---- */

static void put(unsigned kind, unsigned flags, const char *name, int fd, uint64_t at, uint64_t n,
	const void *data, size_t size)
{
	int saved = errno, to = record_fd;
	if (to < 0)
		return;
	size_t length = name ? strlen(name) : 0;
	struct calls_record r = { .size = (uint32_t)(sizeof(r) + length + size),
		.kind = (uint16_t)kind,
		.flags = (uint8_t)flags,
		.name = (uint8_t)length,
		.thread = thread_id(),
		.fd = fd,
		.at = at,
		.n = n };
	union {
		const void *from;
		void *to;
	} n1 = { name }, n2 = { data };
	struct iovec v[] = { { &r, sizeof(r) }, { n1.to, length }, { n2.to, size } };
	if (writev(to, v, 3) != (ssize_t)r.size)
		die(); /* a record with a gap proves nothing */
	errno = saved;
}

void calls_record(const char *file)
{
	if (record_fd >= 0)
		get_close()(record_fd);
	record_fd = -1;
	if (!file)
		return;
	int fd = get_openat()(
		AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_LARGEFILE, 0600);
	/* Out of the way of the numbers that are watched. */
	record_fd = fcntl(fd, F_DUPFD_CLOEXEC, FILES);
	if (record_fd < 0)
		record_fd = fd;
	else
		get_close()(fd);
}

void calls_mark(const char *format, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n > 0)
		put(0, 0, NULL, -1, 0, (uint64_t)n, text, (size_t)n);
}

bool calls_next(FILE *f, struct calls_record *ret, char **name, unsigned char **data)
{
	static char names_read[256];
	static unsigned char *bytes;
	if (fread(ret, sizeof(*ret), 1, f) != 1)
		return false;
	size_t n = ret->size - sizeof(*ret) - ret->name;
	if (ret->name && fread(names_read, ret->name, 1, f) != 1)
		return false;
	names_read[ret->name] = '\0';
	unsigned char *grown = realloc(bytes, n + 1);
	if (!grown || (n && fread(grown, n, 1, f) != 1))
		return false;
	bytes = grown;
	bytes[n] = '\0';
	*name = names_read;
	*data = bytes;
	return true;
}

/* ---- memory ---- */

static _Thread_local bool spared __attribute__((tls_model("initial-exec")));

static bool takes_memory(void)
{
	return !spared && (control->mask & CALLS_MEMORY) != 0;
}

/* By this a sanitizer's runtime begins each thread, and it gives up where that has no memory. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	spared = true;
	int code = get_pthread_getattr_np()(thread, attr);
	spared = false;
	return code;
}

void *malloc(size_t n)
{
	if (takes_memory() && strike(CALLS_MEMORY, "malloc", NULL, n) == CALLS_FAIL) {
		errno = ENOMEM;
		return NULL;
	}
	return get_malloc()(n);
}

void *calloc(size_t n, size_t size)
{
	if (takes_memory() && strike(CALLS_MEMORY, "calloc", NULL, n * size) == CALLS_FAIL) {
		errno = ENOMEM;
		return NULL;
	}
	return get_calloc()(n, size);
}

void *realloc(void *p, size_t n)
{
	if (takes_memory() && strike(CALLS_MEMORY, "realloc", NULL, n) == CALLS_FAIL) {
		errno = ENOMEM;
		return NULL;
	}
	return get_realloc()(p, n);
}

/* ---- threads ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	if (control->mask & CALLS_THREAD &&
		strike(CALLS_THREAD, "pthread_create", NULL, 0) == CALLS_FAIL)
		return errno;
	return get_pthread_create()(thread, attr, start, arg);
}

/* ---- files ---- */

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
	const char *name = dir == AT_FDCWD || path[0] == '/' ? watched(path) : NULL;
	if (!name)
		return get_openat()(dir, path, flags, mode);
	enum calls_what what = strike(CALLS_OPEN, "open", name, 0);
	if (what == CALLS_FAIL)
		return -1;
	bool created = flags & O_CREAT && get_access()(path, F_OK) != 0;
	int fd = get_openat()(dir, path, flags, mode);
	after(what);
	if (fd < 0)
		return fd;
	if (fd < FILES)
		snprintf(names[fd], NAME_SIZE, "%s", name);
	put(CALLS_OPEN,
		(created ? CALLS_R_CREATED : 0) | (flags & O_TRUNC ? CALLS_R_EMPTIED : 0) |
			(name[0] == '.' && !name[1] ? CALLS_R_FOLDER : 0),
		name, fd, 0, 0, NULL, 0);
	return fd;
}

#define MODE(flags) \
	mode_t mode = 0; \
	if ((flags) & (O_CREAT | __O_TMPFILE)) { \
		va_list ap; \
		va_start(ap, flags); \
		mode = va_arg(ap, mode_t); \
		va_end(ap); \
	}

int open(const char *path, int flags, ...)
{
	MODE(flags)
	return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	MODE(flags)
	return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	MODE(flags)
	return open_at(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
	MODE(flags)
	return open_at(dir, path, flags | O_LARGEFILE, mode);
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

int close(int fd)
{
	const char *name = name_of(fd);
	if (name) {
		put(CALLS_CLOSE, 0, name, fd, 0, 0, NULL, 0);
		(void)strike(CALLS_CLOSE, "close", name, 0);
		names[fd][0] = '\0';
	}
	return get_close()(fd);
}

ssize_t read(int fd, void *p, size_t n)
{
	const char *name = name_of(fd);
	enum calls_what what = name ? strike(CALLS_READ, "read", name, n) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	ssize_t got = get_read()(fd, p, what == CALLS_SHORT ? n / 2 : n);
	after(what);
	return got;
}

ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
	const char *name = name_of(fd);
	enum calls_what what = name ? strike(CALLS_READ, "pread", name, n) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	ssize_t got = get_pread64()(fd, p, what == CALLS_SHORT ? n / 2 : n, at);
	after(what);
	return got;
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	return pread64(fd, p, n, at);
}

ssize_t write(int fd, const void *p, size_t n)
{
	const char *name = name_of(fd);
	if (!name)
		return get_write()(fd, p, n);
	enum calls_what what = strike(CALLS_WRITE, "write", name, n);
	if (what == CALLS_FAIL)
		return -1;
	off64_t at = lseek64(fd, 0, SEEK_CUR);
	ssize_t put_n =
		get_write()(fd, p, what == CALLS_SHORT || what == CALLS_KILL_TORN ? n / 2 : n);
	after(what);
	if (put_n > 0)
		put(CALLS_WRITE, 0, name, fd, (uint64_t)at, (uint64_t)put_n, p, (size_t)put_n);
	return put_n;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	const char *name = name_of(fd);
	if (!name)
		return get_pwrite64()(fd, p, n, at);
	enum calls_what what = strike(CALLS_WRITE, "pwrite", name, n);
	if (what == CALLS_FAIL)
		return -1;
	ssize_t put_n = get_pwrite64()(
		fd, p, what == CALLS_SHORT || what == CALLS_KILL_TORN ? n / 2 : n, at);
	after(what);
	if (put_n > 0)
		put(CALLS_WRITE, 0, name, fd, (uint64_t)at, (uint64_t)put_n, p, (size_t)put_n);
	return put_n;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return pwrite64(fd, p, n, at);
}

int ftruncate64(int fd, off64_t size)
{
	const char *name = name_of(fd);
	enum calls_what what = name ? strike(CALLS_TRUNCATE, "ftruncate", name, 0) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	int r = get_ftruncate64()(fd, size);
	after(what);
	if (name && r == 0)
		put(CALLS_TRUNCATE, 0, name, fd, 0, (uint64_t)size, NULL, 0);
	return r;
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

int fallocate64(int fd, int mode, off64_t at, off64_t n)
{
	const char *name = name_of(fd);
	enum calls_what what = name ? strike(CALLS_TRUNCATE, "fallocate", name, 0) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	int r = get_fallocate64()(fd, mode, at, n);
	after(what);
	if (name && r == 0)
		put(CALLS_TRUNCATE, CALLS_R_ALLOCATE, name, fd, (uint64_t)at, (uint64_t)n, NULL, 0);
	return r;
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
	return fallocate64(fd, mode, at, n);
}

/* Returns its error. */
int posix_fallocate64(int fd, off64_t at, off64_t n)
{
	const char *name = name_of(fd);
	enum calls_what what = name ? strike(CALLS_TRUNCATE, "fallocate", name, 0) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return errno;
	int r = get_posix_fallocate64()(fd, at, n);
	after(what);
	if (name && r == 0)
		put(CALLS_TRUNCATE, CALLS_R_ALLOCATE, name, fd, (uint64_t)at, (uint64_t)n, NULL, 0);
	return r;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
	return posix_fallocate64(fd, at, n);
}

static int sync_with(int (*real)(int), const char *call, int fd)
{
	const char *name = name_of(fd);
	if (!name)
		return real(fd);
	enum calls_what what = strike(CALLS_SYNC, call, name, 0);
	if (what == CALLS_FAIL)
		return -1;
	unsigned of = strcmp(name, ".") == 0 ? CALLS_R_FOLDER : 0;
	put(CALLS_SYNC, of | CALLS_R_BEGIN, name, fd, 0, 0, NULL, 0);
	int r = real(fd);
	after(what);
	if (r == 0)
		put(CALLS_SYNC, of, name, fd, 0, 0, NULL, 0);
	return r;
}

int fsync(int fd)
{
	return sync_with(get_fsync(), "fsync", fd);
}

int fdatasync(int fd)
{
	return sync_with(get_fdatasync(), "fdatasync", fd);
}

/* Promises nothing: not in the record. */
int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags)
{
	const char *name = name_of(fd);
	enum calls_what what = name ? strike(CALLS_SYNC, "sync_file_range", name, 0) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	int r = get_sync_file_range()(fd, at, n, flags);
	after(what);
	return r;
}

int unlink(const char *path)
{
	const char *name = watched(path);
	enum calls_what what = name ? strike(CALLS_NAME, "unlink", name, 0) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	int r = get_unlink()(path);
	after(what);
	if (name && r == 0)
		put(CALLS_NAME, 0, name, -1, 0, 0, NULL, 0);
	return r;
}

static int two_names(
	unsigned flag, const char *call, const char *from, const char *to, unsigned how)
{
	const char *name = watched(from), *second = watched(to);
	enum calls_what what = name ? strike(CALLS_NAME, call, name, 0) : CALLS_COUNT;
	if (what == CALLS_FAIL)
		return -1;
	int r = flag == CALLS_R_LINK ? get_link()(from, to)
		: how                ? get_renameat2()(AT_FDCWD, from, AT_FDCWD, to, how)
				     : get_rename()(from, to);
	after(what);
	if (name && r == 0)
		put(CALLS_NAME, flag, name, -1, 0, 0, second ? second : to,
			strlen(second ? second : to));
	return r;
}

int rename(const char *from, const char *to)
{
	return two_names(CALLS_R_RENAME, "rename", from, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	if (from_dir != AT_FDCWD || to_dir != AT_FDCWD)
		return get_renameat2()(from_dir, from, to_dir, to, flags);
	return two_names(CALLS_R_RENAME, "renameat2", from, to, flags);
}

int link(const char *from, const char *to)
{
	return two_names(CALLS_R_LINK, "link", from, to, 0);
}

/* ---- that change nothing ---- */

int stat64(const char *path, struct stat64 *st)
{
	const char *name = watched(path);
	return name && strike(CALLS_LOOK, "stat", name, 0) == CALLS_FAIL ? -1
									 : get_stat64()(path, st);
}

int stat(const char *path, struct stat *st)
{
	return stat64(path, (struct stat64 *)st);
}

int fstat64(int fd, struct stat64 *st)
{
	const char *name = name_of(fd);
	return name && strike(CALLS_LOOK, "fstat", name, 0) == CALLS_FAIL ? -1
									  : get_fstat64()(fd, st);
}

int fstat(int fd, struct stat *st)
{
	return fstat64(fd, (struct stat64 *)st);
}

int access(const char *path, int mode)
{
	const char *name = watched(path);
	return name && strike(CALLS_LOOK, "access", name, 0) == CALLS_FAIL
		? -1
		: get_access()(path, mode);
}

static int control_file(int fd, int command, void *arg)
{
	const char *name = name_of(fd);
	if (name && (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK) &&
		strike(CALLS_LOCK, "fcntl", name, 0) == CALLS_FAIL)
		return -1;
	return get_fcntl64()(fd, command, arg);
}

int fcntl64(int fd, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	return control_file(fd, command, arg);
}

int fcntl(int fd, int command, ...)
{
	va_list ap;
	va_start(ap, command);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	return control_file(fd, command, arg);
}

void *mmap64(void *p, size_t n, int prot, int flags, int fd, off64_t at)
{
	const char *name = name_of(fd);
	return name && strike(CALLS_MAP, "mmap", name, n) == CALLS_FAIL
		? MAP_FAILED
		: get_mmap64()(p, n, prot, flags, fd, at);
}

void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
	return mmap64(p, n, prot, flags, fd, at);
}

/* ---- SQLite's, where the linker is told so ----
 * --wrap: of our own calls only.  sqlite3_exec() looks at what a step left, not at its answer. */

int __wrap_sqlite3_step(void *st);
int __wrap_sqlite3_step(void *st)
{
	if (strike(CALLS_STATEMENT, "step", NULL, 0) == CALLS_FAIL)
		return (int)control->error;
	return get_sqlite3_step()(st);
}

int __wrap_sqlite3_exec(void *db, const char *text, int (*fn)(void *, int, char **, char **),
	void *arg, char **ret);
int __wrap_sqlite3_exec(
	void *db, const char *text, int (*fn)(void *, int, char **, char **), void *arg, char **ret)
{
	if (strike(CALLS_STATEMENT, "exec", text, 0) == CALLS_FAIL)
		return (int)control->error;
	return get_sqlite3_exec()(db, text, fn, arg, ret);
}

/* ---- loaded into another program ---- */

__attribute__((constructor)) static void start(void)
{
	const char *file = getenv("CALLS_CONTROL");
	if (file) {
		int fd = get_openat()(AT_FDCWD, file, O_RDWR | O_CLOEXEC);
		void *p = MAP_FAILED;
		if (fd >= 0)
			p = get_mmap64()(
				NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			control = p;
		if (fd >= 0)
			get_close()(fd);
	}
	if (getenv("CALLS_RECORD"))
		calls_record(getenv("CALLS_RECORD"));
	if (getenv("CALLS_STORE"))
		calls_watch(getenv("CALLS_STORE"));
}
