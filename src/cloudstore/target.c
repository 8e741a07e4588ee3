/* SPDX-License-Identifier: MIT */
#include "cloudstore/target.h"

#include "cloudstore/sending.h"

#include <stdatomic.h>

static enum err refuse(struct err_detail *why, enum err e, const char *text)
{
	return err_set(why, e, "%s", text);
}

static enum err target_of_put(const struct change *c, enum target *ret, struct err_detail *why)
{
	switch (c->kind) {
	case ITEM_ROW:
		*ret = c->body.n > 0 ? TARGET_ROW : TARGET_SHADOW;
		return ERR_OK;
	case ITEM_TABLE:
		*ret = TARGET_TABLE;
		return ERR_OK;
	case ITEM_PARTITION:
	case ITEM_FILE:
	case ITEM_FOLDER:
		*ret = TARGET_SHADOW;
		return ERR_OK;
	case ITEM_NONE:
	case ITEM_ACCOUNT:
	case ITEM_QUEUE:
	case ITEM_MESSAGE:
	case ITEM_CONTAINER:
	case ITEM_BLOB:
	case ITEM_EXTENT:
	case ITEM_PIECE:
		break;
	}
	return refuse(why, ERR_NOT_PERMITTED,
		"the mount of an account elsewhere has tables and rows, and one account");
}

static enum err target_of_delete(const struct change *c, const struct cloudstore_place *at,
	enum target *ret, struct err_detail *why)
{
	const struct item *there = &at->there;
	/* The service may have a row that the shadow lacks. */
	bool unknown = there->kind == ITEM_NONE && c->at.has_pk;
	*ret = unknown || sending_is_row(there) ? TARGET_ROW : TARGET_SHADOW;
	if (there->kind == ITEM_TABLE)
		*ret = TARGET_TABLE;
	if (there->kind == ITEM_ACCOUNT)
		return refuse(why, ERR_NOT_PERMITTED, "the account of this mount");
	if (item_is_dir(there->kind) && there->kind != ITEM_FOLDER && c->flags & CHANGE_RECURSIVE)
		return refuse(why, ERR_NOT_SUPPORTED,
			"an account elsewhere removes rows one by one; use rm -r");
	return ERR_OK;
}

/* mv(1) copies what is refused.  A row crosses to another partition only where the service's ETags can be
 * conditions. */
static enum err target_of_row_move(struct cloudstore *s, const struct change *c,
	const struct cloudstore_place *from, enum target *ret)
{
	struct cloudstore_place to;
	enum err e = cloudstore_place_find(s->shadow, &c->to, &to);
	bool same = to.table == from->table && span_eq(buf_span(&to.pk), buf_span(&from->pk));
	bool opaque = atomic_load(&s->etag_form) == ETAG_OPAQUE;
	*ret = same ? TARGET_ROW : TARGET_CROSSING;
	if (e == ERR_OK &&
		(to.table == 0 || c->to_kind == ITEM_FILE || c->flags & CHANGE_EXCHANGE ||
			(!same && opaque)))
		e = ERR_CROSS_DEVICE;
	cloudstore_place_fini(&to);
	return e;
}

static enum err target_of_move(struct cloudstore *s, const struct change *c,
	const struct cloudstore_place *from, enum target *ret)
{
	const struct item *it = &from->there;
	bool dir =
		item_is_dir(it->kind) && (it->kind != ITEM_FOLDER || c->to_kind == ITEM_PARTITION);
	if (sending_is_row(it))
		return target_of_row_move(s, c, from, ret);
	if (dir || c->flags & CHANGE_EXCHANGE)
		return ERR_CROSS_DEVICE;
	*ret = c->to_kind == ITEM_ROW && c->body.n > 0 ? TARGET_ROW : TARGET_SHADOW;
	return ERR_OK;
}

enum err target_of(
	struct cloudstore *s, const struct change *c, enum target *ret, struct err_detail *why)
{
	struct cloudstore_place at;
	*ret = TARGET_SHADOW;
	if (c->op == CHANGE_PUT)
		return target_of_put(c, ret, why);
	if (c->op != CHANGE_DELETE && c->op != CHANGE_MOVE)
		return ERR_OK;
	/* A check of a set ends with such a change, which every store refuses after it has judged the others. */
	if (c->op == CHANGE_DELETE && c->at.id == 0 && c->at.parent == STORE_ROOT)
		return refuse(why, ERR_NOT_SUPPORTED,
			"an account elsewhere cannot check a change set without making it");
	enum err e = cloudstore_place_find(s->shadow, &c->at, &at);
	if (e == ERR_OK)
		e = c->op == CHANGE_DELETE ? target_of_delete(c, &at, ret, why)
					   : target_of_move(s, c, &at, ret);
	cloudstore_place_fini(&at);
	return e;
}
