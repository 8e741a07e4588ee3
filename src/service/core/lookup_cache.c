/* SPDX-License-Identifier: MIT
 * A hash table without chains: each slot holds one entry, and a new entry replaces the old one. */
#include "service/core/lookup_cache.h"

#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

#define ACCOUNTS 16
#define CHILDREN 1024
/* Longer keys are not cached. */
#define KEY_MAX 64
/* An account with larger properties is not cached. */
#define PROPERTIES_MAX 4096

struct account_slot {
	char name[LIMIT_ACCOUNT_NAME_MAX];
	size_t name_n; /* 0: free */
	struct account_secrets secrets;
};

struct child_slot {
	uint64_t moment;     /* the entry is valid if this equals lookup_cache.moment */
	uint64_t id, parent; /* id is 0 if the slot is free */
	size_t key_n;
	char key[KEY_MAX];
};

struct lookup_cache {
	struct mutex lock; /* guards the members below */
	uint64_t moment;   /* increases when the cache is cleared */
	unsigned changing; /* changes in progress */
	struct account_slot accounts[ACCOUNTS];
	struct child_slot children[CHILDREN];
};

struct lookup_cache *lookup_cache_new(void)
{
	struct lookup_cache *k = calloc(1, sizeof(*k));
	if (k != NULL)
		mutex_init(&k->lock, RANK_LOOKUP_CACHE);
	return k;
}

static void forget_account(struct account_slot *s)
{
	if (s->name_n > 0)
		account_secrets_fini(&s->secrets);
	s->name_n = 0;
}

static void forget(struct lookup_cache *k)
{
	lock_assert_held(&k->lock);
	k->moment++;
	for (size_t i = 0; i < ACCOUNTS; i++)
		forget_account(&k->accounts[i]);
}

void lookup_cache_free(struct lookup_cache *k)
{
	if (k == NULL)
		return;
	lookup_cache_changing(k); /* wipes the keys */
	mutex_destroy(&k->lock);
	free(k);
}

size_t lookup_cache_bytes(struct lookup_cache *k)
{
	size_t bytes = sizeof(*k);
	mutex_lock(&k->lock);
	for (size_t i = 0; i < ACCOUNTS; i++)
		for (size_t j = 0; k->accounts[i].name_n > 0 && j < ACCOUNT_SERVICES_; j++)
			bytes += k->accounts[i].secrets.properties[j].cap;
	mutex_unlock(&k->lock);
	return bytes;
}

/* Rows, files and what is of a queue or container do not affect the cached directories.  An item named by its id
 * can be a directory. */
static bool is_below_tables(const struct change *c)
{
	if (c->at.id == 0 && (c->at.class == CLASS_QUEUE || c->at.class == CLASS_BLOB))
		return true;
	switch (c->op) {
	case CHANGE_PUT:
		return c->kind == ITEM_ROW || c->kind == ITEM_FILE;
	case CHANGE_DELETE:
		return c->at.id == 0 && c->at.has_pk;
	case CHANGE_ATTRS:
	case CHANGE_WRITE:
	case CHANGE_RESIZE:
		return true;
	case CHANGE_MOVE:
		break;
	}
	return false;
}

bool lookup_cache_is_touched(const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_below_tables(&changes[i]))
			return true;
	return false;
}

void lookup_cache_changing(struct lookup_cache *k)
{
	mutex_lock(&k->lock);
	k->changing++;
	forget(k);
	mutex_unlock(&k->lock);
}

void lookup_cache_changed(struct lookup_cache *k)
{
	mutex_lock(&k->lock);
	k->changing--;
	forget(k);
	mutex_unlock(&k->lock);
}

/* FNV-1a. */
static size_t slot_of(struct span name, uint64_t account, size_t slots)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ account;
	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * UINT64_C(0x100000001b3);
	return (size_t)(h ^ h >> 32) % slots;
}

static bool may_remember(const struct lookup_cache *k, uint64_t moment)
{
	lock_assert_held(&k->lock);
	return k->changing == 0 && k->moment == moment;
}

static bool copy_secrets(const struct account_secrets *a, struct account_secrets *ret)
{
	*ret = *a;
	bool ok = true;
	for (int i = 0; i < ACCOUNT_SERVICES_; i++) {
		ret->properties[i] = BUF_INIT(a->properties[i].limit);
		buf_add_span(&ret->properties[i], buf_span(&a->properties[i]));
		ok = ok && buf_ok(&ret->properties[i]);
	}
	if (!ok)
		account_secrets_fini(ret);
	return ok;
}

static bool is_large(const struct account_secrets *a)
{
	for (int i = 0; i < ACCOUNT_SERVICES_; i++)
		if (a->properties[i].len > PROPERTIES_MAX)
			return true;
	return false;
}

bool lookup_cache_account(
	struct lookup_cache *k, struct span name, struct account_secrets *ret, uint64_t *ret_moment)
{
	const struct account_slot *s = &k->accounts[slot_of(name, 0, ACCOUNTS)];
	mutex_lock(&k->lock);
	*ret_moment = k->moment;
	bool ok = s->name_n > 0 && span_eq(span_make(s->name, s->name_n), name) &&
		copy_secrets(&s->secrets, ret);
	mutex_unlock(&k->lock);
	return ok;
}

void lookup_cache_account_is(
	struct lookup_cache *k, struct span name, const struct account_secrets *a, uint64_t moment)
{
	struct account_slot *s = &k->accounts[slot_of(name, 0, ACCOUNTS)];
	if (name.n == 0 || name.n > sizeof(s->name) || is_large(a))
		return;
	mutex_lock(&k->lock);
	if (may_remember(k, moment)) {
		forget_account(s);
		if (copy_secrets(a, &s->secrets)) {
			memcpy(s->name, name.p, name.n);
			s->name_n = name.n;
		}
	}
	mutex_unlock(&k->lock);
}

bool lookup_cache_child(struct lookup_cache *k, uint64_t parent, struct span key, uint64_t *ret_id,
	uint64_t *ret_moment)
{
	const struct child_slot *s = &k->children[slot_of(key, parent, CHILDREN)];
	mutex_lock(&k->lock);
	*ret_moment = k->moment;
	bool ok = s->id != 0 && s->moment == k->moment && s->parent == parent &&
		span_eq(span_make(s->key, s->key_n), key);
	if (ok)
		*ret_id = s->id;
	mutex_unlock(&k->lock);
	return ok;
}

void lookup_cache_child_is(
	struct lookup_cache *k, uint64_t parent, struct span key, uint64_t id, uint64_t moment)
{
	struct child_slot *s = &k->children[slot_of(key, parent, CHILDREN)];
	if (key.n > sizeof(s->key))
		return;
	mutex_lock(&k->lock);
	if (may_remember(k, moment)) {
		*s = (struct child_slot){
			.moment = moment, .id = id, .parent = parent, .key_n = key.n
		};
		if (key.n > 0)
			memcpy(s->key, key.p, key.n);
	}
	mutex_unlock(&k->lock);
}
