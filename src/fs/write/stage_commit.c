/* SPDX-License-Identifier: MIT */
#include "fs/write/stage_commit.h"

#include "base/lock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/refused/rejected.h"
#include "fs/tree/facts.h"
#include "fs/write/stage_check.h"
#include "model/key.h"
#include "service/change/adoption.h"

#include <stdlib.h>

static enum err refresh_target(
	struct store *store, struct stage *s, uint64_t dir_id, struct span name)
{
	char component[COMPONENT_MAX];
	size_t n = name.n < COMPONENT_MAX ? name.n : COMPONENT_MAX - 1;
	memcpy(component, name.p, n);
	component[n] = 0;
	struct resolved_name now = { 0 };
	enum err e = name_resolve(store, nid_make(dir_id, 0), component, &now, NULL);
	if (e == ERR_OK && !now.row_name)
		e = ERR_GONE;
	if (e != ERR_OK) {
		resolved_name_fini(&now);
		return name_means_nothing(e) || e == ERR_NOT_A_DIRECTORY ? ERR_GONE : e;
	}
	bool moved = now.dir.id != s->at.dir.id || !span_eq(name, s->at.name);
	if (moved)
		atomic_store(&s->exposed, true); /* the kernel moved a committed node there */
	resolved_name_fini(&s->at);
	memcpy(s->now_name, component, n + 1);
	s->at = now;
	s->at.name = span_make(s->now_name, n);
	return ERR_OK;
}

/* Where the row is now: it may have been renamed, or removed, since it was opened. */
static enum err follow(struct store *store, struct stage *s)
{
	uint64_t id = stage__item(s);
	if (id == 0)
		return refresh_target(store, s, s->dir_id, s->at.name);
	struct item it = { 0 };
	enum err e = store_get(store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && it.kind != ITEM_ROW && it.kind != s->base.kind))
		e = ERR_GONE;
	if (e == ERR_OK) {
		char name[COMPONENT_MAX];
		size_t n = item_component(&it, name);
		e = refresh_target(store, s, it.parent, span_make(name, n));
		s->base.kind = it.kind;
		s->base.attrs = it.attrs;
		/* A rename gives another version to the content that was loaded. */
		if (it.generation == s->base.generation)
			s->base_version = it.version;
	}
	item_fini(&it);
	return e;
}

/* The document has told the keys that the names do not tell. */
static enum err adopt(struct service *service, struct stage *s, const struct row_keys *k,
	struct err_detail *detail)
{
	char order[LIMIT_KEY_BYTES];
	struct item now = { 0 };
	enum err e = ERR_OK;
	if (s->at.pending_dir) {
		key_to_order(k->pk, k->pk_n, order);
		e = adopt_folder(
			service, ORIGIN_MOUNT, &s->at.dir, span_make(order, k->pk_n), &now, detail);
		if (e != ERR_OK)
			return e;
		item_fini(&s->at.dir);
		s->at.dir = now;
		s->at.pending_dir = false;
		now = (struct item){ 0 };
	}
	if (stage__item(s) == 0 || s->base.kind != ITEM_FILE)
		return ERR_OK;
	const struct item file = { .id = s->base.id, .version = s->base_version };
	key_to_order(k->rk, k->rk_n, order);
	e = adopt_file(service, ORIGIN_MOUNT, &file, s->at.dir.id, span_make(order, k->rk_n), &now);
	if (e == ERR_OK) { /* 0: another front end made the row */
		s->base.id = now.id;
		s->base.kind = ITEM_ROW;
		s->base_version = now.version;
	}
	item_fini(&now);
	return e;
}

/* Joins the condition of a loaded handle with the one that was set.  A writer that loaded a row without
 * a document has not seen one that REST made since.  ERR_CONDITION_NOT_MET: no row can meet both. */
static enum err match_of(const struct stage *s, int64_t *ret)
{
	int64_t own = MATCH_UNSET, asked = s->commit.if_match;
	bool document = s->base.size > 0;
	if (s->commit.loaded)
		own = stage__item(s) != 0 ? s->base_version : MATCH_ABSENT;
	if (own != MATCH_UNSET && asked == (document ? MATCH_PRESENT : MATCH_ABSENT))
		asked = own;
	*ret = own != MATCH_UNSET ? own : asked;
	bool clash = own != MATCH_UNSET && asked != MATCH_UNSET && own != asked;
	return clash ? ERR_CONDITION_NOT_MET : ERR_OK;
}

static bool asks_for_row(int64_t match)
{
	return match != MATCH_UNSET && match != MATCH_ABSENT;
}

static void set_conditions(const struct stage *s, int64_t match, struct entity_op *op)
{
	op->if_id = stage__item(s);
	if (match == MATCH_ABSENT) {
		op->kind = ENTITY_INSERT;
		op->if_id = 0;
	} else if (match == MATCH_PRESENT && s->base.size == 0) {
		op->kind = ENTITY_REPLACE;
		op->if_id = 0;
	} else if (asks_for_row(match) && match != MATCH_PRESENT) {
		op->if_match = true;
		op->if_match_version = match;
	}
}

static void committed(struct stage *s, struct item *now)
{
	item_fini(&s->base);
	s->base = *now;
	*now = (struct item){ 0 };
	s->base_version = s->base.version;
	stage_step(&s->is, STAGE_COMMIT);
	s->stale.changed = CHANGED_CONTENT;
	s->commit.loaded = s->commit.loaded || s->commit.if_match != MATCH_UNSET;
	s->commit.if_match = MATCH_UNSET;
	s->commit.attrs = ATTRS_UNSET; /* the row has them, and may get others */
}

static enum err no_match(const struct stage *s, struct err_detail *detail)
{
	return s->commit.if_match == MATCH_UNSET
		? ERR_CONDITION_NOT_MET
		: err_set(detail, ERR_CONDITION_NOT_MET, "%s", MATCH_NOT_MET_TEXT);
}

static enum err put(struct service *service, struct stage *s, const struct row_keys *k,
	struct err_detail *detail)
{
	int64_t match;
	if (match_of(s, &match) != ERR_OK)
		return no_match(s, detail);
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.document = buf_span(&s->buf),
		.document_flags = s->check.flags,
		.attrs = s->commit.attrs,
		.admitted = s->commit.admitted };
	bool held = stage__item(s) != 0;
	s->commit.admitted = false;
	op.pk = span_make(k->pk, k->pk_n);
	op.rk = span_make(k->rk, k->rk_n);
	set_conditions(s, match, &op);
	struct item now = { 0 }, replaced = { 0 };
	enum err e = entity_commit_document(
		service, ORIGIN_MOUNT, s->at.dir.parent, &op, false, &now, &replaced, detail);
	if (e == ERR_NOT_FOUND && held)
		e = ERR_GONE;
	else if (e == ERR_ENTITY_EXISTS || (e == ERR_NOT_FOUND && asks_for_row(match)))
		e = ERR_CONDITION_NOT_MET;
	if (e == ERR_CONDITION_NOT_MET)
		e = no_match(s, detail);
	if (e == ERR_OK) {
		s->stale.old_nid = replaced.kind == ITEM_ROW ? nid_of(&replaced) : 0;
		committed(s, &now);
	}
	item_fini(&replaced);
	return e;
}

static void accepted(struct fs *fs, struct stage *s)
{
	reasons_clear(fs->reasons, s->dir_id, s->at.name);
	if (s->refused.kept_id != 0)
		rejected_drop(fs, s->refused.kept_id);
	s->refused.kept_id = 0;
	s->refused.kept_len = 0;
	rejected_retry_in_turn(fs);
}

/* A row is mostly still where it was: the condition of the commit finds out, which is cheaper than
 * to look first.  *ret_look: it may be elsewhere, and what was found wrong may be due to that. */
static enum err put_as_known(struct service *service, struct stage *s, struct row_keys *k,
	bool *ret_look, struct err_detail *detail)
{
	*ret_look = true;
	if (stage__item(s) == 0 || s->base.kind != ITEM_ROW || s->at.dir.kind != ITEM_PARTITION ||
		s->at.digest)
		return ERR_GONE;
	enum err e = resolved_name_keys(&s->at, buf_span(&s->buf), k, detail);
	if (e != ERR_OK)
		return e;
	e = put(service, s, k, detail);
	*ret_look = e == ERR_GONE || e == ERR_NOT_FOUND || e == ERR_CONDITION_NOT_MET;
	s->commit.admitted = *ret_look; /* it was counted */
	return e;
}

/* Each time somebody else changed it in between. */
#define LOOKS 64
/* Looks first where the row is.  *ret_look: it was elsewhere again by then. */
static enum err put_where_it_is(struct fs *fs, struct stage *s, struct row_keys *k, bool *ret_look,
	struct err_detail *detail)
{
	uint64_t dir = s->at.dir.id;
	int64_t version = s->base_version;
	*detail = (struct err_detail){ 0 };
	*ret_look = false;
	enum err e = follow(fs->store, s);
	bool moved = e == ERR_OK && s->at.dir.id != dir;
	s->commit.admitted = s->commit.admitted && !moved;
	if (moved || (e == ERR_OK && (s->check.flags & ITEM_KEYS_INSIDE) != 0))
		s->check.len = 0;
	if (e == ERR_OK)
		e = stage__check(fs, s, detail);
	if (e == ERR_OK)
		e = resolved_name_keys(&s->at, buf_span(&s->buf), k, detail);
	if (e != ERR_OK)
		return e;
	e = adopt(fs->service, s, k, detail);
	if (e == ERR_OK)
		e = put(fs->service, s, k, detail);
	*ret_look = e == ERR_GONE || e == ERR_NOT_FOUND ||
		(e == ERR_CONDITION_NOT_MET && s->base_version != version);
	s->commit.admitted = *ret_look;
	return e;
}

enum err stage__commit(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	lock_assert_held(&s->lock);
	struct row_keys *k = malloc(sizeof(*k));
	if (k == NULL)
		return ERR_NO_MEMORY;
	bool joins = stage__item(s) == 0;
	bool look = false;
	enum err e = stage__check(fs, s, detail);
	if (e == ERR_OK)
		e = put_as_known(fs->service, s, k, &look, detail);
	for (int tries = 0; look && tries < LOOKS; tries++)
		e = put_where_it_is(fs, s, k, &look, detail);
	if (e == ERR_OK && joins)
		notify_attributes(fs->notifier, nid_make(s->at.dir.id, 0));
	if (e == ERR_OK)
		accepted(fs, s);
	free(k);
	return e;
}
