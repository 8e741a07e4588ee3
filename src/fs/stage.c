/* SPDX-License-Identifier: MIT */
#include "fs/stage.h"

#include "base/clock.h"
#include "fs/attr.h"
#include "fs/match.h"
#include "fs/nid.h"
#include "fs/notify.h"
#include "fs/reason.h"
#include "fs/rejected.h"
#include "model/key.h"

#include <stdlib.h>

/* ---- life ---- */

enum err stage_new(struct fs *fs, struct target *at, struct item *item, struct stage **ret)
{
	struct stage *s = calloc(1, sizeof(*s));
	if (s == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
		free(s);
		return ERR_NO_MEMORY;
	}
	s->buf = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	s->sequential = true;
	s->loaded = true;
	s->attrs = ATTRS_UNSET;
	s->draft = true;
	atomic_store(&s->settled, item != NULL);
	if (item != NULL) {
		s->base = *item;
		*item = (struct item){ 0 };
		s->draft = s->base.kind != ITEM_ROW;
		*(s->draft ? &s->draft_id : &s->row_id) = s->base.id;
		s->base_version = s->base.version;
		if (s->base.body.n > 0)
			buf_add_span(&s->buf, s->base.body);
		s->checked_len = s->buf.len;
		s->has_keys = (s->base.flags & ITEM_KEYS_INSIDE) != 0;
	} else {
		s->base.attrs = ATTRS_UNSET;
		s->base.version = clock_ticks();
	}
	s->at = *at;
	s->dir_id = at->dir.id;
	s->name_len = at->name.n;
	memcpy(s->name, at->name.p, at->name.n);
	memcpy(s->now_name, at->name.p, at->name.n);
	s->at.name = span_make(s->now_name, s->name_len);
	*at = (struct target){ 0 };
	if (!buf_ok(&s->buf)) {
		stage_free(fs, s);
		return ERR_NO_MEMORY;
	}
	*ret = s;
	return ERR_OK;
}

void stage_free(struct fs *fs, struct stage *s)
{
	(void)fs;
	if (s == NULL)
		return;
	pthread_mutex_destroy(&s->lock);
	target_fini(&s->at);
	item_fini(&s->base);
	buf_fini(&s->buf);
	free(s);
}

/* ---- refusing ---- */

/* Keeps the reason and the bytes; answers e. */
static enum err refuse(struct fs *fs, struct stage *s, const char *call, enum err e,
	const struct err_detail *detail)
{
	char rejected[REJECTED_NAME_MAX] = "";
	if (s->buf.len > 0 &&
		rejected_save(fs, s->at.name, buf_span(&s->buf), &s->rejected_id, rejected) ==
			ERR_OK)
		s->rejected_len = s->buf.len;
	reasons_add(fs,
		&(struct refusal){ .call = call,
			.dir = s->dir_id,
			.name = s->at.name,
			.error = e,
			.detail = detail,
			.rejected = rejected[0] != 0 ? rejected : NULL });
	return e;
}

static void accepted(struct fs *fs, struct stage *s)
{
	reasons_clear(fs->reasons, s->dir_id, s->at.name);
	if (s->rejected_id != 0)
		rejected_drop(fs, s->rejected_id);
	s->rejected_id = 0;
	s->rejected_len = 0;
}

/* ---- the document ---- */

/* The PartitionKey of a directory that has only a digest for a name, out of the document. */
static enum err pending_key(
	struct stage *s, char pk[LIMIT_KEY_BYTES], size_t *ret_n, struct err_detail *detail)
{
	struct entity entity = { 0 };
	enum err e = entity_json_decode(buf_span(&s->buf), ENTITY_JSON_FILE, &entity, NULL, detail);
	if (e == ERR_OK && !entity.has_pk)
		e = err_set(detail, ERR_KEY_MISSING,
			"the directory's name is a digest: the document must hold PartitionKey");
	if (e == ERR_OK) {
		char name[LIMIT_NAME_BYTES + 1];
		size_t n = filename_encode(entity.pk, FILENAME_PARTITION, name);
		if (!span_eq(span_make(name, n), s->at.dir.key))
			e = err_set(detail, ERR_KEY_MISMATCH,
				"the directory's digest is not that of the document's PartitionKey");
	}
	if (e == ERR_OK) {
		memcpy(pk, entity.pk.p, entity.pk.n);
		*ret_n = entity.pk.n;
	}
	entity_fini(&entity);
	return e;
}

struct row_keys {
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES]; /* UTF-8 */
	size_t pk_n, rk_n;
};

static enum err row_keys(
	struct fs *fs, struct stage *s, struct row_keys *k, struct err_detail *detail)
{
	enum err e = target_key_from_document(fs, &s->at, buf_span(&s->buf), detail);
	if (e != ERR_OK)
		return e;
	k->rk_n = s->at.key_len;
	key_from_order(s->at.key, s->at.key_len, k->rk);
	if (s->at.pending_dir)
		return pending_key(s, k->pk, &k->pk_n, detail);
	k->pk_n = s->at.dir.key.n;
	key_from_order(s->at.dir.key.p, s->at.dir.key.n, k->pk);
	return ERR_OK;
}

/* Everything that the document must be; remembers that it is. */
static enum err check_document(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	if (s->checked_len == s->buf.len && s->buf.len > 0)
		return ERR_OK;
	struct row_keys *k = malloc(sizeof(*k));
	if (k == NULL)
		return ERR_NO_MEMORY;
	enum err e = row_keys(fs, s, k, detail);
	if (e == ERR_OK)
		e = document_check(buf_span(&s->buf), span_make(k->pk, k->pk_n),
			span_make(k->rk, k->rk_n), NULL, &s->has_keys, detail);
	if (e == ERR_OK)
		s->checked_len = s->buf.len;
	free(k);
	return e;
}

/* Strictly sequential writes: refused at the first byte that no document can hold, or when
 * the document is complete and breaks a rule. */
static enum err check_so_far(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	struct json_member member;
	for (;;) {
		switch (json_scan_next(&s->scan, buf_span(&s->buf), &member)) {
		case JSON_SCAN_MEMBER:
			break;
		case JSON_SCAN_MORE:
			return ERR_OK;
		case JSON_SCAN_END:
			return check_document(fs, s, detail);
		case JSON_SCAN_BAD:
			return err_set_at(detail, ERR_INVALID_INPUT, s->buf.data, s->scan.bad_at,
				"%s", s->scan.why);
		}
	}
}

/* ---- commit ---- */

static enum err refresh_target(struct fs *fs, struct stage *s, uint64_t dir_id, struct span name)
{
	char component[COMPONENT_MAX];
	size_t n = name.n < COMPONENT_MAX ? name.n : COMPONENT_MAX - 1;
	memcpy(component, name.p, n);
	component[n] = 0;
	struct target now = { 0 };
	enum err e = target_resolve(fs, nid_make(dir_id, 0), component, &now, NULL);
	if (e != ERR_OK || !now.row_name) {
		target_fini(&now);
		return ERR_GONE;
	}
	bool moved = now.dir.id != s->at.dir.id || !span_eq(name, s->at.name);
	if (moved)
		atomic_store(&s->exposed, true); /* the kernel moved a committed node there */
	target_fini(&s->at);
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
		e = target_item(fs, &s->at, WANT_ATTRS, &row);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && row.kind != ITEM_ROW))
		e = ERR_GONE;
	if (e == ERR_OK)
		s->draft_id = 0;
	item_fini(&row);
	return e;
}

/* Where the row is now: it may have been renamed, or removed, since it was opened. */
static enum err follow(struct fs *fs, struct stage *s)
{
	uint64_t id = s->row_id != 0 ? s->row_id : s->draft_id;
	enum item_kind kind = s->row_id != 0 ? ITEM_ROW : ITEM_FILE;
	if (id == 0)
		return refresh_target(fs, s, s->dir_id, s->at.name);
	struct item it = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && it.kind != kind))
		e = ERR_GONE;
	if (e == ERR_OK) {
		char name[COMPONENT_MAX];
		size_t n = item_component(&it, name);
		e = refresh_target(fs, s, it.parent, span_make(name, n));
		s->base.attrs = it.attrs;
	}
	item_fini(&it);
	if (e == ERR_GONE && s->row_id == 0 && !s->loaded)
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

static void set_conditions(struct fs *fs, struct stage *s, struct entity_op *op)
{
	int64_t asked = matches_get(fs->matches, s->row_id);
	op->if_id = s->row_id;
	if (s->loaded && s->row_id != 0) {
		op->if_match = true;
		op->if_match_version = s->base_version;
	}
	if (asked >= 0) {
		/* Both must hold: an unequal pair can match no version. */
		bool clash = op->if_match && op->if_match_version != asked;
		op->if_match = true;
		op->if_match_version = clash ? -1 : asked;
	}
}

static void committed(struct stage *s, struct item *now)
{
	item_fini(&s->base);
	s->base = *now;
	*now = (struct item){ 0 };
	s->row_id = s->base.id;
	s->base_version = s->base.version;
	s->draft = false;
	s->draft_id = 0;
	atomic_store(&s->settled, true);
	s->dirty = s->emptied = false;
	s->changed = s->changed_content = true;
	s->attrs.mtime_ns = TIME_UNSET;
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

static enum err put(struct fs *fs, struct stage *s, const struct row_keys *k, bool durable,
	struct err_detail *detail)
{
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.document = buf_span(&s->buf),
		.document_has_keys = s->has_keys,
		.attrs = s->attrs };
	op.pk = span_make(k->pk, k->pk_n);
	op.rk = span_make(k->rk, k->rk_n);
	if (s->draft_id != 0)
		inherit(&op.attrs, &s->base.attrs);
	set_conditions(fs, s, &op);
	struct place draft = { .id = s->draft_id };
	struct item now = { 0 }, replaced = { 0 };
	enum err e = entity_commit_document(fs->service, ORIGIN_MOUNT, s->at.dir.parent, &op,
		s->draft_id != 0 ? &draft : NULL, durable, &now, &replaced, detail);
	if (e == ERR_NOT_FOUND && s->row_id != 0)
		e = ERR_GONE;
	if (e == ERR_OK) {
		s->old_nid = replaced.kind == ITEM_ROW ? nid_of(&replaced) : 0;
		committed(s, &now);
		matches_drop(fs->matches, s->row_id);
	}
	item_fini(&replaced);
	return e;
}

/* The document is complete and valid. */
static enum err commit(struct fs *fs, struct stage *s, bool durable, struct err_detail *detail)
{
	struct row_keys *k = malloc(sizeof(*k));
	if (k == NULL)
		return ERR_NO_MEMORY;
	uint64_t dir = s->at.dir.id;
	enum err e = follow(fs, s);
	bool moved = e == ERR_OK && s->at.dir.id != dir;
	if (moved || (e == ERR_OK && s->has_keys))
		s->checked_len = 0;
	if (e == ERR_OK)
		e = check_document(fs, s, detail);
	if (e == ERR_OK)
		e = row_keys(fs, s, k, detail);
	bool joins = s->draft;
	if (e == ERR_OK)
		e = adopt(fs, s, k, detail);
	if (e == ERR_OK)
		e = put(fs, s, k, durable, detail);
	if (e == ERR_OK && joins)
		notify_attributes(fs->notifier, nid_make(s->at.dir.id, 0));
	if (e == ERR_OK)
		accepted(fs, s);
	free(k);
	return e;
}

/* ---- what the doors call ---- */

bool stage_is_current(struct stage *s, const struct item *item)
{
	pthread_mutex_lock(&s->lock);
	bool current = !s->dirty && s->loaded && s->base.id == item->id &&
		s->base_version == item->version;
	pthread_mutex_unlock(&s->lock);
	return current;
}

void stage_open_truncated(struct stage *s)
{
	pthread_mutex_lock(&s->lock);
	buf_clear(&s->buf);
	s->loaded = false;
	s->scan = (struct json_scan){ 0 };
	s->sequential = true;
	s->checked_len = 0;
	s->dirty = s->poisoned = s->emptied = false;
	pthread_mutex_unlock(&s->lock);
}

enum err stage_write(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes)
{
	struct err_detail detail = { 0 };
	pthread_mutex_lock(&s->lock);
	enum err e = ERR_OK;
	if (offset != s->buf.len)
		s->sequential = false;
	if (offset + bytes.n > LIMIT_DOCUMENT_BYTES)
		e = err_set(&detail, ERR_BODY_TOO_LARGE, "a document may have %d bytes at most",
			LIMIT_DOCUMENT_BYTES);
	else if (!buf_write_at(&s->buf, (size_t)offset, bytes.p, bytes.n))
		e = ERR_NO_MEMORY;
	else if (s->poisoned)
		e = s->error;
	s->dirty = true;
	s->emptied = s->told = false;
	if (e == ERR_OK) {
		/* Appending keeps the checked part; anything else is checked again. */
		if (!s->sequential || s->checked_len > s->buf.len)
			s->checked_len = 0;
		if (s->sequential)
			e = check_so_far(fs, s, &detail);
	}
	if (e != ERR_OK && !s->poisoned) {
		s->poisoned = true;
		s->error = e;
		e = refuse(fs, s, "write", e, &detail);
	}
	pthread_mutex_unlock(&s->lock);
	return e;
}

enum err stage_truncate(struct fs *fs, struct stage *s, uint64_t size)
{
	(void)fs;
	enum err e = ERR_OK;
	pthread_mutex_lock(&s->lock);
	if (size > LIMIT_DOCUMENT_BYTES) {
		e = ERR_BODY_TOO_LARGE;
	} else if (size != s->buf.len || s->poisoned) {
		if (!buf_resize(&s->buf, (size_t)size))
			e = ERR_NO_MEMORY;
		s->scan = (struct json_scan){ 0 };
		s->checked_len = 0;
		s->sequential = size == 0;
		s->poisoned = false;
		s->emptied = size == 0;
		s->dirty = size != 0;
		s->told = false;
	}
	pthread_mutex_unlock(&s->lock);
	return e;
}

size_t stage_read(struct stage *s, uint64_t offset, size_t n, struct buf *out)
{
	pthread_mutex_lock(&s->lock);
	if (offset < s->buf.len) {
		size_t left = s->buf.len - (size_t)offset;
		n = n < left ? n : left;
		buf_add(out, s->buf.data + offset, n);
	} else {
		n = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

static enum err settle_locked(struct fs *fs, struct stage *s)
{
	if (!s->draft || s->draft_id != 0)
		return ERR_OK;
	struct item file = { 0 };
	const struct spot at = target_spot(&s->at, ITEM_FILE);
	struct attrs attrs = s->attrs;
	/* Another door may have made the row meanwhile: nothing waits behind it. */
	enum err e = target_item(fs, &s->at, WANT_ATTRS, &file);
	if (e == ERR_OK) {
		item_fini(&file);
		atomic_store(&s->settled, true);
		return ERR_OK;
	}
	e = tree_create_file(fs->service, &at, &attrs, &file, NULL);
	if (e == ERR_OK) {
		s->draft_id = file.id;
		notify_attributes(fs->notifier, nid_make(s->at.dir.id, 0));
	}
	atomic_store(&s->settled, true); /* only now: who finds it unset waits for the lock */
	item_fini(&file);
	return e;
}

enum err stage_settle(struct fs *fs, struct stage *s)
{
	pthread_mutex_lock(&s->lock);
	enum err e = settle_locked(fs, s);
	pthread_mutex_unlock(&s->lock);
	return e;
}

/* A refused write stays refused, and a lost update lost, until other bytes are written. */
static bool is_final(const struct stage *s)
{
	return s->poisoned ||
		(s->told && (s->error == ERR_CONDITION_NOT_MET || s->error == ERR_GONE));
}

/* Commits a dirty stage or says why not. */
static enum err finish(struct fs *fs, struct stage *s, const char *call, bool durable)
{
	if (is_final(s))
		return s->error;
	struct err_detail detail = { 0 };
	enum err e = check_document(fs, s, &detail);
	if (e == ERR_OK)
		e = commit(fs, s, durable, &detail);
	if (e == ERR_OK)
		return ERR_OK;
	s->told = true;
	s->error = e;
	return refuse(fs, s, call, e, &detail);
}

enum err stage_flush(struct fs *fs, struct stage *s, bool by_opener)
{
	enum err e = ERR_OK;
	pthread_mutex_lock(&s->lock);
	if (!s->dirty)
		e = settle_locked(fs, s);
	if (e == ERR_OK && by_opener) {
		if (s->dirty)
			e = finish(fs, s, "close", false);
		else if (s->emptied)
			e = refuse(fs, s, "close", ERR_EMPTY, NULL);
	}
	pthread_mutex_unlock(&s->lock);
	return e;
}

enum err stage_fsync(struct fs *fs, struct stage *s)
{
	pthread_mutex_lock(&s->lock);
	enum err e = ERR_OK;
	if (s->dirty)
		e = finish(fs, s, "fsync", true);
	else
		e = store_sync(fs->store);
	pthread_mutex_unlock(&s->lock);
	return e;
}

void stage_opened(struct stage *s)
{
	pthread_mutex_lock(&s->lock);
	s->handles++;
	pthread_mutex_unlock(&s->lock);
}

void stage_close(struct fs *fs, struct stage *s)
{
	pthread_mutex_lock(&s->lock);
	if (--s->handles > 0) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	/* What a close refused is not committed behind its back. */
	if (s->dirty && !s->poisoned && !s->told)
		(void)finish(fs, s, "close", false);
	else if (s->poisoned && s->rejected_len != s->buf.len)
		(void)refuse(fs, s, "write", s->error, NULL);
	if (s->draft)
		(void)settle_locked(fs, s);
	s->dirty = false;
	pthread_mutex_unlock(&s->lock);
}

void stage_take_stale(struct stage *s, struct stale *ret)
{
	pthread_mutex_lock(&s->lock);
	/* The order matters: a lookup marks first and reads the store then. */
	ret->any = s->changed && atomic_load(&s->exposed);
	ret->content = s->changed_content;
	ret->nid = s->changed_content ? s->old_nid : s->row_id != 0 ? nid_of(&s->base) : 0;
	ret->dir_nid = nid_make(s->at.dir.id, 0);
	memcpy(ret->name, s->at.name.p, s->at.name.n);
	ret->name[s->at.name.n] = 0;
	s->changed = s->changed_content = false;
	pthread_mutex_unlock(&s->lock);
}

static void overlay(struct attrs *to, const struct attrs *from, uint32_t mask)
{
	if ((mask & ATTR_MODE) != 0)
		to->mode = from->mode;
	if ((mask & ATTR_UID) != 0)
		to->uid = from->uid;
	if ((mask & ATTR_GID) != 0)
		to->gid = from->gid;
	if ((mask & ATTR_MTIME) != 0)
		to->mtime_ns = from->mtime_ns;
}

enum err stage_set_attrs(struct fs *fs, struct stage *s, const struct attrs *attrs, uint32_t mask)
{
	enum err e = ERR_OK;
	pthread_mutex_lock(&s->lock);
	uint64_t id = s->row_id != 0 ? s->row_id : s->draft_id;
	uint32_t kept = s->dirty || s->draft ? mask : mask & ~(uint32_t)ATTR_MTIME;
	overlay(&s->attrs, attrs, kept);
	if (id != 0 && !s->dirty) {
		struct item now = { 0 };
		e = tree_set_attrs(fs->service, id, attrs, mask, &now);
		if (e == ERR_OK) {
			s->base.attrs = now.attrs;
			s->changed = true;
		}
		item_fini(&now);
	}
	pthread_mutex_unlock(&s->lock);
	return e;
}

void stage_stat(struct fs *fs, struct stage *s, struct stat *ret)
{
	pthread_mutex_lock(&s->lock);
	struct item shown = { .id = s->base.id,
		.kind = ITEM_ROW,
		.version = s->base.version,
		.attrs = s->base.attrs,
		.size = s->buf.len };
	if (s->attrs.mode != MODE_UNSET)
		shown.attrs.mode = s->attrs.mode;
	if (s->attrs.uid != OWNER_UNSET)
		shown.attrs.uid = s->attrs.uid;
	if (s->attrs.gid != OWNER_UNSET)
		shown.attrs.gid = s->attrs.gid;
	if (s->attrs.mtime_ns != TIME_UNSET)
		shown.attrs.mtime_ns = s->attrs.mtime_ns;
	if (shown.id == 0)
		shown.id = s->draft_id != 0 ? s->draft_id
					    : (s->nid & ~NID_PRIVATE) | UINT64_C(1) << 60;
	attr_of_item(fs, &shown, ret);
	pthread_mutex_unlock(&s->lock);
}
