/* SPDX-License-Identifier: MIT
 * Values as text, as the protocol writes them (protocol section 5.1). */
#ifndef CODEC_EDM_TEXT_H
#define CODEC_EDM_TEXT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/value.h"

/* Parses an annotated value: the content of the JSON string, without escapes.  A STRING borrows
 * text; a BINARY is decoded into out_bytes, which other types do not use.
 *
 * Int32, Int64: decimal.  Double: decimal, or NaN Infinity -Infinity INF -INF.  Boolean: true,
 * false in any case, 1, 0.  DateTime: ISO 8601 without zone (UTC), with Z or +hh:mm; seconds are
 * optional, and digits of the fraction beyond 7 are ignored.  Guid: 36 characters or 32 hex digits,
 * in any case, maybe in braces.  Binary: base64.
 *
 * ERR_VALUE_INVALID; ERR_OUT_OF_RANGE for a DateTime before 1601; ERR_NO_MEMORY. */
enum err edm_text_parse(enum edm_type type, struct span text, struct value *ret,
	struct buf *out_bytes, struct err_detail *detail);

/* Appends the text without quotes and escapes.  Double: the shortest text that parses to the same
 * value, with a point or an exponent ("3.0", "1.5E+24"), or NaN, Infinity, -Infinity; -0.0 keeps
 * its sign.  Guid: lower case with dashes.  DateTime: as clock_format() writes it. */
void edm_text_format(const struct value *v, struct buf *out);

#endif
