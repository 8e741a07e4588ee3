/* SPDX-License-Identifier: MIT
 * What is looked at in an XML document before the parser sees it.  It holds as far as the
 * document is well-formed; the parser stops where that ends. */
#ifndef CODEC_XML_SCAN_H
#define CODEC_XML_SCAN_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

#define XML_ATTRIBUTES_MAX 32

/* Whether no tag has more than XML_ATTRIBUTES_MAX attributes, namespaces included: the time
 * that the parser takes for one grows with the square of their number.  Where the first one
 * begins that has. */
bool xml_tags_are_small(struct span document, size_t *ret_offset);

/* The length of the comment, instruction or CDATA section that s begins with; 0 if there is
 * none. */
size_t xml_verbatim(struct span s);

#endif
