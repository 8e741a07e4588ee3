/* SPDX-License-Identifier: MIT
 * UTF-8, UTF-16 lengths and numbers in text.  No function depends on the locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the first code point and returns its length in bytes, 1 to 4.  Returns 0 if s is empty or
 * begins with invalid UTF-8: overlong, a surrogate, above U+10FFFF or cut short. */
size_t utf8_decode(struct span s, uint32_t *ret_cp);
/* Writes 1 to 4 bytes and returns how many. */
size_t utf8_write(uint32_t cp, char out[4]);
/* Returns true if s is valid UTF-8. */
bool utf8_valid(struct span s);
/* Returns the offset of the first invalid byte, or s.n. */
size_t utf8_valid_prefix(struct span s);
/* Returns the length in UTF-16 units.  s must be valid UTF-8. */
size_t utf16_len(struct span s);

/* Removes the characters of `blanks` from both ends.  They must be ' ' or below. */
struct span text_trim(struct span s, const char *blanks);
/* Removes spaces and tabs, as in HTTP header values. */
static inline struct span text_trim_line(struct span s)
{
	return text_trim(s, " \t");
}

/* Parse a decimal integer that is the whole span.  A '-' may precede it in text_to_i64().  Return
 * false for anything else and on overflow. */
bool text_to_i64(struct span s, int64_t *ret);
bool text_to_u64(struct span s, uint64_t *ret);
/* Returns the number of decimal digits from s.p[i] on. */
size_t text_count_digits(struct span s, size_t i);
/* Parses a number of bytes, perhaps with K, M, G or T behind it; up to INT64_MAX.  Returns false for
 * anything else. */
bool text_to_size(struct span s, uint64_t *ret);

#endif
