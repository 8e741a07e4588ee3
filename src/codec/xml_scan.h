/* SPDX-License-Identifier: MIT
 * Checks an XML document before the parser sees it.  The result is valid as far as the document is
 * well-formed; the parser stops there. */
#ifndef CODEC_XML_SCAN_H
#define CODEC_XML_SCAN_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

#define XML_ATTRIBUTES_MAX 32

/* Returns true if no tag has more than XML_ATTRIBUTES_MAX attributes, namespaces included.  The
 * parser's time for a tag grows with the square of their number.  *ret_offset is the first tag with
 * more. */
bool xml_tags_are_small(struct span document, size_t *ret_offset);

/* Returns the length of the comment, instruction or CDATA section at the start of s, or 0. */
size_t xml_verbatim(struct span s);

#endif
