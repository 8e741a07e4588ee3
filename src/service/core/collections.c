/* SPDX-License-Identifier: MIT
 * The body of a collection's item: with has_etag a line with the ETag, the access and a lease if there
 * is one, then the lines
 * of the metadata, an empty line, the policies.  The item's version does not do for the ETag: what
 * the collection holds changes it too. */
#include "service/core/collections.h"

#include "base/text.h"
#include "model/limits.h"
#include "model/names.h"

#include <inttypes.h>

/* A change of a message or blob changes the version of its collection too, so repetitions are common. */
#define CHANGE_TRIES 64
#define POLICIES_MAX ((size_t)64 * 1024) /* bytes of XML */
/* A colon and a line's end for each pair; the first line. */
#define BODY_LIMIT (3 * (size_t)LIMIT_METADATA_BYTES + POLICIES_MAX + 256)
#define ACCESS_MAX 2

const struct collection_type collection_queue = {
	.kind = ITEM_QUEUE,
	.class = CLASS_QUEUE,
	.missing = ERR_QUEUE_NOT_FOUND,
	.check_name = queue_name_check,
};
const struct collection_type collection_container = {
	.kind = ITEM_CONTAINER,
	.class = CLASS_BLOB,
	.has_etag = true,
	.missing = ERR_CONTAINER_NOT_FOUND,
	.check_name = container_name_check,
};

void collection_fini(struct collection *c)
{
	item_fini(&c->item);
	*c = (struct collection){ 0 };
}

/* ---- the body ---- */

static bool read_head(struct span line, struct collection *ret)
{
	int64_t access;
	ret->etag = 1;
	if (line.n == 0) /* of a salvaged store */
		return true;
	if (!text_to_i64(span_take(&line, ' '), &ret->etag) || ret->etag <= 0 ||
		!text_to_i64(span_take(&line, ' '), &access) || access < 0 || access > ACCESS_MAX)
		return false;
	ret->access = (int)access;
	return line.n == 0 || lease_read(line, &ret->lease);
}

static enum err read_body(const struct collection_type *t, struct span body, struct collection *ret)
{
	if (t->has_etag) {
		size_t n = span_find(body, SPAN_LIT("\n"));
		if (n == body.n || !read_head(span_make(body.p, n), ret))
			return ERR_CORRUPT;
		body = span_make(body.p + n + 1, body.n - n - 1);
	}
	bool bare = body.n == 0 || body.p[0] == '\n';
	size_t n = bare ? 0 : span_find(body, SPAN_LIT("\n\n")) + 1;
	if (n >= body.n)
		return ERR_CORRUPT;
	ret->metadata = span_make(body.p, n);
	ret->policies = span_make(body.p + n + 1, body.n - n - 1);
	return ERR_OK;
}

static enum err write_body(
	const struct collection_type *t, const struct collection *c, struct buf *out)
{
	if (t->has_etag) {
		buf_addf(out, "%" PRId64 " %d", c->etag, c->access);
		if (c->lease.id.n > 0) {
			buf_add_char(out, ' ');
			lease_write(&c->lease, out);
		}
		buf_add_char(out, '\n');
	}
	buf_add_span(out, c->metadata);
	buf_add_char(out, '\n');
	buf_add_span(out, c->policies);
	return buf_ok(out) ? ERR_OK : buf_full(out);
}

/* Borrows the spans. */
static enum err describe(
	const struct collection_type *t, const struct item *it, struct collection *ret)
{
	*ret = (struct collection){ .id = it->id, .name = it->key, .children = it->size };
	return it->kind == t->kind ? read_body(t, it->body, ret) : ERR_NOT_FOUND;
}

/* Takes the item over, also on failure. */
static enum err take(const struct collection_type *t, struct item *it, struct collection *ret)
{
	enum err e = describe(t, it, ret);
	ret->item = *it;
	*it = (struct item){ 0 };
	if (e != ERR_OK)
		collection_fini(ret);
	return e;
}

const char *collection_item_wrong(const struct collection_type *t, const struct item *it)
{
	struct collection c = { 0 };
	if (it->kind != t->kind)
		return "an item of another kind has the key of a queue or a container";
	if (t->check_name(it->key, NULL) != ERR_OK)
		return "the name of the queue or container is not allowed";
	if (read_body(t, it->body, &c) != ERR_OK || metadata_check(c.metadata, NULL) != ERR_OK)
		return "its metadata cannot be read";
	return it->flags & ~(uint32_t)ITEM_MADE ? "it has flags that it cannot have" : NULL;
}

/* ---- creating and finding ---- */

static struct item_ref place_of(
	const struct collection_type *t, uint64_t account_id, struct span name)
{
	return (struct item_ref){ .parent = account_id, .class = t->class, .key = name };
}

static enum err put(struct service *s, enum origin origin, const struct collection_type *t,
	struct item_ref at, const struct collection *c, enum change_cond cond,
	struct err_detail *detail)
{
	struct buf body = BUF_INIT(BODY_LIMIT);
	enum err e = write_body(t, c, &body);
	if (e == ERR_OK) {
		struct change put = { .op = CHANGE_PUT,
			.at = at,
			.cond = cond,
			.cond_version = c->item.version,
			.kind = t->kind,
			.item_flags = ITEM_MADE,
			.body = buf_span(&body),
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &put, 1, true, detail);
		changes_fini(&put, 1);
	}
	buf_fini(&body);
	return e;
}

enum err collection_create(struct service *s, enum origin origin, const struct collection_type *t,
	uint64_t account_id, struct collection *c, struct err_detail *detail)
{
	enum err e = t->check_name(c->name, detail);
	if (e == ERR_OK)
		e = metadata_check(c->metadata, detail);
	c->etag = service_next_version(s);
	if (e == ERR_OK)
		e = put(s, origin, t, place_of(t, account_id, c->name), c, COND_ABSENT, detail);
	return e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ? ERR_ACCOUNT_NOT_FOUND : e;
}

enum err collection_find(struct service *s, const struct collection_type *t, uint64_t account_id,
	struct span name, struct collection *ret)
{
	struct item it = { 0 };
	enum err e =
		store_child(service_store(s), NULL, account_id, t->class, name, WANT_BODY, &it);
	if (e == ERR_OK)
		e = take(t, &it, ret);
	return e == ERR_NOT_FOUND ? t->missing : e;
}

enum err collection_id(struct service *s, const struct collection_type *t, uint64_t account_id,
	struct span name, uint64_t *ret)
{
	struct item it = { 0 };
	enum err e =
		store_child(service_store(s), NULL, account_id, t->class, name, WANT_ATTRS, &it);
	if (e == ERR_OK && it.kind != t->kind)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		*ret = it.id;
	item_fini(&it);
	return e == ERR_NOT_FOUND ? t->missing : e;
}

struct listing {
	const struct collection_type *type;
	struct span prefix;
	size_t left;
	collection_fn fn;
	void *arg;
	struct buf *next;
	enum err error;
};

static bool on_collection(void *arg, const struct item *it)
{
	struct listing *l = arg;
	struct collection c;
	if (!span_starts(it->key, l->prefix))
		return false;
	if (l->left == 0) {
		buf_add_span(l->next, it->key);
		return false;
	}
	l->left--;
	l->error = describe(l->type, it, &c);
	return l->error == ERR_OK && l->fn(l->arg, &c);
}

enum err collection_list(struct service *s, const struct collection_type *t, uint64_t account_id,
	struct span prefix, struct span marker, size_t max, collection_fn fn, void *arg,
	struct buf *ret_next)
{
	struct listing l = { t, prefix, max, fn, arg, ret_next, ERR_OK };
	struct span from = span_cmp(marker, prefix) > 0 ? marker : prefix;
	enum err e = store_list(service_store(s), NULL, account_id, t->class,
		from.n > 0 ? from : (struct span){ 0 }, true, WANT_BODY, on_collection, &l);
	if (e == ERR_OK)
		e = l.error;
	return e == ERR_OK && !buf_ok(ret_next) ? ERR_NO_MEMORY : e;
}

/* ---- changing ---- */

/* One try of a change of the collection that was read.  Others of this process wait. */
typedef enum err (*step_fn)(void *arg, const struct collection_type *t, struct collection *c);

/* Reads the collection, and changes it, until nothing that it holds was changed in between. */
static enum err change(struct service *s, const struct collection_type *t, uint64_t id,
	step_fn step, void *arg, struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET;
	service_lock_collections(s);
	for (int tries = 0; e == ERR_CONDITION_NOT_MET && tries < CHANGE_TRIES; tries++) {
		struct item it = { 0 };
		struct collection c = { 0 };
		e = store_get(service_store(s), NULL, id, WANT_BODY, &it);
		if (e == ERR_OK)
			e = take(t, &it, &c);
		if (e == ERR_OK)
			e = step(arg, t, &c);
		collection_fini(&c);
	}
	service_unlock_collections(s);
	if (e == ERR_NOT_FOUND || e == ERR_GONE)
		return t->missing;
	return e == ERR_CONDITION_NOT_MET
		? err_set(detail, ERR_THROTTLED, "other changes came faster every time")
		: e;
}

struct setting {
	struct service *service;
	enum origin origin;
	const struct collection_edit *to;
	int64_t etag;
	struct err_detail *detail;
};

static enum err set(void *arg, const struct collection_type *t, struct collection *c)
{
	struct setting *w = arg;
	enum err e = w->to->check != NULL ? w->to->check(w->to->arg, c) : ERR_OK;
	if (e != ERR_OK)
		return e;
	if (w->to->metadata != NULL)
		c->metadata = *w->to->metadata;
	if (w->to->policies != NULL) {
		c->policies = *w->to->policies;
		c->access = w->to->access;
	}
	if (w->to->lease != NULL)
		c->lease = *w->to->lease;
	else
		c->etag = service_next_version(w->service);
	w->etag = c->etag;
	return put(w->service, w->origin, t, place_of(t, c->item.parent, c->item.key), c,
		COND_VERSION, w->detail);
}

enum err collection_set(struct service *s, enum origin origin, const struct collection_type *t,
	uint64_t id, const struct collection_edit *to, int64_t *ret_etag, struct err_detail *detail)
{
	struct setting w = { s, origin, to, 0, detail };
	enum err e = to->metadata != NULL ? metadata_check(*to->metadata, detail) : ERR_OK;
	if (e == ERR_OK)
		e = change(s, t, id, set, &w, detail);
	*ret_etag = w.etag;
	return e;
}

struct removal {
	struct service *service;
	enum origin origin;
	collection_check_fn check;
	void *arg;
	bool only_empty;
	struct err_detail *detail;
};

static enum err remove_one(void *arg, const struct collection_type *t, struct collection *c)
{
	const struct removal *w = arg;
	struct change removal = { .op = CHANGE_DELETE,
		.flags = w->only_empty ? 0 : CHANGE_RECURSIVE,
		.at = place_of(t, c->item.parent, c->item.key),
		.cond = COND_ID,
		.cond_version = (int64_t)c->id,
		.attrs = ATTRS_UNSET };
	enum err e = w->check != NULL ? w->check(w->arg, c) : ERR_OK;
	if (e == ERR_OK)
		e = service_apply(w->service, w->origin, &removal, 1, true, w->detail);
	changes_fini(&removal, 1);
	return e;
}

enum err collection_delete(struct service *s, enum origin origin, const struct collection_type *t,
	uint64_t id, collection_check_fn check, void *arg, bool only_empty,
	struct err_detail *detail)
{
	struct removal w = { s, origin, check, arg, only_empty, detail };
	return change(s, t, id, remove_one, &w, detail);
}
