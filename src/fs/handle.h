/* SPDX-License-Identifier: MIT
 * Open files: what fi->fh points to. */
#ifndef FS_HANDLE_H
#define FS_HANDLE_H

#include "base/buf.h"
#include "fs/blob.h"
#include "fs/stages.h"

#include <sys/types.h>

enum handle_kind {
	HANDLE_ROW,	/* reads one version of a row, pinned */
	HANDLE_STAGE,	/* writes a row */
	HANDLE_FILE,	/* an ordinary file */
	HANDLE_CONTROL, /* a file of .rowfs: its content as it was at open */
};

struct handle {
	enum handle_kind kind;
	uint64_t nid;
	bool append;
	bool nodeless; /* HANDLE_STAGE: shares no node with anyone, direct I/O */
	pid_t opener;  /* thread id */
	const struct blob *blob;
	struct stage *stage; /* one reference */
	struct buf content;
};

#endif
