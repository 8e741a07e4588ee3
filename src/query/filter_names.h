/* SPDX-License-Identifier: MIT
 * The slots of a filter's names; only for the filter_*.c.  Slots from FILTER_SLOT_NAMED on are
 * sorted by filter_name_order(), for a binary search. */
#ifndef QUERY_FILTER_NAMES_H
#define QUERY_FILTER_NAMES_H

#include "query/filter.h"

/* Returns the fixed slot of this name, or FILTER_SLOT_NAMED. */
unsigned filter_name_fixed(struct span name);
/* Compares spans for qsort(3): by length, then last byte, then all bytes.  Names like Value1 and
 * Value2 differ in the first two, so few names are compared in full. */
int filter_name_order(const void *a, const void *b);
/* Returns the slot of a name, or f->nslots. */
unsigned filter_name_find(const struct filter *f, struct span name);

#endif
