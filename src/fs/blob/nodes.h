/* SPDX-License-Identifier: MIT
 * The nodes of blobs.  .blob and containers have computed nodes (fs/core/nid.h).  A directory in a
 * container, and one version of a blob, have a node that is known while the kernel or somebody here
 * uses it.  A commit gives a blob another node, so the kernel's page cache never mixes two versions.
 * A page blob is changed in place: it keeps its node.
 *
 * The number of a node is a hash of its identity, so the same thing has the same number again. */
#ifndef FS_BLOB_NODES_H
#define FS_BLOB_NODES_H

#include "base/err.h"
#include "base/span.h"
#include "fs/core/nid.h"

#include <stdatomic.h>

enum blob_node_class {
	BLOB_NODE_ROOT = DIR_CONTROL_BLOBS, /* .blob; the account's id */
	BLOB_NODE_CONTAINER,                /* the container's id */
	BLOB_NODE_KNOWN,                    /* one of the table; its number */
	BLOB_NODE_END
};
_Static_assert(BLOB_NODE_END <= DIR_CONTROL_BLOBS_LAST + 1, "they have this range");

static inline uint64_t blob_nid(enum blob_node_class class, uint64_t id)
{
	return NID_VIRTUAL | (uint64_t) class << STORE_ID_BITS | id;
}

static inline enum blob_node_class blob_node_class_of(uint64_t nid)
{
	return (enum blob_node_class)nid_dir_control(nid);
}

enum blob_node_kind {
	BLOB_NODE_DIR,       /* the name ends with a slash */
	BLOB_NODE_SNAPSHOTS, /* of the blobs of a directory, whose name it has */
	BLOB_NODE_BLOCK,     /* one version of a block blob, or a snapshot: the name is its key */
	BLOB_NODE_PAGES,     /* a page blob until it is replaced */
	BLOB_NODE_STAGE,     /* a staged write (fs/blob/stage.h) */
};

/* The blob or directory of a node; it never changes. */
struct blob_node {
	enum blob_node_kind kind;
	uint64_t container;
	struct span name;
	int64_t version; /* block: the ETag; pages: the extent's id; stage: its number; dir: 0 */
	/* Of a block blob. */
	uint64_t size;
	/* The ETag after the last change of attributes by this node, which keeps the content; 0: none. */
	atomic_int_fast64_t edited;

	/* Of the table. */
	bool removed; /* a directory; one of the same name is another node */
	uint64_t nid;
	uint64_t lookups, refs;
	struct blob_node *next;
};

struct blob_nodes;
struct blob_nodes *blob_nodes_new(void); /* NULL: no memory */
void blob_nodes_free(struct blob_nodes *t);

/* Finds or makes the node that stands for the same as n, whose members are copied, and counts a lookup
 * by the kernel.  Sets *ret_nid.  ERR_NO_MEMORY. */
enum err blob_nodes_enter(struct blob_nodes *t, const struct blob_node *n, uint64_t *ret_nid);
/* Returns a node with a reference; NULL: the kernel has forgotten it. */
const struct blob_node *blob_nodes_get(struct blob_nodes *t, uint64_t nid);
void blob_nodes_unref(struct blob_nodes *t, const struct blob_node *n); /* accepts NULL */
/* A directory was removed: while the kernel knows its node, one that is made under the name has another.
 * The kernel takes no more names in a removed directory in which somebody is. */
void blob_nodes_removed(struct blob_nodes *t, uint64_t container, struct span name);
/* Takes n lookups back. */
void blob_nodes_forget(struct blob_nodes *t, uint64_t nid, uint64_t n);
/* The attributes of the blob were changed by this node: it stands for the blob with this ETag, too. */
void blob_nodes_edited(struct blob_nodes *t, uint64_t nid, int64_t etag);
/* Returns st_ino of a name: the same for all versions. */
uint64_t blob_ino(uint64_t container, struct span name);

#endif
