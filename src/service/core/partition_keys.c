/* SPDX-License-Identifier: MIT */
#include "service/core/partition_keys.h"

#include "base/lock.h"
#include "model/key.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 256

struct slot {
	uint64_t id, table;
	size_t pk_n;
	char pk[];
};

struct partition_keys {
	struct store *store;
	struct mutex lock; /* guards the members below */
	uint64_t moves;    /* counts moves: a read that began before the last one is not cached */
	struct slot *slots[SLOTS];
};

struct partition_keys *partition_keys_new(struct store *store)
{
	struct partition_keys *k = calloc(1, sizeof(*k));
	if (k == NULL)
		return NULL;
	k->store = store;
	mutex_init(&k->lock, RANK_PARTITION_KEYS);
	return k;
}

static void clear(struct partition_keys *k)
{
	for (size_t i = 0; i < SLOTS; i++) {
		free(k->slots[i]);
		k->slots[i] = NULL;
	}
}

void partition_keys_free(struct partition_keys *k)
{
	if (k == NULL)
		return;
	clear(k);
	mutex_destroy(&k->lock);
	free(k);
}

void partition_keys_forget(struct partition_keys *k)
{
	mutex_lock(&k->lock);
	k->moves++;
	clear(k);
	mutex_unlock(&k->lock);
}

size_t partition_keys_bytes(struct partition_keys *k)
{
	size_t bytes = sizeof(*k);
	mutex_lock(&k->lock);
	for (size_t i = 0; i < SLOTS; i++)
		if (k->slots[i] != NULL)
			bytes += sizeof(struct slot) + k->slots[i]->pk_n;
	mutex_unlock(&k->lock);
	return bytes;
}

static bool recall(
	struct partition_keys *k, uint64_t id, struct partition_key *ret, uint64_t *ret_moves)
{
	mutex_lock(&k->lock);
	const struct slot *s = k->slots[id % SLOTS];
	bool known = s != NULL && s->id == id;
	if (known) {
		ret->table = s->table;
		ret->pk_n = s->pk_n;
		memcpy(ret->pk, s->pk, s->pk_n);
	}
	*ret_moves = k->moves;
	mutex_unlock(&k->lock);
	return known;
}

static void remember(
	struct partition_keys *k, uint64_t id, const struct partition_key *key, uint64_t moves)
{
	struct slot *s = malloc(sizeof(*s) + key->pk_n);
	if (s == NULL)
		return;
	*s = (struct slot){ .id = id, .table = key->table, .pk_n = key->pk_n };
	memcpy(s->pk, key->pk, key->pk_n);
	mutex_lock(&k->lock);
	if (k->moves == moves) {
		struct slot *old = k->slots[id % SLOTS];
		k->slots[id % SLOTS] = s;
		s = old;
	}
	mutex_unlock(&k->lock);
	free(s);
}

enum err partition_keys_get(struct partition_keys *k, uint64_t id, struct partition_key *ret)
{
	uint64_t moves;
	struct item it = { 0 };
	if (recall(k, id, ret, &moves))
		return ERR_OK;
	enum err e = store_get(k->store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_OK && (it.kind != ITEM_PARTITION || it.key.n > sizeof(ret->pk)))
		e = ERR_NOT_FOUND;
	if (e == ERR_OK) {
		ret->table = it.parent;
		ret->pk_n = it.key.n;
		key_from_order(it.key.p, it.key.n, ret->pk);
		remember(k, id, ret, moves);
	}
	item_fini(&it);
	return e;
}
