/* SPDX-License-Identifier: MIT
 * Strings as the text of an element.  Characters that XML cannot contain become references such as
 * &#x1;, as in the service.  So does a carriage return, which XML readers replace by a line
 * feed. */
#ifndef CODEC_ATOM_TEXT_H
#define CODEC_ATOM_TEXT_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>

/* Appends s, which must be valid UTF-8. */
void atom_add_text(struct buf *out, struct span s);
/* Appends the inside of a JSON string of a canonical document.  Returns false if it is damaged; out
 * then has a part of it. */
bool atom_add_json_text(struct buf *out, struct span raw);

/* The most room that n bytes need: a byte can become &#x1F;, and copies reach beyond the end of a
 * piece. */
#define ATOM_TEXT_ROOM(n_) (6 * (n_) + 8)

/* Writes either of them to `to`, which must have that room.  Returns the end, or NULL if s is
 * damaged. */
char *atom_put_text(char *to, struct span s, bool json);

/* Return true if the text begins or ends with a blank: XML readers then need an attribute to keep
 * it. */
bool atom_has_blank_ends(struct span s);
bool atom_json_has_blank_ends(struct span raw);

#endif
