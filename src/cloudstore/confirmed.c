/* SPDX-License-Identifier: MIT */
#include "cloudstore/confirmed.h"

#include "base/clock.h"
#include "base/lock.h"

#include <stdlib.h>

#define RANGES 512
#define KEY_LIMIT ((size_t)8 << 10)

struct range {
	uint64_t dir; /* 0: unused */
	uint64_t asked_us;
	struct buf from, to;
	bool to_end;
};

struct confirmed {
	uint64_t max_age_us;
	struct mutex lock; /* guards what follows */
	struct range ranges[RANGES];
	size_t next;
};

struct confirmed *confirmed_new(uint64_t max_age_us)
{
	struct confirmed *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->max_age_us = max_age_us;
	mutex_init(&c->lock, RANK_CLOUD_CONFIRMED);
	for (size_t i = 0; i < RANGES; i++)
		c->ranges[i].from = c->ranges[i].to = BUF_INIT(KEY_LIMIT);
	return c;
}

void confirmed_free(struct confirmed *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < RANGES; i++) {
		buf_fini(&c->ranges[i].from);
		buf_fini(&c->ranges[i].to);
	}
	mutex_destroy(&c->lock);
	free(c);
}

bool confirmed_keeps(const struct confirmed *c)
{
	return c->max_age_us > 0;
}

void confirmed_add(struct confirmed *c, uint64_t dir, struct span from, struct span to, bool to_end,
	uint64_t asked_us)
{
	if (!confirmed_keeps(c))
		return;
	mutex_lock(&c->lock);
	struct range *r = &c->ranges[c->next];
	c->next = (c->next + 1) % RANGES;
	buf_clear(&r->from);
	buf_clear(&r->to);
	buf_add_span(&r->from, from);
	buf_add_span(&r->to, to);
	r->to_end = to_end;
	r->asked_us = asked_us;
	r->dir = buf_ok(&r->from) && buf_ok(&r->to) ? dir : 0;
	mutex_unlock(&c->lock);
}

void confirmed_forget(struct confirmed *c, uint64_t dir)
{
	mutex_lock(&c->lock);
	for (size_t i = 0; i < RANGES; i++)
		if (c->ranges[i].dir == dir)
			c->ranges[i].dir = 0;
	mutex_unlock(&c->lock);
}

static bool covers(const struct range *r, uint64_t dir, struct span key, uint64_t oldest_us)
{
	return r->dir == dir && r->asked_us > oldest_us && span_cmp(buf_span(&r->from), key) <= 0 &&
		(r->to_end || span_cmp(key, buf_span(&r->to)) <= 0);
}

bool confirmed_covers(
	struct confirmed *c, uint64_t dir, struct span key, struct buf *ret_to, bool *ret_end)
{
	bool found = false;
	uint64_t now = clock_mono_us(), oldest = now > c->max_age_us ? now - c->max_age_us : 0;
	mutex_lock(&c->lock);
	for (size_t i = 0; i < RANGES && !found; i++) {
		const struct range *r = &c->ranges[i];
		found = covers(r, dir, key, oldest);
		if (found && ret_to != NULL) {
			buf_add_span(ret_to, buf_span(&r->to));
			*ret_end = r->to_end;
		}
	}
	mutex_unlock(&c->lock);
	return found && (ret_to == NULL || buf_ok(ret_to));
}
