/* SPDX-License-Identifier: MIT
 * A table of 64 sets of 16 partitions; each set has its own lock, which rarely has contention. */
#include "service/core/heat.h"

#include "base/lock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SETS 64
#define WAYS 16

struct partition {
	uint64_t table, hash;
	uint64_t second; /* the current second at the last count */
	uint64_t total;  /* the sum of all seconds */
	uint32_t seconds[HEAT_WINDOW_S][HEAT_KINDS_];
	size_t pk_n;
	char pk[];
};

struct set {
	struct mutex lock;
	struct partition *ways[WAYS];
};

struct heat {
	_Atomic uint32_t target;
	_Atomic uint64_t refusals;
	struct set sets[SETS];
};

struct heat *heat_new(void)
{
	struct heat *h = calloc(1, sizeof(*h));
	for (size_t i = 0; h != NULL && i < SETS; i++)
		mutex_init(&h->sets[i].lock, RANK_HEAT);
	return h;
}

void heat_free(struct heat *h)
{
	if (h == NULL)
		return;
	for (size_t i = 0; i < SETS; i++) {
		for (size_t k = 0; k < WAYS; k++)
			free(h->sets[i].ways[k]);
		mutex_destroy(&h->sets[i].lock);
	}
	free(h);
}

void heat_set_target(struct heat *h, uint32_t per_second)
{
	atomic_store(&h->target, per_second);
}

uint32_t heat_target(const struct heat *h)
{
	return atomic_load(&h->target);
}

uint64_t heat_refusals(const struct heat *h)
{
	return atomic_load(&h->refusals);
}

/* ---- one partition ---- */

/* FNV-1a. */
static uint64_t hash_of(uint64_t table, struct span pk)
{
	uint64_t hash = (UINT64_C(0xcbf29ce484222325) ^ table) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < pk.n; i++)
		hash = (hash ^ (unsigned char)pk.p[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static uint32_t *second_of(struct partition *p, uint64_t second)
{
	return p->seconds[second % HEAT_WINDOW_S];
}

/* Makes `second` current.  The seconds since the last count are empty. */
static void advance(struct partition *p, uint64_t second)
{
	uint64_t gone = second > p->second ? second - p->second : 0;
	for (uint64_t i = 1; i <= gone && i <= HEAT_WINDOW_S; i++) {
		uint32_t *s = second_of(p, p->second + i);
		for (size_t kind = 0; kind < HEAT_KINDS_; kind++) {
			p->total -= s[kind];
			s[kind] = 0;
		}
	}
	p->second += gone;
}

static uint64_t total_at(const struct partition *p, uint64_t second)
{
	return second >= p->second + HEAT_WINDOW_S ? 0 : p->total;
}

/* ---- a set ---- */

static struct partition *find(const struct set *set, uint64_t hash, uint64_t table, struct span pk)
{
	lock_assert_held(&set->lock);
	for (size_t i = 0; i < WAYS; i++) {
		struct partition *p = set->ways[i];
		if (p != NULL && p->hash == hash && p->table == table &&
			span_eq(span_make(p->pk, p->pk_n), pk))
			return p;
	}
	return NULL;
}

static size_t coldest(const struct set *set, uint64_t second)
{
	size_t found = 0;
	for (size_t i = 0; i < WAYS; i++) {
		if (set->ways[i] == NULL)
			return i;
		uint64_t total = total_at(set->ways[i], second);
		uint64_t least = total_at(set->ways[found], second);
		bool older = set->ways[i]->second < set->ways[found]->second;
		if (total < least || (total == least && older))
			found = i;
	}
	return found;
}

static struct partition *put(
	struct set *set, uint64_t second, uint64_t hash, uint64_t table, struct span pk)
{
	lock_assert_held(&set->lock);
	struct partition *p = calloc(1, sizeof(*p) + pk.n);
	if (p == NULL)
		return NULL;
	p->table = table;
	p->hash = hash;
	p->second = second;
	p->pk_n = pk.n;
	if (pk.n > 0)
		memcpy(p->pk, pk.p, pk.n);
	size_t place = coldest(set, second);
	free(set->ways[place]);
	set->ways[place] = p;
	return p;
}

/* ---- counting ---- */

static bool is_over(struct partition *p, uint32_t target)
{
	const uint32_t *now = second_of(p, p->second);
	return target != 0 && (uint64_t)now[HEAT_CHANGED] + now[HEAT_READ] >= target;
}

/* Returns false and counts nothing if the partition is over the limit. */
static bool count(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n, uint32_t target)
{
	uint64_t hash = hash_of(table, pk), second = now_us / 1000000;
	if (pk.n > LIMIT_KEY_BYTES)
		return true;
	struct set *set = &h->sets[hash % SETS];
	mutex_lock(&set->lock);
	struct partition *p = find(set, hash, table, pk);
	if (p == NULL && n > 0)
		p = put(set, second, hash, table, pk);
	if (p != NULL)
		advance(p, second);
	bool admitted = p == NULL || !is_over(p, target);
	if (p != NULL && admitted) {
		second_of(p, p->second)[kind] += n;
		p->total += n;
	}
	mutex_unlock(&set->lock);
	return admitted;
}

void heat_count(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n)
{
	(void)count(h, now_us, table, pk, kind, n, 0);
}

bool heat_admit(struct heat *h, uint64_t now_us, uint64_t table, struct span pk,
	enum heat_kind kind, uint32_t n)
{
	bool admitted = count(h, now_us, table, pk, kind, n, heat_target(h));
	if (!admitted)
		atomic_fetch_add(&h->refusals, 1);
	return admitted;
}

/* ---- reading ---- */

static uint64_t sum(const struct hot_spot *spot)
{
	return spot->entities[HEAT_CHANGED] + spot->entities[HEAT_READ];
}

static void describe(const struct partition *p, struct hot_spot *ret)
{
	ret->table = p->table;
	ret->pk_n = p->pk_n;
	memcpy(ret->pk, p->pk, p->pk_n);
	ret->peak = 0;
	ret->entities[HEAT_CHANGED] = ret->entities[HEAT_READ] = 0;
	for (size_t s = 0; s < HEAT_WINDOW_S; s++) {
		uint64_t changed = p->seconds[s][HEAT_CHANGED], read = p->seconds[s][HEAT_READ];
		ret->entities[HEAT_CHANGED] += changed;
		ret->entities[HEAT_READ] += read;
		if (changed + read > ret->peak)
			ret->peak = changed + read;
	}
}

/* Inserts p among the n hottest.  Returns how many there are now. */
static size_t insert(struct hot_spot *all, size_t n, size_t max, const struct partition *p)
{
	size_t at = n;
	while (at > 0 && sum(&all[at - 1]) < p->total)
		at--;
	if (p->total == 0 || at == max)
		return n;
	size_t behind = n < max ? n - at : max - 1 - at;
	memmove(&all[at + 1], &all[at], behind * sizeof(*all));
	describe(p, &all[at]);
	return n < max ? n + 1 : n;
}

size_t heat_hottest(struct heat *h, uint64_t now_us, struct hot_spot *ret, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < SETS; i++) {
		struct set *set = &h->sets[i];
		mutex_lock(&set->lock);
		for (size_t k = 0; k < WAYS; k++) {
			if (set->ways[k] == NULL)
				continue;
			advance(set->ways[k], now_us / 1000000);
			n = insert(ret, n, max, set->ways[k]);
		}
		mutex_unlock(&set->lock);
	}
	return n;
}

void heat_of_table(struct heat *h, uint64_t now_us, uint64_t table, heat_fn fn, void *arg)
{
	struct hot_spot spot;
	for (size_t i = 0; i < SETS; i++) {
		struct set *set = &h->sets[i];
		mutex_lock(&set->lock);
		for (size_t k = 0; k < WAYS; k++) {
			struct partition *p = set->ways[k];
			if (p == NULL || p->table != table)
				continue;
			advance(p, now_us / 1000000);
			describe(p, &spot);
			if (p->total > 0)
				fn(arg, &spot);
		}
		mutex_unlock(&set->lock);
	}
}

void heat_forget(struct heat *h, uint64_t table)
{
	for (size_t i = 0; i < SETS; i++) {
		struct set *set = &h->sets[i];
		mutex_lock(&set->lock);
		for (size_t k = 0; k < WAYS; k++)
			if (set->ways[k] != NULL && set->ways[k]->table == table) {
				free(set->ways[k]);
				set->ways[k] = NULL;
			}
		mutex_unlock(&set->lock);
	}
}
