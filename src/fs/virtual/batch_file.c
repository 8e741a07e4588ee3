/* SPDX-License-Identifier: MIT */
#include "fs/virtual/batch_file.h"

#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/refused/rejected.h"
#include "fs/tree/open_quota.h"
#include "fs/tree/requester.h"
#include "fs/virtual/batch_results.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/change/change_set.h"

#include <fcntl.h>
#include <stdlib.h>

/* A result tells 100 pairs of keys, which JSON may double. */
#define RESULT_LIMIT ((size_t)2 << 20)

struct batch_file {
	struct vfile file; /* first */
	uint64_t nid;
	bool viewed; /* by the requester, who opened it */
	struct requester requester;
	bool append; /* O_APPEND: the kernel's offsets mean nothing */

	struct buf text;  /* of the change set that is being written */
	uint64_t base;    /* where it begins in the file */
	uint64_t end;     /* behind the last write */
	bool gathering;   /* it is not decided, or it was found incomplete */
	bool news;        /* something was written since it was looked at */
	enum err refused; /* why bytes of it were not taken */
	uint64_t rejected_id;
	enum err error; /* of the last decision, as long as nobody has read it */

	struct buf result;
	uint64_t result_at; /* where its first byte is in the file */
};

static struct batch_file *batch_of(struct vfile *f)
{
	return (struct batch_file *)f;
}

static bool is_check(uint64_t nid)
{
	return nid_dir_control(nid) == DIR_CONTROL_BATCH_CHECK;
}

static struct span name_of(uint64_t nid)
{
	return is_check(nid) ? SPAN_LIT(".batch-check") : SPAN_LIT(".batch");
}

/* ---- where ---- */

struct where {
	struct item partition, table, account; /* partition: none for a table's file */
	char pk[LIMIT_KEY_BYTES];
	struct change_set_place place;
};

static void where_fini(struct where *w)
{
	item_fini(&w->partition);
	item_fini(&w->table);
	item_fini(&w->account);
}

static enum err get(struct store *store, uint64_t id, struct item *ret)
{
	enum err e = store_get(store, NULL, id, WANT_ATTRS, ret);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* The directory may have been renamed, or removed, since the file was opened. */
static enum err find_where(struct store *store, uint64_t dir_id, struct where *ret)
{
	*ret = (struct where){ 0 };
	enum err e = get(store, dir_id, &ret->table);
	if (e == ERR_OK && ret->table.kind == ITEM_PARTITION) {
		ret->partition = ret->table;
		ret->table = (struct item){ 0 };
		key_from_order(ret->partition.key.p, ret->partition.key.n, ret->pk);
		ret->place.pk = span_make(ret->pk, ret->partition.key.n);
		e = get(store, ret->partition.parent, &ret->table);
	}
	if (e == ERR_OK && ret->table.kind != ITEM_TABLE)
		e = ERR_GONE;
	if (e == ERR_OK)
		e = get(store, ret->table.parent, &ret->account);
	ret->place.table = ret->table.name;
	ret->place.account = ret->account.key;
	return e;
}

/* ---- deciding ---- */

/* Keeps the reason and the bytes, with more that the text has no room for at `at`; answers e.
 * What was to be checked only would not have been kept in any case. */
static enum err refuse(struct batch_file *b, const char *call, enum err e,
	const struct err_detail *detail, uint64_t at, struct span more)
{
	struct fs *fs = b->file.fs;
	char rejected[REJECTED_NAME_MAX] = "";
	if (!is_check(b->nid) && b->text.len + more.n > 0)
		(void)rejected_save_with(fs, name_of(b->nid), buf_span(&b->text), (size_t)at, more,
			&b->rejected_id, rejected);
	reasons_add(fs->reasons,
		&(struct refusal){ .call = call,
			.dir = nid_id(b->nid),
			.name = name_of(b->nid),
			.error = e,
			.detail = detail,
			.rejected = rejected[0] != 0 ? rejected : NULL });
	b->file.noted = true;
	return e;
}

static void accepted(struct batch_file *b)
{
	reasons_clear(b->file.fs->reasons, nid_id(b->nid), name_of(b->nid));
	if (b->rejected_id != 0)
		rejected_drop(b->file.fs, b->rejected_id);
	b->rejected_id = 0;
}

static enum err why_refused(const struct batch_file *b, struct err_detail *detail)
{
	if (b->refused != ERR_BODY_TOO_LARGE)
		return err_set(detail, b->refused, "Too much is being written at once.");
	return err_set(
		detail, b->refused, "a change set may have %d bytes at most", LIMIT_BATCH_BYTES);
}

static enum err check_queue(const struct batch_file *b, uint64_t account_id, struct span queue,
	struct err_detail *detail)
{
	struct item it = { 0 };
	enum err e = store_child(
		b->file.fs->store, NULL, account_id, CLASS_QUEUE, queue, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND)
		return ERR_OK; /* refused elsewhere */
	if (e == ERR_OK && !requester_may(&b->requester, &it.attrs, true, 3))
		e = err_set(detail, ERR_ACCESS, "The queue's mode does not let you.");
	item_fini(&it);
	return e;
}

/* All rows are of one partition, else nothing is applied: the first one's will do. */
static enum err check_access(const struct batch_file *b, const struct where *w,
	const struct change_set *set, struct err_detail *detail)
{
	enum err e = ERR_OK;
	bool seen = false;
	for (size_t i = 0; b->viewed && e == ERR_OK && i < set->n; i++) {
		const struct entity_op *op = &set->ops[i];
		if (op->message != NULL) {
			e = check_queue(b, w->account.id, op->message->queue, detail);
		} else if (!seen) {
			seen = true;
			e = requester_may_change(&b->requester, w->table.id, op->pk);
			if (e == ERR_ACCESS)
				(void)err_set(detail, e, "The partition's mode does not let you.");
		}
	}
	return e;
}

static enum err run(
	struct batch_file *b, bool durable, struct change_set *set, struct err_detail *detail)
{
	struct fs *fs = b->file.fs;
	if (b->refused != ERR_OK)
		return why_refused(b, detail);
	struct where *w = malloc(sizeof(*w));
	if (w == NULL)
		return ERR_NO_MEMORY;
	enum err e = find_where(fs->store, nid_id(b->nid), w);
	if (e == ERR_GONE)
		(void)err_set(detail, e, "The directory was removed meanwhile.");
	if (e == ERR_OK)
		e = change_set_parse(buf_span(&b->text), &w->place, set, detail);
	unsigned flags = is_check(b->nid) ? ENTITIES_CHECK : durable ? ENTITIES_DURABLE : 0;
	if (e == ERR_OK)
		e = check_access(b, w, set, detail);
	if (e == ERR_OK) /* the kernel must drop what it knows of these rows */
		e = change_set_apply(fs->service, ORIGIN_COMMAND, w->table.id, set, flags, detail);
	where_fini(w);
	free(w);
	return e;
}

static void keep_result(struct batch_file *b, const struct change_set *set, enum err e,
	const struct err_detail *detail)
{
	buf_clear(&b->result);
	change_set_result(set, e, detail, is_check(b->nid), &b->result);
	if (buf_ok(&b->result))
		batch_results_put(b->file.fs->batch_results, b->nid, buf_span(&b->result));
	b->result_at = b->end;
}

static enum err decide(struct batch_file *b, const char *call, bool durable)
{
	struct change_set set = { 0 };
	struct err_detail detail = { 0 };
	enum err e = run(b, durable, &set, &detail);
	keep_result(b, &set, e, &detail);
	change_set_fini(&set);
	b->news = false;
	b->gathering = e == ERR_INCOMPLETE;
	b->error = e;
	if (e == ERR_OK)
		accepted(b);
	else if (b->refused == ERR_OK)
		(void)refuse(b, call, e, &detail, 0, (struct span){ 0 });
	if (!b->gathering)
		buf_fini(&b->text);
	return e;
}

/* ---- methods ---- */

/* An error that was told already, and is told again. */
static enum err once_more(struct batch_file *b, enum err e)
{
	b->file.noted = e != ERR_OK;
	return e;
}

static void begin(struct batch_file *b, uint64_t offset)
{
	b->text = BUF_INIT(LIMIT_BATCH_BYTES);
	b->base = offset;
	b->gathering = true;
	b->refused = ERR_OK;
	b->rejected_id = 0;
}

static enum err batch_write(
	struct vfile *f, const struct caller *call, uint64_t offset, struct span bytes)
{
	struct batch_file *b = batch_of(f);
	struct err_detail detail = { 0 };
	if (!b->gathering)
		begin(b, offset);
	uint64_t at = b->append ? b->text.len : offset - b->base;
	if (!b->append && offset < b->base)
		return err_set(call->detail, ERR_INVALID_INPUT,
			"a change set is written from its beginning on");
	b->news = true;
	if (b->refused != ERR_OK) {
		if (b->rejected_id != 0 && rejected_append(f->fs, b->rejected_id, bytes) != ERR_OK)
			b->rejected_id = 0;
		return once_more(b, b->refused);
	}
	if (at > LIMIT_BATCH_BYTES || bytes.n > LIMIT_BATCH_BYTES - at)
		b->refused = ERR_BODY_TOO_LARGE;
	else if ((at + bytes.n > b->text.cap && !open_quota_may_grow(f->fs, call->uid)) ||
		!buf_write_at(&b->text, (size_t)at, bytes.p, bytes.n))
		b->refused = ERR_NO_MEMORY;
	if (b->refused != ERR_OK)
		return refuse(b, "write", why_refused(b, &detail), &detail, at, bytes);
	b->end = offset + bytes.n;
	/* Shells hear what a write says, not what a close does. */
	if (!is_check(b->nid))
		b->refused = service_room(f->fs->service, b->text.len, &detail);
	return b->refused == ERR_OK
		? ERR_OK
		: refuse(b, "write", b->refused, &detail, b->text.len, (struct span){ 0 });
}

static enum err batch_read(
	struct vfile *f, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	struct batch_file *b = batch_of(f);
	(void)call;
	if (b->news)
		(void)decide(b, "read", false);
	if (b->gathering)
		return once_more(b, b->error);
	b->error = ERR_OK;
	if (offset < b->result_at)
		b->result_at = 0;
	uint64_t at = offset - b->result_at;
	if (at < b->result.len) {
		size_t left = b->result.len - (size_t)at;
		buf_add(out, b->result.data + at, n < left ? n : left);
	}
	return ERR_OK;
}

static enum err batch_close(struct vfile *f, const struct caller *call)
{
	struct batch_file *b = batch_of(f);
	(void)call;
	return once_more(b, b->news ? decide(b, "close", false) : b->error);
}

static enum err batch_sync(struct vfile *f, const struct caller *call)
{
	struct batch_file *b = batch_of(f);
	(void)call;
	if (b->news)
		return once_more(b, decide(b, "fsync", true));
	return b->error != ERR_OK ? once_more(b, b->error) : store_sync(f->fs->store);
}

static size_t batch_holds(const struct vfile *f)
{
	const struct batch_file *b = (const struct batch_file *)f;
	return b->text.cap + b->result.cap;
}

static void batch_free(struct vfile *f)
{
	struct batch_file *b = batch_of(f);
	if (b->news)
		(void)decide(b, "close", false);
	buf_fini(&b->text);
	buf_fini(&b->result);
	free(b);
}

static const struct vfile_ops batch_file_ops = {
	.pool = VPOOL_CHANGE,
	.read = batch_read,
	.write = batch_write,
	.close = batch_close,
	.sync = batch_sync,
	.holds = batch_holds,
	.free = batch_free,
};

enum err batch_file_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	struct item dir = { 0 };
	enum err e = get(fs->store, nid_id(nid), &dir);
	item_fini(&dir);
	if (e != ERR_OK)
		return e;
	struct batch_file *b = calloc(1, sizeof(*b));
	if (b == NULL)
		return ERR_NO_MEMORY;
	b->file = (struct vfile){ .ops = &batch_file_ops, .fs = fs };
	b->nid = nid;
	b->append = (flags & O_APPEND) != 0;
	b->viewed = call->requester != NULL;
	if (b->viewed)
		b->requester = *call->requester;
	b->result = BUF_INIT(RESULT_LIMIT);
	batch_results_get(fs->batch_results, nid, &b->result);
	*ret = &b->file;
	return ERR_OK;
}
