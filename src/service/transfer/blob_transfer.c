/* SPDX-License-Identifier: MIT
 * The blob is made with the record as it was, then its extents below it, and then the record is
 * written again with their new ids. */
#include "service/transfer/blob_transfer.h"

#include "service/blobs/block_list.h"
#include "service/blobs/upload.h"
#include "service/check/walk.h"

#include <stdlib.h>

#define TRIES 10 /* of a blob that others change meanwhile */

struct pair {
	uint64_t from, to;
};

struct extents { /* of one blob */
	struct pair *v;
	size_t n, cap;
};

static int by_from(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

static enum err add_pair(struct extents *x, uint64_t from, uint64_t to)
{
	if (x->n == x->cap) {
		size_t cap = x->cap > 0 ? 2 * x->cap : 16;
		struct pair *v = reallocarray(x->v, cap, sizeof(*v));
		if (v == NULL)
			return ERR_NO_MEMORY;
		x->v = v;
		x->cap = cap;
	}
	x->v[x->n++] = (struct pair){ from, to };
	return ERR_OK;
}

/* ERR_GONE: it came while the blob was copied. */
static enum err map(const struct extents *x, uint64_t *id)
{
	const struct pair key = { .from = *id };
	if (*id == 0)
		return ERR_OK;
	const struct pair *found = bsearch(&key, x->v, x->n, sizeof(*x->v), by_from);
	*id = found != NULL ? found->to : 0;
	return found != NULL ? ERR_OK : ERR_GONE;
}

/* The extent that is the list of a blob's blocks is left empty: copy_list() fills it. */
static enum err copy_extents(struct transfer *t, const struct item *blob,
	const struct blob_record *r, uint64_t to, int64_t version, struct extents *x)
{
	struct item at = { 0 };
	enum err e, next;
	do {
		uint64_t id = 0;
		next = walk_next(t->from, t->view, blob->id, CLASS_BLOB, WANT_BODY, &at);
		e = next == ERR_NOT_FOUND ? ERR_OK : next;
		if (next != ERR_OK)
			break;
		bool dir = item_is_dir(at.kind), list = at.id == r->extent && blob_has_blocks(r);
		at.version = version;
		e = transfer_dir(t, &at, to, &id);
		if (e == ERR_OK && dir)
			e = add_pair(x, at.id, id);
		if (e == ERR_OK && dir && !list)
			e = transfer_class(t, at.id, id, CLASS_BLOB);
	} while (e == ERR_OK);
	item_fini(&at);
	if (x->n > 0)
		qsort(x->v, x->n, sizeof(*x->v), by_from);
	return e;
}

static enum err copy_list_piece(struct transfer *t, const struct item *blob,
	const struct blob_record *r, uint64_t number, const struct extents *x)
{
	struct block some[BLOCKS_OF_PIECE];
	char key[EXTENT_KEY_CHARS + 1];
	struct buf body = BUF_INIT(BLOCKS_OF_PIECE * BLOCK_ENTRY_BYTES);
	uint64_t list = r->extent, left = r->blocks - number * BLOCKS_OF_PIECE;
	size_t n = left < BLOCKS_OF_PIECE ? (size_t)left : BLOCKS_OF_PIECE;
	enum err e =
		block_list_load(t->from, t->view, r->extent, number * BLOCKS_OF_PIECE, n, some);
	for (size_t i = 0; i < n && e == ERR_OK; i++) {
		e = map(x, &some[i].extent);
		block_write(&some[i], &body);
	}
	if (e == ERR_OK)
		e = map(x, &list);
	if (e == ERR_OK)
		e = buf_full(&body);
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = list, .class = CLASS_BLOB, .key = extent_key(number, key) },
		.version = blob->version,
		.kind = ITEM_PIECE,
		.body = buf_span(&body),
		.attrs = ATTRS_UNSET };
	if (e == ERR_OK)
		e = transfer_apply(t, &c, 1, NULL);
	buf_fini(&body);
	return e;
}

/* Writes the record with the new id of its extent. */
static enum err put_record(struct transfer *t, const struct item *blob, struct blob_record *r,
	uint64_t parent, const struct extents *x)
{
	struct buf body = BUF_INIT(BLOB_RECORD_LIMIT);
	enum err e = map(x, &r->extent);
	blob_record_write(r, &body);
	if (e == ERR_OK)
		e = buf_full(&body);
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = parent, .class = blob->class, .key = blob->key },
		.cond = COND_PRESENT,
		.version = blob->version,
		.kind = ITEM_BLOB,
		.item_flags = blob->flags,
		.body = buf_span(&body),
		.attrs = blob->attrs };
	if (e == ERR_OK)
		e = transfer_apply(t, &c, 1, NULL);
	buf_fini(&body);
	return e;
}

static enum err copy_blob(
	struct transfer *t, const struct item *blob, uint64_t parent, uint64_t *ret_id)
{
	struct extents x = { 0 };
	struct blob_record r;
	struct item first = *blob;
	/* A new child raises the version of what it is in: a blob that of its container, an extent that
	 * of its blob. */
	first.version = t->container < blob->version ? t->container : blob->version - 1;
	enum err e = blob_record_read(blob->body, &r);
	if (e == ERR_OK)
		e = transfer_dir(t, &first, parent, ret_id);
	if (e == ERR_OK)
		e = copy_extents(t, blob, &r, *ret_id, first.version, &x);
	for (uint64_t i = 0; e == ERR_OK && blob_has_blocks(&r) && i < block_list_pieces(r.blocks);
		i++)
		e = copy_list_piece(t, blob, &r, i, &x);
	if (e == ERR_OK)
		e = put_record(t, blob, &r, parent, &x);
	free(x.v);
	return e;
}

static enum err drop_blob(struct transfer *t, uint64_t id)
{
	struct change c = { .op = CHANGE_DELETE,
		.flags = CHANGE_RECURSIVE,
		.at = { .id = id },
		.version = store_version_floor(t->to) + 1,
		.attrs = ATTRS_UNSET };
	return id != 0 ? transfer_apply(t, &c, 1, NULL) : ERR_OK;
}

/* Whether the record that was copied is still that of the blob; without a view it may not be. */
static enum err is_current(struct transfer *t, const struct item *blob, struct item *ret)
{
	enum err e = store_get(t->from, t->view, blob->id, WANT_BODY, ret);
	return e == ERR_OK && ret->version != blob->version ? ERR_GONE : e;
}

/* Without a view a copy may hold parts of two states. */
static bool may_be_mixed(enum err copied)
{
	return copied == ERR_OK || copied == ERR_GONE || copied == ERR_CORRUPT;
}

enum err transfer_blob(struct transfer *t, const struct item *blob, uint64_t parent)
{
	struct item at = { 0 };
	enum err e = item_copy(&at, blob), current = ERR_GONE;
	for (unsigned i = 0; e == ERR_OK && current == ERR_GONE && i < TRIES; i++) {
		struct item now = { 0 };
		uint64_t id = 0;
		e = copy_blob(t, &at, parent, &id);
		current = may_be_mixed(e) ? is_current(t, &at, &now) : ERR_OK;
		if (current != ERR_OK)
			e = drop_blob(t, id);
		item_fini(&at);
		at = now;
	}
	item_fini(&at);
	if (e == ERR_OK && current == ERR_GONE)
		return ERR_BUSY;
	return e == ERR_OK && current != ERR_NOT_FOUND ? current : e;
}
