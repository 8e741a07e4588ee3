/* SPDX-License-Identifier: MIT
 * References to characters that XML cannot carry: &#x1;, and its kin for U+0000 to U+001F,
 * U+FFFE and U+FFFF.  No parser takes them; but they are how values that hold such characters
 * are written in ATOM, so they are hidden from the parser, and shown again in the values. */
#ifndef CODEC_XML_CONTROLS_H
#define CODEC_XML_CONTROLS_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* True: out holds the document with them hidden, by at most half as many bytes longer.  False:
 * it has none, nothing was written.  Whether memory was out is out's to tell (buf_ok()). */
bool xml_controls_hide(struct span document, struct buf *out);

/* Characters of a document in which they were hidden, as they were meant: in place, returns
 * the new length. */
size_t xml_controls_show(char *text, size_t n);

/* Whether XML can carry the character; as a reference it can carry no other either. */
bool xml_can_carry(uint32_t cp);

#endif
