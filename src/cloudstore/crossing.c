/* SPDX-License-Identifier: MIT */
#include "cloudstore/crossing.h"

#include "cloudstore/place.h"

#include <errno.h>

struct crossing {
	struct cloudstore *s;
	struct change *c;
	bool durable;
	struct item row; /* with its document, as it is copied */
	struct cloudstore_place to;
	struct change put, removal; /* the two steps */
};

static enum err read_row(struct crossing *x)
{
	const struct change *c = x->c;
	struct cloudstore_place from;
	enum err e = cloudstore_place_find(x->s->shadow, &c->at, &from);
	if (e == ERR_OK)
		e = store_get(x->s->shadow, NULL, from.there.id, WANT_BODY, &x->row);
	cloudstore_place_fini(&from);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	if (c->cond == COND_VERSION && x->row.version != c->cond_version)
		return ERR_CONDITION_NOT_MET;
	return c->cond == COND_ID && (int64_t)x->row.id != c->cond_version ? ERR_GONE : ERR_OK;
}

/* Returns true if the service has a row there. */
static bool replaces(const struct crossing *x)
{
	return x->to.there.kind == ITEM_ROW && !item_is_empty_row(&x->to.there);
}

static enum err check_target(struct crossing *x)
{
	const struct change *c = x->c;
	enum err e = cloudstore_place_find(x->s->shadow, &c->to, &x->to);
	if (e == ERR_OK && c->to_match && x->to.there.version != c->to_version)
		e = ERR_CONDITION_NOT_MET;
	if (e == ERR_OK && replaces(x) && c->flags & CHANGE_NO_REPLACE)
		e = ERR_ENTITY_EXISTS;
	return e;
}

static enum err apply(struct crossing *x, struct change *step, struct err_detail *why)
{
	return store_apply(&x->s->base, step, 1, x->durable, why);
}

static enum err put(struct crossing *x, struct err_detail *why)
{
	const struct change *c = x->c;
	bool rewritten = c->body.p != NULL;
	x->put = (struct change){ .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.flags = CHANGE_WANT_OLD,
		.at = c->to,
		.cond = replaces(x) ? COND_VERSION : COND_ABSENT,
		.cond_version = x->to.there.version,
		.item_flags = rewritten ? c->item_flags
					: x->row.flags & (ITEM_KEYS_INSIDE | ITEM_CANONICAL),
		.body = rewritten ? c->body : x->row.body,
		.attrs = x->row.attrs };
	return apply(x, &x->put, why);
}

static enum err delete (struct crossing *x, struct err_detail *why) {
	x->removal = (struct change){ .op = CHANGE_DELETE,
		.flags = x->c->flags & CHANGE_KEEP_DIR,
		.at = { .id = x->row.id },
		.cond = COND_VERSION,
		.cond_version = x->row.version,
		.attrs = ATTRS_UNSET };
		return apply(x, &x->removal, why);
}

/* Puts back what the row has replaced, if nobody has changed it since. */
static enum err undo(struct crossing *x)
{
	const struct item *old = &x->put.old;
	bool back = old->kind == ITEM_ROW && !item_is_empty_row(old);
	struct err_detail why = { 0 };
	struct change c = { .op = back ? CHANGE_PUT : CHANGE_DELETE,
		.kind = ITEM_ROW,
		.flags = back ? 0 : CHANGE_KEEP_DIR,
		.at = { .id = x->put.now.id },
		.cond = COND_VERSION,
		.cond_version = x->put.now.version,
		.item_flags = old->flags & (ITEM_KEYS_INSIDE | ITEM_CANONICAL),
		.body = old->body,
		.attrs = back ? old->attrs : ATTRS_UNSET };
	enum err e = apply(x, &c, &why);
	changes_fini(&c, 1);
	return e;
}

/* Somebody else has changed or removed the row meanwhile. */
static bool lost_race(enum err e)
{
	return e == ERR_CONDITION_NOT_MET || e == ERR_NOT_FOUND || e == ERR_GONE ||
		e == ERR_TABLE_NOT_FOUND;
}

static enum err put_and_delete(struct crossing *x, struct err_detail *why)
{
	enum err e = put(x, why);
	if (e != ERR_OK)
		return e;
	e = delete (x, why);
	bool refused = err_errno(e) == EACCES;
	if (e == ERR_OK || ((lost_race(e) || refused) && undo(x) == ERR_OK))
		return e;
	struct err_detail reason = *why;
	return err_set(why, refused ? e : ERR_OUTCOME_UNKNOWN,
		"the row has its new name, and may still have the old one: %.200s",
		err_message(e, &reason));
}

static void give_results(struct crossing *x)
{
	struct change *c = x->c;
	c->version = x->put.version;
	c->made_partition = x->put.made_partition;
	c->now = x->put.now;
	c->left = x->removal.left;
	x->put.now = x->removal.left = (struct item){ 0 };
	if ((c->flags & CHANGE_WANT_OLD) == 0)
		return;
	c->old = x->put.old;
	x->put.old = (struct item){ 0 };
}

enum err cloudstore_cross(
	struct cloudstore *s, struct change *c, bool durable, struct err_detail *why)
{
	struct crossing x = { .s = s, .c = c, .durable = durable };
	enum err e = read_row(&x);
	if (e == ERR_OK)
		e = check_target(&x);
	if (e == ERR_OK)
		e = put_and_delete(&x, why);
	if (e == ERR_OK)
		give_results(&x);
	why->op = 0;
	changes_fini(&x.put, 1);
	changes_fini(&x.removal, 1);
	cloudstore_place_fini(&x.to);
	item_fini(&x.row);
	return e;
}
