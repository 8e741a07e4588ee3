/* SPDX-License-Identifier: MIT
 * The parts of a staged write of a blob.  Private to stages.c, which finds stages by number and by
 * name, and stage.c, which reads, writes and commits their content. */
#ifndef FS_BLOB_STAGE_PARTS_H
#define FS_BLOB_STAGE_PARTS_H

#include "base/lock.h"
#include "fs/blob/stage.h"

#include <stdatomic.h>

/* Threads that were told to look again. */
#define EXPECTED_MAX 64

struct blob_stage {
	struct blob_stage *next; /* guarded by the table's lock, as refs, removed and fresh */
	uint64_t number, container;
	unsigned refs;
	bool removed; /* its name was removed or replaced */
	bool fresh;   /* no blob had its name yet */
	struct mutex lock;
	int fd;                    /* guarded by lock, as all below */
	atomic_uint_fast64_t size; /* is read without it */
	bool loaded;               /* what the blob holds is in the file, or is not wanted */
	bool news;                 /* something is not committed */
	bool refused;              /* the last commit failed, and a close said so */
	bool written;              /* bytes were */
	enum err lost;             /* why a write was refused: the content has a gap */
	/* Of the page blob that it became, and that is read and written; 0: none.  Is read without the lock. */
	atomic_uint_fast64_t extent;
	/* Guarded by the table's lock.  Only a rename changes it, under the lock of names, which also
	 * keeps it as it is. */
	char name[BLOB_NAME_BYTES];
	size_t name_n;
};

struct expected {
	pid_t thread;
	uint64_t hash, until_us, number;
};

struct blob_stages {
	struct mutex names; /* a blob of the mount is put, removed or renamed: one at a time */
	struct mutex lock;
	struct blob_stage *first; /* guarded by lock, as all below */
	uint64_t last;
	struct expected expected[EXPECTED_MAX];
	size_t next;
};

/* Returns the name as it is now, borrowed.  The caller holds the table's lock or the lock of names. */
static inline struct span blob_stage_name(const struct blob_stage *s)
{
	return span_make(s->name, s->name_n);
}

#endif
