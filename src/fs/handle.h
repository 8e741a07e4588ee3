/* SPDX-License-Identifier: MIT
 * Open files and directories: what fi->fh points to.  A handle is counted: the kernel holds
 * one reference from open to release, and a reply that points into it holds one while it is
 * sent, since the release may overtake the end of the call that sends it. */
#ifndef FS_HANDLE_H
#define FS_HANDLE_H

#include "base/workers.h"
#include "fs/blob.h"
#include "fs/listing.h"
#include "fs/stages.h"
#include "fs/virtual.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum handle_kind {
	HANDLE_ROW,   /* reads one version of a row, pinned */
	HANDLE_STAGE, /* writes a row */
	HANDLE_FILE,  /* an ordinary file */
	HANDLE_DIR,
	HANDLE_VIRTUAL,     /* a file of fs/virtual.h */
	HANDLE_VIRTUAL_DIR, /* a directory of it */
};

/* Whose turn it is at a virtual file or directory (ops_virtual.c). */
struct turns {
	pthread_mutex_t lock;
	bool taken;
	struct job *first, *last; /* the others */
};

struct handle {
	enum handle_kind kind;
	uint64_t nid;
	bool append, writes; /* as opened */
	bool nodeless;       /* HANDLE_STAGE: shares no node with anyone, direct I/O */
	pid_t opener;        /* thread id */
	const struct blob *blob;
	struct stage *stage; /* one reference */
	struct listing *listing;
	struct vfile *file; /* HANDLE_VIRTUAL; freed with the handle, in its lane */
	struct vdir *vdir;  /* HANDLE_VIRTUAL_DIR */
	struct turns turns; /* of both */

	atomic_uint refs;
	struct handle *next, *previous; /* guarded by the table's lock */
};

struct handles;
struct handles *handles_new(void);
/* Releases what a kernel that was cut off never will; staged documents are decided. */
void handles_free(struct fs *fs, struct handles *t);

/* NULL when memory is out.  HANDLE_FILE and HANDLE_DIR are counted as open until freed. */
struct handle *handle_new(struct fs *fs, enum handle_kind kind, uint64_t nid, pid_t opener);
void handle_ref(struct handle *h);
/* The last one lets go of everything; a stage is not released by that (stage_close). */
void handle_unref(struct fs *fs, struct handle *h);

#endif
