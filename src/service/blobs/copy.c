/* SPDX-License-Identifier: MIT
 * The extent of a block blob does not change, but the pages of a page blob may.  So the maker of the
 * target looks whether the source is still the one that was copied. */
#include "service/blobs/copy.h"

#include "model/metadata.h"
#include "model/names.h"
#include "service/blobs/blob_change.h"
#include "service/blobs/blob_find.h"
#include "service/blobs/blobs.h"
#include "service/blobs/blocks.h"
#include "service/blobs/upload.h"

#include <stdlib.h>
#include <string.h>

#define COPY_TRIES 4
#define BATCH_PIECES 256
#define BATCH_BYTES ((size_t)1 << 20)

/* ---- pieces ---- */

struct batch {
	struct change changes[BATCH_PIECES];
	char keys[BATCH_PIECES][EXTENT_KEY_CHARS];
	size_t starts[BATCH_PIECES]; /* of the bodies */
	size_t n;
	struct buf bytes;
	bool more;
	enum err error;
};

static bool add_piece(void *arg, const struct item *it)
{
	struct batch *b = arg;
	b->more = b->n == BATCH_PIECES || b->bytes.len >= BATCH_BYTES;
	if (b->more)
		return false;
	if (it->kind != ITEM_PIECE || it->key.n != EXTENT_KEY_CHARS) {
		b->error = ERR_CORRUPT;
		return false;
	}
	memcpy(b->keys[b->n], it->key.p, EXTENT_KEY_CHARS);
	b->starts[b->n] = b->bytes.len;
	b->changes[b->n++] = (struct change){ .op = CHANGE_PUT,
		.kind = ITEM_PIECE,
		.item_flags = it->flags,
		.body = { NULL, it->body.n },
		.attrs = ATTRS_UNSET };
	buf_add_span(&b->bytes, it->body);
	return true;
}

/* The buffer may have moved while it grew, so the changes get their spans now. */
static enum err put_batch(
	struct service *s, struct batch *b, struct blob_upload *to, struct err_detail *detail)
{
	for (size_t i = 0; i < b->n; i++) {
		struct change *c = &b->changes[i];
		c->at = (struct item_ref){ .parent = blob_upload_extent(to),
			.class = CLASS_BLOB,
			.key = span_make(b->keys[i], EXTENT_KEY_CHARS) };
		c->body.p = b->bytes.data + b->starts[i];
	}
	if (b->n == 0)
		return ERR_OK;
	enum err e = service_apply(s, ORIGIN_REST, b->changes, b->n, false, detail);
	changes_fini(b->changes, b->n);
	return e;
}

static enum err copy_pieces(struct service *s, uint64_t from, struct blob_upload *to,
	struct batch *b, struct err_detail *detail)
{
	char after[EXTENT_KEY_CHARS];
	struct span start = { 0 };
	enum err e;
	do {
		b->n = 0;
		b->more = false;
		buf_clear(&b->bytes);
		e = store_list(service_store(s), NULL, from, CLASS_BLOB, start, false, WANT_BODY,
			add_piece, b);
		if (e == ERR_OK)
			e = b->error;
		if (e == ERR_OK && !buf_ok(&b->bytes))
			e = ERR_NO_MEMORY;
		if (e == ERR_OK)
			e = put_batch(s, b, to, detail);
		if (e == ERR_OK && b->n > 0) {
			memcpy(after, b->keys[b->n - 1], sizeof(after));
			start = span_make(after, sizeof(after));
		}
	} while (e == ERR_OK && b->more);
	return e;
}

enum err extent_copy(
	struct service *s, uint64_t from, struct blob_upload *to, struct err_detail *detail)
{
	struct item it = { 0 };
	struct batch *b = calloc(1, sizeof(*b));
	if (b == NULL)
		return ERR_NO_MEMORY;
	b->bytes = BUF_INIT(2 * BATCH_BYTES);
	enum err e = blob_upload_make_extent(to, detail);
	if (e == ERR_OK)
		e = copy_pieces(s, from, to, b, detail);
	buf_fini(&b->bytes);
	free(b);
	if (e != ERR_OK)
		return e;
	e = store_get(service_store(s), NULL, from, WANT_ATTRS, &it);
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* A block belongs to one blob, so blocks are copied as bytes. */
static enum err copy_bytes(struct service *s, const struct blob_record *from,
	struct blob_upload *to, struct err_detail *detail)
{
	char *some = malloc(BATCH_BYTES);
	enum err e = some == NULL ? ERR_NO_MEMORY : ERR_OK;
	for (uint64_t at = 0; e == ERR_OK && at < from->size;) {
		size_t n = from->size - at < BATCH_BYTES ? (size_t)(from->size - at) : BATCH_BYTES;
		e = blob_read(s, from, at, some, n);
		if (e == ERR_OK)
			e = blob_upload_add(to, span_make(some, n), detail);
		at += n;
	}
	free(some);
	return e == ERR_OK ? blob_upload_end(to, detail) : e;
}

/* ---- blobs ---- */

struct work {
	const struct blob_copy *copy;
	const struct blob_record *from;
	bool stale; /* the source is another one by now */
	/* For a snapshot. */
	bool snapshot;
	struct blob_info now; /* the source in the last look; owns what the changes borrow */

	/* Of a copy of an append blob: its only block. */
	struct blob_upload *block;
	char key[STAGED_KEY_CHARS + 1];

	struct change more[2]; /* the move of that block; the source's record */
};

static enum err check_source(struct work *w)
{
	const struct blob_copy *c = w->copy;
	struct blob_info *now = &w->now;
	if (w->from->type != BLOB_PAGES && !w->snapshot)
		return ERR_OK;
	blob_info_fini(now);
	enum err e = blob_find(c->service, c->from_container, c->from_name, now);
	w->stale = e == ERR_BLOB_NOT_FOUND || (e == ERR_OK && now->record.etag != w->from->etag);
	return w->stale ? ERR_GONE : e;
}

/* The copy of an append blob has one block. */
static enum err make_list(struct work *w, struct blob_change *change, struct blob_record *ret)
{
	const struct block_id none = { 0 };
	const struct block one = {
		.size = ret->size, .end = ret->size, .extent = blob_upload_extent(w->block)
	};
	ret->blocks = ret->size > 0;
	enum err e = block_list_new(change, &one, ret->blocks);
	change->more = w->more;
	change->nmore = change->there.id != 0 ? ret->blocks : 0;
	if (change->nmore > 0)
		w->more[0] = block_move(change, change->there.id, &none, w->block, w->key);
	return e;
}

/* A snapshot puts the record of its blob anew with it.  So nobody deletes the blob in the same moment, as
 * one without snapshots. */
static void touch_source(struct work *w, struct blob_change *change)
{
	if (!w->snapshot)
		return;
	w->more[change->nmore++] = (struct change){ .op = CHANGE_PUT,
		.at = blob_place(w->copy->from_container, w->copy->from_name),
		.cond = COND_VERSION,
		.cond_version = w->now.item.version,
		.kind = ITEM_BLOB,
		.item_flags = ITEM_MADE,
		.body = w->now.item.body,
		.attrs = ATTRS_UNSET };
	change->more = w->more;
}

static enum err make_copy(void *arg, struct blob_change *change, const struct blob_record *there,
	struct blob_record *ret)
{
	struct work *w = arg;
	(void)there;
	*ret = *w->from;
	ret->made = w->snapshot ? w->from->made : 0;
	ret->lease = (struct lease){ 0 };
	if (w->snapshot && w->copy->metadata != NULL)
		ret->etag = service_next_version(w->copy->service);
	if (!w->snapshot) {
		ret->tier = ret->type == BLOB_BLOCK ? w->copy->tier : TIER_UNSET;
		ret->tier_set = ret->tier != TIER_UNSET ? service_now(w->copy->service) : 0;
		ret->copied = w->copy->copied;
		ret->copied.when = service_now(w->copy->service);
	}
	if (w->copy->metadata != NULL)
		ret->metadata = *w->copy->metadata;
	if (w->copy->properties != NULL)
		ret->properties = *w->copy->properties;
	ret->blocks = 0;
	change->nmore = 0;
	enum err e = w->block != NULL ? make_list(w, change, ret) : ERR_OK;
	if (change->upload != NULL)
		ret->extent = blob_upload_extent(change->upload);
	if (e == ERR_OK)
		e = check_source(w);
	if (e == ERR_OK)
		touch_source(w, change);
	return e;
}

static enum err put_copy(
	struct work *w, struct blob_upload *upload, int64_t *ret_etag, struct err_detail *detail)
{
	const struct blob_copy *c = w->copy;
	struct blob_change change = { .service = c->service,
		.origin = c->origin,
		.container = c->container,
		.name = c->name,
		.conditions = c->conditions,
		.keeps_etag = w->snapshot,
		.detail = detail };
	if (w->from->type == BLOB_APPEND)
		w->block = upload;
	else
		change.upload = upload;
	enum err e = blob_change(&change, make_copy, w);
	*ret_etag = change.etag;
	if (w->block != NULL) {
		if (e == ERR_OK)
			blob_upload_taken(w->block);
		block_list_drop(&change);
	}
	w->block = NULL;
	return e;
}

static enum err try_copy(
	struct work *w, const struct blob_info *from, int64_t *ret_etag, struct err_detail *detail)
{
	const struct blob_copy *c = w->copy;
	const struct blob_conditions *conditions = c->from_conditions;
	struct blob_upload *upload = NULL;
	enum err e = w->snapshot ? blob_conditions_write(conditions, from->record.etag)
				 : blob_conditions_read(conditions, from->record.etag);
	if (e == ERR_OK)
		e = lease_check_read(
			&from->record.lease, conditions->lease, service_now(c->service));
	if (e != ERR_OK)
		return w->snapshot ? e : ERR_SOURCE_CONDITION;
	if (from->record.tier == TIER_ARCHIVE)
		return ERR_BLOB_ARCHIVED;
	if (c->only_block && from->record.type != BLOB_BLOCK)
		return ERR_BLOB_TYPE;
	w->from = &from->record;
	if (from->record.extent != 0)
		e = blob_upload_new(c->service, c->origin, &upload);
	if (e == ERR_OK && upload != NULL) {
		e = blob_has_blocks(&from->record)
			? copy_bytes(c->service, &from->record, upload, detail)
			: extent_copy(c->service, from->record.extent, upload, detail);
		w->stale = e == ERR_GONE;
	}
	if (e == ERR_OK)
		e = put_copy(w, upload, ret_etag, detail);
	blob_upload_free(upload);
	return e;
}

static enum err run(struct work *w, int64_t *ret_etag, struct err_detail *detail)
{
	const struct blob_copy *c = w->copy;
	enum err e = c->metadata != NULL ? metadata_check(*c->metadata, detail) : ERR_OK;
	for (int tries = 0; e == ERR_OK; tries++) {
		struct blob_info from = { 0 };
		w->stale = false;
		e = blob_find(c->service, c->from_container, c->from_name, &from);
		if (e == ERR_OK)
			e = try_copy(w, &from, ret_etag, detail);
		blob_info_fini(&from);
		blob_info_fini(&w->now);
		if (!w->stale)
			return e;
		e = tries < COPY_TRIES ? ERR_OK
				       : err_set(detail, ERR_THROTTLED,
						 "the source was changed while it was copied");
	}
	return e;
}

enum err blob_copy(const struct blob_copy *c, int64_t *ret_etag, struct err_detail *detail)
{
	struct work w = { .copy = c };
	enum err e = blob_name_check(c->name, detail);
	return e == ERR_OK ? run(&w, ret_etag, detail) : e;
}

enum err blob_snapshot(const struct blob_copy *c, char ret_time[SNAPSHOT_TIME_CHARS + 1],
	int64_t *ret_etag, struct err_detail *detail)
{
	static const struct blob_conditions none;
	struct blob_copy to = *c;
	struct work w = { .copy = &to, .snapshot = true };
	struct span time = snapshot_time(service_next_version(c->service), ret_time);
	char *key = malloc(c->from_name.n + SNAPSHOT_KEY_EXTRA);
	if (key == NULL)
		return ERR_NO_MEMORY;
	to.container = c->from_container;
	to.name = snapshot_key(c->from_name, time, key);
	to.conditions = &none;
	enum err e = run(&w, ret_etag, detail);
	free(key);
	return e;
}
