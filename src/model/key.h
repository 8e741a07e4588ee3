/* SPDX-License-Identifier: MIT
 * PartitionKey and RowKey: which are valid, and their order.  A key is UTF-8.
 *
 * The service orders keys by UTF-16 unit.  The byte order of UTF-8 differs only between
 * U+E000..U+FFFF and the planes above.  The order form permutes seven lead bytes, so that memcmp()
 * gives the service's order.  It has the same length, contains no NUL, and equals the key for
 * ASCII. */
#ifndef MODEL_KEY_H
#define MODEL_KEY_H

#include "base/err.h"
#include "base/span.h"

/* Checks a key; the empty key is valid.  what is "PartitionKey" or "RowKey", for the message.
 * ERR_NAME_NOT_UTF8, ERR_KEY_INVALID, ERR_KEY_TOO_LARGE. */
enum err key_check(struct span key, const char *what, struct err_detail *detail);

/* Converts a key to the order form and back.  Both have n bytes; in and out may be the same memory.
 * The key must be valid UTF-8. */
void key_to_order(const char *key, size_t n, char *out);
/* Returns true if the order form equals the key. */
bool key_is_order(struct span key);
void key_from_order(const char *order, size_t n, char *out);

#endif
