/* SPDX-License-Identifier: MIT
 * A pull scanner for one flat JSON object (RFC 8259): the only JSON parser on the hot path.  It
 * allocates no memory.
 *
 * It can continue when more bytes have arrived, from the last complete member.  So it finds the
 * first byte that no valid document can contain as soon as that byte arrives.  It refuses the first
 * byte of nested objects and arrays.  Strings must be valid UTF-8 with valid escapes and paired
 * surrogates.
 *
 * For texts that contain entities, such as change sets, options allow a part of a text and values
 * that are flat objects. */
#ifndef CODEC_JSON_SCAN_H
#define CODEC_JSON_SCAN_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

enum json_token {
	JSON_TOKEN_STRING,
	JSON_TOKEN_INTEGER, /* a number without point and exponent */
	JSON_TOKEN_NUMBER,  /* a number with a point or an exponent */
	JSON_TOKEN_TRUE,
	JSON_TOKEN_FALSE,
	JSON_TOKEN_NULL,
	JSON_TOKEN_OBJECT, /* only if `objects` is set */
};

struct json_member {
	struct span name;  /* between the quotes, with its escapes */
	bool name_escaped; /* the name contains a backslash */
	struct span value; /* STRING: between the quotes; else the whole value, with braces */
	bool value_escaped;
	enum json_token token;
	size_t offset;       /* of the opening quote of the name */
	size_t value_offset; /* of the first byte of the value */
};

enum json_scan_result {
	JSON_SCAN_MEMBER, /* *ret is set */
	/* the object is complete and only white space follows; with `part`, pos is right behind
	 * it */
	JSON_SCAN_END,
	JSON_SCAN_MORE, /* valid so far, but incomplete */
	JSON_SCAN_BAD,  /* bad_at is the first impossible byte; why describes it */
};

struct json_scan {
	size_t pos;   /* everything before it is consumed */
	int phase;    /* private */
	bool part;    /* other text may follow the object */
	bool objects; /* a value may be an object without inner objects */
	size_t bad_at;
	const char *why; /* a static string */
};

/* Takes the next member.  A zeroed struct starts a new document; set `part`, `objects` and pos as
 * needed.  Later calls need the same text, maybe with more bytes at its end. */
enum json_scan_result json_scan_next(
	struct json_scan *s, struct span text, struct json_member *ret);

/* Resolves the escapes of a scanned string.  out needs room for raw.n bytes.  Returns the
 * length. */
size_t json_unescape(struct span raw, char *out);

#endif
