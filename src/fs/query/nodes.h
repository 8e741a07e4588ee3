/* SPDX-License-Identifier: MIT
 * The nodes below .query, which name no item: options, a partition in them, a row in that.
 * One is known while the kernel, a node below it or somebody here uses it; the same thing has
 * the same node for as long.  st_ino is a hash of what a node names, so it stays when the node
 * was forgotten in between, and is not the row's own number: tar and cmp take two names with
 * one number for one file.  Thread-safe. */
#ifndef FS_QUERY_NODES_H
#define FS_QUERY_NODES_H

#include "base/buf.h"
#include "base/lock.h"
#include "service/query/row_query.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum query_node_kind {
	QUERY_OPTIONS,   /* a directory, or a file where they have a suffix */
	QUERY_PARTITION, /* a directory */
	QUERY_ROW,       /* one version of a row */
};

/* Where the last row of a query with `top` is (fs/query/rows.h). */
struct query_bound {
	struct buf pk, rk;      /* UTF-8 */
	bool found;             /* there are so many rows */
	uint64_t changes;       /* fs->changes + 1 before it was looked for; 0: never */
	uint64_t good_until_us; /* whatever changes */
};

struct requester;

struct query_top {
	struct mutex lock;
	struct query_bound all;      /* of who sees all; guarded by lock, as all below */
	struct query_bound part;     /* of the last other one that asked: */
	struct requester *requester; /* who it was; NULL: nobody */
};

struct query_node {
	uint64_t nid, ino;
	enum query_node_kind kind;
	struct query_node *parent; /* one reference; NULL: options */
	uint64_t table_id;

	struct span text;       /* QUERY_OPTIONS: as in the path; owned */
	struct row_query query; /* QUERY_OPTIONS */
	struct query_top top;   /* QUERY_OPTIONS */
	struct item item;       /* QUERY_PARTITION, QUERY_ROW: as it was looked up, no body */
	uint64_t size;          /* QUERY_ROW: of the text shown */

	uint64_t lookups, refs; /* guarded by the table's lock, as all below */
	struct query_node *next_nid, *next_ino;
	struct query_node *older, *newer; /* of the list of those that count; by lookup */
	bool listed;
};

/* The last bit of a node's number: what is asked of it is done with a few reads of the store
 * (rows, and partitions where no bound of `top` has to be found). */
static inline bool query_nid_is_quick(uint64_t nid)
{
	return nid & 1;
}

struct query_nodes;
struct query_nodes *query_nodes_new(void);
void query_nodes_free(struct query_nodes *t); /* NULL is fine */

/* New ones, in no table yet, with one reference.  NULL: memory is out. */
struct query_node *query_node_of_options(
	uint64_t table_id, struct span text, struct row_query *query); /* takes over *query */
/* Of an item (which is copied, but for its body); parent: options for a partition, a
 * partition for a row. */
struct query_node *query_node_of_item(
	struct query_nodes *t, struct query_node *parent, const struct item *it);
/* st_ino of the child `id` of a node. */
uint64_t query_ino(const struct query_node *parent, uint64_t id);
/* The options at the top of a node. */
struct query_node *query_node_options(struct query_node *n);

/* Takes over a reference of n, which is new, and answers the node that names the same if there
 * is one, else n itself, with a reference.  Counts a lookup by the kernel. */
struct query_node *query_nodes_enter(struct query_nodes *t, struct query_node *n);
/* With a reference; NULL: the kernel has forgotten it. */
struct query_node *query_nodes_get(struct query_nodes *t, uint64_t nid);
void query_node_ref(struct query_nodes *t, struct query_node *n);
void query_node_unref(struct query_nodes *t, struct query_node *n); /* NULL is fine */
void query_nodes_forget(struct query_nodes *t, uint64_t nid, uint64_t n);
size_t query_nodes_count(struct query_nodes *t);

/* Whether they take more memory than that and nobody is at it; from then on somebody is, until
 * query_nodes_pruned(). */
bool query_nodes_wants_pruning(struct query_nodes *t, size_t bytes);
void query_nodes_pruned(struct query_nodes *t);
/* The one that was looked up longest ago, with a reference, where they take more than that;
 * else NULL.  It counts no more until its next lookup. */
struct query_node *query_nodes_oldest(struct query_nodes *t, size_t bytes);

#endif
