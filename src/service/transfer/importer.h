/* SPDX-License-Identifier: MIT
 * Import: bytes of NDJSON or CSV in, in pieces of any size, rows of a table out, many a
 * commit.  `rowfs import` and the files .rows.ndjson and .rows.csv of the mount feed it.
 *
 * Records act in their order, also where two have the same keys.  A record that is refused
 * (it breaks a rule, or the mode does not allow it) costs its neighbours nothing, or ends
 * the import: those before it are in the store then, those behind it are not.
 *
 * Memory: 1,000 rows or 4 MiB of text and one record (8 MiB) while it works; where
 * `at_once`, between two calls only the record that is not complete.  Not for several
 * threads at once. */
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
	IMPORT_REPLACE
};

struct import_counts {
	uint64_t lines;   /* records read */
	uint64_t done;    /* committed */
	uint64_t refused; /* bad or conflicting; each was told to on_error */
	uint64_t bytes;   /* of input consumed */
};

struct import_options {
	enum transfer_format format;
	enum import_mode mode;
	bool in_partition;  /* importer_aim() says which: a record may leave PartitionKey out,
			       and must not have another one */
	bool stop_at_error; /* false: go on with the next record */
	bool at_once;       /* every call commits what it completed, and refuses a record whose
			       end has not come as soon as no row can begin so; false: chunks,
			       across calls */
	/* A refused record, why and where: detail->line is that of the input, detail->column 0
	 * where no place in it is known.  NULL: nobody wants to know. */
	void (*on_error)(void *arg, enum err e, const struct err_detail *detail);
	/* After every commit, and import_stream() now and then; false cancels (what is committed
	 * stands).  May be NULL. */
	bool (*on_progress)(void *arg, const struct import_counts *counts);
	/* Whether rows of this partition may be changed, else the record is refused; asked once
	 * for rows of one that come in succession.  NULL: all. */
	enum err (*may_change)(void *arg, uint64_t table_id, struct span pk);
	void *arg;
};

struct importer;

/* options are copied.  Where in_partition, importer_aim() comes before the first record. */
enum err importer_new(struct service *s, enum origin origin, uint64_t table_id,
	const struct import_options *options, struct importer **ret);
/* Memory between two calls, about. */
size_t importer_holds(const struct importer *im);
void importer_free(struct importer *im); /* what is not committed is forgotten; NULL is fine */

/* Into this partition from now on; no record may wait. */
enum err importer_aim(struct importer *im, uint64_t table_id, struct span pk);

/* The next bytes.  ERR_OK also where records were refused and the import goes on.  An error
 * ends it: detail->line is the first record that is not in the store, and every later call
 * answers the same.  ERR_CANCELLED: on_progress said so. */
enum err importer_feed(struct importer *im, struct span bytes, struct err_detail *detail);

/* Commits the complete records that wait.  Errors as above. */
enum err importer_flush(struct importer *im, struct err_detail *detail);

/* The input ends here: the last record may lack its line end, and all is committed.  Where
 * that record is refused and stop_at_error: its error, and it is as if this had not been
 * called: more bytes may complete it. */
enum err importer_end(struct importer *im, struct err_detail *detail);

/* Where stop_at_error and at_once, after an importer_feed() of these bytes failed, or before
 * it, or, without bytes, after an importer_end() failed: the input up to them from the first
 * record on that is not in the store. */
void importer_rest(const struct importer *im, struct span bytes, struct buf *out);

const struct import_counts *importer_counts(const struct importer *im);

/* Feeds all of `in` and makes it durable.  ERR_OK if the input was read to its end, even
 * if records were refused; else detail->line as above, 0 where the input cannot be read. */
enum err import_stream(struct service *s, enum origin origin, uint64_t table_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail);

#endif
