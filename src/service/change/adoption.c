/* SPDX-License-Identifier: MIT */
#include "service/change/adoption.h"

#include "base/arena.h"
#include "base/clock.h"
#include "model/filename.h"
#include "model/key.h"

#include <stdlib.h>

struct adoption {
	struct change *set;
	size_t n, cap;
	uint64_t partition;
	struct arena keys;
	enum err error;
};

static struct change *add(struct adoption *a)
{
	if (a->n == a->cap) {
		size_t cap = a->cap == 0 ? 8 : a->cap * 2;
		struct change *set = reallocarray(a->set, cap, sizeof(*set));
		if (set == NULL) {
			a->error = ERR_NO_MEMORY;
			return NULL;
		}
		a->set = set;
		a->cap = cap;
	}
	a->set[a->n] = (struct change){ .attrs = ATTRS_UNSET };
	return &a->set[a->n++];
}

static void fill_file(
	struct change *c, const struct item *file, uint64_t partition, struct span rk_order)
{
	*c = (struct change){ .op = CHANGE_MOVE, .at = { .id = file->id }, .attrs = ATTRS_UNSET };
	c->cond = COND_VERSION;
	c->cond_version = file->version;
	c->to = (struct item_ref){ .parent = partition, .class = CLASS_KEYED, .key = rk_order };
	c->to_kind = ITEM_ROW;
	c->body = SPAN_LIT("");
	c->flags = CHANGE_NO_REPLACE;
}

static bool add_file(void *arg, const struct item *it)
{
	struct adoption *a = arg;
	struct filename f;
	if (it->kind != ITEM_FILE || it->size != 0 ||
		filename_decode(it->key, FILENAME_ROW, &f, NULL) != ERR_OK ||
		f.form != FILENAME_KEY)
		return true;
	char order[LIMIT_KEY_BYTES];
	key_to_order(f.key, f.key_len, order);
	struct span key = arena_copy(&a->keys, span_make(order, f.key_len));
	struct change *c = key.p != NULL ? add(a) : NULL;
	if (c == NULL) {
		a->error = ERR_NO_MEMORY;
		return false;
	}
	fill_file(c, it, a->partition, key);
	return true;
}

/* The table shows the same names as before, so its mtime stays: rsync may have set it. */
static void add_folder(struct adoption *a, const struct item *folder, const struct item *table,
	struct span pk_order)
{
	struct change *c = add(a), *attrs = add(a);
	if (c == NULL || attrs == NULL)
		return;
	c = &a->set[0];
	c->op = CHANGE_MOVE;
	c->at = (struct item_ref){ .parent = table->id, .class = CLASS_NAMED, .key = folder->key };
	c->cond = COND_ID;
	c->cond_version = (int64_t)folder->id;
	c->to = (struct item_ref){ .parent = table->id, .class = CLASS_KEYED, .key = pk_order };
	c->to_kind = ITEM_PARTITION;
	c->flags = CHANGE_NO_REPLACE;
	attrs->op = CHANGE_ATTRS;
	attrs->at.id = table->id;
	attrs->attrs = table->attrs;
	attrs->set_mask = ATTR_MTIME;
	if (table->attrs.mtime_ns == TIME_UNSET)
		attrs->attrs.mtime_ns = ticks_to_unix_ns(table->version);
}

static enum err adopt_once(struct service *s, enum origin origin, const struct item *folder,
	struct span pk_order, struct item *ret, struct err_detail *detail)
{
	struct item table = { 0 };
	struct adoption a = { .partition = folder->id };
	enum err e = store_get(service_store(s), NULL, folder->parent, WANT_ATTRS, &table);
	if (e == ERR_OK)
		add_folder(&a, folder, &table, pk_order);
	if (e == ERR_OK)
		e = store_list(service_store(s), NULL, folder->id, CLASS_NAMED, (struct span){ 0 },
			false, WANT_ATTRS, add_file, &a);
	if (e == ERR_OK)
		e = a.error;
	if (e == ERR_OK)
		e = service_apply(s, origin, a.set, a.n, false, detail);
	if (e == ERR_OK && ret != NULL) {
		*ret = a.set[0].now;
		a.set[0].now = (struct item){ 0 };
	}
	changes_fini(a.set, a.n);
	free(a.set);
	arena_fini(&a.keys);
	item_fini(&table);
	return e;
}

#define ADOPT_TRIES 64

enum err adopt_folder(struct service *s, enum origin origin, const struct item *folder,
	struct span pk_order, struct item *ret, struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET; /* a file in it is another by now */
	for (int tries = 0; tries < ADOPT_TRIES && e == ERR_CONDITION_NOT_MET; tries++)
		e = adopt_once(s, origin, folder, pk_order, ret, detail);
	if (e == ERR_OK)
		return e;
	/* Another front end may have done the same meanwhile. */
	struct item now = { 0 };
	if (store_get(service_store(s), NULL, folder->id, WANT_ATTRS, &now) == ERR_OK &&
		now.kind == ITEM_PARTITION && span_eq(now.key, pk_order)) {
		if (ret != NULL)
			*ret = now;
		else
			item_fini(&now);
		return ERR_OK;
	}
	item_fini(&now);
	return e == ERR_NOT_FOUND || e == ERR_CONDITION_NOT_MET ? ERR_GONE : e;
}

enum err adopt_file(struct service *s, enum origin origin, const struct item *file,
	uint64_t partition, struct span rk_order, struct item *ret)
{
	struct change c;
	fill_file(&c, file, partition, rk_order);
	enum err e = service_apply(s, origin, &c, 1, false, NULL);
	if (e == ERR_ENTITY_EXISTS) {
		c.op = CHANGE_DELETE;
		e = service_apply(s, origin, &c, 1, false, NULL);
	} else if (e == ERR_OK && ret != NULL) {
		*ret = c.now;
		c.now = (struct item){ 0 };
	}
	changes_fini(&c, 1);
	return e == ERR_CONDITION_NOT_MET ? ERR_GONE : e;
}
