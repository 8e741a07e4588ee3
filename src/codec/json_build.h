/* SPDX-License-Identifier: MIT
 * Builds one JSON object and writes it, with jansson.  Use it for every text without rows;
 * entity_json.h writes rows, because it copies stored bytes.
 *
 * Every value has a name; the name of an array's values is NULL.  json_end() reports a failure of
 * any earlier call. */
#ifndef CODEC_JSON_BUILD_H
#define CODEC_JSON_BUILD_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_BUILD_DEPTH 5

struct json_t;

struct json_build {
	struct json_t *open[JSON_BUILD_DEPTH]; /* the open containers, outermost first */
	unsigned depth;
	bool failed; /* memory is out */
};

/* Begins an object.  json_end() must follow. */
void json_begin(struct json_build *b);

/* Adds a string.  A byte that is not UTF-8 becomes a question mark. */
void json_add_text(struct json_build *b, const char *name, struct span text);
static inline void json_add_str(struct json_build *b, const char *name, const char *text)
{
	json_add_text(b, name, span_of(text));
}
/* Adds a number.  jansson has signed 64-bit integers: a larger count is written as 2^63 - 1. */
void json_add_count(struct json_build *b, const char *name, uint64_t n);
/* Adds n / 100 as a number with a fraction. */
void json_add_hundredths(struct json_build *b, const char *name, uint64_t n);
void json_add_bool(struct json_build *b, const char *name, bool is);
void json_add_null(struct json_build *b, const char *name);

/* The following values go into this container, until json_close(). */
void json_open_object(struct json_build *b, const char *name);
void json_open_array(struct json_build *b, const char *name);
void json_close(struct json_build *b);

/* Appends the object on one line, without a line end, and frees it.  Sets out->failed if any call
 * failed. */
void json_end(struct json_build *b, struct buf *out);
/* Does the same with indentation, for people. */
void json_end_indented(struct json_build *b, struct buf *out);

/* Prints the object and a line end, and frees it.  ERR_NO_MEMORY: nothing was printed. */
enum err json_end_print(struct json_build *b, FILE *out);

#endif
