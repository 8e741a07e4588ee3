/* SPDX-License-Identifier: MIT
 * What the files of the importer are to each other: importer.c cuts bytes into records,
 * import_ndjson.c and import_csv.c read one, import_records.c makes rows of them, in the
 * chunks of import_chunk.c.  Private to the service. */
#ifndef SERVICE_TRANSFER_IMPORT_PARTS_H
#define SERVICE_TRANSFER_IMPORT_PARTS_H

#include "base/arena.h"
#include "codec/json_scan.h"
#include "codec/splicer.h"
#include "service/transfer/importer.h"

/* A record longer than this can be no row; it is read past, and refused. */
#define RECORD_LIMIT (2 * (size_t)LIMIT_DOCUMENT_BYTES)

struct csv_header;

struct import_format {
	/* The number of bytes up to the end of the record, its line end included; 0: it goes on
	 * behind them.  *state is 0 where a record begins, and kept from piece to piece. */
	size_t (*end_of)(int *state, struct span piece);
	/* Whether no row can begin so, or only the line end is missing.  scan is kept from piece
	 * to piece, and zeroed where a record begins.  NULL: nobody knows. */
	bool (*decided)(struct span begun, struct json_scan *scan);
	/* Whether this is no record at all.  Records come without their line feed. */
	bool (*blank)(struct span record);
	/* The header that a first record is; NULL where the format has none. */
	enum err (*header)(struct span record, bool in_partition, struct csv_header **ret,
		struct err_detail *detail);
	void (*header_free)(struct csv_header *h);
	size_t (*header_holds)(const struct csv_header *h); /* memory */
	/* The record into ret, which is reset first; its memory is ret's own, text's and the
	 * record's.  With `checks` it is checked as by entity_check().  Keys may be missing. */
	enum err (*parse)(struct csv_header *h, struct span record, struct arena *text,
		struct entity *ret, struct err_detail *detail);
	/* Whether the record just parsed, which has no line end, looks like the beginning of a
	 * longer one.  NULL: such a one does not parse. */
	bool (*cut)(const struct csv_header *h);
	bool checks;
	bool json; /* a splicer may know a record */
};

extern const struct import_format import_ndjson;
extern const struct import_format import_csv;

/* ---- chunks: the rows of one commit ---- */

#define CHUNK_ROWS 1000
#define CHUNK_BYTES (4u << 20)
#define CHUNK_SLOTS 4096 /* of the hash of its keys; a power of two */

/* Where a record begins. */
struct import_place {
	uint64_t line;   /* 1-based */
	uint64_t offset; /* in the input */
};

/* A row as it comes from a record. */
struct import_row {
	struct span pk, rk;          /* UTF-8 */
	struct span document;        /* as it is stored, canonical and without keys; p NULL: */
	const struct entity *entity; /* the row, for a merge or with keys inside */
};

/* entities[decoded] is where the next record is decoded to: a row of which only the document is
 * needed leaves it to the next one.  Zeroed: empty. */
struct import_chunk {
	struct entity entities[CHUNK_ROWS];
	struct entity_op ops[CHUNK_ROWS];
	struct import_place places[CHUNK_ROWS];
	struct change changes[CHUNK_ROWS]; /* while it is committed, in their order: */
	uint16_t order[CHUNK_ROWS];        /* indexes in ops */
	uint16_t slots[CHUNK_SLOTS];       /* index + 1 of the row with these keys; 0: free */
	struct arena text;                 /* of the records */
	size_t n;
	size_t decoded; /* rows that are their entity, and have no document */
	size_t used;    /* entities that may hold memory */
	size_t bytes;   /* of text and of rows */
};

void chunk_free(struct import_chunk *c); /* NULL is fine */
/* Whether a row with these keys is in it. */
bool chunk_has(struct import_chunk *c, const struct import_row *row);
/* The row, whose memory is the chunk's, read from text_n bytes. */
void chunk_append(struct import_chunk *c, enum entity_op_kind kind, struct import_place at,
	const struct import_row *row, size_t text_n);
bool chunk_full(const struct import_chunk *c);
/* How many of the n rows from `at` on are of one partition with the first. */
size_t chunk_partition(const struct import_chunk *c, size_t at, size_t n);
/* Empty again. */
void chunk_clear(struct import_chunk *c);
/* Commits n rows from ops[at] on, or none.  why->op: one to blame, counted from there. */
enum err chunk_apply(struct import_chunk *c, size_t at, size_t n, struct service *s,
	enum origin origin, uint64_t table_id, struct err_detail *why);

/* ---- the importer ---- */

struct importer {
	struct service *service;
	enum origin origin;
	uint64_t table_id;
	struct import_options options;
	const struct import_format *format;
	struct csv_header *header;
	struct buf partition; /* its key */
	struct import_counts counts;
	struct import_chunk *chunk; /* NULL: nothing waits */
	struct splicer *splicer;    /* NULL: not needed so far */
	struct buf rendered;        /* a document of a row that had to be parsed */

	size_t mark_n;         /* bytes of the byte order mark seen; all of them: decided */
	int state;             /* of format->end_of() */
	bool holding;          /* a record has begun whose end has not come: */
	struct buf held;       /* this much of it; else what is left of the last one */
	size_t held_first;     /* bytes of it that came before the current call */
	struct json_scan scan; /* of format->decided() */
	bool skipping;         /* it is too long, and refused already */
	bool ending;           /* the record is the last one, and has no line end */
	uint64_t lines;        /* line ends behind us */
	uint64_t fed;          /* bytes of all calls before the current one */
	uint64_t at;           /* offset behind the last complete record */

	struct import_place undecided; /* the first record that is not in the store */
	enum err failed;               /* the import has ended */
	struct err_detail why;
};

/* In import_records.c.  A record, from `at` on, without its line feed.  An error ends the
 * import, and im->undecided is where. */
enum err records_take(
	struct importer *im, struct import_place at, struct span record, struct err_detail *why);
enum err records_too_long(struct importer *im, struct import_place at, struct err_detail *why);
/* The beginning of one, where the first refusal is the end. */
enum err records_check_begun(
	struct importer *im, struct import_place at, struct span begun, struct err_detail *why);
/* Commits the chunk. */
enum err records_commit(struct importer *im, struct err_detail *why);

#endif
