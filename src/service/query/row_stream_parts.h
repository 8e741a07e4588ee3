/* SPDX-License-Identifier: MIT
 * Shared by the files of a stream: row_stream.c runs the query page by page and serves reads,
 * row_text.c writes a page's text, row_stream_size.c counts the whole, row_stream_ahead.c keeps
 * what a count has written.  Private to them. */
#ifndef SERVICE_QUERY_ROW_STREAM_PARTS_H
#define SERVICE_QUERY_ROW_STREAM_PARTS_H

#include "service/core/row_line.h"
#include "service/query/csv_writer.h"
#include "service/query/row_stream.h"
#include "service/view/views.h"

#include <stdlib.h>

#define PAGE_BYTES ((size_t)128 << 10)
#define KEPT_PAGES 4
/* A page and one row, or the header of a CSV file. */
#define TEXT_MAX ((size_t)16 << 20)

enum phase {
	PHASE_LOOK, /* collects the names of a CSV file's columns */
	PHASE_HEAD,
	PHASE_ROWS,
	PHASE_END,
};

struct page {
	struct buf text;
	uint64_t base; /* its offset in the stream */
};

/* Those that a count has written, from `first` on. */
struct pages_ahead {
	struct page *v;
	size_t first, n, cap;
	size_t bytes;
};

struct row_stream {
	struct service *service;
	struct view *view;
	uint64_t table_id;
	struct key_ranges limit; /* of a partition */
	bool limited;
	struct row_query query;
	const struct query_requester *requester;
	bool with_time; /* Timestamp is selected */
	struct csv_writer *csv;
	struct filter_mismatch *mismatch; /* for .explain */

	enum phase phase;
	struct buf next_pk, next_rk; /* start of the next page; data NULL: the start of the table */
	uint64_t rows;               /* rows written */
	uint64_t looked_at, matched;
	enum key_plan plan;

	struct page page;             /* the last one */
	struct page kept[KEPT_PAGES]; /* those before it, the latest first */
	struct pages_ahead ahead;     /* behind the last one */
	uint64_t size;                /* of the whole; UINT64_MAX: not known yet */

	struct row_stream *twin; /* while the size is counted; borrows all that does not change */
	bool counts;             /* it is a twin */
	bool needs_documents;    /* of a twin: a row's size does not tell the length of its line */
	bool measures;           /* the first pass over a CSV file's rows counts their bytes */
	struct row_line line;

	struct entity entity;      /* a row that the query did not decode */
	struct property *selected; /* of a row; room for all selected ones */
	enum err e;                /* the error of the page */
};

/* ---- row_text.c ---- */

/* Appends the row to the page, or counts it.  Sets s->e. */
void row_text_add(struct row_stream *s, const struct query_row *row);
/* Collects the names of the row's columns for the header of a CSV file.  Sets s->e. */
void row_text_look(struct row_stream *s, const struct query_row *row);
/* Append what stands before the first row and behind the last one. */
void row_text_head(struct row_stream *s);
void row_text_tail(struct row_stream *s);
/* Returns true if a row is an object of all its properties. */
bool row_text_is_whole_object(const struct row_stream *s);
/* Returns true if the rows are counted without writing them. */
bool row_text_only_counts(const struct row_stream *s);

/* ---- row_stream.c ---- */

/* Replaces the page's text by the next piece, which may be empty. */
enum err row_stream_advance(struct row_stream *s);
/* Writes the next piece of the query behind the page's text.  ERR_NO_MEMORY: a head or a tail may be lost, so
 * the stream must start again. */
enum err row_stream_produce(struct row_stream *s);
/* Goes back to offset 0 of the same view. */
void row_stream_start_again(struct row_stream *s);
/* Explains the errors that only a stream has. */
enum err row_stream_explain(enum err e, struct err_detail *detail);
void row_stream_twin_free(struct row_stream *t); /* accepts NULL */

/* ---- row_stream_ahead.c ---- */

/* Returns true if the next piece is worth being kept, and there is room for it. */
bool row_stream_may_read_ahead(const struct row_stream *s);
/* Keeps the page as the last one, and takes ownership of it.  ERR_NO_MEMORY: the caller has it. */
enum err row_stream_add_ahead(struct row_stream *s, const struct page *p);
/* Makes the first of them the page, in its place.  Returns false if there is none. */
bool row_stream_take_ahead(struct row_stream *s);
bool row_stream_has_ahead(const struct row_stream *s);
void row_stream_drop_ahead(struct row_stream *s);
/* Returns the offset of the next piece that the query writes. */
uint64_t row_stream_written(const struct row_stream *s);

#endif
