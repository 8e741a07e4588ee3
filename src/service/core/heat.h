/* SPDX-License-Identifier: MIT
 * The heat of partitions: the entities changed and read in each of the last 60 seconds.  It tracks
 * up to 1,024 partitions in sets of 16; a new partition replaces the coldest one of its set.
 *
 * The throttle refuses requests for a partition that has reached the limit in the current second,
 * as the service does.  Seconds are those of the machine's clock, not of a sliding window.
 *
 * Any number of threads may use it.  Times are clock_mono_us(). */
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

struct heat *heat_new(void); /* NULL when memory is out */
void heat_free(struct heat *h);

/* Sets the throttle limit: entities a second in one partition; 0: no throttle. */
void heat_set_target(struct heat *h, uint32_t per_second);
/* Returns the throttle limit. */
uint32_t heat_target(const struct heat *h);

/* Counts n entities; pk is UTF-8.  Does nothing for a key that is too long, or without memory for a
 * new partition. */
void heat_count(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n);
/* Admits and counts all n, or returns false and counts none.  n 0: only checks. */
bool heat_admit(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n);
/* Returns how often heat_admit() has refused. */
uint64_t heat_refusals(const struct heat *h);

struct hot_spot {
	uint64_t table;
	uint64_t entities[HEAT_KINDS_]; /* in the last minute, with the current second */
	uint64_t peak;                  /* entities in the busiest second of that minute */
	size_t pk_n;
	char pk[LIMIT_KEY_BYTES];
};

/* Copies up to max partitions with any heat, hottest first.  Returns how many. */
size_t heat_hottest(struct heat *h, uint64_t now_us, struct hot_spot *ret, size_t max);
/* Calls fn for each partition of the table with any heat, in no order.  A lock is held meanwhile: fn must
 * not block. */
typedef void (*heat_fn)(void *arg, const struct hot_spot *spot);
void heat_of_table(struct heat *h, uint64_t now_us, uint64_t table, heat_fn fn, void *arg);
/* Removes the partitions of a removed table. */
void heat_forget(struct heat *h, uint64_t table);

#endif
