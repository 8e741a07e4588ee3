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
	bool all;                 /* no list, a blank one, or one with "*" */
	const struct span *names; /* else these, each once, in the order of the list */
	size_t n;
};

#define SELECTION_ALL ((struct selection){ .all = true })

/* list: names with commas between them.  The names borrow from list, the array lives in the
 * arena.  ERR_INVALID_INPUT for a list that is too long or a name that can be no property's;
 * ERR_NO_MEMORY. */
enum err selection_parse(
	struct span list, struct arena *arena, struct selection *ret, struct err_detail *detail);
/* Whether the property of that name is wanted. */
bool selection_holds(const struct selection *s, struct span name);
/* Those of the entity that are listed, in the list's order, into out[n]; returns how many it
 * has.  They borrow from e.  Not for `all`. */
size_t selection_apply(const struct selection *s, const struct entity *e, struct property *out);

#endif
