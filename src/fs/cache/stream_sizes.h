/* SPDX-License-Identifier: MIT
 * Sizes of streams that were counted, and the columns of CSV files.  A commit changes the size of .rows.ndjson by the lines of the rows
 * that it changes, so no stream is counted twice.  What is known of other streams is forgotten when their
 * rows change.  Thread-safe. */
#ifndef FS_VIRTUAL_STREAM_SIZES_H
#define FS_VIRTUAL_STREAM_SIZES_H

#include "base/buf.h"
#include "service/core/service.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Which stream, at which moment.  Zeroed: the moment is not known, as in a
 * store that other machines change too. */
struct stream_moment {
	uint64_t nid;
	uint64_t series;  /* of moments whose difference in size is known */
	int64_t delta;    /* in bytes, since the beginning of the series */
	uint64_t changes; /* how many there were */
};

struct stream_sizes;
/* Borrows both.  changes: how many change sets were committed.  Returns NULL if memory runs out. */
struct stream_sizes *stream_sizes_new(struct service *service, const atomic_uint_fast64_t *changes);
void stream_sizes_free(struct stream_sizes *t); /* accepts NULL */

/* Returns the moment of the stream now.  dir_id: the table or partition whose rows it shows.  A view
 * shows this moment if both this call and the same call after its opening return it. */
struct stream_moment stream_sizes_now(
	struct stream_sizes *t, uint64_t nid, uint64_t table_id, uint64_t dir_id);
bool stream_moment_is(const struct stream_moment *a, const struct stream_moment *b);
/* Returns whether the size at this moment is known. */
bool stream_sizes_find(struct stream_sizes *t, const struct stream_moment *m, uint64_t *ret);
void stream_sizes_add(struct stream_sizes *t, const struct stream_moment *m, uint64_t size);
/* The same for the columns of a CSV file, as text of row_stream_columns().  Appends them to *ret. */
bool stream_sizes_find_columns(
	struct stream_sizes *t, const struct stream_moment *m, struct buf *ret);
/* Keeps them if they are not too long. */
void stream_sizes_add_columns(
	struct stream_sizes *t, const struct stream_moment *m, struct span names);
/* Reads the sizes that a clean close left.  Call it once changes are followed. */
void stream_sizes_load(struct stream_sizes *t);
/* Leaves the known sizes of .rows.ndjson to the next start.  Call it while changes are followed. */
void stream_sizes_save(struct stream_sizes *t);
/* For each change set, after its commit and before service_is_changing() becomes false for it. */
void stream_sizes_changed(struct stream_sizes *t, const struct change *changes, size_t n);

#endif
