/* SPDX-License-Identifier: MIT
 * Rows in answers of the Table service: one entity, or the array of a page.  Tables in a listing are
 * rows with the property TableName. */
#ifndef CLOUD_ROWS_H
#define CLOUD_ROWS_H

#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"

#define CLOUD_ETAG_MAX 256 /* opaque; other services have other ETags than Azure's */

struct cloud_row {                 /* zeroed: empty */
	struct entity entity;      /* its strings may borrow from the response */
	char etag[CLOUD_ETAG_MAX]; /* "": the response has none */
};

/* Frees the row; it is empty again. */
void cloud_row_fini(struct cloud_row *r);

/* Reads the object at the start of text; other text may follow.  Resets *ret first.  *ret_n: its
 * length.  ERR_INVALID_INPUT with a message that blames the service, and the errors of
 * entity_json_decode(); ERR_NO_MEMORY. */
enum err cloud_row_read(
	struct span text, struct cloud_row *ret, size_t *ret_n, struct err_detail *detail);

/* A page: {"odata.metadata":"...","value":[ROW,ROW]}. */
struct rows_page {
	struct span rest; /* behind what was read; borrowed */
	bool begun;
};

/* Finds the array.  Errors as above. */
enum err rows_page_begin(struct span body, struct rows_page *ret, struct err_detail *detail);
/* Reads the next row of the array.  ERR_NOT_FOUND behind the last; errors as above. */
enum err rows_page_next(struct rows_page *p, struct cloud_row *ret, struct err_detail *detail);

/* Whether two entities have the same properties, in any order; without keys and Timestamp. */
bool cloud_same_properties(const struct entity *a, const struct entity *b);
/* Whether `all` has each property of `some`, with the same value. */
bool cloud_has_properties(const struct entity *all, const struct entity *some);

#endif
