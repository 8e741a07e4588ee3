/* SPDX-License-Identifier: MIT
 * The small store of a sweep: how it is made, copied, and written down to be compared. */
#ifndef FAULT_SWEEP_STORE_H
#define FAULT_SWEEP_STORE_H

#include "base/buf.h"
#include "store/store.h"

/* A path for the next store; there: a copy of the small one stands at it. */
void sweep_path(char *out, size_t n, bool there);
/* Everything in the store, a line each. */
void sweep_dump(struct store *s, struct buf *out);
/* Whether nothing but the store stands in its folder; else the name of what does.  All of it is
 * removed when the next path is asked for. */
bool sweep_folder_has_only(const char *path, char *extra, size_t n);
/* A store_check_fn that keeps the first finding in char[256]. */
bool sweep_note(void *arg, const char *finding);

#endif
