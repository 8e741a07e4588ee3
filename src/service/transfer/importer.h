/* SPDX-License-Identifier: MIT
 * Import: takes NDJSON or CSV in pieces of any size, and commits rows in large change sets.  `rowfs
 * import` and the mount's files .rows.ndjson and .rows.csv use it.
 *
 * Records act in their order, even with equal keys.  A record is refused if it breaks a rule or the
 * mode forbids it.  Then either the import continues with the next record, or it ends: earlier
 * records are in the store, later ones are not.
 *
 * Memory: 1,000 rows or 4 MiB of text, and one record (8 MiB).  With `at_once`, only the incomplete
 * record between two calls.  Only one thread may use an importer at a time. */
#ifndef SERVICE_TRANSFER_IMPORTER_H
#define SERVICE_TRANSFER_IMPORTER_H

#include "base/buf.h"
#include "service/change/entities.h"
#include "service/transfer/transfer.h"

#include <stdbool.h>
#include <stdio.h>

enum import_mode {
	IMPORT_INSERT,
	IMPORT_UPSERT,
	IMPORT_MERGE,
	IMPORT_REPLACE,
	IMPORT_DELETE /* only the keys of a record count */
};

struct import_counts {
	uint64_t lines;   /* records read */
	uint64_t done;    /* records committed */
	uint64_t refused; /* invalid or in conflict; each was passed to on_error */
	uint64_t bytes;   /* bytes of input consumed */
};

struct import_options {
	enum transfer_format format;
	enum import_mode mode;
	/* importer_aim() names the partition: a record may omit PartitionKey and must not have
	 * another one */
	bool in_partition;
	bool stop_at_error; /* false: continue with the next record */
	/* each call commits the complete records, and refuses an incomplete record as soon as it
	 * cannot become a row; false: collects rows across calls */
	bool at_once;
	/* Takes a refused record, with the reason.  detail->line is that of the input;
	 * detail->column is 0 if the position is unknown.  May be NULL. */
	void (*on_error)(void *arg, enum err e, const struct err_detail *detail);
	/* Called after each commit, and at times by import_stream().  False cancels; committed rows
	 * stay.  May be NULL. */
	bool (*on_progress)(void *arg, const struct import_counts *counts);
	/* Returns ERR_OK if rows of this partition may be changed, else the record is refused.
	 * Called once for consecutive rows of a partition.  NULL: all may. */
	enum err (*may_change)(void *arg, uint64_t table_id, struct span pk);
	void *arg;
	/* Commits rows to another place than the store, all or none: 1 to LIMIT_BATCH_OPS rows of one
	 * partition, each with its entity.  detail->op is the row to blame.  NULL: the store. */
	enum err (*commit)(
		void *commit_arg, const struct entity_op *ops, size_t n, struct err_detail *detail);
	void *commit_arg;
};

struct importer;

/* Copies the options.  s may be NULL if they have commit().  With in_partition, importer_aim() must be called before the first record. */
enum err importer_new(struct service *s, enum origin origin, uint64_t table_id,
	const struct import_options *options, struct importer **ret);
/* Returns about how many bytes it holds between two calls. */
size_t importer_holds(const struct importer *im);
void importer_free(struct importer *im); /* drops rows that are not committed; accepts NULL */

/* Sets the partition of the following records.  No record may be pending. */
enum err importer_aim(struct importer *im, uint64_t table_id, struct span pk);

/* Takes the next bytes.  ERR_OK even if records were refused and the import continues.  An error
 * ends the import: detail->line is the first record that is not in the store, and later calls
 * return the same error.  ERR_CANCELLED: on_progress() returned false. */
enum err importer_feed(struct importer *im, struct span bytes, struct err_detail *detail);

/* Commits the pending complete records.  The errors are those of importer_feed(). */
enum err importer_flush(struct importer *im, struct err_detail *detail);

/* Ends the input: the last record may lack its line end, and everything is committed.  If that
 * record is refused with stop_at_error, returns its error, and the call has no effect: more bytes
 * may complete the record. */
enum err importer_end(struct importer *im, struct err_detail *detail);

/* With stop_at_error and at_once: appends the input from the first record on that is not in the
 * store.  Call it after importer_feed() with these bytes failed, or before it.  Call it without
 * bytes after importer_end() failed. */
void importer_rest(const struct importer *im, struct span bytes, struct buf *out);

/* Returns the counts so far; valid until importer_free(). */
const struct import_counts *importer_counts(const struct importer *im);

/* Imports all of `in` and makes it durable.  ERR_OK if the input was read to its end, even if
 * records were refused.  Else detail->line is as above, or 0 if the input cannot be read. */
enum err import_stream(struct service *s, enum origin origin, uint64_t table_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail);

#endif
