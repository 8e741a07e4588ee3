/* SPDX-License-Identifier: MIT */
#include "fs/cache/content.h"

#include "base/lock.h"
#include "fs/core/nid.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* What a pin looks at comes first, on a cache line or two. */
struct entry {
	struct entry *next;          /* in its bucket */
	struct entry *newer, *older; /* in the list, if listed */
	size_t bytes;
	unsigned pins;
	bool listed;  /* all are but some pinned ones */
	bool used;    /* found since it was listed */
	bool dropped; /* not to be found any more; goes with its last pin */
	bool retired; /* not to be found but by contents_pin_old() */
	atomic_bool given;
	struct content content;
};

/* How many that were found again may be passed over for one that goes. */
#define SECOND_CHANCES 32

/* Retired nodes: as long as a reader of the store may stand still between reading and putting,
 * few others come to the same slot.  Entries may go sooner, at once where much is pinned. */
#define RETIRED 4096

struct contents {
	struct mutex lock;
	uint64_t retired[RETIRED]; /* guarded by lock, by hash */
	struct entry **buckets;    /* guarded by lock, as all below */
	size_t nbuckets, count, bytes, pinned;
	struct entry *newest, *oldest; /* by when they were listed */
	size_t max_bytes, max_count;
	atomic_size_t pinned_bytes; /* changed under the lock */
	_Atomic uint64_t *told;     /* of contents_tell_bytes(); NULL: nobody asks */
	uint64_t hits, misses;
};

struct contents *contents_new(size_t max_bytes, size_t max_count)
{
	struct contents *b = calloc(1, sizeof(*b));
	if (b == NULL)
		return NULL;
	b->nbuckets = 4096;
	while (b->nbuckets < max_count)
		b->nbuckets *= 2;
	b->buckets = calloc(b->nbuckets, sizeof(struct entry *));
	if (b->buckets == NULL || mutex_init(&b->lock, RANK_CONTENTS) != 0) {
		free(b->buckets);
		free(b);
		return NULL;
	}
	b->max_bytes = max_bytes;
	b->max_count = max_count;
	return b;
}

static void entry_free(struct entry *e)
{
	item_fini(&e->content.item);
	free(e);
}

void contents_free(struct contents *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->nbuckets; i++)
		for (struct entry *e = b->buckets[i], *next; e != NULL; e = next) {
			next = e->next;
			entry_free(e);
		}
	if (b->told != NULL)
		atomic_store(b->told, 0);
	mutex_destroy(&b->lock);
	free(b->buckets);
	free(b);
}

void contents_tell_bytes(struct contents *b, _Atomic uint64_t *ret)
{
	b->told = ret;
}

static void tell_bytes(struct contents *b)
{
	if (b->told != NULL)
		atomic_store_explicit(b->told, b->bytes, memory_order_relaxed);
}

static struct entry *entry_of(const struct content *content)
{
	return (struct entry *)((uintptr_t)content - offsetof(struct entry, content));
}

static struct entry **bucket(struct contents *b, uint64_t nid)
{
	return &b->buckets[(nid * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (b->nbuckets - 1)];
}

static uint64_t *retired(struct contents *b, uint64_t nid)
{
	return &b->retired[(nid * UINT64_C(0x9E3779B97F4A7C15) >> 40) % RETIRED];
}

static struct entry *find(struct contents *b, uint64_t nid)
{
	lock_assert_held(&b->lock);
	struct entry *e = *bucket(b, nid);
	while (e != NULL && (e->content.nid != nid || e->dropped))
		e = e->next;
	return e;
}

static void list_remove(struct contents *b, struct entry *e)
{
	*(e->newer != NULL ? &e->newer->older : &b->newest) = e->older;
	*(e->older != NULL ? &e->older->newer : &b->oldest) = e->newer;
	e->newer = e->older = NULL;
	e->listed = false;
}

static void list_push(struct contents *b, struct entry *e)
{
	e->older = b->newest;
	e->newer = NULL;
	if (b->newest != NULL)
		b->newest->newer = e;
	else
		b->oldest = e;
	b->newest = e;
	e->listed = true;
	e->used = false;
}

static void add_pinned(struct contents *b, size_t bytes)
{
	(void)atomic_fetch_add_explicit(&b->pinned_bytes, bytes, memory_order_relaxed);
}

static void pin(struct contents *b, struct entry *e)
{
	lock_assert_held(&b->lock);
	if (e->pins++ == 0) {
		b->pinned++;
		add_pinned(b, e->bytes);
	}
}

static void unhash(struct contents *b, struct entry *e)
{
	struct entry **at = bucket(b, e->content.nid);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	b->bytes -= e->bytes;
	b->count--;
	tell_bytes(b);
}

static void drop(struct contents *b, struct entry *e)
{
	if (e->listed)
		list_remove(b, e);
	unhash(b, e);
	entry_free(e);
}

/* A few large rows that are open must leave room for what was replaced a moment ago. */
static bool is_over(const struct contents *b)
{
	size_t pinned = atomic_load_explicit(&b->pinned_bytes, memory_order_relaxed);
	return b->bytes - pinned > b->max_bytes || b->count > b->max_count;
}

/* The list is looked at only here, so that a pin touches nobody else's memory. */
static void evict(struct contents *b)
{
	lock_assert_held(&b->lock);
	unsigned chances = SECOND_CHANCES;
	while (b->oldest != NULL && is_over(b)) {
		struct entry *e = b->oldest;
		if (e->pins > 0) {
			list_remove(b, e);
		} else if (e->used && chances > 0) {
			chances--;
			list_remove(b, e);
			list_push(b, e);
		} else {
			drop(b, e);
		}
	}
}

const struct content *contents_pin(struct contents *b, uint64_t nid)
{
	mutex_lock(&b->lock);
	struct entry *e = find(b, nid);
	if (e != NULL && e->retired)
		e = NULL;
	if (e != NULL) {
		pin(b, e);
		e->used = true;
		b->hits++;
	} else {
		b->misses++;
	}
	mutex_unlock(&b->lock);
	return e != NULL ? &e->content : NULL;
}

const struct content *contents_pin_old(struct contents *b, uint64_t nid)
{
	mutex_lock(&b->lock);
	struct entry *e = find(b, nid);
	if (e != NULL)
		pin(b, e);
	mutex_unlock(&b->lock);
	return e != NULL ? &e->content : NULL;
}

static void insert(struct contents *b, struct entry *e, struct item *it)
{
	lock_assert_held(&b->lock);
	e->content.nid = nid_of(it);
	e->content.item = *it;
	*it = (struct item){ 0 };
	e->bytes = sizeof(*e) + e->content.item.body.n + e->content.item.key.n;
	e->retired = *retired(b, e->content.nid) == e->content.nid;
	e->next = *bucket(b, e->content.nid);
	*bucket(b, e->content.nid) = e;
	b->count++;
	b->bytes += e->bytes;
	tell_bytes(b);
	list_push(b, e);
}

static void hide(struct contents *b, struct entry *e)
{
	if (e->pins == 0)
		drop(b, e);
	else
		e->dropped = true;
}

/* Each call that sets attributes sets the time of change. */
static bool has_same_attributes(const struct item *a, const struct item *b)
{
	return a->attrs.ctime_ns == b->attrs.ctime_ns;
}

static struct entry *retire(struct contents *b, uint64_t nid)
{
	lock_assert_held(&b->lock);
	*retired(b, nid) = nid;
	struct entry *e = find(b, nid);
	if (e != NULL)
		e->retired = true;
	return e;
}

enum put_how {
	PUT_LISTED,
	PUT_PINNED,
	PUT_OLD, /* pinned, and retired */
};

static enum err put(
	struct contents *b, struct item *it, enum put_how how, const struct content **ret)
{
	struct entry *fresh = calloc(1, sizeof(*fresh));
	if (fresh == NULL) {
		item_fini(it);
		return ERR_NO_MEMORY;
	}
	mutex_lock(&b->lock);
	struct entry *e = how == PUT_OLD ? retire(b, nid_of(it)) : find(b, nid_of(it));
	if (e != NULL && how == PUT_OLD && !has_same_attributes(&e->content.item, it)) {
		hide(b, e);
		e = NULL;
	}
	if (e == NULL) {
		e = fresh;
		fresh = NULL;
		insert(b, e, it);
	}
	if (how != PUT_LISTED)
		pin(b, e);
	evict(b);
	mutex_unlock(&b->lock);
	free(fresh);
	item_fini(it);
	*ret = &e->content;
	return ERR_OK;
}

enum err contents_put(struct contents *b, struct item *it, const struct content **ret)
{
	return put(b, it, PUT_PINNED, ret);
}

void contents_add(struct contents *b, struct item *it)
{
	const struct content *ignored;
	(void)put(b, it, PUT_LISTED, &ignored);
}

enum err contents_retain_old(struct contents *b, struct item *it, const struct content **ret)
{
	return put(b, it, PUT_OLD, ret);
}

void contents_pin_again(struct contents *b, const struct content *content)
{
	mutex_lock(&b->lock);
	pin(b, entry_of(content));
	mutex_unlock(&b->lock);
}

void contents_unpin(struct contents *b, const struct content *content)
{
	if (content == NULL)
		return;
	struct entry *e = entry_of(content);
	mutex_lock(&b->lock);
	if (--e->pins == 0) {
		b->pinned--;
		add_pinned(b, -e->bytes);
		if (e->dropped)
			drop(b, e);
		else if (!e->listed)
			list_push(b, e);
		evict(b);
	}
	mutex_unlock(&b->lock);
}

bool content_is_given(const struct content *content)
{
	return atomic_load_explicit(&entry_of(content)->given, memory_order_relaxed);
}

void content_set_given(const struct content *content, bool given)
{
	atomic_store_explicit(&entry_of(content)->given, given, memory_order_relaxed);
}

void contents_drop(struct contents *b, uint64_t nid)
{
	mutex_lock(&b->lock);
	struct entry *e = find(b, nid);
	if (e != NULL)
		hide(b, e);
	mutex_unlock(&b->lock);
}

void contents_retire(struct contents *b, uint64_t nid)
{
	mutex_lock(&b->lock);
	(void)retire(b, nid);
	mutex_unlock(&b->lock);
}

const struct content *contents_look(struct contents *b, uint64_t nid)
{
	mutex_lock(&b->lock);
	struct entry *e = *bucket(b, nid), *newest = NULL;
	for (; e != NULL; e = e->next) {
		if (e->content.nid != nid)
			continue;
		if (newest == NULL)
			newest = e;
		if (!e->retired || e->pins > 0)
			break;
	}
	/* What was put here later is the same content of a row, with later attributes. */
	if (e != NULL && e->content.item.kind == ITEM_ROW && newest->content.item.kind == ITEM_ROW)
		e = newest;
	if (e != NULL)
		pin(b, e);
	mutex_unlock(&b->lock);
	return e != NULL ? &e->content : NULL;
}

size_t contents_pinned_bytes(const struct contents *b)
{
	return atomic_load_explicit(&b->pinned_bytes, memory_order_relaxed);
}

void contents_info(struct contents *b, struct contents_info *ret)
{
	mutex_lock(&b->lock);
	*ret = (struct contents_info){ .count = b->count,
		.bytes = b->bytes,
		.pinned = b->pinned,
		.hits = b->hits,
		.misses = b->misses };
	mutex_unlock(&b->lock);
}
