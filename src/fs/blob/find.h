/* SPDX-License-Identifier: MIT
 * Finds the blob or directory that a name stands for.  A directory is there while a blob's name begins
 * with its path and a slash, or while the mount remembers it (dirs.h). */
#ifndef FS_BLOB_FIND_H
#define FS_BLOB_FIND_H

#include "fs/blob/names.h"
#include "fs/blob/nodes.h"
#include "fs/core/state.h"
#include "service/blobs/blob_find.h"

/* Bytes of a blob's name: 1,024 characters of up to 3 bytes. */
#define BLOB_NAME_BYTES ((size_t)3 * LIMIT_BLOB_NAME_UNITS)

/* A container, or a directory in it. */
struct blob_dir {
	uint64_t container;
	struct span prefix;           /* "", or it ends with a slash */
	bool snapshots;               /* of its blobs are there, and not they themselves */
	const struct blob_node *node; /* owns the prefix; one reference */
};
/* Finds the directory of a node.  On ERR_OK call blob_dir_fini().  ERR_NOT_A_DIRECTORY, ERR_GONE. */
enum err blob_dir_find(struct blob_nodes *nodes, uint64_t nid, struct blob_dir *ret);
/* The same for a change in it.  ERR_READ_ONLY: snapshots are there. */
enum err blob_dir_of(struct blob_nodes *nodes, uint64_t nid, struct blob_dir *ret);
void blob_dir_fini(struct blob_nodes *nodes, struct blob_dir *d);

struct blob_found {
	struct buf name; /* whole; of a directory it ends with a slash */
	bool is_dir;
	uint64_t stage; /* a new name that is not committed yet: the number of its stage; else 0 */
	struct blob_info blob; /* else, if it is no directory; owned */
};
/* Finds a name.  On ERR_OK call blob_found_fini().  ERR_NOT_FOUND; ERR_NAME_INVALID: no blob can have
 * the name. */
enum err blob_name_find(
	struct fs *fs, const struct blob_dir *dir, struct span shown, struct blob_found *ret);
/* Finds a snapshot by its file's name in a directory of snapshots.  The same results. */
enum err blob_snapshot_find(
	struct fs *fs, const struct blob_dir *dir, struct span shown, struct blob_found *ret);
void blob_found_fini(struct blob_found *f);
/* Appends the whole name of a blob that is made under this name.  ERR_NAME_INVALID. */
enum err blob_name_new(const struct blob_dir *dir, struct span shown, struct buf *out);

/* Sets *ret to whether a blob's name begins with the prefix. */
enum err blob_prefix_any(struct fs *fs, uint64_t container, struct span prefix, bool *ret);

#endif
