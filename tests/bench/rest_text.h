/* SPDX-License-Identifier: MIT
 * What rest_load asks for: its arguments, and the requests as text.  Apart from the
 * connections, so that what is sent can be read in one place.
 *
 * Row i is in partition i % 100.  Its document has 12 properties in about 300 bytes, and
 * as many bytes for each i. */
#ifndef BENCH_REST_TEXT_H
#define BENCH_REST_TEXT_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_ROWS 100
#define PARTITIONS 100
#define ROW_KEY_MAX 32
#define ROW_BYTES_MIN 280
/* In every row, once, at its end. */
#define ROW_LAST "\"Language\":\"en-GB\""

enum kind {
	KIND_TABLE,  /* makes the table */
	KIND_FILL,   /* rows first … first + rows, in batches */
	KIND_GET,    /* any of first … first + rows */
	KIND_INSERT, /* new ones from first on */
	KIND_UPSERT, /* any of these, InsertOrReplace with other values */
	KIND_BATCH,  /* of 100 new ones from first on, InsertOrReplace */
	KIND_QUERY,  /* pages from the first row to the last, again and again */
};

struct load {
	const char *server, *kind_name, *account, *key, *table;
	const char *filter; /* of queries; NULL: none.  rows then counts the rows that match */
	enum kind kind;
	int status; /* that every answer must have */
	size_t connections, requests, rows, first, top, whole;
	double seconds; /* 0: until the requests are done */
	bool atom;      /* the answer's format */
	/* whole is 1 if the time may end no walk before its last page. */
	bool cycles;   /* after the last request comes the first again */
	uint64_t *ids; /* the row of each request */
	struct buf text;
	size_t *ends; /* of the requests in text */
};

/* SERVER KIND [NAME=VALUE…]; false: told on standard error. */
bool load_read(struct load *l, int argc, char **argv);
/* All requests, signed as of now. */
void load_write(struct load *l);
struct span load_text(const struct load *l, size_t request);
/* Behind this token, or the first one. */
void write_page(const struct load *l, struct span pk, struct span rk, struct buf *out);
void row_key(uint64_t i, char out[ROW_KEY_MAX]);

#endif
