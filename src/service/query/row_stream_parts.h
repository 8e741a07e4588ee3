/* SPDX-License-Identifier: MIT
 * Shared by the files of a stream: row_stream.c runs the query page by page and serves reads,
 * row_text.c writes a page's text, row_stream_size.c counts the whole.  Private to them. */
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
/* Returns true if the rows are counted without writing them: all properties, as an object. */
bool row_text_only_counts(const struct row_stream *s);

/* ---- row_stream.c ---- */

/* Replaces the page's text by the next piece, which may be empty. */
enum err row_stream_advance(struct row_stream *s);
/* Explains the errors that only a stream has. */
enum err row_stream_explain(enum err e, struct err_detail *detail);
void row_stream_twin_free(struct row_stream *t); /* accepts NULL */

#endif
