/* SPDX-License-Identifier: MIT */
#include "fs/blob.h"

#include "fs/nid.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct entry {
	struct blob blob; /* first: a blob handed out is its entry */
	size_t pins, bytes;
	bool dropped;                /* in no bucket any more; goes with its last pin */
	struct entry *next;          /* in its bucket */
	struct entry *newer, *older; /* in the list of the unpinned */
};

struct blobs {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct entry **buckets; /* guarded by lock, as all below */
	size_t nbuckets, count, bytes, pinned;
	struct entry *newest, *oldest; /* unpinned only */
	size_t max_bytes, max_count;
	uint64_t hits, misses;
};

struct blobs *blobs_new(size_t max_bytes, size_t max_count)
{
	struct blobs *b = calloc(1, sizeof(*b));
	if (b == NULL)
		return NULL;
	b->nbuckets = 4096;
	b->buckets = calloc(b->nbuckets, sizeof(struct entry *));
	if (b->buckets == NULL || pthread_mutex_init(&b->lock, NULL) != 0 ||
		pthread_cond_init(&b->came, NULL) != 0) {
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
	item_fini(&e->blob.item);
	free(e);
}

void blobs_free(struct blobs *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->nbuckets; i++)
		for (struct entry *e = b->buckets[i], *next; e != NULL; e = next) {
			next = e->next;
			entry_free(e);
		}
	pthread_cond_destroy(&b->came);
	pthread_mutex_destroy(&b->lock);
	free(b->buckets);
	free(b);
}

static struct entry **bucket(struct blobs *b, uint64_t nid)
{
	return &b->buckets[(nid * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (b->nbuckets - 1)];
}

static struct entry *find(struct blobs *b, uint64_t nid)
{
	struct entry *e = *bucket(b, nid);
	while (e != NULL && (e->blob.nid != nid || e->dropped))
		e = e->next;
	return e;
}

static void list_remove(struct blobs *b, struct entry *e)
{
	*(e->newer != NULL ? &e->newer->older : &b->newest) = e->older;
	*(e->older != NULL ? &e->older->newer : &b->oldest) = e->newer;
	e->newer = e->older = NULL;
}

static void list_push(struct blobs *b, struct entry *e)
{
	e->older = b->newest;
	e->newer = NULL;
	if (b->newest != NULL)
		b->newest->newer = e;
	else
		b->oldest = e;
	b->newest = e;
}

static void pin(struct blobs *b, struct entry *e)
{
	if (e->pins++ == 0) {
		list_remove(b, e);
		b->pinned++;
	}
}

static void unhash(struct blobs *b, struct entry *e)
{
	struct entry **at = bucket(b, e->blob.nid);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	b->bytes -= e->bytes;
	b->count--;
}

static void evict(struct blobs *b)
{
	while (b->oldest != NULL && (b->bytes > b->max_bytes || b->count > b->max_count)) {
		struct entry *e = b->oldest;
		list_remove(b, e);
		unhash(b, e);
		entry_free(e);
	}
}

const struct blob *blobs_pin(struct blobs *b, uint64_t nid)
{
	pthread_mutex_lock(&b->lock);
	struct entry *e = find(b, nid);
	if (e != NULL) {
		pin(b, e);
		b->hits++;
	} else {
		b->misses++;
	}
	pthread_mutex_unlock(&b->lock);
	return e != NULL ? &e->blob : NULL;
}

const struct blob *blobs_pin_soon(struct blobs *b, uint64_t nid, unsigned timeout_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)timeout_ms * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&b->lock);
	struct entry *e;
	while ((e = find(b, nid)) == NULL &&
		pthread_cond_timedwait(&b->came, &b->lock, &until) == 0)
		;
	if (e != NULL)
		pin(b, e);
	pthread_mutex_unlock(&b->lock);
	return e != NULL ? &e->blob : NULL;
}

enum err blobs_put(struct blobs *b, struct item *it, const struct blob **ret)
{
	struct entry *fresh = calloc(1, sizeof(*fresh));
	if (fresh == NULL)
		return ERR_NO_MEMORY;
	uint64_t nid = nid_of(it);
	pthread_mutex_lock(&b->lock);
	struct entry *e = find(b, nid);
	if (e == NULL) {
		e = fresh;
		fresh = NULL;
		e->blob.nid = nid;
		e->blob.item = *it;
		*it = (struct item){ 0 };
		e->bytes = sizeof(*e) + e->blob.item.body.n + e->blob.item.key.n;
		e->next = *bucket(b, nid);
		*bucket(b, nid) = e;
		b->count++;
		b->bytes += e->bytes;
		list_push(b, e);
		pthread_cond_broadcast(&b->came);
	}
	pin(b, e);
	evict(b);
	pthread_mutex_unlock(&b->lock);
	free(fresh);
	item_fini(it);
	*ret = &e->blob;
	return ERR_OK;
}

void blobs_unpin(struct blobs *b, const struct blob *blob)
{
	if (blob == NULL)
		return;
	struct entry *e = (struct entry *)(uintptr_t)blob;
	pthread_mutex_lock(&b->lock);
	if (--e->pins == 0) {
		b->pinned--;
		if (e->dropped) {
			unhash(b, e);
			entry_free(e);
		} else {
			list_push(b, e);
			evict(b);
		}
	}
	pthread_mutex_unlock(&b->lock);
}

void blobs_drop(struct blobs *b, uint64_t nid)
{
	pthread_mutex_lock(&b->lock);
	struct entry *e = find(b, nid);
	if (e != NULL && e->pins == 0) {
		list_remove(b, e);
		unhash(b, e);
		entry_free(e);
	} else if (e != NULL) {
		e->dropped = true;
	}
	pthread_mutex_unlock(&b->lock);
}

const struct blob *blobs_look(struct blobs *b, uint64_t nid)
{
	pthread_mutex_lock(&b->lock);
	struct entry *e = *bucket(b, nid);
	while (e != NULL && e->blob.nid != nid)
		e = e->next;
	if (e != NULL)
		pin(b, e);
	pthread_mutex_unlock(&b->lock);
	return e != NULL ? &e->blob : NULL;
}

void blobs_info(struct blobs *b, struct blobs_info *ret)
{
	pthread_mutex_lock(&b->lock);
	*ret = (struct blobs_info){ .count = b->count,
		.bytes = b->bytes,
		.pinned = b->pinned,
		.hits = b->hits,
		.misses = b->misses };
	pthread_mutex_unlock(&b->lock);
}
