/* SPDX-License-Identifier: MIT
 * The body of a queue's item: the lines of its metadata, an empty line, the policies. */
#include "service/queue/queues.h"

#include "model/limits.h"
#include "model/names.h"
#include "service/queue/message_name.h"

/* Messages change the queue's version too, so repetitions are common. */
#define CHANGE_TRIES 64
#define POLICIES_MAX ((size_t)64 * 1024) /* bytes of XML */
/* A colon and a line's end for each pair. */
#define BODY_LIMIT (3 * (size_t)LIMIT_METADATA_BYTES + POLICIES_MAX)

void queue_info_fini(struct queue_info *q)
{
	item_fini(&q->item);
	*q = (struct queue_info){ 0 };
}

static enum err read_body(struct span body, struct span *ret_metadata, struct span *ret_policies)
{
	bool bare = body.n > 0 && body.p[0] == '\n';
	size_t n = bare ? 0 : span_find(body, SPAN_LIT("\n\n")) + 1;
	if (n >= body.n)
		return ERR_CORRUPT;
	*ret_metadata = span_make(body.p, n);
	*ret_policies = span_make(body.p + n + 1, body.n - n - 1);
	return ERR_OK;
}

static enum err write_body(struct span metadata, struct span policies, struct buf *out)
{
	buf_add_span(out, metadata);
	buf_add_char(out, '\n');
	buf_add_span(out, policies);
	return buf_ok(out) ? ERR_OK : buf_full(out);
}

/* Takes the item over, also on failure. */
static enum err info_of(struct item *it, struct queue_info *ret)
{
	*ret = (struct queue_info){
		.id = it->id, .name = it->key, .messages = it->size, .item = *it
	};
	*it = (struct item){ 0 };
	enum err e = read_body(ret->item.body, &ret->metadata, &ret->policies);
	if (e != ERR_OK)
		queue_info_fini(ret);
	return e;
}

const char *queue_item_wrong(const struct item *it)
{
	struct span metadata, policies;
	if (it->kind != ITEM_QUEUE)
		return "an item that is not a queue has a queue's key";
	if (queue_name_check(it->key, NULL) != ERR_OK)
		return "the name of the queue is not allowed";
	if (read_body(it->body, &metadata, &policies) != ERR_OK ||
		metadata_check(metadata, NULL) != ERR_OK)
		return "its metadata cannot be read";
	return it->flags & ~(uint32_t)ITEM_MADE ? "it has flags that a queue cannot have" : NULL;
}

static struct item_ref place_of(uint64_t account_id, struct span name)
{
	return (struct item_ref){ .parent = account_id, .class = CLASS_QUEUE, .key = name };
}

static enum err create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct span metadata, struct err_detail *detail)
{
	struct buf body = BUF_INIT(BODY_LIMIT);
	enum err e = write_body(metadata, SPAN_LIT(""), &body);
	if (e == ERR_OK) {
		struct change c = { .op = CHANGE_PUT,
			.at = place_of(account_id, name),
			.cond = COND_ABSENT,
			.kind = ITEM_QUEUE,
			.item_flags = ITEM_MADE,
			.body = buf_span(&body),
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &c, 1, true, detail);
		changes_fini(&c, 1);
	}
	buf_fini(&body);
	return e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ? ERR_ACCOUNT_NOT_FOUND : e;
}

enum err queue_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct span metadata, bool *ret_created, struct err_detail *detail)
{
	struct queue_info there;
	*ret_created = false;
	enum err e = queue_name_check(name, detail);
	if (e == ERR_OK)
		e = metadata_check(metadata, detail);
	if (e == ERR_OK)
		e = create(s, origin, account_id, name, metadata, detail);
	*ret_created = e == ERR_OK;
	if (e != ERR_QUEUE_EXISTS || queue_find(s, account_id, name, &there) != ERR_OK)
		return e;
	bool equal = metadata_equal(there.metadata, metadata);
	queue_info_fini(&there);
	return equal ? ERR_OK : e;
}

enum err queue_delete(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	struct item it = { 0 };
	enum err e = store_get(service_store(s), NULL, queue_id, WANT_ATTRS, &it);
	if (e == ERR_OK && it.kind != ITEM_QUEUE)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK) {
		struct change c = { .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = place_of(it.parent, it.key),
			.cond = COND_ID,
			.cond_version = (int64_t)queue_id,
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &c, 1, true, detail);
		changes_fini(&c, 1);
	}
	item_fini(&it);
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_QUEUE_NOT_FOUND : e;
}

struct look {
	int64_t now;
	bool live;
};

static bool on_message(void *arg, const struct item *it)
{
	struct look *look = arg;
	struct message_key key;
	look->live = !message_key_read(it->key, &key) || key.expires > look->now;
	return !look->live;
}

/* Every message that comes or goes gives the queue another version. */
static enum err delete_if_empty(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	struct item it = { 0 };
	struct look look = { .now = service_now(s) };
	enum err e = store_get(service_store(s), NULL, queue_id, WANT_ATTRS, &it);
	if (e == ERR_OK && it.kind != ITEM_QUEUE)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = store_list(service_store(s), NULL, queue_id, CLASS_QUEUE, (struct span){ 0 },
			false, WANT_KEYS, on_message, &look);
	if (e == ERR_OK && look.live)
		e = ERR_NOT_EMPTY;
	if (e == ERR_OK) {
		struct change c = { .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = place_of(it.parent, it.key),
			.cond = COND_VERSION,
			.cond_version = it.version,
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &c, 1, true, detail);
		changes_fini(&c, 1);
	}
	item_fini(&it);
	return e;
}

enum err queue_delete_empty(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET;
	for (int tries = 0; e == ERR_CONDITION_NOT_MET && tries < CHANGE_TRIES; tries++)
		e = delete_if_empty(s, origin, queue_id, detail);
	if (e == ERR_NOT_FOUND || e == ERR_GONE)
		return ERR_QUEUE_NOT_FOUND;
	return e == ERR_CONDITION_NOT_MET
		? err_set(detail, ERR_THROTTLED, "messages came faster every time")
		: e;
}

static enum err child(
	struct service *s, uint64_t account_id, struct span name, unsigned want, struct item *ret)
{
	enum err e = store_child(service_store(s), NULL, account_id, CLASS_QUEUE, name, want, ret);
	if (e == ERR_OK && ret->kind != ITEM_QUEUE) {
		item_fini(ret);
		e = ERR_NOT_FOUND;
	}
	return e == ERR_NOT_FOUND ? ERR_QUEUE_NOT_FOUND : e;
}

enum err queue_find(
	struct service *s, uint64_t account_id, struct span name, struct queue_info *ret)
{
	struct item it = { 0 };
	enum err e = child(s, account_id, name, WANT_BODY, &it);
	return e == ERR_OK ? info_of(&it, ret) : e;
}

enum err queue_id(struct service *s, uint64_t account_id, struct span name, uint64_t *ret)
{
	struct item it = { 0 };
	enum err e = child(s, account_id, name, WANT_ATTRS, &it);
	if (e == ERR_OK)
		*ret = it.id;
	item_fini(&it);
	return e;
}

/* ---- listing ---- */

struct listing {
	struct span prefix;
	size_t left;
	queue_fn fn;
	void *arg;
	struct buf *next;
	enum err error;
};

static bool on_queue(void *arg, const struct item *it)
{
	struct listing *l = arg;
	struct queue_info q = { .id = it->id, .name = it->key, .messages = it->size };
	if (!span_starts(it->key, l->prefix))
		return false;
	if (l->left == 0) {
		buf_add_span(l->next, it->key);
		return false;
	}
	l->left--;
	l->error = read_body(it->body, &q.metadata, &q.policies);
	return l->error == ERR_OK && l->fn(l->arg, &q);
}

enum err queue_list(struct service *s, uint64_t account_id, struct span prefix, struct span marker,
	size_t max, queue_fn fn, void *arg, struct buf *ret_next)
{
	struct listing l = {
		.prefix = prefix, .left = max, .fn = fn, .arg = arg, .next = ret_next
	};
	struct span from = span_cmp(marker, prefix) > 0 ? marker : prefix;
	enum err e = store_list(service_store(s), NULL, account_id, CLASS_QUEUE,
		from.n > 0 ? from : (struct span){ 0 }, true, WANT_BODY, on_queue, &l);
	if (e == ERR_OK)
		e = l.error;
	return e == ERR_OK && !buf_ok(ret_next) ? ERR_NO_MEMORY : e;
}

/* ---- changing the body ---- */

/* NULL: it stays. */
static enum err set_body(struct service *s, enum origin origin, uint64_t queue_id,
	const struct span *metadata, const struct span *policies, struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET;
	for (int tries = 0; e == ERR_CONDITION_NOT_MET && tries < CHANGE_TRIES; tries++) {
		struct item it = { 0 };
		struct queue_info q = { 0 };
		struct buf body = BUF_INIT(BODY_LIMIT);
		e = store_get(service_store(s), NULL, queue_id, WANT_BODY, &it);
		if (e == ERR_OK && it.kind != ITEM_QUEUE)
			e = ERR_NOT_FOUND;
		if (e == ERR_OK)
			e = info_of(&it, &q);
		if (e == ERR_OK)
			e = write_body(metadata != NULL ? *metadata : q.metadata,
				policies != NULL ? *policies : q.policies, &body);
		if (e == ERR_OK) {
			struct change c = { .op = CHANGE_PUT,
				.at = place_of(q.item.parent, q.item.key),
				.cond = COND_VERSION,
				.cond_version = q.item.version,
				.kind = ITEM_QUEUE,
				.body = buf_span(&body),
				.attrs = ATTRS_UNSET };
			e = service_apply(s, origin, &c, 1, true, detail);
			changes_fini(&c, 1);
		}
		item_fini(&it);
		queue_info_fini(&q);
		buf_fini(&body);
	}
	if (e == ERR_NOT_FOUND || e == ERR_GONE)
		return ERR_QUEUE_NOT_FOUND;
	return e == ERR_CONDITION_NOT_MET
		? err_set(detail, ERR_THROTTLED, "messages came faster every time")
		: e;
}

enum err queue_set_metadata(struct service *s, enum origin origin, uint64_t queue_id,
	struct span metadata, struct err_detail *detail)
{
	enum err e = metadata_check(metadata, detail);
	return e == ERR_OK ? set_body(s, origin, queue_id, &metadata, NULL, detail) : e;
}

enum err queue_set_policies(struct service *s, enum origin origin, uint64_t queue_id,
	struct span xml, struct err_detail *detail)
{
	return set_body(s, origin, queue_id, NULL, &xml, detail);
}
