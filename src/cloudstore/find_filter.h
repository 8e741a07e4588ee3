/* SPDX-License-Identifier: MIT
 * The $filter of a question for rows: the caller's, with the bounds of the keys.  Private to cloudstore/. */
#ifndef CLOUDSTORE_FIND_FILTER_H
#define CLOUDSTORE_FIND_FILTER_H

#include "base/buf.h"
#include "store/store.h"

/* Sets *ret, which the caller frees.  ERR_NOT_SUPPORTED: it is too long for a request. */
enum err find_filter(const struct store_find *q, struct buf *ret);

#endif
