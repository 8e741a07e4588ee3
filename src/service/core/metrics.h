/* SPDX-License-Identifier: MIT
 * How often each operation of each door was asked for, how it ended, how long it took.
 * Counters without locks: counting costs some tens of nanoseconds, and who reads them sees
 * each counter as of some moment during the reading, but never more errors than operations
 * or a mean above the longest. */
#ifndef SERVICE_CORE_METRICS_H
#define SERVICE_CORE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metrics_door {
	METRICS_MOUNT, /* requests of the kernel */
	METRICS_REST,
	METRICS_COMMAND, /* commands that the serving process executes */
	METRICS_DOORS_
};

enum metrics_end {
	METRICS_DONE,
	METRICS_REFUSED, /* an error that is the caller's to mend; HTTP: 4xx */
	METRICS_FAILED,  /* all others; HTTP: 5xx */
};

/* Operations that a door may have. */
#define METRICS_OPERATIONS 32
/* Of latencies: the i-th counts those of at most 16 << i microseconds that the one before
 * does not; the last one has no bound.  So 16 us to 8.4 s. */
#define METRICS_BUCKETS 21

struct metrics;

struct metrics *metrics_new(void); /* NULL: no memory */
void metrics_free(struct metrics *m);

/* Names a door's operations 0 to n - 1: before that it has none to read.  The strings must
 * live as long as the program does, the array need not. */
void metrics_name(struct metrics *m, enum metrics_door door, const char *const *names, size_t n);
void metrics_count(struct metrics *m, enum metrics_door door, size_t operation, uint64_t us,
	enum metrics_end end);

const char *metrics_door_name(enum metrics_door door);

struct metrics_figures {
	const char *name;
	uint64_t count; /* the sum of the buckets */
	uint64_t refused, failed;
	uint64_t total_us, max_us;
	uint64_t buckets[METRICS_BUCKETS];
};

/* False: the door has no such operation. */
bool metrics_read(const struct metrics *m, enum metrics_door door, size_t operation,
	struct metrics_figures *ret);
/* The bound of a bucket; UINT64_MAX: none. */
uint64_t metrics_bucket_us(size_t bucket);
/* So many percent took no longer: the bound of the bucket in which they end, or the longest
 * of all where that is less. */
uint64_t metrics_percentile_us(const struct metrics_figures *f, unsigned percent);

#endif
