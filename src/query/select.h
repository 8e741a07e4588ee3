/* SPDX-License-Identifier: MIT
 * $select as a list of names (protocol section 6.6). */
#ifndef QUERY_SELECT_H
#define QUERY_SELECT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"

#include <stdbool.h>
#include <stddef.h>

struct selection {
	bool all;                 /* the list is absent, blank or contains "*" */
	const struct span *names; /* without duplicates, in the order of the list */
	size_t n;
};

#define SELECTION_ALL ((struct selection){ .all = true })

/* Parses names between commas.  The names borrow from list; the arena owns the array.
 * ERR_INVALID_INPUT for too many names and for invalid ones; ERR_NO_MEMORY. */
enum err selection_parse(
	struct span list, struct arena *arena, struct selection *ret, struct err_detail *detail);
/* Returns true if the property is selected. */
bool selection_holds(const struct selection *s, struct span name);
/* Copies the selected properties of e to out[n], in the order of the list.  Returns how many there
 * are.  They borrow from e.  Not for `all`. */
size_t selection_apply(const struct selection *s, const struct entity *e, struct property *out);

#endif
