/* SPDX-License-Identifier: MIT
 * The calls of the system that a process makes on the files of one store, and its allocations:
 * counted, failed, cut short, recorded, or the last thing that it does.
 *
 * Linked into a test program (calls_dep) it takes the place of the C library's functions there,
 * for SQLite too; loaded into another program with LD_PRELOAD (build/tests/fault/calls.so) it is
 * told by the environment what to do, and by a file that both map while it runs:
 *
 *   CALLS_STORE=PATH     what to watch, as for calls_watch()
 *   CALLS_CONTROL=FILE   a struct calls_control, made by the caller, zeros: only counts
 *   CALLS_RECORD=FILE    as for calls_record()
 *
 * tests/fault/calls.py is the same for Python.  All of it may be called by any thread. */
#ifndef FAULT_CALLS_H
#define FAULT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Kinds of calls, bits of a mask. */
#define CALLS_OPEN 0x001      /* open, openat */
#define CALLS_READ 0x002      /* read, pread */
#define CALLS_WRITE 0x004     /* write, pwrite */
#define CALLS_TRUNCATE 0x008  /* ftruncate, fallocate */
#define CALLS_SYNC 0x010      /* fsync, fdatasync, sync_file_range; of the folder too */
#define CALLS_NAME 0x020      /* unlink, rename, renameat2, link */
#define CALLS_LOOK 0x040      /* stat, fstat, access */
#define CALLS_LOCK 0x080      /* fcntl that sets a lock */
#define CALLS_MAP 0x100       /* mmap of a file of the store */
#define CALLS_CLOSE 0x200     /* is never failed */
#define CALLS_MEMORY 0x400    /* malloc, calloc, realloc of the whole process */
#define CALLS_STATEMENT 0x800 /* sqlite3_step, sqlite3_exec: where linked with sqlite_calls_args */
#define CALLS_THREAD 0x1000   /* pthread_create: fails with that error */
#define CALLS_CHANGES (CALLS_WRITE | CALLS_TRUNCATE | CALLS_SYNC | CALLS_NAME | CALLS_OPEN)
#define CALLS_FILES 0x1ff

enum calls_what {
	CALLS_COUNT,       /* nothing happens to the call */
	CALLS_FAIL,        /* it is not made; -1 and errno = error, or NULL; SQLite's: error */
	CALLS_SHORT,       /* reads and writes: the first half only, which is what they return */
	CALLS_KILL_BEFORE, /* SIGKILL instead of the call */
	CALLS_KILL_TORN,   /* writes: the first half, then SIGKILL; others as before */
	CALLS_KILL_AFTER,  /* the call, then SIGKILL */
	CALLS_STALL,       /* the call waits until `what` is another one */
};

/* What shall happen, and what did.  Fields of the caller are written before `what`; count and
 * struck are set to 0 by it.  Little endian, 4 bytes each: Python maps it too. */
struct calls_control {
	uint32_t what;   /* enum calls_what; set it last */
	uint32_t mask;   /* kinds that are counted */
	uint32_t n;      /* which one is struck: 1 is the next; 0: none */
	uint32_t last;   /* ... up to this one; 0: n alone; UINT32_MAX: all that follow */
	uint32_t error;  /* errno; of a statement SQLite's code */
	uint32_t thread; /* only this one's calls are counted; 0: everybody's */
	uint32_t count;  /* calls so far */
	uint32_t struck; /* how many were */
	uint32_t least;  /* CALLS_MEMORY: smaller ones are not counted */
	char call[100];  /* the last one that was struck: name and file, or its size */
};

/* The files whose path is this one's or begins with it, and the folder that it is in.
 * "": every file that is opened from now on. */
void calls_watch(const char *path);

/* From now on: the n-th call of those kinds, by this thread alone if mine.  error: errno. */
void calls_strike(enum calls_what what, unsigned mask, bool mine, unsigned n, int error);
/* The n-th and all that follow. */
void calls_strike_on(enum calls_what what, unsigned mask, bool mine, unsigned n, int error);
/* Counts only.  Returns how many calls there were since the last of these three. */
unsigned calls_stop(void);
const struct calls_control *calls_now(void);

/* A record of what changed the files: of each call that succeeded, in the order in which they
 * returned (opens and closes too).  A sync has two, as it begins and as it ends: what was
 * recorded before it began is on the disk when it has ended.  Header, name, data. */
struct calls_record {
	uint32_t size;   /* of all three */
	uint16_t kind;   /* CALLS_…; 0: a mark */
	uint8_t flags;   /* CALLS_R_… */
	uint8_t name;    /* bytes of the name: of the file, from the folder on; of the mark: 0 */
	uint32_t thread; /* the kernel's number */
	int32_t fd;
	uint64_t at; /* write, fallocate: offset */
	uint64_t n;  /* write: bytes, which follow the name; truncate: size; fallocate: bytes;
	                  * rename, link: the second name is in the data; mark: bytes of its text */
};

#define CALLS_R_CREATED 0x01  /* open: the file was not there */
#define CALLS_R_EMPTIED 0x02  /* open: O_TRUNC */
#define CALLS_R_BEGIN 0x04    /* sync: begins; otherwise it has ended */
#define CALLS_R_FOLDER 0x08   /* the folder itself */
#define CALLS_R_ALLOCATE 0x10 /* truncate: fallocate */
#define CALLS_R_LINK 0x20     /* name: link; CALLS_R_RENAME: rename; neither: unlink */
#define CALLS_R_RENAME 0x40

/* To be appended to this file.  NULL: no more.  Other processes may append marks of their own
 * (one write each, O_APPEND), as tests/fault/calls.py does. */
void calls_record(const char *file);
/* Says something in the record: "acknowledged 12". */
void calls_mark(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The next record of a file: *name ('\0' behind it) and *data are valid until the next one is
 * read.  False: no more. */
bool calls_next(FILE *f, struct calls_record *ret, char **name, unsigned char **data);

#endif
