/* SPDX-License-Identifier: MIT
 * Strings as the characters of an element.  What XML cannot carry becomes a reference, as the
 * service had it (&#x1;), and so does a carriage return, of which readers make a line feed. */
#ifndef CODEC_ATOM_TEXT_H
#define CODEC_ATOM_TEXT_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>

/* s is valid UTF-8. */
void atom_add_text(struct buf *out, struct span s);
/* The same for what stands between the quotes of a string in a canonical document; false,
 * half-way, if that cannot be one. */
bool atom_add_json_text(struct buf *out, struct span raw);

/* What n bytes need at most: one may become &#x1F;, and the last reach beyond the end of a piece. */
#define ATOM_TEXT_ROOM(n_) (6 * (n_) + 8)

/* Either of them at `to`, where there is that room; behind it, or NULL. */
char *atom_put_text(char *to, struct span s, bool json);

/* Whether blanks at an end have to be said to count. */
bool atom_has_blank_ends(struct span s);
bool atom_json_has_blank_ends(struct span raw);

#endif
