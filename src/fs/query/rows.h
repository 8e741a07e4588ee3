/* SPDX-License-Identifier: MIT
 * Which rows a query below .query shows, for lookups and listings alike: those of
 * service/query/queries.h, as of now.  `top` is a bound on the keys: the last row that is shown is
 * looked for once and again when something changed (where that takes long, after a while). */
#ifndef FS_QUERY_ROWS_H
#define FS_QUERY_ROWS_H

#include "fs/core/virtual.h"
#include "fs/query/nodes.h"
#include "fs/tree/requester.h"
#include "service/query/queries.h"

/* A query goes on for so long before it is asked whether its caller is still there. */
#define QUERY_PAGE_US (50u * 1000)

static inline const struct query_requester *requester_of(const struct caller *call)
{
	return call->requester != NULL ? &call->requester->base : NULL;
}

/* Where the rows of options may be: the query's `limit`.  key_ranges_fini() in any case. */
struct query_limit {
	struct key_ranges ranges;
	bool any; /* no limit */
};

/* pk NULL: of all partitions; else of this one, and where rk is not NULL of this row.  UTF-8.
 * Finds the bound of `top` first, if there is one.  ERR_CANCELLED. */
enum err query_limit_find(struct fs *fs, struct query_node *options, const struct span *pk,
	const struct span *rk, const struct caller *call, struct query_limit *ret);

/* The first row, with its body: ERR_NOT_FOUND, ERR_CANCELLED. */
enum err query_first_row(struct fs *fs, struct query_node *options, const struct query_limit *limit,
	const struct caller *call, struct item *ret);

/* What the row's file shows: its document, or what the options select of it.  pk, rk: UTF-8.
 * ERR_CORRUPT, ERR_NO_MEMORY. */
enum err query_row_text(const struct query_node *options, const struct item *row, struct span pk,
	struct span rk, struct buf *out);

#endif
