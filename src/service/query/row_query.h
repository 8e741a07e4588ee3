/* SPDX-License-Identifier: MIT
 * The options of a query as one component of a path:
 *
 * 	Rating ge 4
 * 	filter=PartitionKey eq 'Football' and Rating gt 3&top=10&select=Text,Rating.ndjson
 *
 * Options are NAME=VALUE with '&' between them: filter, select and top, as in REST, each once and
 * in any order.  The '$' before a name is optional.  The first part may be a filter without a name.
 * Empty parts are ignored; without options all rows match.  An '&' inside a quoted literal does not
 * separate.
 *
 * %XX is the byte XX, so that a name can contain '/' (%2F), '%' (%25) and a literal '&' (%26).  A
 * '+' is a plus.  A suffix selects a text form for the rows. */
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
	ROW_FORM_COUNT,   /* ".count": their number */
	ROW_FORM_EXPLAIN, /* ".explain": the plan and its cost */
};

struct row_query {
	enum row_form form;
	struct filter filter; /* root NULL: all rows */
	uint64_t top;         /* only the first rows; 0: all */
	struct selection select;
	struct arena arena;
};

/* All rows in this form.  Needs no row_query_fini(). */
#define ROW_QUERY_ALL(form_) ((struct row_query){ .form = (form_), .select = SELECTION_ALL })

/* Parses the options.  ret keeps no reference to text and can be moved by assignment.  Call
 * row_query_fini() also after an error.  ERR_INVALID_INPUT with the reason, for a filter "Syntax
 * error at position N in '...'."; ERR_NO_MEMORY. */
enum err row_query_parse(struct span text, struct row_query *ret, struct err_detail *detail);
/* Sets an option of a query by its name: filter, select or top.  Keeps no reference to value; NULL leaves
 * the query as it is.  Errors as above. */
enum err row_query_set(
	struct row_query *q, const char *name, const char *value, struct err_detail *detail);
/* Frees the query. */
void row_query_fini(struct row_query *q);

#endif
