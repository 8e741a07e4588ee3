/* SPDX-License-Identifier: MIT */
#include "service/core/metrics.h"

#include "base/compiler.h"

#include <stdatomic.h>
#include <stdlib.h>

#define FIRST_BUCKET_US 16u

struct counters {
	atomic_uint_fast64_t refused, failed, total_us, max_us;
	atomic_uint_fast64_t buckets[METRICS_BUCKETS];
};

struct front_end {
	_Atomic(const char *) names[METRICS_OPERATIONS]; /* NULL: there is no such operation */
	struct counters operations[METRICS_OPERATIONS];
};

struct metrics {
	struct front_end front_ends[METRICS_FRONT_ENDS_];
};

struct metrics *metrics_new(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *m)
{
	free(m);
}

void metrics_name(
	struct metrics *m, enum metrics_front_end front_end, const char *const *names, size_t n)
{
	BUG_ON(n > METRICS_OPERATIONS);
	for (size_t i = 0; i < n; i++)
		atomic_store(&m->front_ends[front_end].names[i], names[i]);
}

static size_t bucket_of(uint64_t us)
{
	size_t i = 0;
	while (i < METRICS_BUCKETS - 1 && us > (uint64_t)FIRST_BUCKET_US << i)
		i++;
	return i;
}

/* A reader that sees this count also sees the counts before it. */
static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_release);
}

static void keep_highest(atomic_uint_fast64_t *highest, uint64_t n)
{
	uint_fast64_t now = atomic_load_explicit(highest, memory_order_relaxed);
	while (n > now &&
		!atomic_compare_exchange_weak_explicit(
			highest, &now, n, memory_order_relaxed, memory_order_relaxed))
		;
}

void metrics_count(struct metrics *m, enum metrics_front_end front_end, size_t operation,
	uint64_t us, enum metrics_end end)
{
	struct counters *c = &m->front_ends[front_end].operations[operation];
	add(&c->buckets[bucket_of(us)], 1);
	keep_highest(&c->max_us, us);
	add(&c->total_us, us);
	if (end == METRICS_REFUSED)
		add(&c->refused, 1);
	else if (end == METRICS_FAILED)
		add(&c->failed, 1);
}

const char *metrics_front_end_name(enum metrics_front_end front_end)
{
	static const char *const names[METRICS_FRONT_ENDS_] = { [METRICS_MOUNT] = "mount",
		[METRICS_REST] = "rest",
		[METRICS_QUEUE] = "queue",
		[METRICS_BLOB] = "blob",
		[METRICS_COMMAND] = "command" };
	return names[front_end];
}

bool metrics_read(const struct metrics *m, enum metrics_front_end front_end, size_t operation,
	struct metrics_figures *ret)
{
	if (operation >= METRICS_OPERATIONS)
		return false;
	const struct counters *c = &m->front_ends[front_end].operations[operation];
	*ret = (struct metrics_figures){ .name = atomic_load(
						 &m->front_ends[front_end].names[operation]) };
	/* Read in the reverse order of counting. */
	ret->refused = atomic_load(&c->refused);
	ret->failed = atomic_load(&c->failed);
	ret->total_us = atomic_load(&c->total_us);
	ret->max_us = atomic_load(&c->max_us);
	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		ret->buckets[i] = atomic_load(&c->buckets[i]);
		ret->count += ret->buckets[i];
	}
	return ret->name != NULL;
}

uint64_t metrics_bucket_us(size_t bucket)
{
	return bucket < METRICS_BUCKETS - 1 ? (uint64_t)FIRST_BUCKET_US << bucket : UINT64_MAX;
}

uint64_t metrics_percentile_us(const struct metrics_figures *f, unsigned percent)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		seen += f->buckets[i];
		/* This product cannot overflow in practice. */
		if (seen > 0 && seen * 100 >= f->count * percent) {
			uint64_t bound = metrics_bucket_us(i);
			return bound < f->max_us ? bound : f->max_us;
		}
	}
	return f->max_us;
}
