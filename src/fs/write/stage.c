/* SPDX-License-Identifier: MIT */
#include "fs/write/stage.h"

#include "base/clock.h"
#include "base/lock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/refused/rejected.h"
#include "fs/tree/open_quota.h"
#include "fs/write/stage_check.h"
#include "fs/write/stage_commit.h"
#include "service/core/admission.h"

#include <stdlib.h>

/* ---- life ---- */

static enum err take_document(struct open_quota *open_quota, struct stage *s, struct span document)
{
	buf_add_span(&s->buf, document);
	open_quota_set(open_quota, &s->held, s->buf.cap);
	if (!buf_ok(&s->buf)) {
		buf_clear(&s->buf);
		return ERR_NO_MEMORY;
	}
	s->check.len = s->buf.len;
	stage_step(&s->is, STAGE_READ);
	return ERR_OK;
}

enum err stage_new(struct fs *fs, struct resolved_name *at, struct item *item, struct stage **ret)
{
	struct stage *s = calloc(1, sizeof(*s));
	if (s == NULL || mutex_init(&s->lock, RANK_STAGE) != 0) {
		free(s);
		return ERR_NO_MEMORY;
	}
	s->buf = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	s->check.sequential = true;
	s->commit.loaded = true;
	s->commit.attrs = ATTRS_UNSET;
	s->is.document = DOC_CLEAN;
	s->is.name = NAME_NEW;
	enum err e = ERR_OK;
	if (item != NULL) {
		s->base = *item;
		*item = (struct item){ 0 };
		s->base_version = s->base.version;
		s->check.flags = s->base.flags & (ITEM_KEYS_INSIDE | ITEM_CANONICAL);
		s->is.name = NAME_ITEM;
		if (s->base.kind == ITEM_ROW) {
			s->is.document = DOC_UNREAD;
			if (s->base.body.p != NULL)
				e = take_document(fs->open_quota, s, s->base.body);
		}
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
	*at = (struct resolved_name){ 0 };
	if (e == ERR_OK)
		*ret = s;
	else
		stage_free(fs, s);
	return e;
}

void stage_created(struct stage *s, const struct attrs *attrs)
{
	s->commit.admitted = s->at.dir.kind == ITEM_PARTITION;
	if (attrs == NULL)
		return;
	s->commit.attrs = *attrs;
	s->commit.loaded = false;
}

void stage_free(struct fs *fs, struct stage *s)
{
	if (s == NULL)
		return;
	open_quota_set(fs->open_quota, &s->held, 0);
	mutex_destroy(&s->lock);
	resolved_name_fini(&s->at);
	item_fini(&s->base);
	buf_fini(&s->buf);
	free(s);
}

/* ---- refusing ---- */

/* rejected: where the bytes are; "": nowhere. */
static void tell(struct fs *fs, struct stage *s, const char *call, enum err e,
	const struct err_detail *detail, const char *rejected)
{
	reasons_add(fs->reasons,
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
		(void)rejected_save(
			fs, s->at.name, buf_span(&s->buf), &s->refused.kept_id, rejected);
	s->refused.kept_len = s->buf.len;
	tell(fs, s, call, e, detail, rejected);
	return e;
}

/* Bytes that the buffer does not take go where refused ones are, and those of later writes
 * behind them: without these what is written would have a hole. */
static void put_aside(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes,
	char out_rejected[REJECTED_NAME_MAX])
{
	s->refused.kept_len = s->buf.len;
	(void)rejected_save_with(fs, s->at.name, buf_span(&s->buf), (size_t)offset, bytes,
		&s->refused.kept_id, out_rejected);
}

/* A write behind such a one. */
static enum err write_aside(struct fs *fs, struct stage *s, struct span bytes)
{
	if (s->refused.kept_id != 0 && rejected_append(fs, s->refused.kept_id, bytes) != ERR_OK)
		s->refused.kept_id = 0;
	return s->refused.error;
}

/* ---- what requests call ---- */

bool stage_is_current(struct stage *s, const struct item *item)
{
	mutex_lock(&s->lock);
	bool current = (s->is.document == DOC_UNREAD || s->is.document == DOC_CLEAN) &&
		s->commit.loaded && s->base.id == item->id && s->base_version == item->version;
	if (current)
		s->base.attrs = item->attrs;
	mutex_unlock(&s->lock);
	return current;
}

/* Nothing to do but in DOC_UNREAD. */
static enum err load_locked(struct fs *fs, struct stage *s)
{
	lock_assert_held(&s->lock);
	if (s->is.document != DOC_UNREAD)
		return ERR_OK;
	struct item row = { 0 };
	enum err e = store_get(fs->store, NULL, s->base.id, WANT_BODY, &row);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && nid_of(&row) != nid_of(&s->base)))
		e = ERR_GONE;
	if (e == ERR_OK)
		e = take_document(fs->open_quota, s, row.body);
	if (e == ERR_OK) {
		s->base.attrs = row.attrs;
		s->base.version = s->base_version = row.version;
	}
	item_fini(&row);
	return e;
}

enum err stage_load(struct fs *fs, struct stage *s)
{
	mutex_lock(&s->lock);
	enum err e = load_locked(fs, s);
	if (e == ERR_OK && !buf_ok(&s->buf))
		e = ERR_NO_MEMORY;
	mutex_unlock(&s->lock);
	return e;
}

/* The document is checked again from its start. */
static void check_anew(struct stage *s, bool sequential)
{
	s->check.scan = (struct json_scan){ 0 };
	s->check.len = 0;
	s->check.sequential = sequential;
}

/* A refused write does not move its writer on.  One that goes on all the same, as shells do,
 * comes with other bytes, and they belong behind those; one that tries again has the same. */
static uint64_t after_refused(const struct stage *s, uint64_t offset, struct span bytes)
{
	if (s->is.document != DOC_REFUSED || !s->check.sequential || offset != s->refused.at ||
		offset >= s->buf.len)
		return offset;
	size_t left = s->buf.len - (size_t)offset;
	bool again = memcmp(s->buf.data + offset, bytes.p, bytes.n < left ? bytes.n : left) == 0;
	return again ? offset : s->buf.len;
}

/* Puts the bytes into the document. */
static enum err take(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes,
	struct err_detail *detail)
{
	if (offset + bytes.n > LIMIT_DOCUMENT_BYTES)
		return err_set(detail, ERR_BODY_TOO_LARGE, "a document may have %d bytes at most",
			LIMIT_DOCUMENT_BYTES);
	if (offset + bytes.n > s->buf.cap && !open_quota_may_grow(fs, s->uid))
		return err_set(detail, ERR_NO_MEMORY, "Too much is being written at once.");
	bool taken = buf_write_at(&s->buf, (size_t)offset, bytes.p, bytes.n);
	open_quota_set(fs->open_quota, &s->held, s->buf.cap);
	return taken ? ERR_OK : ERR_NO_MEMORY;
}

/* Shells hear what a write says, not what a close does. */
static enum err check_taken(struct fs *fs, struct stage *s, struct err_detail *detail)
{
	enum err e = ERR_OK;
	/* Appending keeps the checked part; anything else is checked again. */
	if (!s->check.sequential || s->check.len > s->buf.len)
		s->check.len = 0;
	if (s->check.sequential)
		e = stage__check_so_far(fs, s, detail);
	return e == ERR_OK ? service_room(fs->service, s->buf.len, detail) : e;
}

static enum err write_locked(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes)
{
	lock_assert_held(&s->lock);
	struct err_detail detail = { 0 };
	char rejected[REJECTED_NAME_MAX] = "";
	enum err e = load_locked(fs, s);
	if (e != ERR_OK)
		return e;
	if (s->is.document == DOC_ASIDE)
		return write_aside(fs, s, bytes);
	bool before = s->is.document == DOC_REFUSED;
	offset = after_refused(s, offset, bytes);
	if (offset != s->buf.len && !before)
		s->check.sequential = false;
	e = take(fs, s, offset, bytes, &detail);
	bool taken = e == ERR_OK;
	if (!taken)
		put_aside(fs, s, offset, bytes, rejected);
	if (taken && !before)
		e = check_taken(fs, s, &detail);
	if (e == ERR_OK) {
		stage_step(&s->is, STAGE_WRITE);
		return before ? s->refused.error : ERR_OK;
	}
	stage_step(&s->is, taken ? STAGE_REFUSE : STAGE_SET_ASIDE);
	if (before)
		return s->refused.error;
	s->refused.at = offset;
	s->refused.error = e;
	if (taken)
		return refuse(fs, s, "write", e, &detail);
	tell(fs, s, "write", e, &detail, rejected);
	return e;
}

enum err stage_write(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes)
{
	mutex_lock(&s->lock);
	enum err e = write_locked(fs, s, offset, bytes);
	mutex_unlock(&s->lock);
	return e;
}

static enum err truncate_locked(struct fs *fs, struct stage *s, uint64_t size)
{
	lock_assert_held(&s->lock);
	enum err e = load_locked(fs, s);
	if (e != ERR_OK)
		return e;
	if (size > LIMIT_DOCUMENT_BYTES)
		return ERR_BODY_TOO_LARGE;
	if (size > s->buf.cap && !open_quota_may_grow(fs, s->uid))
		return ERR_NO_MEMORY;
	if (size == s->buf.len && !stage_is_refused(&s->is))
		return ERR_OK;
	if (!buf_resize(&s->buf, (size_t)size))
		return ERR_NO_MEMORY;
	check_anew(s, size == 0);
	stage_step(&s->is, size == 0 ? STAGE_EMPTY : STAGE_RESIZE);
	open_quota_set(fs->open_quota, &s->held, s->buf.cap);
	return ERR_OK;
}

enum err stage_truncate(struct fs *fs, struct stage *s, uint64_t size)
{
	mutex_lock(&s->lock);
	enum err e = truncate_locked(fs, s, size);
	mutex_unlock(&s->lock);
	return e;
}

void stage_read(struct stage *s, uint64_t offset, size_t n, struct buf *out)
{
	mutex_lock(&s->lock);
	if (offset < s->buf.len) {
		size_t left = s->buf.len - (size_t)offset;
		buf_add(out, s->buf.data + offset, n < left ? n : left);
	}
	mutex_unlock(&s->lock);
}

static enum err create_name_locked(struct fs *fs, struct stage *s)
{
	lock_assert_held(&s->lock);
	if (stage__item(s) != 0)
		return ERR_OK;
	struct item it = { 0 };
	const struct dentry at = name_dentry(&s->at, name_tells_key(&s->at) ? ITEM_ROW : ITEM_FILE);
	struct attrs attrs = s->commit.attrs;
	/* Another front end may have made the row meanwhile: the last close wins. */
	enum err e = resolved_name_item(fs->store, &s->at, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND) {
		e = tree_create_file(fs->service, &at, &attrs, &it, NULL);
		s->commit.attrs.mode = MODE_UNSET; /* the row has it, and may get another */
		s->commit.attrs.uid = OWNER_UNSET;
		s->commit.attrs.gid = OWNER_UNSET;
		notify_attributes(fs->notifier, nid_make(s->at.dir.id, 0));
	}
	if (e == ERR_OK) {
		s->base.id = it.id;
		s->base.kind = it.kind;
		s->base.generation = it.generation;
		s->base.size = it.size;
		s->base.attrs = it.attrs;
		s->base_version = it.version;
	} else {
		s->commit.attrs = attrs;
	}
	/* Only now: another thread that still finds it new waits for the lock. */
	stage_step(&s->is, e == ERR_OK ? STAGE_SHOW : STAGE_SHOW_NOTHING);
	item_fini(&it);
	return e;
}

struct item stage_item(struct stage *s)
{
	mutex_lock(&s->lock);
	struct item held = { .id = stage__item(s), .version = s->base_version };
	mutex_unlock(&s->lock);
	return held;
}

enum err stage_create_name(struct fs *fs, struct stage *s)
{
	mutex_lock(&s->lock);
	enum err e = create_name_locked(fs, s);
	mutex_unlock(&s->lock);
	return e;
}

static enum err create_name_or_tell(struct fs *fs, struct stage *s, const char *call)
{
	enum err e = create_name_locked(fs, s);
	if (e != ERR_OK)
		tell(fs, s, call, e, NULL, "");
	return e;
}

/* Writes were refused, and the bytes of some that came later are not kept yet. */
static bool has_more_refused(const struct stage *s)
{
	return stage_is_refused(&s->is) && s->refused.kept_len != s->buf.len;
}

/* Commits an edited stage or says why not.  A refused write stays refused, and a lost update lost.
 * */
static enum err finish(struct fs *fs, struct stage *s, const char *call)
{
	lock_assert_held(&s->lock);
	if (stage_is_final(&s->is))
		return has_more_refused(s) ? refuse(fs, s, call, s->refused.error, NULL)
					   : s->refused.error;
	struct err_detail detail = { 0 };
	enum err e = stage__commit(fs, s, &detail);
	if (e == ERR_OK)
		return ERR_OK;
	bool lost = e == ERR_CONDITION_NOT_MET || e == ERR_GONE;
	stage_step(&s->is, lost ? STAGE_LOSE : STAGE_FAIL);
	s->refused.error = e;
	return refuse(fs, s, call, e, &detail);
}

enum err stage_flush(struct fs *fs, struct stage *s, bool by_opener)
{
	enum err e = ERR_OK;
	mutex_lock(&s->lock);
	bool edited = stage_is_edited(&s->is);
	if (!edited)
		e = create_name_or_tell(fs, s, "close");
	if (e == ERR_OK && by_opener) {
		if (edited)
			e = finish(fs, s, "close");
		else if (s->is.document == DOC_EMPTIED)
			e = refuse(fs, s, "close", ERR_EMPTY, NULL);
		if (e != ERR_OK)
			(void)create_name_locked(fs, s); /* the new name stays, whatever comes */
	}
	mutex_unlock(&s->lock);
	return e;
}

enum err stage_fsync(struct fs *fs, struct stage *s)
{
	mutex_lock(&s->lock);
	enum err e = stage_is_edited(&s->is) ? finish(fs, s, "fsync")
					     : create_name_or_tell(fs, s, "fsync");
	mutex_unlock(&s->lock);
	return e;
}

enum err stage_admit(struct service *service, struct stage *s, struct err_detail *detail)
{
	mutex_lock(&s->lock);
	enum err e = ERR_OK;
	if (!s->commit.admitted && s->at.dir.kind == ITEM_PARTITION) {
		e = admission_in(service, &s->at.dir, HEAT_CHANGED, 1, detail);
		s->commit.admitted = e == ERR_OK;
	}
	mutex_unlock(&s->lock);
	return e;
}

void stage_opened(const struct fs *fs, struct stage *s, uid_t uid, bool truncated)
{
	mutex_lock(&s->lock);
	if (atomic_fetch_add(&s->handles, 1) == 0 || open_quota_is_first(fs, s->uid))
		s->uid = uid;
	if (truncated) {
		buf_clear(&s->buf);
		check_anew(s, true);
		s->commit.loaded = false;
		stage_step(&s->is, STAGE_OPEN_EMPTY);
	}
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
	if (s->is.document == DOC_WRITING)
		(void)finish(fs, s, "close");
	else if (has_more_refused(s))
		(void)refuse(fs, s, "write", s->refused.error, NULL);
	(void)create_name_locked(fs, s);
	s->commit.if_match = MATCH_UNSET;
	mutex_unlock(&s->lock);
}

void stage_take_stale(struct stage *s, struct stale *ret)
{
	mutex_lock(&s->lock);
	/* The order matters: a lookup marks first and reads the store then. */
	ret->any = s->stale.changed != CHANGED_NOTHING && atomic_load(&s->exposed);
	ret->content = s->stale.changed == CHANGED_CONTENT;
	ret->nid = s->is.name == NAME_ITEM ? nid_of(&s->base) : 0;
	if (ret->content)
		ret->nid = s->stale.old_nid;
	ret->dir_nid = nid_make(s->at.dir.id, 0);
	memcpy(ret->name, s->at.name.p, s->at.name.n);
	ret->name[s->at.name.n] = 0;
	s->stale.changed = CHANGED_NOTHING;
	mutex_unlock(&s->lock);
}

void stage_set_match(struct stage *s, int64_t if_match)
{
	mutex_lock(&s->lock);
	s->commit.if_match = if_match;
	stage_step(&s->is, STAGE_MATCH);
	mutex_unlock(&s->lock);
}

int64_t stage_match(struct stage *s)
{
	mutex_lock(&s->lock);
	int64_t if_match = s->commit.if_match;
	mutex_unlock(&s->lock);
	return if_match;
}
