/* SPDX-License-Identifier: MIT
 * Each try reads the record, checks the conditions, and puts a new record over the version that it has
 * read. */
#include "service/blobs/blob_change.h"

#include "service/blobs/blob_find.h"
#include "service/blobs/staged.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHANGE_TRIES 64
#define SWEPT_AT_ONCE 64

/* The key of an extent: extents of a blob stand in the order of the records that named them.  Blocks
 * are behind them (staged.h). */
#define BLOB_EXTENT_KEY_CHARS 17
static void blob_extent_key(int64_t etag, char out[BLOB_EXTENT_KEY_CHARS + 1])
{
	(void)snprintf(out, BLOB_EXTENT_KEY_CHARS + 1, "x%016" PRIx64, (uint64_t)etag);
}

static enum err write_record(const struct blob_record *r, struct buf *out)
{
	blob_record_write(r, out);
	return buf_ok(out) ? ERR_OK : buf_full(out);
}

/* Fills in the change of the record; returns whether the upload's extent moves too, by *move. */
static bool fill_in(struct blob_change *w, const struct blob_record *r, struct span body,
	char key[BLOB_EXTENT_KEY_CHARS + 1], struct change *record, struct change *move)
{
	*record = (struct change){ .op = CHANGE_PUT,
		.at = blob_place(w->container, w->name),
		.cond = w->there.id != 0 ? COND_VERSION : COND_ABSENT,
		.cond_version = w->there.item.version,
		.kind = ITEM_BLOB,
		.item_flags = ITEM_MADE,
		.body = body,
		.attrs = ATTRS_UNSET };
	if (w->upload == NULL || r->extent == 0 || w->there.id == 0)
		return false;
	blob_extent_key(r->etag, key);
	*move = (struct change){ .op = CHANGE_MOVE,
		.flags = CHANGE_NO_REPLACE,
		.at = { .id = r->extent },
		.to = blob_place(w->there.id, span_of(key)),
		.attrs = ATTRS_UNSET };
	return true;
}

/* Puts the record over what is there, with what else is to be changed. */
static enum err put_record(
	struct blob_change *w, const struct blob_record *r, bool durable, struct item *ret_now)
{
	struct buf body = BUF_INIT(BLOB_RECORD_LIMIT);
	char key[BLOB_EXTENT_KEY_CHARS + 1];
	struct change few[2];
	struct change *changes = w->nmore == 0 ? few : calloc(2 + w->nmore, sizeof(*changes));
	enum err e = changes == NULL ? ERR_NO_MEMORY : write_record(r, &body);
	if (e == ERR_OK) {
		bool moves = fill_in(w, r, buf_span(&body), key, &changes[0], &changes[1]);
		size_t n = 1 + moves;
		for (size_t i = 0; i < w->nmore; i++)
			changes[n++] = w->more[i];
		e = service_apply(w->service, w->origin, changes, n, durable, w->detail);
		if (e == ERR_OK && moves)
			blob_upload_taken(w->upload);
		/* Without memory nothing is swept; the change is made. */
		if (e == ERR_OK && item_copy(ret_now, &changes[0].now) == ERR_OK)
			ret_now->size += moves; /* it is as of before the move */
		changes_fini(changes, n);
	}
	if (changes != few)
		free(changes);
	buf_fini(&body);
	return e;
}

/* ---- what no record names any more ---- */

struct sweep {
	uint64_t keep; /* the extent of the record */
	/* A faster change may have brought an extent since, with this key or a later one. */
	char before[BLOB_EXTENT_KEY_CHARS + 1];
	uint64_t ids[SWEPT_AT_ONCE];
	size_t n;
};

static bool on_extent(void *arg, const struct item *it)
{
	struct sweep *w = arg;
	if (span_cmp(it->key, span_of(w->before)) >= 0)
		return false;
	if (it->kind == ITEM_EXTENT && it->id != w->keep)
		w->ids[w->n++] = it->id;
	return w->n < SWEPT_AT_ONCE;
}

/* The blob is changed already, so an error here only leaves work to the next change. */
static void sweep(struct blob_change *w, const struct item *blob, uint64_t keep)
{
	struct change changes[SWEPT_AT_ONCE];
	struct sweep found;
	if (service_can(w->service, STORE_COUNTS_EXACT) && blob->size <= (keep != 0))
		return;
	do {
		found = (struct sweep){ .keep = keep };
		blob_extent_key(w->etag, found.before);
		if (store_list(service_store(w->service), NULL, blob->id, CLASS_BLOB,
			    (struct span){ 0 }, false, WANT_KEYS, on_extent, &found) != ERR_OK ||
			found.n == 0)
			return;
		for (size_t i = 0; i < found.n; i++)
			changes[i] = (struct change){ .op = CHANGE_DELETE,
				.flags = CHANGE_RECURSIVE,
				.at = { .id = found.ids[i] },
				.attrs = ATTRS_UNSET };
		enum err e =
			service_apply(w->service, w->origin, changes, found.n, false, w->detail);
		changes_fini(changes, found.n);
		if (e != ERR_OK)
			return;
	} while (found.n == SWEPT_AT_ONCE);
}

bool blob_change_overtaken(enum err e)
{
	return e == ERR_CONDITION_NOT_MET || e == ERR_BLOB_EXISTS || e == ERR_NOT_FOUND ||
		e == ERR_GONE;
}

/* Sets what the new record has of the old one, whatever the maker says. */
static enum err carry_over(
	struct blob_change *w, const struct blob_record *there, struct blob_record *to)
{
	const struct lease *lease = &w->there.record.lease;
	int64_t now = service_now(w->service);
	if (w->keeps_etag) {
		w->etag = to->etag;
		return ERR_OK;
	}
	w->etag = service_next_version(w->service);
	if (there != NULL && w->etag <= there->etag)
		w->etag = there->etag + 1;
	to->etag = w->etag;
	if (to->made == 0)
		to->made = w->etag;
	to->lease = lease_after_write(lease, now);
	return lease_check_write(lease, w->conditions->lease, now);
}

static enum err try_change(struct blob_change *w, blob_make_fn make, void *arg, bool *ret_again)
{
	struct blob_record to;
	struct item now = { 0 };
	*ret_again = false;
	enum err e = blob_look(w->service, w->container, w->name, &w->there);
	if (e != ERR_OK && e != ERR_NOT_FOUND)
		return e;
	bool stub = w->there.id != 0 && w->there.record.type == BLOB_NONE;
	bool exists = w->there.id != 0 && !stub;
	const struct blob_record *there = exists ? &w->there.record : NULL;
	e = blob_conditions_write(w->conditions, exists ? there->etag : 0);
	if (e == ERR_OK)
		e = make(arg, w, there, &to);
	*ret_again = e == ERR_CONDITION_NOT_MET;
	if (e == ERR_OK)
		e = carry_over(w, there, &to);
	if (e != ERR_OK)
		return e;
	/* The extent needs a blob to move to. */
	bool first = w->there.id == 0 && to.extent != 0;
	const struct blob_record none = { .type = BLOB_NONE, .etag = to.etag, .made = to.made };
	e = put_record(w, first ? &none : &to, !first && !w->lazy, &now);
	*ret_again = first ? e == ERR_OK || blob_change_overtaken(e) : blob_change_overtaken(e);
	if (e == ERR_OK && !first)
		sweep(w, &now, to.extent);
	bool fresh = to.made == w->etag; /* the blocks of the old content are obsolete */
	if (e == ERR_OK && !first && fresh && now.size > 1)
		staged_sweep(w->service, w->origin, w->container, w->name);
	item_fini(&now);
	return e;
}

bool blob_change_lost(struct blob_change *w)
{
	struct item it = { 0 };
	enum err e = store_get(service_store(w->service), NULL, w->container, WANT_ATTRS, &it);
	item_fini(&it);
	return e == ERR_NOT_FOUND;
}

enum err blob_make_name(struct blob_change *w)
{
	int64_t now_ticks = service_next_version(w->service);
	const struct blob_record none = { .type = BLOB_NONE, .etag = now_ticks, .made = now_ticks };
	struct item now = { 0 };
	enum err e = put_record(w, &none, false, &now);
	item_fini(&now);
	return e;
}

enum err blob_change(struct blob_change *w, blob_make_fn make, void *arg)
{
	bool again = true;
	enum err e = ERR_OK;
	for (int tries = 0; again && tries < CHANGE_TRIES; tries++) {
		e = try_change(w, make, arg, &again);
		blob_info_fini(&w->there);
		if (again && e != ERR_OK && blob_change_lost(w))
			return ERR_CONTAINER_NOT_FOUND;
	}
	return again && e != ERR_OK
		? err_set(w->detail, ERR_THROTTLED, "other changes came faster every time")
		: e;
}
