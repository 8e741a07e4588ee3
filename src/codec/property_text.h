/* SPDX-License-Identifier: MIT
 * The value of a property from its text: one list of reasons to refuse one, whichever format
 * it came in. */
#ifndef CODEC_PROPERTY_TEXT_H
#define CODEC_PROPERTY_TEXT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/value.h"

/* edm_text_parse(), with a message that names the property, but no place.  A String borrows
 * text, a Binary lives in the arena.  ERR_NO_MEMORY too. */
enum err property_text_parse(struct span name, enum edm_type type, struct span text,
	struct arena *arena, struct value *ret, struct err_detail *detail);

#endif
