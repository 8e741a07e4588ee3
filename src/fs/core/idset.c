/* SPDX-License-Identifier: MIT
 * Open addressing with linear probing; a removed id leaves a slot with count 0 behind,
 * which the next rehash drops. */
#include "fs/core/idset.h"

#include "base/lock.h"

#include <stdlib.h>

struct slot {
	uint64_t id; /* 0: never used */
	int64_t count;
};

struct idset {
	struct rwlock lock;
	struct slot *slots; /* guarded by lock, as all below */
	size_t cap, used;
};

struct idset *idset_new(void)
{
	struct idset *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->cap = 64;
	s->slots = calloc(s->cap, sizeof(*s->slots));
	if (s->slots == NULL || rwlock_init(&s->lock, RANK_IDSET) != 0) {
		free(s->slots);
		free(s);
		return NULL;
	}
	return s;
}

void idset_free(struct idset *s)
{
	if (s == NULL)
		return;
	rwlock_destroy(&s->lock);
	free(s->slots);
	free(s);
}

static struct slot *probe(struct slot *slots, size_t cap, uint64_t id)
{
	size_t i = (size_t)(id * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (cap - 1);
	while (slots[i].id != 0 && slots[i].id != id)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static bool grow(struct idset *s)
{
	size_t live = 0;
	for (size_t i = 0; i < s->cap; i++)
		live += s->slots[i].count != 0;
	size_t cap = 64;
	while (cap < live * 4)
		cap *= 2;
	struct slot *slots = calloc(cap, sizeof(*slots));
	if (slots == NULL)
		return false;
	for (size_t i = 0; i < s->cap; i++)
		if (s->slots[i].count != 0)
			*probe(slots, cap, s->slots[i].id) = s->slots[i];
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
	s->used = live;
	return true;
}

static int64_t add_locked(struct idset *s, uint64_t id, int64_t delta)
{
	struct slot *slot = probe(s->slots, s->cap, id);
	if (slot->id == 0) {
		if (s->used * 2 >= s->cap) {
			if (!grow(s))
				return 0;
			slot = probe(s->slots, s->cap, id);
		}
		slot->id = id;
		s->used++;
	}
	slot->count += delta;
	return slot->count;
}

int64_t idset_add(struct idset *s, uint64_t id, int64_t delta)
{
	rwlock_wrlock(&s->lock);
	int64_t count = add_locked(s, id, delta);
	rwlock_unlock(&s->lock);
	return count;
}

int64_t idset_count(struct idset *s, uint64_t id)
{
	rwlock_rdlock(&s->lock);
	const struct slot *slot = probe(s->slots, s->cap, id);
	int64_t count = slot->id == id ? slot->count : 0;
	rwlock_unlock(&s->lock);
	return count;
}

void idset_mark(struct idset *s, uint64_t id)
{
	if (idset_count(s, id) == 0)
		(void)idset_add(s, id, 1);
}
