/* SPDX-License-Identifier: MIT
 * Which partitions are hot: entities changed and read in each of the last 60 seconds, for the
 * 1,024 partitions that were at it most; a new one takes the place of the coldest of the 16
 * that share its place.  And the throttle: with a target, a partition that had so many
 * entities in the current second admits no more, as the service does at its scalability
 * target; the seconds are those of a clock of the machine, not of a sliding window.
 * By any number of threads; times are clock_mono_us(). */
#ifndef SERVICE_CORE_HEAT_H
#define SERVICE_CORE_HEAT_H

#include "base/span.h"
#include "model/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAT_WINDOW_S 60

enum heat_kind {
	HEAT_CHANGED,
	HEAT_READ,
	HEAT_KINDS_
};

struct heat;

struct heat *heat_new(void); /* NULL: no memory */
void heat_free(struct heat *h);

/* Entities a second in one partition; 0: no throttle. */
void heat_set_target(struct heat *h, uint32_t per_second);
uint32_t heat_target(const struct heat *h);

/* pk: UTF-8; one that is longer than a key may be is not counted.  Without memory for a new
 * partition nothing is counted. */
void heat_count(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n);
/* Admits and counts all n (0: only asks), or refuses and counts none: false. */
bool heat_admit(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n);
/* How often heat_admit() refused. */
uint64_t heat_refusals(const struct heat *h);

struct hot_spot {
	uint64_t table;
	uint64_t entities[HEAT_KINDS_]; /* in the last minute, the current second included */
	size_t pk_n;
	char pk[LIMIT_KEY_BYTES];
};

/* Up to max partitions that had any, hottest first; returns how many. */
size_t heat_hottest(struct heat *h, uint64_t now_us, struct hot_spot *ret, size_t max);
/* A table that is no more. */
void heat_forget(struct heat *h, uint64_t table);

#endif
