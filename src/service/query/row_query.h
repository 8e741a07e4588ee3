/* SPDX-License-Identifier: MIT
 * The options of a query as one component of a path:
 *
 *	Rating ge 4
 *	filter=PartitionKey eq 'Football' and Rating gt 3&top=10&select=Text,Rating.ndjson
 *
 * NAME=VALUE with '&' between them, each name once, in any order: filter, select, top, as in
 * REST; the '$' before a name may be left out, and the first piece may be a filter without a
 * name.  Empty pieces are left out; no options: all rows.  A '&' inside a quoted literal
 * divides nothing.  %XX is the byte XX, so that a name can hold '/' (%2F), '%' (%25) and an
 * '&' that divides nothing (%26); a '+' is a plus.  A suffix says that the rows come as text,
 * and how. */
#ifndef SERVICE_QUERY_ROW_QUERY_H
#define SERVICE_QUERY_ROW_QUERY_H

#include "query/filter.h"
#include "query/select.h"

#include <stdint.h>

enum row_form {
	ROW_FORM_NONE,    /* no suffix: a directory */
	ROW_FORM_NDJSON,  /* ".ndjson": one object a line */
	ROW_FORM_JSON,    /* ".json": one array */
	ROW_FORM_CSV,     /* ".csv": docs/formats.md */
	ROW_FORM_COUNT,   /* ".count": how many */
	ROW_FORM_EXPLAIN, /* ".explain": how they are found, at what cost */
};

struct row_query {
	enum row_form form;
	struct filter filter; /* root NULL: all rows */
	uint64_t top;         /* only the first so many; 0: all */
	struct selection select;
	struct arena arena;
};

/* All rows in this form; needs no row_query_fini(). */
#define ROW_QUERY_ALL(form_) ((struct row_query){ .form = (form_), .select = SELECTION_ALL })

/* ret owns what it holds (text is not needed afterwards) and can be moved by assignment;
 * row_query_fini() it whatever the answer.  ERR_INVALID_INPUT with the reason, for a filter
 * "Syntax error at position N in '...'."; ERR_NO_MEMORY. */
enum err row_query_parse(struct span text, struct row_query *ret, struct err_detail *detail);
void row_query_fini(struct row_query *q);

#endif
