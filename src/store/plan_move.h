/* SPDX-License-Identifier: MIT
 * Renames and exchanges in a plan.  Private to the store. */
#ifndef STORE_PLAN_MOVE_H
#define STORE_PLAN_MOVE_H

#include "store/plan.h"

/* Works out *c, a CHANGE_MOVE of the item *it.  Errors are those of store.h. */
enum err plan_move(struct plan *w, struct change *c, const struct item *it);

#endif
