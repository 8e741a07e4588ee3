/* SPDX-License-Identifier: MIT
 * What the formats of import and export (transfer_ndjson.c, transfer_csv.c) are to the
 * stream (transfer.c).  Private to the service. */
#ifndef SERVICE_TRANSFER_PARTS_H
#define SERVICE_TRANSFER_PARTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "service/transfer.h"

/* A record longer than this can be no row; it is read past, and refused. */
#define RECORD_LIMIT (2 * (size_t)LIMIT_DOCUMENT_BYTES)

struct csv_table;

struct reader {
	FILE *in;
	char block[16 << 10]; /* read ahead */
	size_t at, have;
	uint64_t line;   /* where the record read last begins, 1-based */
	uint64_t lines;  /* line ends seen */
	uint64_t bytes;  /* consumed */
	bool end;        /* nothing more: no record was read */
	bool broken;     /* the stream cannot go on: the error is not the record's */
	struct buf text; /* the record, reused */
	struct csv_table *csv;
};

struct import_format {
	/* Reads what stands before the first record. */
	enum err (*start)(struct reader *r, struct err_detail *detail);
	/* The next record into ret, checked as entity_check() does; its memory is ret's own
	 * and text's.  Sets r->end, or r->broken with an error. */
	enum err (*next)(struct reader *r, struct arena *text, struct entity *ret,
		struct err_detail *detail);
	void (*finish)(struct reader *r);
};

extern const struct import_format import_ndjson;
extern const struct import_format import_csv;

/* The next byte or EOF, counting bytes and lines; sets r->broken at an error. */
int reader_getc(struct reader *r);
/* Skips a UTF-8 byte order mark. */
void reader_skip_mark(struct reader *r);
/* The error of the file that broke the stream. */
enum err reader_error(struct reader *r, struct err_detail *detail);

struct writer {
	struct buf out;
	struct csv_table *csv;
};

struct export_format {
	bool two_passes;
	/* First pass: looks at a row. */
	enum err (*look)(struct writer *w, const struct entity *e);
	enum err (*header)(struct writer *w);
	enum err (*row)(struct writer *w, const struct entity *e);
	void (*finish)(struct writer *w);
};

extern const struct export_format export_ndjson;
extern const struct export_format export_csv;

#endif
