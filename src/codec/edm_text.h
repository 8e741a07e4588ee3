/* SPDX-License-Identifier: MIT
 * Values as text, the way the protocol writes them (protocol section 5.1). */
#ifndef CODEC_EDM_TEXT_H
#define CODEC_EDM_TEXT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/value.h"

/* The text of an annotated value (the JSON string's content, unescaped) as the given
 * type.  STRING and BINARY results point into out_bytes (BINARY: decoded there; STRING:
 * borrows text itself).  ERR_VALUE_INVALID, ERR_OUT_OF_RANGE (DateTime before 1601).
 *   Int32, Int64: decimal.  Double: decimal, or NaN Infinity -Infinity INF -INF.
 *   Boolean: true and false in any case, 1 0.  DateTime: ISO 8601 without zone (UTC), Z or +hh:mm,
 *   seconds may be missing, more than 7 fraction digits are cut.  Guid: 36 characters,
 *   any case; 32 hex digits; braces.  Binary: base64. */
enum err edm_text_parse(enum edm_type type, struct span text, struct value *ret,
	struct buf *out_bytes, struct err_detail *detail);

/* The text without quotes or escapes.  Double: shortest that reads back the same, always
 * with a point or an exponent ("3.0", "1.5E+24"), NaN, Infinity, -Infinity; -0.0 keeps
 * its sign.  Guid: lower case, dashes.  DateTime: clock_format(). */
void edm_text_format(const struct value *v, struct buf *out);

#endif
