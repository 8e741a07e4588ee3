/* SPDX-License-Identifier: MIT
 * The body of a container's item: a line with its ETag and its access, the lines of its metadata, an
 * empty line, the policies.  The item's own version does not do for the ETag: blobs change it too. */
#include "service/blobs/containers.h"

#include "base/text.h"
#include "model/limits.h"
#include "model/names.h"

#include <inttypes.h>

/* Blobs change the container's version too, so repetitions are common. */
#define CHANGE_TRIES 64
#define POLICIES_MAX ((size_t)64 * 1024) /* bytes of XML */
#define BODY_LIMIT (3 * (size_t)LIMIT_METADATA_BYTES + POLICIES_MAX + 64)

void container_info_fini(struct container_info *c)
{
	item_fini(&c->item);
	*c = (struct container_info){ 0 };
}

/* ---- the body ---- */

static bool read_head(struct span line, struct container_info *ret)
{
	size_t n = span_find(line, SPAN_LIT(" "));
	int64_t access = CONTAINER_PRIVATE;
	ret->etag = 1;
	if (line.n == 0) /* of a salvaged store */
		return true;
	if (n == line.n || !text_to_i64(span_make(line.p, n), &ret->etag) || ret->etag <= 0 ||
		!text_to_i64(span_make(line.p + n + 1, line.n - n - 1), &access) || access < 0 ||
		access > CONTAINER_ALL)
		return false;
	ret->access = (enum container_access)access;
	return true;
}

static enum err read_body(struct span body, struct container_info *ret)
{
	size_t head = span_find(body, SPAN_LIT("\n"));
	if (head == body.n || !read_head(span_make(body.p, head), ret))
		return ERR_CORRUPT;
	body = span_make(body.p + head + 1, body.n - head - 1);
	bool bare = body.n > 0 && body.p[0] == '\n';
	size_t n = bare || body.n == 0 ? 0 : span_find(body, SPAN_LIT("\n\n")) + 1;
	if (n >= body.n)
		return ERR_CORRUPT;
	ret->metadata = span_make(body.p, n);
	ret->policies = span_make(body.p + n + 1, body.n - n - 1);
	return ERR_OK;
}

static enum err write_body(const struct container_info *c, struct buf *out)
{
	buf_addf(out, "%" PRId64 " %d\n", c->etag, (int)c->access);
	buf_add_span(out, c->metadata);
	buf_add_char(out, '\n');
	buf_add_span(out, c->policies);
	return buf_ok(out) ? ERR_OK : buf_full(out);
}

/* Takes the item over, also on failure. */
static enum err info_of(struct item *it, struct container_info *ret)
{
	*ret = (struct container_info){ .id = it->id, .name = it->key, .item = *it };
	*it = (struct item){ 0 };
	enum err e = read_body(ret->item.body, ret);
	if (e != ERR_OK)
		container_info_fini(ret);
	return e;
}

const char *container_item_wrong(const struct item *it)
{
	struct container_info c = { 0 };
	if (it->kind != ITEM_CONTAINER)
		return "an item that is not a container has a container's key";
	if (container_name_check(it->key, NULL) != ERR_OK)
		return "the name of the container is not allowed";
	if (read_body(it->body, &c) != ERR_OK || metadata_check(c.metadata, NULL) != ERR_OK)
		return "its metadata cannot be read";
	return it->flags & ~(uint32_t)ITEM_MADE ? "it has flags that a container cannot have"
						: NULL;
}

/* ---- making and removing ---- */

static struct item_ref place_of(uint64_t account_id, struct span name)
{
	return (struct item_ref){ .parent = account_id, .class = CLASS_BLOB, .key = name };
}

static enum err put(struct service *s, enum origin origin, struct item_ref at,
	const struct container_info *c, enum change_cond cond, int64_t version,
	struct err_detail *detail)
{
	struct buf body = BUF_INIT(BODY_LIMIT);
	enum err e = write_body(c, &body);
	if (e == ERR_OK) {
		struct change put = { .op = CHANGE_PUT,
			.at = at,
			.cond = cond,
			.cond_version = version,
			.kind = ITEM_CONTAINER,
			.item_flags = ITEM_MADE,
			.body = buf_span(&body),
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &put, 1, true, detail);
		changes_fini(&put, 1);
	}
	buf_fini(&body);
	return e;
}

enum err container_create(struct service *s, enum origin origin, uint64_t account_id,
	struct span name, struct span metadata, enum container_access access, int64_t *ret_etag,
	struct err_detail *detail)
{
	struct container_info c = { .metadata = metadata,
		.policies = SPAN_LIT(""),
		.access = access,
		.etag = service_next_version(s) };
	enum err e = container_name_check(name, detail);
	if (e == ERR_OK)
		e = metadata_check(metadata, detail);
	if (e == ERR_OK)
		e = put(s, origin, place_of(account_id, name), &c, COND_ABSENT, 0, detail);
	*ret_etag = c.etag;
	return e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ? ERR_ACCOUNT_NOT_FOUND : e;
}

static enum err get(struct service *s, uint64_t id, struct container_info *ret)
{
	struct item it = { 0 };
	enum err e = store_get(service_store(s), NULL, id, WANT_BODY, &it);
	if (e == ERR_OK && it.kind != ITEM_CONTAINER)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = info_of(&it, ret);
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_CONTAINER_NOT_FOUND : e;
}

enum err container_delete(struct service *s, enum origin origin, uint64_t id,
	const struct blob_conditions *conditions, struct err_detail *detail)
{
	struct container_info c = { 0 };
	enum err e = get(s, id, &c);
	if (e == ERR_OK)
		e = blob_conditions_write(conditions, c.etag);
	if (e == ERR_OK) {
		struct change removal = { .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = place_of(c.item.parent, c.item.key),
			.cond = COND_ID,
			.cond_version = (int64_t)id,
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &removal, 1, true, detail);
		changes_fini(&removal, 1);
	}
	container_info_fini(&c);
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_CONTAINER_NOT_FOUND : e;
}

/* ---- finding ---- */

static enum err child(
	struct service *s, uint64_t account_id, struct span name, unsigned want, struct item *ret)
{
	enum err e = store_child(service_store(s), NULL, account_id, CLASS_BLOB, name, want, ret);
	return e == ERR_NOT_FOUND ? ERR_CONTAINER_NOT_FOUND : e;
}

enum err container_find(
	struct service *s, uint64_t account_id, struct span name, struct container_info *ret)
{
	struct item it = { 0 };
	enum err e = child(s, account_id, name, WANT_BODY, &it);
	return e == ERR_OK ? info_of(&it, ret) : e;
}

enum err container_id(struct service *s, uint64_t account_id, struct span name, uint64_t *ret)
{
	struct item it = { 0 };
	enum err e = child(s, account_id, name, WANT_ATTRS, &it);
	if (e == ERR_OK)
		*ret = it.id;
	item_fini(&it);
	return e;
}

struct listing {
	struct span prefix;
	size_t left;
	container_fn fn;
	void *arg;
	struct buf *next;
	enum err error;
};

static bool on_container(void *arg, const struct item *it)
{
	struct listing *l = arg;
	struct container_info c = { .id = it->id, .name = it->key };
	if (!span_starts(it->key, l->prefix))
		return false;
	if (l->left == 0) {
		buf_add_span(l->next, it->key);
		return false;
	}
	l->left--;
	l->error = read_body(it->body, &c);
	return l->error == ERR_OK && l->fn(l->arg, &c);
}

enum err container_list(struct service *s, uint64_t account_id, struct span prefix,
	struct span marker, size_t max, container_fn fn, void *arg, struct buf *ret_next)
{
	struct listing l = {
		.prefix = prefix, .left = max, .fn = fn, .arg = arg, .next = ret_next
	};
	struct span from = span_cmp(marker, prefix) > 0 ? marker : prefix;
	enum err e = store_list(service_store(s), NULL, account_id, CLASS_BLOB,
		from.n > 0 ? from : (struct span){ 0 }, true, WANT_BODY, on_container, &l);
	if (e == ERR_OK)
		e = l.error;
	return e == ERR_OK && !buf_ok(ret_next) ? ERR_NO_MEMORY : e;
}

/* ---- changing the body ---- */

struct new_body {
	const struct span *metadata; /* NULL: metadata and access stay */
	struct span policies;
	enum container_access access;
};

static enum err set_body(struct service *s, enum origin origin, uint64_t id,
	const struct new_body *to, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET;
	for (int tries = 0; e == ERR_CONDITION_NOT_MET && tries < CHANGE_TRIES; tries++) {
		struct container_info c = { 0 };
		e = get(s, id, &c);
		if (e == ERR_OK)
			e = blob_conditions_write(conditions, c.etag);
		if (e == ERR_OK) {
			if (to->metadata != NULL) {
				c.metadata = *to->metadata;
			} else {
				c.policies = to->policies;
				c.access = to->access;
			}
			c.etag = *ret_etag = service_next_version(s);
			e = put(s, origin, place_of(c.item.parent, c.item.key), &c, COND_VERSION,
				c.item.version, detail);
		}
		container_info_fini(&c);
	}
	if (e == ERR_NOT_FOUND || e == ERR_GONE)
		return ERR_CONTAINER_NOT_FOUND;
	return e == ERR_CONDITION_NOT_MET
		? err_set(detail, ERR_THROTTLED, "other changes came faster every time")
		: e;
}

enum err container_set_metadata(struct service *s, enum origin origin, uint64_t id,
	struct span metadata, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail)
{
	const struct new_body to = { .metadata = &metadata };
	enum err e = metadata_check(metadata, detail);
	return e == ERR_OK ? set_body(s, origin, id, &to, conditions, ret_etag, detail) : e;
}

enum err container_set_policies(struct service *s, enum origin origin, uint64_t id, struct span xml,
	enum container_access access, const struct blob_conditions *conditions, int64_t *ret_etag,
	struct err_detail *detail)
{
	const struct new_body to = { .policies = xml, .access = access };
	return set_body(s, origin, id, &to, conditions, ret_etag, detail);
}
