/* SPDX-License-Identifier: MIT
 * Property names as element names.  XML does not allow some characters of property names, such as
 * U+00AA and U+00B5.  They are written _x00AA_, as .NET does.  A name that already looks so becomes
 * _x005F_x00AA_. */
#ifndef CODEC_XML_NAMES_H
#define CODEC_XML_NAMES_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the name needs no escapes.  May return false for such a name. */
bool xml_name_is_plain(struct span name);

/* Appends the name of a valid property. */
void xml_name_add(struct buf *out, struct span name);

/* Converts an element name back to the property's name, in place.  Returns the new length. */
size_t xml_name_show(char *name, size_t n);

#endif
