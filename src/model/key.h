/* SPDX-License-Identifier: MIT
 * PartitionKey and RowKey: what is allowed, and their order.  A key is UTF-8 here.
 * The service orders keys ordinally by UTF-16 code unit, which differs from the byte
 * order of UTF-8 only between U+E000..U+FFFF and the planes above.  The order form is
 * UTF-8 with seven lead bytes permuted, so that memcmp gives the service's order; it has
 * the same length, holds no NUL, and is the identity for ASCII. */
#ifndef MODEL_KEY_H
#define MODEL_KEY_H

#include "base/err.h"
#include "base/span.h"

/* ERR_OK, ERR_NAME_NOT_UTF8, ERR_KEY_INVALID or ERR_KEY_TOO_LARGE.  The empty key is
 * legal.  what: "PartitionKey" or "RowKey", for the text. */
enum err key_check(struct span key, const char *what, struct err_detail *detail);

/* Into and out of the order form: n bytes each, in and out may be the same memory.
 * The input of key_to_order is valid UTF-8. */
void key_to_order(const char *key, size_t n, char *out);
/* Whether the order form is the key itself. */
bool key_is_order(struct span key);
void key_from_order(const char *order, size_t n, char *out);

#endif
