/* SPDX-License-Identifier: MIT
 * Builds one JSON object and writes it, by jansson.  For every text that holds no row: rows are
 * written by entity_json.h, which copies stored bytes.  Every value has a name, except those of an
 * array, whose name is NULL.  A failure sticks until json_end() reports it. */
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
	struct json_t *open[JSON_BUILD_DEPTH]; /* the containers that are open, outermost first */
	unsigned depth;
	bool failed; /* memory is out */
};

/* Begins an object.  json_end() must follow. */
void json_begin(struct json_build *b);

/* A byte that is no UTF-8 becomes a question mark, so that the text stays JSON. */
void json_add_text(struct json_build *b, const char *name, struct span text);
static inline void json_add_str(struct json_build *b, const char *name, const char *text)
{
	json_add_text(b, name, span_of(text));
}
/* jansson keeps signed integers of 64 bits: a larger count is written as 2^63 - 1. */
void json_add_count(struct json_build *b, const char *name, uint64_t n);
void json_add_hundredths(struct json_build *b, const char *name, uint64_t n);
void json_add_bool(struct json_build *b, const char *name, bool is);
void json_add_null(struct json_build *b, const char *name);

/* The values that follow go inside, until json_close(). */
void json_open_object(struct json_build *b, const char *name);
void json_open_array(struct json_build *b, const char *name);
void json_close(struct json_build *b);

/* Appends the object on one line, without a line end, and frees it.  Sets out->failed where
 * anything failed. */
void json_end(struct json_build *b, struct buf *out);
/* The same, indented for people. */
void json_end_indented(struct json_build *b, struct buf *out);

/* Prints the object and a line end, and frees it.  ERR_NO_MEMORY: prints nothing. */
enum err json_end_print(struct json_build *b, FILE *out);

#endif
