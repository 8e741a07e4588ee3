/* SPDX-License-Identifier: MIT */
#include "service/transfer/store_transfer.h"

#include "base/clock.h"
#include "service/check/walk.h"
#include "service/transfer/blob_transfer.h"
#include "store/store.h"

#include <stdlib.h>

#define WRITE_BYTES ((size_t)512 << 10)

/* ---- files ---- */

/* The times follow the last version where they are not set; a write unsets them. */
static enum err set_attrs(struct transfer *t, const struct item *it, uint64_t id)
{
	bool times = it->attrs.mtime_ns != TIME_UNSET || it->attrs.ctime_ns != TIME_UNSET;
	struct change c = { .op = CHANGE_ATTRS,
		.at = { .id = id },
		.attrs = it->attrs,
		.set_mask = ATTR_MTIME | ATTR_CTIME };
	return times ? transfer_apply(t, &c, 1, NULL) : ERR_OK;
}

/* Fills the buffer as far as the file goes. */
static enum err read_part(struct transfer *t, const struct item *it, uint64_t at, char *bytes,
	size_t n, size_t *ret_n)
{
	size_t got = 1;
	enum err e = ERR_OK;
	for (*ret_n = 0; *ret_n < n && got > 0 && e == ERR_OK; *ret_n += got) {
		got = 0;
		e = store_file_read(
			t->from, t->view, it->id, at + *ret_n, bytes + *ret_n, n - *ret_n, &got);
	}
	return e;
}

/* Every write has a version of its own, the last one that of the file. */
static enum err write_file(struct transfer *t, const struct item *it, uint64_t id, char *bytes)
{
	enum err e = ERR_OK;
	for (uint64_t at = 0; at < it->size && e == ERR_OK; at += WRITE_BYTES) {
		size_t n = it->size - at < WRITE_BYTES ? (size_t)(it->size - at) : WRITE_BYTES;
		e = read_part(t, it, at, bytes, n, &n);
		if (e == ERR_NOT_FOUND || (e == ERR_OK && n == 0))
			return ERR_OK; /* it was removed, or became shorter, meanwhile */
		if (e != ERR_OK)
			break;
		struct change c = { .op = CHANGE_WRITE,
			.at = { .id = id },
			.version = it->version - (int64_t)((it->size - at - 1) / WRITE_BYTES),
			.offset = at,
			.body = span_make(bytes, n),
			.attrs = ATTRS_UNSET };
		e = transfer_apply(t, &c, 1, NULL);
	}
	return e;
}

static enum err copy_file(struct transfer *t, const struct item *it, uint64_t parent)
{
	uint64_t id, writes = (it->size + WRITE_BYTES - 1) / WRITE_BYTES;
	struct change c = transfer_put(it, parent);
	char *bytes = malloc(WRITE_BYTES);
	c.version -= (int64_t)writes;
	enum err e = bytes != NULL ? transfer_apply(t, &c, 1, &id) : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = write_file(t, it, id, bytes);
	if (e == ERR_OK)
		e = set_attrs(t, it, id);
	free(bytes);
	return e;
}

/* ---- directories ---- */

static enum err copy_children(struct transfer *t, const struct item *dir, uint64_t to)
{
	static const enum item_kind children[] = {
		[CLASS_KEYED] = ITEM_ROW, [CLASS_NAMED] = ITEM_FILE, [CLASS_QUEUE] = ITEM_MESSAGE
	};
	enum err e = ERR_OK;
	for (enum item_class c = CLASS_KEYED; c <= CLASS_BLOB && e == ERR_OK; c++) {
		bool account = dir->kind == ITEM_ACCOUNT;
		bool has = c == CLASS_BLOB ? dir->kind >= ITEM_CONTAINER
					   : item_may_hold(dir->kind, children[c]);
		if (account || has || (dir->kind == ITEM_TABLE && c == CLASS_KEYED))
			e = transfer_class(t, dir->id, to, c);
	}
	return e;
}

/* A child may be younger than the last change of membership, and a partition may have lost its last
 * row while it was copied. */
static enum err finish_dir(struct transfer *t, const struct item *dir, uint64_t id)
{
	struct item there = { 0 }, timed = *dir;
	struct change c = { .op = CHANGE_DELETE, .at = { .id = id }, .attrs = ATTRS_UNSET };
	bool made = dir->kind != ITEM_PARTITION || dir->flags & ITEM_MADE;
	enum err e = store_get(t->to, NULL, id, WANT_ATTRS, &there);
	c.version = there.version + 1;
	if (e == ERR_OK && there.size == 0 && !made) {
		e = transfer_apply(t, &c, 1, NULL);
	} else if (e == ERR_OK) {
		if (there.version != dir->version && timed.attrs.mtime_ns == TIME_UNSET)
			timed.attrs.mtime_ns = ticks_to_unix_ns(dir->version);
		e = set_attrs(t, &timed, id);
	}
	item_fini(&there);
	return e;
}

static enum err copy_other(struct transfer *t, const struct item *it, uint64_t parent)
{
	uint64_t id;
	if (it->kind == ITEM_FILE)
		return copy_file(t, it, parent);
	if (it->kind == ITEM_BLOB)
		return transfer_blob(t, it, parent);
	if (it->kind == ITEM_CONTAINER)
		t->container = it->version;
	enum err e = transfer_dir(t, it, parent, &id);
	if (e == ERR_OK)
		e = copy_children(t, it, id);
	return e == ERR_OK ? finish_dir(t, it, id) : e;
}

/* ---- the store ---- */

static const struct {
	uint64_t dir;
	enum item_class class;
} tops[] = { { STORE_ROOT, CLASS_KEYED }, { STORE_REJECTED, CLASS_NAMED },
	{ STORE_TRASH, CLASS_NAMED } };

enum err store_is_empty(struct store *s, bool *ret)
{
	enum err e = ERR_NOT_FOUND;
	for (size_t i = 0; i < ARRAY_LEN(tops) && e == ERR_NOT_FOUND; i++) {
		struct item first = { 0 };
		e = walk_next(s, NULL, tops[i].dir, tops[i].class, WANT_KEYS, &first);
		item_fini(&first);
	}
	*ret = e == ERR_NOT_FOUND;
	return *ret ? ERR_OK : e;
}

/* Removes only what this transfer made: somebody else may use the store meanwhile. */
static void undo(struct transfer *t)
{
	for (size_t i = 0; i < t->ntops; i++) {
		struct change c = { .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = { .id = t->tops[i] },
			.version = store_version_floor(t->to) + 1,
			.attrs = ATTRS_UNSET };
		enum err e = store_apply(t->to, &c, 1, false, NULL);
		changes_fini(&c, e == ERR_OK);
		if (e != ERR_OK && e != ERR_GONE)
			t->counts->left = true;
	}
}

enum err store_transfer(struct store *from, struct store_view *v, struct store *to,
	store_transfer_fn fn, void *arg, struct store_transfer_counts *ret,
	struct err_detail *detail)
{
	struct transfer t = { .from = from,
		.other = copy_other,
		.view = v,
		.to = to,
		.fn = fn,
		.arg = arg,
		.counts = ret,
		.detail = detail };
	enum err e = ERR_OK;
	*ret = (struct store_transfer_counts){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(tops) && e == ERR_OK; i++)
		e = transfer_class(&t, tops[i].dir, tops[i].dir, tops[i].class);
	if (e == ERR_OK)
		e = store_sync(to);
	if (e != ERR_OK)
		undo(&t);
	free(t.tops);
	return e;
}
