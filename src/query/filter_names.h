/* SPDX-License-Identifier: MIT
 * The numbering of a filter's names; for the filter_*.c only.  Slots from
 * FILTER_SLOT_NAMED on are in filter_name_order(), so that a name is found by halving. */
#ifndef QUERY_FILTER_NAMES_H
#define QUERY_FILTER_NAMES_H

#include "query/filter.h"

/* The slot of a name that has a fixed one, else FILTER_SLOT_NAMED. */
unsigned filter_name_fixed(struct span name);
/* For qsort() over spans: by length, last byte, all bytes.  The names of one entity differ
 * in the first two mostly (Value1, Value2), so that few of them are compared as a whole. */
int filter_name_order(const void *a, const void *b);
/* The slot of any name of f's, or f->nslots. */
unsigned filter_name_find(const struct filter *f, struct span name);

#endif
