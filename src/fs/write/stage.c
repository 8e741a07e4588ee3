/* SPDX-License-Identifier: MIT */
#include "fs/write/stage.h"

#include "base/clock.h"
#include "base/lock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/refused/rejected.h"
#include "fs/write/stage_check.h"
#include "fs/write/stage_commit.h"
#include "service/core/admission.h"

#include <stdlib.h>

/* ---- life ---- */

static void take_document(struct fs *fs, struct stage *s, struct span document)
{
	buf_add_span(&s->buf, document);
	held_set(fs, &s->held, s->buf.cap);
	s->checked_len = s->buf.len;
	s->unread = false;
}

enum err stage_new(struct fs *fs, struct target *at, struct item *item, struct stage **ret)
{
	struct stage *s = calloc(1, sizeof(*s));
	if (s == NULL || mutex_init(&s->lock, RANK_STAGE) != 0) {
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
		s->of_row = s->base.kind == ITEM_ROW;
		s->draft = !s->of_row;
		*(s->draft ? &s->draft_id : &s->row_id) = s->base.id;
		s->base_version = s->base.version;
		s->unread = !s->draft;
		if (s->base.body.n > 0)
			take_document(fs, s, s->base.body);
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
	if (s == NULL)
		return;
	held_set(fs, &s->held, 0);
	mutex_destroy(&s->lock);
	target_fini(&s->at);
	item_fini(&s->base);
	buf_fini(&s->buf);
	free(s);
}

/* ---- refusing ---- */

/* rejected: where the bytes are; "": nowhere. */
static void tell(struct fs *fs, struct stage *s, const char *call, enum err e,
	const struct err_detail *detail, const char *rejected)
{
	reasons_add(fs,
		&(struct refusal){ .call = call,
			.dir = s->dir_id,
			.name = s->at.name,
			.error = e,
			.detail = detail,
			.rejected = rejected[0] != 0 ? rejected : NULL });
}

/* Keeps the reason and the bytes; answers e. */
static enum err refuse(struct fs *fs, struct stage *s, const char *call, enum err e,
	const struct err_detail *detail)
{
	char rejected[REJECTED_NAME_MAX] = "";
	if (s->buf.len > 0)
		(void)rejected_save(fs, s->at.name, buf_span(&s->buf), &s->rejected_id, rejected);
	s->rejected_len = s->buf.len;
	tell(fs, s, call, e, detail, rejected);
	return e;
}

/* Bytes that the buffer does not take go where refused ones are, and those of later writes
 * behind them: without these what is written would have a hole. */
static void put_aside(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes,
	char out_rejected[REJECTED_NAME_MAX])
{
	s->missing = true;
	s->rejected_len = s->buf.len;
	(void)rejected_save_with(fs, s->at.name, buf_span(&s->buf), (size_t)offset, bytes,
		&s->rejected_id, out_rejected);
}

/* A write behind such a one. */
static enum err write_aside(struct fs *fs, struct stage *s, struct span bytes)
{
	if (s->rejected_id != 0 && rejected_append(fs, s->rejected_id, bytes) != ERR_OK)
		s->rejected_id = 0;
	return s->error;
}

/* ---- what the doors call ---- */

bool stage_is_current(struct stage *s, const struct item *item)
{
	mutex_lock(&s->lock);
	bool current = !s->dirty && s->loaded && s->base.id == item->id &&
		s->base_version == item->version;
	if (current)
		s->base.attrs = item->attrs;
	mutex_unlock(&s->lock);
	return current;
}

enum err stage_load(struct fs *fs, struct stage *s)
{
	enum err e = ERR_OK;
	struct item row = { 0 };
	mutex_lock(&s->lock);
	if (s->unread)
		e = store_get(fs->store, NULL, s->row_id, WANT_BODY, &row);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && s->unread && nid_of(&row) != nid_of(&s->base)))
		e = ERR_GONE;
	if (e == ERR_OK && s->unread) {
		take_document(fs, s, row.body);
		s->base.attrs = row.attrs;
		s->base.version = s->base_version = row.version;
	}
	if (e == ERR_OK && !buf_ok(&s->buf))
		e = ERR_NO_MEMORY;
	mutex_unlock(&s->lock);
	item_fini(&row);
	return e;
}

void stage_open_truncated(struct stage *s)
{
	mutex_lock(&s->lock);
	s->unread = false;
	buf_clear(&s->buf);
	s->loaded = false;
	s->scan = (struct json_scan){ 0 };
	s->sequential = true;
	s->checked_len = 0;
	s->dirty = s->poisoned = s->missing = s->emptied = false;
	mutex_unlock(&s->lock);
}

/* A refused write does not move its writer on.  One that goes on all the same, as shells do,
 * comes with other bytes, and they belong behind those; one that tries again has the same. */
static uint64_t after_refused(const struct stage *s, uint64_t offset, struct span bytes)
{
	if (!s->poisoned || !s->sequential || offset != s->refused_at || offset >= s->buf.len)
		return offset;
	size_t left = s->buf.len - (size_t)offset;
	bool again = memcmp(s->buf.data + offset, bytes.p, bytes.n < left ? bytes.n : left) == 0;
	return again ? offset : s->buf.len;
}

static enum err write_locked(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes)
{
	struct err_detail detail = { 0 };
	char rejected[REJECTED_NAME_MAX] = "";
	enum err e = ERR_OK;
	bool taken = false;
	if (s->missing)
		return write_aside(fs, s, bytes);
	offset = after_refused(s, offset, bytes);
	if (offset != s->buf.len && !s->poisoned)
		s->sequential = false;
	if (offset + bytes.n > LIMIT_DOCUMENT_BYTES)
		e = err_set(&detail, ERR_BODY_TOO_LARGE, "a document may have %d bytes at most",
			LIMIT_DOCUMENT_BYTES);
	else if (offset + bytes.n > s->buf.cap && !held_may_grow(fs, s->uid))
		e = err_set(&detail, ERR_NO_MEMORY, "Too much is being written at once.");
	else if (!(taken = buf_write_at(&s->buf, (size_t)offset, bytes.p, bytes.n)))
		e = ERR_NO_MEMORY;
	if (!taken)
		put_aside(fs, s, offset, bytes, rejected);
	if (s->poisoned)
		e = s->error;
	held_set(fs, &s->held, s->buf.cap);
	s->dirty = true;
	s->emptied = s->told = false;
	if (e == ERR_OK) {
		/* Appending keeps the checked part; anything else is checked again. */
		if (!s->sequential || s->checked_len > s->buf.len)
			s->checked_len = 0;
		if (s->sequential)
			e = stage__check_so_far(fs, s, &detail);
		/* Shells hear what a write says, not what a close does. */
		if (e == ERR_OK)
			e = service_room(fs->service, s->buf.len, &detail);
	}
	if (e != ERR_OK && !s->poisoned) {
		s->poisoned = true;
		s->refused_at = offset;
		s->error = e;
		if (taken)
			return refuse(fs, s, "write", e, &detail);
		tell(fs, s, "write", e, &detail, rejected);
	}
	return e;
}

enum err stage_write(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes)
{
	mutex_lock(&s->lock);
	enum err e = write_locked(fs, s, offset, bytes);
	mutex_unlock(&s->lock);
	return e;
}

enum err stage_truncate(struct fs *fs, struct stage *s, uint64_t size)
{
	enum err e = ERR_OK;
	mutex_lock(&s->lock);
	if (size > LIMIT_DOCUMENT_BYTES) {
		e = ERR_BODY_TOO_LARGE;
	} else if (size > s->buf.cap && !held_may_grow(fs, s->uid)) {
		e = ERR_NO_MEMORY;
	} else if (size != s->buf.len || s->poisoned) {
		if (!buf_resize(&s->buf, (size_t)size))
			e = ERR_NO_MEMORY;
		s->scan = (struct json_scan){ 0 };
		s->checked_len = 0;
		s->sequential = size == 0;
		s->poisoned = s->missing = false;
		s->emptied = size == 0;
		s->dirty = size != 0;
		s->told = false;
		held_set(fs, &s->held, s->buf.cap);
	}
	mutex_unlock(&s->lock);
	return e;
}

size_t stage_read(struct stage *s, uint64_t offset, size_t n, struct buf *out)
{
	mutex_lock(&s->lock);
	if (offset < s->buf.len) {
		size_t left = s->buf.len - (size_t)offset;
		n = n < left ? n : left;
		buf_add(out, s->buf.data + offset, n);
	} else {
		n = 0;
	}
	mutex_unlock(&s->lock);
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
		s->base.attrs = file.attrs;
		s->attrs.mode = MODE_UNSET; /* the file has it, and may get another */
		s->attrs.uid = OWNER_UNSET;
		s->attrs.gid = OWNER_UNSET;
		notify_attributes(fs->notifier, nid_make(s->at.dir.id, 0));
	}
	atomic_store(&s->settled, true); /* only now: who finds it unset waits for the lock */
	item_fini(&file);
	return e;
}

enum err stage_settle(struct fs *fs, struct stage *s)
{
	mutex_lock(&s->lock);
	enum err e = settle_locked(fs, s);
	mutex_unlock(&s->lock);
	return e;
}

static enum err settle_and_tell(struct fs *fs, struct stage *s, const char *call)
{
	enum err e = settle_locked(fs, s);
	if (e != ERR_OK)
		tell(fs, s, call, e, NULL, "");
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
		return s->poisoned && s->rejected_len != s->buf.len
			? refuse(fs, s, call, s->error, NULL)
			: s->error;
	struct err_detail detail = { 0 };
	enum err e = stage__check(fs, s, &detail);
	if (e == ERR_OK)
		e = stage__commit(fs, s, durable, &detail);
	if (e == ERR_OK)
		return ERR_OK;
	s->told = true;
	s->error = e;
	return refuse(fs, s, call, e, &detail);
}

enum err stage_flush(struct fs *fs, struct stage *s, bool by_opener)
{
	enum err e = ERR_OK;
	mutex_lock(&s->lock);
	if (!s->dirty)
		e = settle_and_tell(fs, s, "close");
	if (e == ERR_OK && by_opener) {
		if (s->dirty)
			e = finish(fs, s, "close", false);
		else if (s->emptied)
			e = refuse(fs, s, "close", ERR_EMPTY, NULL);
		if (e != ERR_OK)
			(void)settle_locked(fs, s); /* the new name stays, whatever comes */
	}
	mutex_unlock(&s->lock);
	return e;
}

enum err stage_fsync(struct fs *fs, struct stage *s)
{
	mutex_lock(&s->lock);
	enum err e = ERR_OK;
	if (s->dirty)
		e = finish(fs, s, "fsync", false);
	else
		e = settle_and_tell(fs, s, "fsync");
	mutex_unlock(&s->lock);
	return e;
}

enum err stage_admit(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	mutex_lock(&s->lock);
	enum err e = ERR_OK;
	if (!s->admitted && s->at.dir.kind == ITEM_PARTITION) {
		e = admission_in(fs->service, &s->at.dir, HEAT_CHANGED, 1, detail);
		s->admitted = e == ERR_OK;
	}
	mutex_unlock(&s->lock);
	return e;
}

void stage_opened(const struct fs *fs, struct stage *s, uid_t uid)
{
	mutex_lock(&s->lock);
	if (atomic_fetch_add(&s->handles, 1) == 0 || held_is_first(fs, s->uid))
		s->uid = uid;
	mutex_unlock(&s->lock);
}

bool stage_is_open(struct stage *s)
{
	return atomic_load(&s->handles) > 0;
}

void stage_close(struct fs *fs, struct stage *s)
{
	mutex_lock(&s->lock);
	if (atomic_fetch_sub(&s->handles, 1) > 1) {
		mutex_unlock(&s->lock);
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
	s->if_match = MATCH_UNSET;
	mutex_unlock(&s->lock);
}

void stage_take_stale(struct stage *s, struct stale *ret)
{
	mutex_lock(&s->lock);
	/* The order matters: a lookup marks first and reads the store then. */
	ret->any = s->changed && atomic_load(&s->exposed);
	ret->content = s->changed_content;
	ret->nid = s->changed_content ? s->old_nid : s->row_id != 0 ? nid_of(&s->base) : 0;
	ret->dir_nid = nid_make(s->at.dir.id, 0);
	memcpy(ret->name, s->at.name.p, s->at.name.n);
	ret->name[s->at.name.n] = 0;
	s->changed = s->changed_content = false;
	mutex_unlock(&s->lock);
}

void stage_set_match(struct stage *s, int64_t if_match)
{
	mutex_lock(&s->lock);
	s->if_match = if_match;
	s->told = false; /* what was refused under another one is asked again */
	mutex_unlock(&s->lock);
}

int64_t stage_match(struct stage *s)
{
	mutex_lock(&s->lock);
	int64_t if_match = s->if_match;
	mutex_unlock(&s->lock);
	return if_match;
}
