/* SPDX-License-Identifier: MIT
 * References to characters that XML cannot contain: &#x1; and others, for U+0000 to U+001F, U+FFFE
 * and U+FFFF.  XML parsers refuse them, but the service's ATOM uses them.  So they are hidden from
 * the parser and restored in the values. */
#ifndef CODEC_XML_CONTROLS_H
#define CODEC_XML_CONTROLS_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* Hides the references of a document.  Returns true if there are any; out then has the document, at
 * most half as long again.  The caller must check buf_ok(out).  Returns false and writes nothing if
 * there are none. */
bool xml_controls_hide(struct span document, struct buf *out);

/* Restores hidden characters in place.  Returns the new length. */
size_t xml_controls_show(char *text, size_t n);

/* Returns true if XML can contain the character, directly or as a reference. */
bool xml_can_carry(uint32_t cp);

#endif
