/* SPDX-License-Identifier: MIT
 * Metadata of a queue: names with values, that the client chooses.  It is kept as a text with a line
 * "name:value" for each, in the client's order.  The service keeps a name's case, but two names
 * that differ only in it are the same. */
#ifndef MODEL_METADATA_H
#define MODEL_METADATA_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>

struct metadata_pair {
	struct span name, value;
};

/* Appends one pair to the text.  ERR_METADATA_INVALID: the name is no C# identifier or is there
 * already, or the value has control characters.  ERR_METADATA_TOO_LARGE: all names and values
 * together have more than LIMIT_METADATA_BYTES.  ERR_NO_MEMORY. */
enum err metadata_add(
	struct buf *text, struct span name, struct span value, struct err_detail *detail);
/* Checks a whole text.  The errors of metadata_add(). */
enum err metadata_check(struct span text, struct err_detail *detail);
/* Takes the next pair from the front of *rest; false at the end.  The spans borrow from the text. */
bool metadata_next(struct span *rest, struct metadata_pair *ret);
/* Returns whether both have the same names with the same values, in any order. */
bool metadata_equal(struct span a, struct span b);

#endif
