/* SPDX-License-Identifier: MIT
 * Finds rows by a filter, which the service evaluates.  Private to cloudstore/. */
#ifndef CLOUDSTORE_FIND_H
#define CLOUDSTORE_FIND_H

#include "cloudstore/core.h"

/* The engine's find().  Rows come from the shadow, which gets those that the response has; with q->select they come
 * from the response alone.  Takes the lock of the table's names while the service answers, but not with
 * q->select.  Errors as in refresh.h.  ERR_NOT_SUPPORTED: the service refuses the filter. */
enum err cloudstore_find(struct store *store, const struct store_find *q, store_find_fn fn,
	void *arg, struct store_found *ret);

#endif
