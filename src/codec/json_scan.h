/* SPDX-License-Identifier: MIT
 * A pull scanner for one flat JSON object (RFC 8259): the only JSON on the hot path.  It
 * allocates nothing, and can be asked again when more bytes have come: it then goes on
 * from the last complete member, so that a document that arrives in pieces is checked at
 * the first byte that no valid document can contain.  Nested objects and arrays are
 * impossible in an entity: their first byte is refused.  Strings are checked for valid
 * UTF-8, escapes and paired surrogates.  For what holds entities (change sets) an object
 * may be a part of a text, and its values flat objects. */
#ifndef CODEC_JSON_SCAN_H
#define CODEC_JSON_SCAN_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

enum json_token {
	JSON_TOKEN_STRING,
	JSON_TOKEN_INTEGER, /* number without point and exponent */
	JSON_TOKEN_NUMBER,  /* number with one of them */
	JSON_TOKEN_TRUE,
	JSON_TOKEN_FALSE,
	JSON_TOKEN_NULL,
	JSON_TOKEN_OBJECT, /* only with `objects` */
};

struct json_member {
	struct span name;  /* between the quotes, escapes still in it */
	bool name_escaped; /* whether it holds a backslash */
	struct span value; /* STRING: between the quotes; else all of it, braces included */
	bool value_escaped;
	enum json_token token;
	size_t offset;       /* of the name's opening quote */
	size_t value_offset; /* of the value's first byte */
};

enum json_scan_result {
	JSON_SCAN_MEMBER, /* *ret is filled */
	JSON_SCAN_END,    /* the closing brace was read, only white space follows; of a part: pos
			     is right behind it */
	JSON_SCAN_MORE,   /* valid so far, cut short */
	JSON_SCAN_BAD,    /* bad_at is the first impossible byte, why says what */
};

struct json_scan {
	size_t pos;   /* all before it is consumed */
	int phase;    /* private */
	bool part;    /* anything may follow the object */
	bool objects; /* values may be objects whose values are none */
	size_t bad_at;
	const char *why; /* static text */
};

/* A zeroed struct starts a new document; `part` and `objects` as wanted, and as pos where a
 * part begins.  text must be the same bytes as before, maybe with more behind them. */
enum json_scan_result json_scan_next(
	struct json_scan *s, struct span text, struct json_member *ret);

/* Resolves the escapes of a scanned string into out (at most raw.n bytes); returns the
 * length. */
size_t json_unescape(struct span raw, char *out);

#endif
