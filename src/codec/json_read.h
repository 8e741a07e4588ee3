/* SPDX-License-Identifier: MIT
 * Reads one JSON object of any shape, with jansson.  Use it for texts without rows, such as tokens;
 * json_scan.h reads rows.
 *
 * A member that is absent, or has another type, is a span with p == NULL, false, 0 or NULL. */
#ifndef CODEC_JSON_READ_H
#define CODEC_JSON_READ_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;

/* Parses the text: an object, with at most `depth` levels of objects and arrays.  ERR_INVALID_INPUT
 * for other text, for two members of one name, for a NUL in a string; ERR_NO_MEMORY.  The caller
 * frees *ret with json_read_free(). */
enum err json_read(struct span text, unsigned depth, struct json_t **ret);
/* NULL is allowed. */
void json_read_free(struct json_t *object);

/* These borrow from the object. */
bool json_read_has(const struct json_t *object, const char *name);
struct span json_read_text(const struct json_t *object, const char *name);
bool json_read_is_array(const struct json_t *object, const char *name);
/* Returns the name of the member after `name`, of the first one for NULL; NULL after the last one.
 */
const char *json_read_next(const struct json_t *object, const char *name);
/* Sets *ret to a number without its fraction. */
bool json_read_number(const struct json_t *object, const char *name, int64_t *ret);
/* Returns how many values an array has; 1 for a string. */
size_t json_read_count(const struct json_t *object, const char *name);
/* Returns the i-th text of an array, or the string itself for 0. */
struct span json_read_item(const struct json_t *object, const char *name, size_t i);
/* Returns the i-th object of an array. */
const struct json_t *json_read_object(const struct json_t *object, const char *name, size_t i);

#endif
