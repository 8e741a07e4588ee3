/* SPDX-License-Identifier: MIT */
#include "fs/query/nodes.h"

#include "base/crypto.h"
#include "base/lock.h"
#include "fs/core/nid.h"

#include <stdlib.h>

#define BUCKETS_MIN 64

struct query_nodes {
	struct mutex lock;
	struct query_node **by_nid, **by_ino; /* guarded by lock, as all below */
	size_t buckets, count;
	uint64_t last;
	struct query_node *oldest, *newest;
	size_t bytes; /* of the listed ones */
	bool pruning;
};

struct query_nodes *query_nodes_new(void)
{
	struct query_nodes *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->buckets = BUCKETS_MIN;
	t->by_nid = calloc(t->buckets, sizeof(struct query_node *));
	t->by_ino = calloc(t->buckets, sizeof(struct query_node *));
	if (t->by_nid == NULL || t->by_ino == NULL || mutex_init(&t->lock, RANK_QUERY_NODES) != 0) {
		free(t->by_nid);
		free(t->by_ino);
		free(t);
		return NULL;
	}
	return t;
}

/* ---- one node ---- */

static void bound_fini(struct query_bound *b)
{
	buf_fini(&b->pk);
	buf_fini(&b->rk);
}

static void node_free(struct query_node *n)
{
	if (n->kind == QUERY_OPTIONS) {
		row_query_fini(&n->query);
		bound_fini(&n->top.all);
		bound_fini(&n->top.part);
		free(n->top.requester);
		mutex_destroy(&n->top.lock);
		free((char *)(uintptr_t)n->text.p);
	}
	item_fini(&n->item);
	free(n);
}

/* splitmix64's: each id gives another number. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9E3779B97F4A7C15);
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

uint64_t query_ino(const struct query_node *parent, uint64_t id)
{
	return NID_VIRTUAL | mix(parent->ino ^ mix(id));
}

static uint64_t ino_of_text(uint64_t table_id, struct span text)
{
	uint8_t digest[32];
	uint64_t n;
	crypto_sha256(text, digest);
	memcpy(&n, digest, sizeof(n));
	return NID_VIRTUAL | mix(n ^ mix(table_id));
}

struct query_node *query_node_of_options(
	uint64_t table_id, struct span text, struct row_query *query)
{
	struct query_node *n = calloc(1, sizeof(*n));
	char *copy = malloc(text.n + 1);
	if (n == NULL || copy == NULL || mutex_init(&n->top.lock, RANK_QUERY_TOP) != 0) {
		row_query_fini(query);
		free(n);
		free(copy);
		return NULL;
	}
	memcpy(copy, text.p, text.n);
	copy[text.n] = 0;
	n->kind = QUERY_OPTIONS;
	n->table_id = table_id;
	n->text = span_make(copy, text.n);
	n->ino = ino_of_text(table_id, text);
	n->query = *query;
	n->top.all.pk = n->top.all.rk = BUF_INIT(LIMIT_KEY_BYTES + 1);
	n->top.part = n->top.all;
	n->refs = 1;
	return n;
}

struct query_node *query_node_of_item(
	struct query_nodes *t, struct query_node *parent, const struct item *it)
{
	struct query_node *n = calloc(1, sizeof(*n));
	struct item plain = *it;
	plain.body = (struct span){ 0 };
	if (n == NULL || item_copy(&n->item, &plain) != ERR_OK) {
		free(n);
		return NULL;
	}
	n->kind = parent->kind == QUERY_OPTIONS ? QUERY_PARTITION : QUERY_ROW;
	n->table_id = parent->table_id;
	n->parent = parent;
	n->ino = query_ino(parent, it->id);
	n->size = it->size;
	n->refs = 1;
	query_node_ref(t, parent);
	return n;
}

struct query_node *query_node_options(struct query_node *n)
{
	while (n->parent != NULL)
		n = n->parent;
	return n;
}

static bool is_quick(struct query_node *n)
{
	return n->kind == QUERY_ROW ||
		(n->kind == QUERY_PARTITION && query_node_options(n)->query.top == 0);
}

static bool is_same(const struct query_node *a, const struct query_node *b)
{
	if (a->kind != b->kind || a->parent != b->parent || a->table_id != b->table_id)
		return false;
	if (a->kind == QUERY_OPTIONS)
		return span_eq(a->text, b->text);
	/* A rename gives a row another version, not another generation. */
	return a->item.id == b->item.id && a->item.generation == b->item.generation &&
		(a->kind != QUERY_ROW || a->item.version == b->item.version) &&
		span_eq(a->item.key, b->item.key);
}

/* ---- the table; its lock is held ---- */

static struct query_node **nid_bucket(struct query_nodes *t, uint64_t nid)
{
	return &t->by_nid[mix(nid) & (t->buckets - 1)];
}

static struct query_node **ino_bucket(struct query_nodes *t, uint64_t ino)
{
	return &t->by_ino[ino & (t->buckets - 1)];
}

static void link_node(struct query_nodes *t, struct query_node *n)
{
	lock_assert_held(&t->lock);
	struct query_node **a = nid_bucket(t, n->nid), **b = ino_bucket(t, n->ino);
	n->next_nid = *a;
	n->next_ino = *b;
	*a = *b = n;
}

/* About what it takes; a filter takes more than its text. */
static size_t weight(const struct query_node *n)
{
	return n->kind == QUERY_OPTIONS ? 3072 + 24 * n->text.n : 512;
}

static void unlist(struct query_nodes *t, struct query_node *n)
{
	lock_assert_held(&t->lock);
	if (!n->listed)
		return;
	*(n->older != NULL ? &n->older->newer : &t->oldest) = n->newer;
	*(n->newer != NULL ? &n->newer->older : &t->newest) = n->older;
	n->older = n->newer = NULL;
	n->listed = false;
	t->bytes -= weight(n);
}

static void list_newest(struct query_nodes *t, struct query_node *n)
{
	unlist(t, n);
	n->older = t->newest;
	*(n->older != NULL ? &n->older->newer : &t->oldest) = n;
	t->newest = n;
	n->listed = true;
	t->bytes += weight(n);
}

static void unlink_node(struct query_nodes *t, struct query_node *n)
{
	lock_assert_held(&t->lock);
	unlist(t, n);
	struct query_node **at = nid_bucket(t, n->nid);
	while (*at != n)
		at = &(*at)->next_nid;
	*at = n->next_nid;
	at = ino_bucket(t, n->ino);
	while (*at != n)
		at = &(*at)->next_ino;
	*at = n->next_ino;
	t->count--;
}

/* Without memory it stays as it is: longer chains. */
static void resize(struct query_nodes *t, size_t buckets)
{
	struct query_node **nids = calloc(buckets, sizeof(struct query_node *));
	struct query_node **inos = calloc(buckets, sizeof(struct query_node *));
	struct query_node **old = t->by_nid;
	size_t n = t->buckets;
	if (nids == NULL || inos == NULL) {
		free(nids);
		free(inos);
		return;
	}
	free(t->by_ino);
	t->by_nid = nids;
	t->by_ino = inos;
	t->buckets = buckets;
	for (size_t i = 0; i < n; i++)
		for (struct query_node *at = old[i], *next; at != NULL; at = next) {
			next = at->next_nid;
			link_node(t, at);
		}
	free(old);
}

static void fit(struct query_nodes *t)
{
	if (t->count > t->buckets)
		resize(t, t->buckets * 2);
	else if (t->buckets > BUCKETS_MIN && t->count < t->buckets / 8)
		resize(t, t->buckets / 2);
}

static struct query_node *find(struct query_nodes *t, uint64_t nid)
{
	lock_assert_held(&t->lock);
	struct query_node *n = *nid_bucket(t, nid);
	while (n != NULL && n->nid != nid)
		n = n->next_nid;
	return n;
}

/* Lets go of what nobody uses, upwards. */
static void drop_unused(struct query_nodes *t, struct query_node *n)
{
	lock_assert_held(&t->lock);
	while (n != NULL && n->refs == 0 && n->lookups == 0) {
		struct query_node *parent = n->parent;
		if (n->nid != 0)
			unlink_node(t, n);
		node_free(n);
		if (parent != NULL)
			parent->refs--;
		n = parent;
	}
	fit(t);
}

/* ---- from outside ---- */

struct query_node *query_nodes_enter(struct query_nodes *t, struct query_node *n)
{
	mutex_lock(&t->lock);
	struct query_node *known = *ino_bucket(t, n->ino);
	while (known != NULL && !is_same(known, n))
		known = known->next_ino;
	if (known != NULL) {
		known->refs++;
		n->refs--;
		drop_unused(t, n);
		n = known;
	} else {
		n->nid = NID_QUERY | ++t->last << 1 | is_quick(n);
		t->count++;
		link_node(t, n);
		fit(t);
	}
	n->lookups++;
	list_newest(t, n);
	mutex_unlock(&t->lock);
	return n;
}

struct query_node *query_nodes_get(struct query_nodes *t, uint64_t nid)
{
	mutex_lock(&t->lock);
	struct query_node *n = find(t, nid);
	if (n != NULL)
		n->refs++;
	mutex_unlock(&t->lock);
	return n;
}

void query_node_ref(struct query_nodes *t, struct query_node *n)
{
	mutex_lock(&t->lock);
	n->refs++;
	mutex_unlock(&t->lock);
}

void query_node_unref(struct query_nodes *t, struct query_node *n)
{
	if (n == NULL)
		return;
	mutex_lock(&t->lock);
	n->refs--;
	drop_unused(t, n);
	mutex_unlock(&t->lock);
}

void query_nodes_forget(struct query_nodes *t, uint64_t nid, uint64_t n)
{
	mutex_lock(&t->lock);
	struct query_node *node = find(t, nid);
	if (node != NULL) {
		node->lookups -= n < node->lookups ? n : node->lookups;
		drop_unused(t, node);
	}
	mutex_unlock(&t->lock);
}

size_t query_nodes_count(struct query_nodes *t)
{
	mutex_lock(&t->lock);
	size_t count = t->count;
	mutex_unlock(&t->lock);
	return count;
}

bool query_nodes_wants_pruning(struct query_nodes *t, size_t bytes)
{
	mutex_lock(&t->lock);
	bool wants = !t->pruning && t->bytes > bytes;
	if (wants)
		t->pruning = true;
	mutex_unlock(&t->lock);
	return wants;
}

void query_nodes_pruned(struct query_nodes *t)
{
	mutex_lock(&t->lock);
	t->pruning = false;
	mutex_unlock(&t->lock);
}

struct query_node *query_nodes_oldest(struct query_nodes *t, size_t bytes)
{
	mutex_lock(&t->lock);
	struct query_node *n = t->bytes > bytes ? t->oldest : NULL;
	if (n != NULL) {
		unlist(t, n);
		n->refs++;
	}
	mutex_unlock(&t->lock);
	return n;
}

void query_nodes_free(struct query_nodes *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->buckets; i++)
		for (struct query_node *n = t->by_nid[i], *next; n != NULL; n = next) {
			next = n->next_nid;
			node_free(n);
		}
	mutex_destroy(&t->lock);
	free(t->by_nid);
	free(t->by_ino);
	free(t);
}
