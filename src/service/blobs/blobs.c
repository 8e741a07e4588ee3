/* SPDX-License-Identifier: MIT
 * Each change reads the record, checks the conditions, and puts a new record over the version that it
 * has read. */
#include "service/blobs/blobs.h"

#include "model/metadata.h"
#include "model/names.h"

#include <inttypes.h>
#include <stdio.h>

#define CHANGE_TRIES 64
#define SWEPT_AT_ONCE 64

void blob_info_fini(struct blob_info *b)
{
	item_fini(&b->item);
	*b = (struct blob_info){ 0 };
}

static struct item_ref place_of(uint64_t parent, struct span key)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_BLOB, .key = key };
}

/* Also a name whose upload has not ended.  ERR_NOT_FOUND. */
static enum err look(
	struct service *s, uint64_t container_id, struct span name, struct blob_info *ret)
{
	*ret = (struct blob_info){ 0 };
	enum err e = store_child(
		service_store(s), NULL, container_id, CLASS_BLOB, name, WANT_BODY, &ret->item);
	if (e == ERR_OK)
		e = ret->item.kind == ITEM_BLOB ? blob_record_read(ret->item.body, &ret->record)
						: ERR_CORRUPT;
	ret->id = ret->item.id;
	ret->name = ret->item.key;
	if (e != ERR_OK)
		blob_info_fini(ret);
	return e;
}

enum err blob_find(
	struct service *s, uint64_t container_id, struct span name, struct blob_info *ret)
{
	enum err e = look(s, container_id, name, ret);
	if (e == ERR_OK && ret->record.type == BLOB_NONE) {
		blob_info_fini(ret);
		e = ERR_NOT_FOUND;
	}
	return e == ERR_NOT_FOUND ? ERR_BLOB_NOT_FOUND : e;
}

enum err blob_read(
	struct service *s, const struct blob_record *r, uint64_t offset, char *out, size_t n)
{
	if (r->extent != 0)
		return extent_read(s, r->extent, r->size, offset, out, n);
	if (n > 0)
		memcpy(out, r->content.p + offset, n);
	return ERR_OK;
}

/* ---- changing ---- */

/* One change, from try to try. */
struct work {
	struct service *service;
	enum origin origin;
	uint64_t container;
	struct span name;
	const struct blob_conditions *conditions;
	struct blob_upload *upload; /* NULL: none */
	struct err_detail *detail;
	struct blob_info there; /* id 0: nothing */
	int64_t etag;           /* the new one */
};

/* The key of an extent: extents of a blob stand in the order of the records that named them. */
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

/* Puts the record over what is there, and moves the upload's extent into the blob. */
static enum err put_record(
	struct work *w, const struct blob_record *r, bool durable, struct item *ret_now)
{
	struct buf body = BUF_INIT(BLOB_RECORD_LIMIT);
	char key[BLOB_EXTENT_KEY_CHARS + 1];
	size_t n = 1;
	enum err e = write_record(r, &body);
	if (e == ERR_OK) {
		struct change changes[2] = { { .op = CHANGE_PUT,
			.at = place_of(w->container, w->name),
			.cond = w->there.id != 0 ? COND_VERSION : COND_ABSENT,
			.cond_version = w->there.item.version,
			.kind = ITEM_BLOB,
			.item_flags = ITEM_MADE,
			.body = buf_span(&body),
			.attrs = ATTRS_UNSET } };
		if (w->upload != NULL && r->extent != 0 && w->there.id != 0) {
			blob_extent_key(r->etag, key);
			changes[n++] = (struct change){ .op = CHANGE_MOVE,
				.flags = CHANGE_NO_REPLACE,
				.at = { .id = r->extent },
				.to = place_of(w->there.id, span_of(key)),
				.attrs = ATTRS_UNSET };
		}
		e = service_apply(w->service, w->origin, changes, n, durable, w->detail);
		if (e == ERR_OK && n > 1)
			blob_upload_taken(w->upload);
		if (e == ERR_OK)
			e = item_copy(ret_now, &changes[0].now);
		ret_now->size += n > 1; /* it is as of before the move */
		changes_fini(changes, n);
	}
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
	if (it->kind == ITEM_EXTENT && it->id != w->keep &&
		span_cmp(it->key, span_of(w->before)) < 0)
		w->ids[w->n++] = it->id;
	return w->n < SWEPT_AT_ONCE;
}

/* The blob is changed already, so an error here only leaves work to the next change. */
static void sweep(struct work *w, const struct item *blob, uint64_t keep)
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

static bool was_overtaken(enum err e)
{
	return e == ERR_CONDITION_NOT_MET || e == ERR_BLOB_EXISTS || e == ERR_NOT_FOUND ||
		e == ERR_GONE;
}

/* Makes the new record from the one that is there (NULL: none).  *ret borrows. */
typedef enum err (*make_fn)(
	void *arg, const struct work *w, const struct blob_record *there, struct blob_record *ret);

static enum err try_change(struct work *w, make_fn make, void *arg, bool *ret_again)
{
	struct blob_record to;
	struct item now = { 0 };
	*ret_again = false;
	enum err e = look(w->service, w->container, w->name, &w->there);
	if (e != ERR_OK && e != ERR_NOT_FOUND)
		return e;
	bool stub = w->there.id != 0 && w->there.record.type == BLOB_NONE;
	bool exists = w->there.id != 0 && !stub;
	const struct blob_record *there = exists ? &w->there.record : NULL;
	e = blob_conditions_write(w->conditions, exists ? there->etag : 0);
	if (e == ERR_OK)
		e = make(arg, w, there, &to);
	if (e != ERR_OK)
		return e;
	w->etag = service_next_version(w->service);
	if (there != NULL && w->etag <= there->etag)
		w->etag = there->etag + 1;
	to.etag = w->etag;
	if (to.made == 0)
		to.made = w->etag;
	/* The extent needs a blob to move to. */
	bool first = w->there.id == 0 && to.extent != 0;
	const struct blob_record none = { .type = BLOB_NONE, .etag = to.etag, .made = to.made };
	e = put_record(w, first ? &none : &to, !first, &now);
	*ret_again = first ? e == ERR_OK || was_overtaken(e) : was_overtaken(e);
	if (e == ERR_OK && !first)
		sweep(w, &now, to.extent);
	item_fini(&now);
	return e;
}

static enum err change(struct work *w, make_fn make, void *arg)
{
	bool again = true;
	enum err e = ERR_OK;
	for (int tries = 0; again && tries < CHANGE_TRIES; tries++) {
		e = try_change(w, make, arg, &again);
		blob_info_fini(&w->there);
		/* The container itself may be gone. */
		if (again && e != ERR_OK) {
			struct item it = { 0 };
			enum err up = store_get(
				service_store(w->service), NULL, w->container, WANT_ATTRS, &it);
			item_fini(&it);
			if (up == ERR_NOT_FOUND)
				return ERR_CONTAINER_NOT_FOUND;
		}
	}
	return again && e != ERR_OK
		? err_set(w->detail, ERR_THROTTLED, "other changes came faster every time")
		: e;
}

static enum err make_put(
	void *arg, const struct work *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct blob_new *to = arg;
	(void)w;
	(void)there;
	*ret = (struct blob_record){ .type = BLOB_BLOCK,
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
	struct work w = { .service = s,
		.origin = origin,
		.container = container_id,
		.name = name,
		.conditions = conditions,
		.upload = to->upload,
		.detail = detail };
	struct blob_new copy = *to;
	enum err e = blob_name_check(name, detail);
	if (e == ERR_OK)
		e = metadata_check(to->metadata, detail);
	if (e == ERR_OK && to->content.n > BLOB_INLINE_BYTES)
		e = ERR_INVALID_INPUT;
	if (e == ERR_OK)
		e = change(&w, make_put, &copy);
	*ret_etag = w.etag;
	return e;
}

struct edit {
	const struct span *metadata;              /* NULL: it stays */
	const struct blob_properties *properties; /* NULL: they stay */
};

static enum err make_edit(
	void *arg, const struct work *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct edit *to = arg;
	(void)w;
	if (there == NULL)
		return ERR_BLOB_NOT_FOUND;
	*ret = *there;
	if (to->metadata != NULL)
		ret->metadata = *to->metadata;
	if (to->properties != NULL)
		ret->properties = *to->properties;
	return ERR_OK;
}

static enum err edit(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	struct edit *to, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail)
{
	struct work w = { .service = s,
		.origin = origin,
		.container = container_id,
		.name = name,
		.conditions = conditions,
		.detail = detail };
	enum err e = change(&w, make_edit, to);
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

enum err blob_delete(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	const struct blob_conditions *conditions, struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET;
	for (int tries = 0; e == ERR_CONDITION_NOT_MET && tries < CHANGE_TRIES; tries++) {
		struct blob_info b = { 0 };
		e = blob_find(s, container_id, name, &b);
		if (e == ERR_OK)
			e = blob_conditions_write(conditions, b.record.etag);
		if (e == ERR_OK) {
			struct change c = { .op = CHANGE_DELETE,
				.flags = CHANGE_RECURSIVE,
				.at = place_of(container_id, name),
				.cond = COND_VERSION,
				.cond_version = b.item.version,
				.attrs = ATTRS_UNSET };
			e = service_apply(s, origin, &c, 1, true, detail);
			changes_fini(&c, 1);
		}
		blob_info_fini(&b);
	}
	if (e == ERR_CONDITION_NOT_MET)
		return err_set(detail, ERR_THROTTLED, "other changes came faster every time");
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_BLOB_NOT_FOUND : e;
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
	if (!span_starts(it->key, l->how->prefix)) {
		l->ended = true;
		return false;
	}
	l->error = it->kind == ITEM_BLOB ? blob_record_read(it->body, &r) : ERR_CORRUPT;
	if (l->error != ERR_OK)
		return false;
	if (r.type == BLOB_NONE && !l->how->uncommitted)
		return true;
	struct span group = group_of(l->how, it->key);
	if (l->left == 0) {
		buf_add_span(l->next, group.n > 0 ? group : it->key);
		l->ended = true;
		return false;
	}
	l->left--;
	struct blob_listed b = { group.n > 0, group.n > 0 ? group : it->key, &r };
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
	*ret_pieces = (r.size + EXTENT_PIECE_BYTES - 1) / EXTENT_PIECE_BYTES;
	return true;
}

const char *blob_item_wrong(const struct item *it)
{
	struct blob_record r;
	switch (it->kind) {
	case ITEM_BLOB:
		if (blob_name_check(it->key, NULL) != ERR_OK)
			return "the name of the blob is not allowed";
		if (blob_record_read(it->body, &r) != ERR_OK ||
			metadata_check(r.metadata, NULL) != ERR_OK)
			return "the record of the blob cannot be read";
		return it->flags & ~(uint32_t)ITEM_MADE ? "it has flags that a blob cannot have"
							: NULL;
	case ITEM_EXTENT:
		return it->flags != 0 ? "it has flags that an extent cannot have" : NULL;
	case ITEM_PIECE:
		if (it->size != it->body.n || it->size == 0 || it->size > EXTENT_PIECE_BYTES)
			return "the size of the piece is wrong";
		return it->flags != 0 ? "it has flags that a piece cannot have" : NULL;
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
