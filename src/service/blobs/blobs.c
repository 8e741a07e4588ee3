/* SPDX-License-Identifier: MIT */
#include "service/blobs/blobs.h"

#include "model/metadata.h"
#include "model/names.h"
#include "service/blobs/blob_change.h"
#include "service/blobs/block_list.h"
#include "service/blobs/pages.h"
#include "service/blobs/snapshot_key.h"

enum err blob_read(
	struct service *s, const struct blob_record *r, uint64_t offset, char *out, size_t n)
{
	if (r->type == BLOB_PAGES)
		return pages_read(s, r->extent, offset, out, n);
	if (blob_has_blocks(r))
		return block_list_read(s, r, offset, out, n);
	if (r->extent != 0)
		return extent_read(s, r->extent, r->size, offset, out, n);
	if (n > 0)
		memcpy(out, r->content.p + offset, n);
	return ERR_OK;
}

/* ---- changing ---- */

static enum err make_put(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct blob_new *to = arg;
	(void)there;
	*ret = (struct blob_record){ .type = BLOB_BLOCK,
		.tier = to->tier,
		.tier_set = to->tier != TIER_UNSET ? service_now(w->service) : 0,
		.properties = to->properties,
		.metadata = to->metadata,
		.size = to->content.n,
		.content = to->content };
	if (to->upload != NULL) {
		ret->extent = blob_upload_extent(to->upload);
		ret->size = blob_upload_size(to->upload);
		ret->content = SPAN_LIT("");
	}
	return ERR_OK;
}

enum err blob_put(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	const struct blob_new *to, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail)
{
	struct blob_change w = { .service = s,
		.origin = origin,
		.container = container_id,
		.name = name,
		.conditions = conditions,
		.upload = to->upload,
		.lazy = to->lazy,
		.detail = detail };
	struct blob_new copy = *to;
	enum err e = blob_name_check(name, detail);
	if (e == ERR_OK)
		e = metadata_check(to->metadata, detail);
	if (e == ERR_OK && to->content.n > BLOB_INLINE_BYTES)
		e = ERR_INVALID_INPUT;
	if (e == ERR_OK)
		e = blob_change(&w, make_put, &copy);
	*ret_etag = w.etag;
	return e;
}

struct edit {
	const struct span *metadata;              /* NULL: it stays */
	const struct blob_properties *properties; /* NULL: they stay */
};

static enum err make_edit(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct edit *to = arg;
	(void)w;
	if (there == NULL)
		return ERR_BLOB_NOT_FOUND;
	*ret = *there;
	if (to->metadata != NULL)
		ret->metadata = *to->metadata;
	if (to->properties != NULL) {
		ret->properties = *to->properties;
		ret->copied = (struct blob_copied){ 0 };
	}
	return ERR_OK;
}

static enum err edit(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	struct edit *to, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail)
{
	struct blob_change w = { .service = s,
		.origin = origin,
		.container = container_id,
		.name = name,
		.conditions = conditions,
		.detail = detail };
	enum err e = blob_change(&w, make_edit, to);
	*ret_etag = w.etag;
	return e;
}

enum err blob_set_metadata(struct service *s, enum origin origin, uint64_t container_id,
	struct span name, struct span metadata, const struct blob_conditions *conditions,
	int64_t *ret_etag, struct err_detail *detail)
{
	struct edit to = { .metadata = &metadata };
	enum err e = metadata_check(metadata, detail);
	return e == ERR_OK ? edit(s, origin, container_id, name, &to, conditions, ret_etag, detail)
			   : e;
}

enum err blob_set_properties(struct service *s, enum origin origin, uint64_t container_id,
	struct span name, const struct blob_properties *properties,
	const struct blob_conditions *conditions, int64_t *ret_etag, struct err_detail *detail)
{
	struct edit to = { .properties = properties };
	return edit(s, origin, container_id, name, &to, conditions, ret_etag, detail);
}

/* ---- listing ---- */

struct listing {
	const struct blob_listing *how;
	blob_fn fn;
	void *arg;
	struct buf *next;   /* where the next page begins */
	struct buf skipped; /* the prefix that ended the last call of the store; empty: none */
	size_t left;
	bool ended;
	enum err error;
};

/* The part of the name up to the first delimiter behind the prefix; n is 0 without one. */
static struct span group_of(const struct blob_listing *how, struct span name)
{
	struct span rest = span_make(name.p + how->prefix.n, name.n - how->prefix.n);
	if (how->delimiter.n == 0)
		return span_make(name.p, 0);
	size_t at = span_find(rest, how->delimiter);
	return span_make(name.p, at == rest.n ? 0 : how->prefix.n + at + how->delimiter.n);
}

static bool on_blob(void *arg, const struct item *it)
{
	struct listing *l = arg;
	struct blob_record r;
	struct span name, time;
	snapshot_key_split(it->key, &name, &time);
	if (!span_starts(it->key, l->how->prefix)) {
		l->ended = true;
		return false;
	}
	l->error = it->kind == ITEM_BLOB ? blob_record_read(it->body, &r) : ERR_CORRUPT;
	if (l->error != ERR_OK)
		return false;
	if ((r.type == BLOB_NONE && !l->how->uncommitted) || (time.n > 0 && !l->how->snapshots))
		return true;
	struct span group = group_of(l->how, name);
	if (l->left == 0) {
		buf_add_span(l->next, group.n > 0 ? group : it->key);
		l->ended = true;
		return false;
	}
	l->left--;
	struct blob_listed b = { group.n > 0, group.n > 0 ? group : name, time, &r };
	if (!l->fn(l->arg, &b)) {
		l->ended = true;
		return false;
	}
	/* Names have no byte as high as this one, so it is behind all names of the group. */
	buf_add_span(&l->skipped, group);
	if (group.n > 0)
		buf_add_char(&l->skipped, '\xff');
	return group.n == 0;
}

enum err blob_list(struct service *s, uint64_t container_id, const struct blob_listing *how,
	blob_fn fn, void *arg, struct buf *ret_next)
{
	struct listing l = { .how = how,
		.fn = fn,
		.arg = arg,
		.next = ret_next,
		.skipped = BUF_INIT(8192),
		.left = how->max };
	struct buf from = BUF_INIT(8192);
	enum err e;
	buf_add_span(&from, span_cmp(how->marker, how->prefix) > 0 ? how->marker : how->prefix);
	do {
		buf_clear(&l.skipped);
		e = store_list(service_store(s), NULL, container_id, CLASS_BLOB,
			from.len > 0 ? buf_span(&from) : (struct span){ 0 }, true, WANT_BODY,
			on_blob, &l);
		if (e == ERR_OK)
			e = l.error;
		buf_clear(&from);
		buf_add_span(&from, buf_span(&l.skipped));
	} while (e == ERR_OK && !l.ended && l.skipped.len > 0);
	if (e == ERR_OK && (!buf_ok(ret_next) || !buf_ok(&from) || !buf_ok(&l.skipped)))
		e = ERR_NO_MEMORY;
	buf_fini(&from);
	buf_fini(&l.skipped);
	return e;
}

/* ---- checking ---- */

bool blob_item_extent(const struct item *it, uint64_t *ret_id, uint64_t *ret_pieces)
{
	struct blob_record r;
	if (blob_record_read(it->body, &r) != ERR_OK || r.extent == 0)
		return false;
	*ret_id = r.extent;
	*ret_pieces = r.type == BLOB_PAGES ? 0
		: blob_has_blocks(&r)      ? block_list_pieces(r.blocks)
					   : extent_pieces(r.size);
	return true;
}

const char *blob_item_wrong(const struct item *it)
{
	struct blob_record r;
	struct span name, time;
	switch (it->kind) {
	case ITEM_BLOB:
		snapshot_key_split(it->key, &name, &time);
		if (blob_name_check(name, NULL) != ERR_OK ||
			(name.n < it->key.n && !snapshot_time_check(time)))
			return "the name of the blob is not allowed";
		if (blob_record_read(it->body, &r) != ERR_OK ||
			metadata_check(r.metadata, NULL) != ERR_OK)
			return "the record of the blob cannot be read";
		return it->flags & ~(uint32_t)ITEM_MADE ? "it has flags that a blob cannot have"
							: NULL;
	case ITEM_EXTENT:
		return it->flags != 0 ? "it has flags that an extent cannot have" : NULL;
	case ITEM_PIECE:
		/* The flags of pages are their mask. */
		if (it->size != it->body.n || it->size > EXTENT_PIECE_BYTES ||
			(it->flags != 0 &&
				it->size !=
					BLOB_PAGE_BYTES * (unsigned)__builtin_popcount(it->flags)))
			return "the size of the piece is wrong";
		return it->flags & ~ITEM_PIECE_FLAGS ? "it has flags that a piece cannot have"
						     : NULL;
	case ITEM_NONE:
	case ITEM_ACCOUNT:
	case ITEM_TABLE:
	case ITEM_PARTITION:
	case ITEM_ROW:
	case ITEM_FILE:
	case ITEM_FOLDER:
	case ITEM_QUEUE:
	case ITEM_MESSAGE:
	case ITEM_CONTAINER:
		break;
	}
	return "an item that is no part of a blob has the place of one";
}

enum err blob_pages_wrong(
	struct store *s, struct store_view *v, const struct item *it, const char **ret)
{
	struct blob_record r;
	uint64_t pages;
	*ret = NULL;
	if (blob_record_read(it->body, &r) != ERR_OK || r.type != BLOB_PAGES)
		return ERR_OK;
	enum err e = pages_check(s, v, r.extent, r.size, &pages, ret);
	if (e == ERR_OK && *ret == NULL && pages != r.pages)
		*ret = "its record counts other pages than it has";
	return e;
}
