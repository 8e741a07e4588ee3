/* SPDX-License-Identifier: MIT
 * Shared by the files of the importer: importer.c cuts bytes into records, import_ndjson.c and
 * import_csv.c parse one, import_records.c makes rows of them, in the chunks of import_chunk.c.
 * Private to the service. */
#ifndef SERVICE_TRANSFER_IMPORT_PARTS_H
#define SERVICE_TRANSFER_IMPORT_PARTS_H

#include "base/arena.h"
#include "codec/json_scan.h"
#include "codec/splicer.h"
#include "service/transfer/importer.h"

/* A longer record cannot be a row.  It is skipped and refused. */
#define RECORD_LIMIT (2 * (size_t)LIMIT_DOCUMENT_BYTES)

struct csv_header;

struct import_format {
	/* Returns the number of bytes up to the end of the record, with its line end; 0: it
	 * continues behind the piece.  *state is 0 at the start of a record and must be passed from
	 * piece to piece. */
	size_t (*end_of)(int *state, struct span piece);
	/* Returns true if the record cannot become a row, or if only its line end is missing.  scan
	 * is zeroed at the start of a record and must be passed from piece to piece.  NULL:
	 * unknown. */
	bool (*decided)(struct span begun, struct json_scan *scan);
	/* Returns true for an empty record.  Records have no line feed here. */
	bool (*blank)(struct span record);
	/* Parses the header, which is the first record; NULL: the format has none. */
	enum err (*header)(struct span record, bool in_partition, struct csv_header **ret,
		struct err_detail *detail);
	void (*header_free)(struct csv_header *h);
	size_t (*header_holds)(const struct csv_header *h); /* bytes */
	/* Decodes the record into ret, which is reset first; it borrows from text and from the
	 * record.  With `checks` it is checked as entity_check() does.  Keys may be missing. */
	enum err (*parse)(struct csv_header *h, struct span record, struct arena *text,
		struct entity *ret, struct err_detail *detail);
	/* Returns true if the last record, which has no line end, looks like the start of a longer
	 * one.  NULL: such a record never parses. */
	bool (*cut)(const struct csv_header *h);
	bool checks;
	bool json; /* a splicer can be used */
};

extern const struct import_format import_ndjson;
extern const struct import_format import_csv;

/* ---- chunks: the rows of one commit ---- */

#define CHUNK_ROWS 1000
#define CHUNK_BYTES (4u << 20)
#define CHUNK_SLOTS 4096 /* of the hash table of keys; must be a power of two */

/* The position of a record. */
struct import_place {
	uint64_t line;   /* 1-based */
	uint64_t offset; /* in the input */
};

/* A row made from a record. */
struct import_row {
	struct span pk, rk;          /* UTF-8 */
	struct span document;        /* in the stored form, canonical and without keys; p NULL: */
	const struct entity *entity; /* the entity, for a merge or with keys inside */
};

/* entities[decoded] is where the next record is decoded.  A row that needs only its document leaves
 * that entity to the next one.  A zeroed chunk is empty. */
struct import_chunk {
	struct entity entities[CHUNK_ROWS];
	struct entity_op ops[CHUNK_ROWS];
	struct import_place places[CHUNK_ROWS];
	struct change changes[CHUNK_ROWS]; /* used during a commit, in this order: */
	uint16_t order[CHUNK_ROWS];        /* indexes into ops */
	uint16_t slots[CHUNK_SLOTS];       /* index + 1 of the row with these keys; 0: free */
	struct arena text;                 /* owns the text of the records */
	size_t n;
	size_t decoded; /* rows that have an entity and no document */
	size_t used;    /* entities that may own memory */
	size_t bytes;   /* of text and rows */
};

void chunk_free(struct import_chunk *c); /* accepts NULL */
/* Returns true if the chunk has a row with these keys. */
bool chunk_has(struct import_chunk *c, const struct import_row *row);
/* Adds a row from a record of text_n bytes.  The chunk already owns its memory. */
void chunk_append(struct import_chunk *c, enum entity_op_kind kind, struct import_place at,
	const struct import_row *row, size_t text_n);
/* Returns true at CHUNK_ROWS rows or above CHUNK_BYTES. */
bool chunk_full(const struct import_chunk *c);
/* Returns how many of the n rows from `at` on share the partition of the first. */
size_t chunk_partition(const struct import_chunk *c, size_t at, size_t n);
/* Empties the chunk. */
void chunk_clear(struct import_chunk *c);
/* Commits n rows from ops[at] on, or none.  why->op is the row to blame, counted from there. */
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
	struct buf partition; /* the key in UTF-8 */
	struct import_counts counts;
	struct import_chunk *chunk; /* NULL: no rows are pending */
	struct splicer *splicer;    /* NULL: not needed so far */
	struct buf rendered;        /* the document of a row that was decoded */

	size_t mark_n;         /* bytes of the byte order mark seen so far; its size: decided */
	int state;             /* of format->end_of() */
	bool holding;          /* a record has begun and has not ended */
	struct buf held;       /* its bytes so far; else the rest of the last one */
	size_t held_first;     /* bytes of it that came before the current call */
	struct json_scan scan; /* of format->decided() */
	bool skipping;         /* the record is too long and was refused */
	bool ending;           /* the record is the last one and has no line end */
	uint64_t lines;        /* lines before the current position */
	uint64_t fed;          /* bytes of all earlier calls */
	uint64_t at;           /* offset behind the last complete record */

	struct import_place undecided; /* the first record that is not in the store */
	enum err failed;               /* the import has ended */
	struct err_detail why;
};

/* In import_records.c.  Take a record that begins at `at`, without its line feed.  An error ends
 * the import; im->undecided is the position. */
enum err records_take(
	struct importer *im, struct import_place at, struct span record, struct err_detail *why);
enum err records_too_long(struct importer *im, struct import_place at, struct err_detail *why);
/* Checks the start of a record, if the first refusal ends the import. */
enum err records_check_begun(
	struct importer *im, struct import_place at, struct span begun, struct err_detail *why);
/* Commits the chunk. */
enum err records_commit(struct importer *im, struct err_detail *why);

#endif
