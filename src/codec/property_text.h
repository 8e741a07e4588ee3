/* SPDX-License-Identifier: MIT
 * Parses the value of a property for all formats, with the same messages. */
#ifndef CODEC_PROPERTY_TEXT_H
#define CODEC_PROPERTY_TEXT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/value.h"

/* Calls edm_text_parse() and names the property in the message, without a position.  A String
 * borrows text; the arena owns a Binary.  ERR_NO_MEMORY too. */
enum err property_text_parse(struct span name, enum edm_type type, struct span text,
	struct arena *arena, struct value *ret, struct err_detail *detail);

#endif
