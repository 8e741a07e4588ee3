/* SPDX-License-Identifier: MIT
 * Counts and latencies of operations, by front end.  The counters have no locks; a count takes some
 * tens of nanoseconds.  A reader gets each counter as of some time during the read.  But it never
 * sees more errors than operations, or a mean above the maximum. */
#ifndef SERVICE_CORE_METRICS_H
#define SERVICE_CORE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metrics_front_end {
	METRICS_MOUNT, /* requests of the kernel */
	METRICS_REST,  /* tables */
	METRICS_QUEUE,
	METRICS_BLOB,
	METRICS_COMMAND, /* commands that the serving process executes */
	METRICS_FRONT_ENDS_
};

enum metrics_end {
	METRICS_DONE,
	METRICS_REFUSED, /* an error that the caller can correct; HTTP: 4xx */
	METRICS_FAILED,  /* any other error; HTTP: 5xx */
};

/* The most operations of a front end. */
#define METRICS_OPERATIONS 48
/* Buckets of latencies.  The i-th counts latencies of up to 16 << i microseconds that the one
 * before does not count.  The last one has no limit.  So they range from 16 us to 8.4 s. */
#define METRICS_BUCKETS 21

struct metrics;

struct metrics *metrics_new(void); /* NULL when memory is out */
void metrics_free(struct metrics *m);

/* Names operations 0 to n - 1; without names there is nothing to read.  The strings must live as
 * long as the program; the array is copied. */
void metrics_name(
	struct metrics *m, enum metrics_front_end front_end, const char *const *names, size_t n);
/* Counts one operation that took `us` microseconds.  Any thread may call it. */
void metrics_count(struct metrics *m, enum metrics_front_end front_end, size_t operation,
	uint64_t us, enum metrics_end end);

/* Returns "mount", "rest", "queue" or "command". */
const char *metrics_front_end_name(enum metrics_front_end front_end);

struct metrics_figures {
	const char *name;
	uint64_t count; /* the sum of the buckets */
	uint64_t refused, failed;
	uint64_t total_us, max_us;
	uint64_t buckets[METRICS_BUCKETS];
};

/* Returns false if there is no such operation. */
bool metrics_read(const struct metrics *m, enum metrics_front_end front_end, size_t operation,
	struct metrics_figures *ret);
/* Returns the limit of a bucket; UINT64_MAX: none. */
uint64_t metrics_bucket_us(size_t bucket);
/* Returns a latency that `percent` percent did not exceed: the limit of their last bucket, or the
 * maximum if that is less. */
uint64_t metrics_percentile_us(const struct metrics_figures *f, unsigned percent);

#endif
