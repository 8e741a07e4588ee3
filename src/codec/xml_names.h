/* SPDX-License-Identifier: MIT
 * Property names as names of elements.  A few characters that a property may have in its name
 * are none of XML's, as U+00AA and U+00B5: they are written _x00AA_, as .NET does, and what
 * looks like that _x005F_x00AA_. */
#ifndef CODEC_XML_NAMES_H
#define CODEC_XML_NAMES_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether it is written as it is; false for a few that are, too. */
bool xml_name_is_plain(struct span name);

/* name is one that a property can have. */
void xml_name_add(struct buf *out, struct span name);

/* The property's name of such an element's: in place, returns the new length. */
size_t xml_name_show(char *name, size_t n);

#endif
