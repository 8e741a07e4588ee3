/* SPDX-License-Identifier: MIT */
#include "fs/blob/nodes.h"

#include "base/lock.h"

#include <stdlib.h>

#define BUCKETS_MIN 64

struct blob_nodes {
	struct mutex lock;
	struct blob_node **buckets; /* guarded by lock, as all below */
	size_t size, count;
};

struct blob_nodes *blob_nodes_new(void)
{
	struct blob_nodes *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->size = BUCKETS_MIN;
	t->buckets = calloc(t->size, sizeof(struct blob_node *));
	if (t->buckets == NULL || mutex_init(&t->lock, RANK_BLOB_NODES) != 0) {
		free(t->buckets);
		free(t);
		return NULL;
	}
	return t;
}

void blob_nodes_free(struct blob_nodes *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->size; i++)
		for (struct blob_node *n = t->buckets[i], *next; n != NULL; n = next) {
			next = n->next;
			free(n);
		}
	mutex_destroy(&t->lock);
	free(t->buckets);
	free(t);
}

/* FNV-1a, whose low bits splitmix64's last steps mix. */
static uint64_t hash(uint64_t seed, struct span s)
{
	uint64_t x = UINT64_C(0xcbf29ce484222325) ^ seed;
	for (size_t i = 0; i < s.n; i++)
		x = (x ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	return x ^ x >> 31;
}

uint64_t blob_ino(uint64_t container, struct span name)
{
	return NID_VIRTUAL | hash(container, name) >> 3;
}

static uint64_t first_number(const struct blob_node *n)
{
	uint64_t seed = n->container ^ (uint64_t)n->kind << 61;
	return hash(hash(seed, n->name) ^ (uint64_t)n->version, (struct span){ 0 }) & NID_ID_MASK;
}

static bool is_same(const struct blob_node *a, const struct blob_node *b)
{
	return !a->removed && a->kind == b->kind && a->container == b->container &&
		a->version == b->version && span_eq(a->name, b->name);
}

/* ---- the table; its lock is held ---- */

static struct blob_node **bucket(struct blob_nodes *t, uint64_t nid)
{
	return &t->buckets[nid & (t->size - 1)];
}

static struct blob_node *find(struct blob_nodes *t, uint64_t nid)
{
	lock_assert_held(&t->lock);
	struct blob_node *n = *bucket(t, nid);
	while (n != NULL && n->nid != nid)
		n = n->next;
	return n;
}

static void link_node(struct blob_nodes *t, struct blob_node *n)
{
	struct blob_node **at = bucket(t, n->nid);
	n->next = *at;
	*at = n;
}

/* Without memory it stays as it is: longer chains. */
static void grow(struct blob_nodes *t)
{
	struct blob_node **old = t->buckets;
	size_t n = t->size;
	struct blob_node **buckets = calloc(n * 2, sizeof(struct blob_node *));
	if (buckets == NULL)
		return;
	t->buckets = buckets;
	t->size = n * 2;
	for (size_t i = 0; i < n; i++)
		for (struct blob_node *at = old[i], *next; at != NULL; at = next) {
			next = at->next;
			link_node(t, at);
		}
	free(old);
}

static struct blob_node *add(struct blob_nodes *t, const struct blob_node *like, uint64_t nid)
{
	struct blob_node *n = calloc(1, sizeof(*n) + like->name.n);
	if (n == NULL)
		return NULL;
	*n = *like;
	char *name = (char *)(n + 1);
	memcpy(name, like->name.p, like->name.n);
	n->name = span_make(name, like->name.n);
	n->nid = nid;
	n->lookups = n->refs = 0;
	if (++t->count > t->size)
		grow(t);
	link_node(t, n);
	return n;
}

static void drop_unused(struct blob_nodes *t, struct blob_node *n)
{
	if (n->lookups > 0 || n->refs > 0)
		return;
	struct blob_node **at = bucket(t, n->nid);
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	t->count--;
	free(n);
}

/* ---- from outside ---- */

/* Returns the node that stands for the same; NULL: there is none, and *ret_nid is free for it. */
static struct blob_node *find_same(
	struct blob_nodes *t, const struct blob_node *like, uint64_t *ret_nid)
{
	uint64_t number = first_number(like);
	struct blob_node *n;
	/* Another thing may have the number. */
	while ((n = find(t, *ret_nid = blob_nid(BLOB_NODE_KNOWN, number))) != NULL &&
		!is_same(n, like))
		number = (number + 1) & NID_ID_MASK;
	return n;
}

enum err blob_nodes_enter(struct blob_nodes *t, const struct blob_node *like, uint64_t *ret_nid)
{
	mutex_lock(&t->lock);
	struct blob_node *n = find_same(t, like, ret_nid);
	if (n == NULL)
		n = add(t, like, *ret_nid);
	if (n != NULL)
		n->lookups++;
	mutex_unlock(&t->lock);
	return n != NULL ? ERR_OK : ERR_NO_MEMORY;
}

void blob_nodes_removed(struct blob_nodes *t, uint64_t container, struct span name)
{
	const struct blob_node dir = {
		.kind = BLOB_NODE_DIR, .container = container, .name = name
	};
	uint64_t nid;
	mutex_lock(&t->lock);
	struct blob_node *n = find_same(t, &dir, &nid);
	if (n != NULL)
		n->removed = true;
	mutex_unlock(&t->lock);
}

const struct blob_node *blob_nodes_get(struct blob_nodes *t, uint64_t nid)
{
	mutex_lock(&t->lock);
	struct blob_node *n = find(t, nid);
	if (n != NULL)
		n->refs++;
	mutex_unlock(&t->lock);
	return n;
}

void blob_nodes_unref(struct blob_nodes *t, const struct blob_node *n)
{
	if (n == NULL)
		return;
	mutex_lock(&t->lock);
	struct blob_node *own = find(t, n->nid);
	own->refs--;
	drop_unused(t, own);
	mutex_unlock(&t->lock);
}

void blob_nodes_forget(struct blob_nodes *t, uint64_t nid, uint64_t n)
{
	mutex_lock(&t->lock);
	struct blob_node *node = find(t, nid);
	if (node != NULL) {
		node->lookups -= n < node->lookups ? n : node->lookups;
		drop_unused(t, node);
	}
	mutex_unlock(&t->lock);
}

void blob_nodes_edited(struct blob_nodes *t, uint64_t nid, int64_t etag)
{
	mutex_lock(&t->lock);
	struct blob_node *n = find(t, nid);
	if (n != NULL)
		atomic_store(&n->edited, etag);
	mutex_unlock(&t->lock);
}
