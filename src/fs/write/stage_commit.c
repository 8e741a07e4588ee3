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

#include <stdlib.h>

static enum err refresh_target(struct fs *fs, struct stage *s, uint64_t dir_id, struct span name)
{
	char component[COMPONENT_MAX];
	size_t n = name.n < COMPONENT_MAX ? name.n : COMPONENT_MAX - 1;
	memcpy(component, name.p, n);
	component[n] = 0;
	struct resolved_name now = { 0 };
	enum err e = name_resolve(fs, nid_make(dir_id, 0), component, &now, NULL);
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

/* The empty file that held the name is gone.  Another writer's first commit took its place:
 * the last close wins; or somebody removed it. */
static enum err follow_to_row(struct fs *fs, struct stage *s)
{
	struct item row = { 0 };
	enum err e = refresh_target(fs, s, s->dir_id, span_make(s->name, s->name_len));
	if (e == ERR_OK)
		e = name_item(fs, &s->at, WANT_ATTRS, &row);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && row.kind != ITEM_ROW))
		e = ERR_GONE;
	if (e == ERR_OK)
		stage_step(&s->is, STAGE_FILE_GONE);
	item_fini(&row);
	return e;
}

/* Where the row is now: it may have been renamed, or removed, since it was opened. */
static enum err follow(struct fs *fs, struct stage *s)
{
	uint64_t id = stage__item(s);
	bool row = s->is.name == NAME_ROW;
	if (id == 0)
		return refresh_target(fs, s, s->dir_id, s->at.name);
	struct item it = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && it.kind != (row ? ITEM_ROW : ITEM_FILE)))
		e = ERR_GONE;
	if (e == ERR_OK) {
		char name[COMPONENT_MAX];
		size_t n = item_component(&it, name);
		e = refresh_target(fs, s, it.parent, span_make(name, n));
		s->base.attrs = it.attrs;
		/* A rename gives another version to the content that was loaded. */
		if (row && it.edition == s->base.edition)
			s->base_version = it.version;
	}
	item_fini(&it);
	if (e == ERR_GONE && !row && !s->commit.loaded)
		e = follow_to_row(fs, s);
	return e;
}

static enum err adopt(
	struct fs *fs, struct stage *s, const struct row_keys *k, struct err_detail *detail)
{
	if (!s->at.pending_dir)
		return ERR_OK;
	char order[LIMIT_KEY_BYTES];
	key_to_order(k->pk, k->pk_n, order);
	struct item partition = { 0 };
	enum err e =
		tree_adopt(fs->service, &s->at.dir, span_make(order, k->pk_n), &partition, detail);
	if (e != ERR_OK)
		return e;
	item_fini(&s->at.dir);
	s->at.dir = partition;
	s->at.pending_dir = false;
	return ERR_OK;
}

/* Joins the condition of a loaded handle with the one that was set.  A writer that loaded the empty file
 * has not seen a row that REST made since.  ERR_CONDITION_NOT_MET: no row can meet both. */
static enum err match_of(const struct stage *s, int64_t *ret)
{
	int64_t own = MATCH_UNSET, asked = s->commit.if_match;
	if (s->commit.loaded)
		own = s->is.name == NAME_ROW ? s->base_version : MATCH_ABSENT;
	if (asked == MATCH_PRESENT && own != MATCH_UNSET && own != MATCH_ABSENT)
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
	bool row = s->is.name == NAME_ROW;
	op->if_id = row ? s->base.id : 0;
	if (match == MATCH_ABSENT) {
		op->kind = ENTITY_INSERT;
		op->if_id = 0;
	} else if (match == MATCH_PRESENT && !row) {
		op->kind = ENTITY_REPLACE;
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

/* Mode and owner of the empty file go over to the row. */
static void inherit(struct attrs *to, const struct attrs *from)
{
	if (to->mode == MODE_UNSET)
		to->mode = from->mode;
	if (to->uid == OWNER_UNSET)
		to->uid = from->uid;
	if (to->gid == OWNER_UNSET)
		to->gid = from->gid;
}

static enum err no_match(const struct stage *s, struct err_detail *detail)
{
	return s->commit.if_match == MATCH_UNSET
		? ERR_CONDITION_NOT_MET
		: err_set(detail, ERR_CONDITION_NOT_MET, "%s", MATCH_NOT_MET_TEXT);
}

static enum err put(
	struct fs *fs, struct stage *s, const struct row_keys *k, struct err_detail *detail)
{
	int64_t match;
	if (match_of(s, &match) != ERR_OK)
		return no_match(s, detail);
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.document = buf_span(&s->buf),
		.document_has_keys = s->check.has_keys,
		.attrs = s->commit.attrs,
		.admitted = s->commit.admitted };
	bool row = s->is.name == NAME_ROW, file = s->is.name == NAME_FILE;
	s->commit.admitted = false;
	op.pk = span_make(k->pk, k->pk_n);
	op.rk = span_make(k->rk, k->rk_n);
	if (file)
		inherit(&op.attrs, &s->base.attrs);
	set_conditions(s, match, &op);
	struct item_ref draft = { .id = s->base.id };
	struct item now = { 0 }, replaced = { 0 };
	enum err e = entity_commit_document(fs->service, ORIGIN_MOUNT, s->at.dir.parent, &op,
		file ? &draft : NULL, false, &now, &replaced, detail);
	if (e == ERR_NOT_FOUND && row)
		e = ERR_GONE;
	else if (e == ERR_ENTITY_EXISTS || (e == ERR_NOT_FOUND && asks_for_row(match)))
		e = ERR_CONDITION_NOT_MET;
	if (e == ERR_CONDITION_NOT_MET)
		e = no_match(s, detail);
	if (e == ERR_OK) {
		s->stale.old_nid = file ? nid_of(&s->base) : 0;
		if (replaced.kind == ITEM_ROW)
			s->stale.old_nid = nid_of(&replaced);
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
static enum err put_as_known(struct fs *fs, struct stage *s, struct row_keys *k, bool *ret_look,
	struct err_detail *detail)
{
	*ret_look = true;
	if (s->is.name != NAME_ROW || s->at.dir.kind != ITEM_PARTITION || s->at.digest)
		return ERR_GONE;
	enum err e = stage__keys(fs, s, k, detail);
	if (e != ERR_OK)
		return e;
	e = put(fs, s, k, detail);
	*ret_look = e == ERR_GONE || e == ERR_NOT_FOUND || e == ERR_CONDITION_NOT_MET;
	s->commit.admitted = *ret_look; /* it was counted */
	return e;
}

/* Each time somebody else changed it in between. */
#define LOOKS 64
/* Looks first where the row is.  *ret_look: it was elsewhere again by then, or its first document
 * came to the name, which follow() has the last word on. */
static enum err put_where_it_is(struct fs *fs, struct stage *s, struct row_keys *k, bool *ret_look,
	struct err_detail *detail)
{
	uint64_t dir = s->at.dir.id;
	int64_t version = s->base_version;
	*detail = (struct err_detail){ 0 };
	*ret_look = false;
	enum err e = follow(fs, s);
	bool moved = e == ERR_OK && s->at.dir.id != dir;
	s->commit.admitted = s->commit.admitted && !moved;
	if (moved || (e == ERR_OK && s->check.has_keys))
		s->check.len = 0;
	if (e == ERR_OK)
		e = stage__check(fs, s, detail);
	if (e == ERR_OK)
		e = stage__keys(fs, s, k, detail);
	if (e == ERR_OK)
		e = adopt(fs, s, k, detail);
	if (e != ERR_OK)
		return e;
	e = put(fs, s, k, detail);
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
	bool joins = s->is.name != NAME_ROW;
	bool look = false;
	enum err e = stage__check(fs, s, detail);
	if (e == ERR_OK)
		e = put_as_known(fs, s, k, &look, detail);
	for (int tries = 0; look && tries < LOOKS; tries++)
		e = put_where_it_is(fs, s, k, &look, detail);
	if (e == ERR_OK && joins)
		notify_attributes(fs->notifier, nid_make(s->at.dir.id, 0));
	if (e == ERR_OK)
		accepted(fs, s);
	free(k);
	return e;
}
