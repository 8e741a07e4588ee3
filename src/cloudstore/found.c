/* SPDX-License-Identifier: MIT */
#include "cloudstore/found.h"

#include "base/clock.h"
#include "base/lock.h"
#include "model/limits.h"

#include <stdlib.h>
#include <string.h>

#define PARTS 16
#define FILTER_MAX ((size_t)64 << 10)

struct found {
	uint64_t max_age_us;
	struct mutex lock; /* guards what follows */
	uint64_t changes;
	struct found_part parts[PARTS]; /* table 0: none */
	size_t next;
};

struct found *found_new(uint64_t max_age_us)
{
	struct found *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return NULL;
	f->max_age_us = max_age_us;
	mutex_init(&f->lock, RANK_CLOUD_FOUND);
	return f;
}

void found_free(struct found *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < PARTS; i++)
		found_part_fini(&f->parts[i]);
	mutex_destroy(&f->lock);
	free(f);
}

/* ---- parts ---- */

void found_part_init(struct found_part *p, const struct store_find *q, uint64_t asked_us)
{
	struct buf key = BUF_INIT(LIMIT_KEY_BYTES + 2);
	*p = (struct found_part){ .table = q->table,
		.asked_us = asked_us,
		.filter = BUF_INIT(FILTER_MAX),
		.from_pk = key,
		.from_rk = key,
		.to_pk = key,
		.to_rk = key,
		.keys = BUF_INIT(FOUND_KEYS) };
	buf_add_span(&p->filter, q->filter);
	buf_add_span(&p->from_pk, q->from_pk);
	buf_add_span(&p->from_rk, q->from_rk);
}

void found_part_fini(struct found_part *p)
{
	buf_fini(&p->filter);
	buf_fini(&p->from_pk);
	buf_fini(&p->from_rk);
	buf_fini(&p->to_pk);
	buf_fini(&p->to_rk);
	buf_fini(&p->keys);
	p->table = 0;
}

static void add_key(struct buf *out, struct span key)
{
	uint16_t n = (uint16_t)key.n;
	buf_add(out, &n, sizeof(n));
	buf_add_span(out, key);
}

void found_part_add(struct found_part *p, struct span pk, struct span rk)
{
	add_key(&p->keys, pk);
	add_key(&p->keys, rk);
	buf_clear(&p->to_pk);
	buf_clear(&p->to_rk);
	buf_add_span(&p->to_pk, pk);
	buf_add_span(&p->to_rk, rk);
}

static struct span next_key(struct span *keys)
{
	uint16_t n;
	memcpy(&n, keys->p, sizeof(n));
	struct span key = span_make(keys->p + sizeof(n), n);
	*keys = span_make(key.p + n, keys->n - sizeof(n) - n);
	return key;
}

bool found_next(struct span *keys, struct span *ret_pk, struct span *ret_rk)
{
	if (keys->n == 0)
		return false;
	*ret_pk = next_key(keys);
	*ret_rk = next_key(keys);
	return true;
}

static int cmp_key(struct span a, struct span b)
{
	if (a.p == NULL || b.p == NULL)
		return (a.p == NULL) - (b.p == NULL);
	return span_cmp(a, b);
}

int found_place_cmp(struct span pk, struct span rk, struct span other_pk, struct span other_rk)
{
	int c = cmp_key(pk, other_pk);
	return c != 0 || pk.p == NULL ? c : cmp_key(rk, other_rk);
}

/* An empty buffer has no bytes, and is the first key all the same. */
static struct span key_of(const struct buf *b)
{
	return b->len > 0 ? buf_span(b) : SPAN_LIT("");
}

void found_part_end(const struct found_part *p, struct span *ret_pk, struct span *ret_rk)
{
	const struct span none = { 0 };
	*ret_pk = p->to_end ? none : key_of(&p->to_pk);
	*ret_rk = p->to_end || p->to_partition ? none : key_of(&p->to_rk);
}

static bool part_is_whole(const struct found_part *p)
{
	return buf_ok(&p->filter) && buf_ok(&p->from_pk) && buf_ok(&p->from_rk) &&
		buf_ok(&p->to_pk) && buf_ok(&p->to_rk) && buf_ok(&p->keys);
}

/* ---- what is kept ---- */

uint64_t found_changes(struct found *f)
{
	mutex_lock(&f->lock);
	uint64_t changes = f->changes;
	mutex_unlock(&f->lock);
	return changes;
}

void found_forget(struct found *f, uint64_t table)
{
	mutex_lock(&f->lock);
	f->changes++;
	for (size_t i = 0; i < PARTS; i++)
		if (f->parts[i].table == table)
			found_part_fini(&f->parts[i]);
	mutex_unlock(&f->lock);
}

static void copy_part(struct found_part *to, const struct found_part *p)
{
	const struct store_find q = { .table = p->table,
		.filter = buf_span(&p->filter),
		.from_pk = buf_span(&p->from_pk),
		.from_rk = buf_span(&p->from_rk) };
	found_part_init(to, &q, p->asked_us);
	buf_add_span(&to->to_pk, buf_span(&p->to_pk));
	buf_add_span(&to->to_rk, buf_span(&p->to_rk));
	buf_add_span(&to->keys, buf_span(&p->keys));
	to->to_end = p->to_end;
	to->to_partition = p->to_partition;
}

enum err found_copy(struct found *f, struct found_part *p, uint64_t changes)
{
	struct found_part copy;
	if (!part_is_whole(p)) {
		found_part_fini(p);
		return ERR_NO_MEMORY;
	}
	copy_part(&copy, p);
	mutex_lock(&f->lock);
	if (f->max_age_us > 0 && f->changes == changes && part_is_whole(&copy)) {
		struct found_part oldest = f->parts[f->next];
		f->parts[f->next] = copy;
		f->next = (f->next + 1) % PARTS;
		copy = oldest;
	}
	mutex_unlock(&f->lock);
	found_part_fini(&copy);
	return ERR_OK;
}

static bool is_young(const struct found *f, const struct found_part *p, uint64_t now)
{
	return p->table != 0 && now - p->asked_us < f->max_age_us;
}

static bool holds_start(const struct found_part *p, const struct store_find *q)
{
	struct span to_pk, to_rk;
	found_part_end(p, &to_pk, &to_rk);
	return p->table == q->table && span_eq(buf_span(&p->filter), q->filter) &&
		found_place_cmp(key_of(&p->from_pk), key_of(&p->from_rk), q->from_pk, q->from_rk) <=
		0 &&
		found_place_cmp(q->from_pk, q->from_rk, to_pk, to_rk) <= 0;
}

bool found_get(struct found *f, const struct store_find *q, struct found_part *ret)
{
	uint64_t now = clock_mono_us();
	bool found = false;
	mutex_lock(&f->lock);
	for (size_t i = 0; i < PARTS && !found; i++) {
		const struct found_part *p = &f->parts[i];
		found = is_young(f, p, now) && holds_start(p, q);
		if (found)
			copy_part(ret, p);
	}
	mutex_unlock(&f->lock);
	if (found && !part_is_whole(ret)) {
		found_part_fini(ret);
		return false;
	}
	return found;
}

static bool part_has(const struct found_part *p, struct span pk, struct span rk)
{
	struct span keys = buf_span(&p->keys), has_pk, has_rk;
	while (found_next(&keys, &has_pk, &has_rk))
		if (span_eq(has_pk, pk) && (rk.p == NULL || span_eq(has_rk, rk)))
			return true;
	return false;
}

bool found_has(struct found *f, uint64_t table, struct span pk, struct span rk)
{
	uint64_t now = clock_mono_us();
	bool has = false;
	mutex_lock(&f->lock);
	for (size_t i = 0; i < PARTS && !has; i++) {
		const struct found_part *p = &f->parts[i];
		has = p->table == table && is_young(f, p, now) && part_has(p, pk, rk);
	}
	mutex_unlock(&f->lock);
	return has;
}
