/* SPDX-License-Identifier: MIT */
#include "cloudstore/place.h"

#include "model/limits.h"

void cloudstore_place_fini(struct cloudstore_place *p)
{
	item_fini(&p->dir);
	item_fini(&p->there);
	buf_fini(&p->pk);
	buf_fini(&p->rk);
}

static enum err or_none(enum err e)
{
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err find_dir(struct store *shadow, const struct item_ref *at, uint64_t parent,
	struct cloudstore_place *ret)
{
	if (at->id == 0 && at->has_pk) {
		ret->table = at->parent;
		buf_add_span(&ret->pk, at->pk);
		return or_none(store_child(
			shadow, NULL, at->parent, CLASS_KEYED, at->pk, WANT_ATTRS, &ret->dir));
	}
	enum err e = store_get(shadow, NULL, parent, WANT_ATTRS, &ret->dir);
	if (e == ERR_OK && ret->dir.kind == ITEM_PARTITION) {
		ret->table = ret->dir.parent;
		buf_add_span(&ret->pk, ret->dir.key);
	}
	return e == ERR_NOT_FOUND && at->id != 0 ? ERR_GONE : e;
}

enum err cloudstore_place_find(
	struct store *shadow, const struct item_ref *at, struct cloudstore_place *ret)
{
	*ret = (struct cloudstore_place){ .pk = BUF_INIT(LIMIT_KEY_BYTES + 1),
		.rk = BUF_INIT(LIMIT_KEY_BYTES + 1) };
	if (at->id != 0) {
		enum err e = store_get(shadow, NULL, at->id, WANT_ATTRS, &ret->there);
		if (e != ERR_OK)
			return e == ERR_NOT_FOUND ? ERR_GONE : e;
		buf_add_span(&ret->rk, ret->there.key);
		return find_dir(shadow, at, ret->there.parent, ret);
	}
	buf_add_span(&ret->rk, at->key);
	enum err e = find_dir(shadow, at, at->parent, ret);
	if (e != ERR_OK || ret->dir.kind == ITEM_NONE)
		return e;
	return or_none(store_child(
		shadow, NULL, ret->dir.id, at->class, at->key, WANT_ATTRS, &ret->there));
}
