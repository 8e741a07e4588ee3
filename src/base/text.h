/* SPDX-License-Identifier: MIT
 * UTF-8 and UTF-16 facts about byte strings; no locale anywhere. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One code point at s.p; returns its length in bytes (1 to 4), 0 if the bytes are not
 * valid UTF-8 (overlong, surrogate, above U+10FFFF, cut short) or s is empty. */
size_t utf8_decode(struct span s, uint32_t *ret_cp);
/* Writes 1 to 4 bytes. */
size_t utf8_encode(uint32_t cp, char out[4]);
bool utf8_valid(struct span s);
/* Offset of the first invalid byte, s.n if there is none. */
size_t utf8_valid_prefix(struct span s);
/* Length in UTF-16 code units; s is valid UTF-8. */
size_t utf16_len(struct span s);

/* Without the characters of `blanks` at either end. */
struct span text_trim(struct span s, const char *blanks);
/* Blanks and tabs: of header values, and of lists in them. */
static inline struct span text_trim_line(struct span s)
{
	return text_trim(s, " \t");
}

/* Integers in the C locale, whole span, optional leading '-'. */
bool text_to_i64(struct span s, int64_t *ret);
bool text_to_u64(struct span s, uint64_t *ret);

#endif
