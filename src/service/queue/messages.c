/* SPDX-License-Identifier: MIT
 * A change names its message by the key, which says all of its state but the text, and by its version.
 * So it fails if another thread or process was faster. */
#include "service/queue/messages.h"

#include "base/clock.h"
#include "model/limits.h"
#include "service/queue/message_parts.h"

#include <inttypes.h>

/* ---- parts ---- */

enum err message_check_range(
	const char *what, int64_t value, int64_t min, int64_t max, struct err_detail *detail)
{
	if (value >= min && value <= max)
		return ERR_OK;
	return err_set(detail, ERR_QUERY_RANGE,
		"%s is %" PRId64 "; it can be from %" PRId64 " to %" PRId64 ".", what, value, min,
		max);
}

enum err message_check_hidden(int64_t seconds, int64_t min, struct err_detail *detail)
{
	return message_check_range(
		"visibilitytimeout", seconds, min, LIMIT_MESSAGE_HIDDEN_S, detail);
}

int64_t message_time_later(int64_t ticks, int64_t seconds)
{
	return seconds > (MESSAGE_EXPIRES_NEVER - ticks) / TICKS_PER_SECOND
		? MESSAGE_EXPIRES_NEVER
		: ticks + seconds * TICKS_PER_SECOND;
}

struct item_ref message_place(uint64_t queue, struct span key)
{
	return (struct item_ref){ .parent = queue, .class = CLASS_QUEUE, .key = key };
}

void message_describe(struct queue_message *m, uint64_t item, int64_t version,
	const struct message_key *key, struct span text)
{
	*m = (struct queue_message){ .inserted = key->inserted,
		.expires = key->expires,
		.visible = key->visible,
		.taken = key->taken,
		.text = text };
	message_id_write(key->inserted, item, m->id);
	message_receipt_write(version, item, m->receipt);
}

bool message_race_lost(enum err e)
{
	return e == ERR_NOT_FOUND || e == ERR_CONDITION_NOT_MET || e == ERR_GONE;
}

enum err message_find_item(struct service *s, uint64_t queue, struct span id, unsigned want,
	struct item *ret, struct message_key *ret_key)
{
	int64_t inserted;
	uint64_t item;
	if (!message_id_read(id, &inserted, &item) || item == 0)
		return ERR_MESSAGE_NOT_FOUND;
	enum err e = store_get(service_store(s), NULL, item, want, ret);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_MESSAGE_NOT_FOUND : e;
	if (ret->kind == ITEM_MESSAGE && ret->parent == queue &&
		message_key_read(ret->key, ret_key) && ret_key->inserted == inserted &&
		ret_key->expires > service_now(s))
		return ERR_OK;
	item_fini(ret);
	return ERR_MESSAGE_NOT_FOUND;
}

/* ---- put ---- */

static enum err check_text(struct span text, struct err_detail *detail)
{
	return text.n <= LIMIT_MESSAGE_BYTES
		? ERR_OK
		: err_set(detail, ERR_MESSAGE_TOO_LARGE,
			  "The message has %zu bytes; it can have up to %d.", text.n,
			  LIMIT_MESSAGE_BYTES);
}

enum err message_prepare(struct service *s, uint64_t queue_id, struct span text,
	int64_t visibility_s, int64_t ttl_s, struct prepared_message *ret,
	struct err_detail *detail)
{
	enum err e = check_text(text, detail);
	if (e == ERR_OK)
		e = message_check_hidden(visibility_s, 0, detail);
	if (e == ERR_OK && ttl_s != MESSAGE_NEVER)
		e = message_check_range("messagettl", ttl_s, 1, INT64_MAX, detail);
	if (e == ERR_OK && ttl_s != MESSAGE_NEVER && visibility_s >= ttl_s)
		e = err_set(
			detail, ERR_QUERY_RANGE, "visibilitytimeout is not less than messagettl.");
	if (e != ERR_OK)
		return e;
	ret->key.taken = 0;
	ret->key.inserted = service_next_version(s);
	ret->key.visible = message_time_later(service_now(s), visibility_s);
	ret->key.expires = ttl_s == MESSAGE_NEVER ? MESSAGE_EXPIRES_NEVER
						  : message_time_later(ret->key.inserted, ttl_s);
	ret->change = (struct change){ .op = CHANGE_PUT,
		.at = message_place(queue_id, message_key_write(&ret->key, ret->text_of_key)),
		.cond = COND_ABSENT,
		.kind = ITEM_MESSAGE,
		.body = text,
		.attrs = ATTRS_UNSET };
	return ERR_OK;
}

enum err message_put(struct service *s, enum origin origin, uint64_t queue_id, struct span text,
	int64_t visibility_s, int64_t ttl_s, bool durable, struct queue_message *ret,
	struct err_detail *detail)
{
	enum err e;
	do {
		struct prepared_message d;
		e = message_prepare(s, queue_id, text, visibility_s, ttl_s, &d, detail);
		if (e != ERR_OK)
			return e;
		e = service_apply(s, origin, &d.change, 1, durable, detail);
		if (e == ERR_OK)
			message_describe(ret, d.change.now.id, d.change.now.version, &d.key,
				(struct span){ 0 });
		changes_fini(&d.change, 1);
	} while (e == ERR_NAME_EXISTS); /* another process inserts at the same moment */
	return e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ? ERR_QUEUE_NOT_FOUND : e;
}

/* ---- reading ---- */

struct next {
	int64_t now, visible;
};

static bool on_next(void *arg, const struct item *it)
{
	struct next *next = arg;
	struct message_key key;
	if (!message_key_read(it->key, &key) || key.expires <= key.visible ||
		key.expires <= next->now)
		return true;
	next->visible = key.visible;
	return false;
}

enum err queue_next_visible(struct service *s, uint64_t queue_id, int64_t now, int64_t *ret)
{
	struct next next = { .now = now, .visible = INT64_MAX };
	const struct message_key from = {
		.visible = now, .inserted = TICKS_MAX, .expires = TICKS_MAX, .taken = UINT32_MAX
	};
	char key[MESSAGE_KEY_CHARS + 1];
	enum err e = store_list(service_store(s), NULL, queue_id, CLASS_QUEUE,
		message_key_write(&from, key), false, WANT_KEYS, on_next, &next);
	*ret = next.visible;
	return e;
}

/* ---- by receipt ---- */

/* Finds the message whose present state the receipt names. */
static enum err find_by_receipt(struct service *s, uint64_t queue, struct span id,
	struct span receipt, struct item *ret, struct message_key *ret_key,
	struct err_detail *detail)
{
	int64_t version;
	uint64_t item;
	if (!message_receipt_read(receipt, &version, &item))
		return err_set(detail, ERR_QUERY_VALUE,
			"The pop receipt is not one that the service gives.");
	enum err e = message_find_item(s, queue, id, WANT_ATTRS, ret, ret_key);
	if (e == ERR_OK && ret->id != item)
		e = ERR_RECEIPT_MISMATCH;
	else if (e == ERR_OK && ret->version != version)
		e = ERR_MESSAGE_NOT_FOUND;
	return e;
}

enum err message_update(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	struct span receipt, int64_t visibility_s, const struct span *text, bool durable,
	struct queue_message *ret, struct err_detail *detail)
{
	struct item it = { 0 };
	struct message_key key;
	char to[MESSAGE_KEY_CHARS + 1];
	enum err e = message_check_hidden(visibility_s, 0, detail);
	if (e == ERR_OK && text != NULL)
		e = check_text(*text, detail);
	if (e == ERR_OK)
		e = find_by_receipt(s, queue_id, id, receipt, &it, &key, detail);
	if (e == ERR_OK) {
		int64_t visible = message_time_later(service_now(s), visibility_s);
		key.visible = visible != key.visible ? visible : visible - 1; /* another state */
		struct change c = { .op = CHANGE_MOVE,
			.at = message_place(queue_id, it.key),
			.cond = COND_VERSION,
			.cond_version = it.version,
			.to = message_place(queue_id, message_key_write(&key, to)),
			.attrs = ATTRS_UNSET };
		if (text != NULL)
			c.body = text->p != NULL ? *text : SPAN_LIT("");
		e = service_apply(s, origin, &c, 1, durable, detail);
		if (e == ERR_OK)
			message_describe(ret, c.now.id, c.now.version, &key, (struct span){ 0 });
		changes_fini(&c, 1);
	}
	item_fini(&it);
	return message_race_lost(e) ? ERR_MESSAGE_NOT_FOUND : e;
}

enum err message_delete(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	struct span receipt, bool durable, struct err_detail *detail)
{
	struct item it = { 0 };
	struct message_key key;
	enum err e = find_by_receipt(s, queue_id, id, receipt, &it, &key, detail);
	if (e == ERR_OK) {
		struct change c = { .op = CHANGE_DELETE,
			.at = message_place(queue_id, it.key),
			.cond = COND_VERSION,
			.cond_version = it.version,
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &c, 1, durable, detail);
		changes_fini(&c, 1);
	}
	item_fini(&it);
	return message_race_lost(e) ? ERR_MESSAGE_NOT_FOUND : e;
}

/* ---- checking ---- */

const char *message_item_wrong(const struct item *it)
{
	struct message_key key;
	if (it->kind != ITEM_MESSAGE)
		return "an item that is not a message has a message's key";
	if (!message_key_read(it->key, &key))
		return "the key of the message cannot be read";
	if (it->size != it->body.n || it->size > LIMIT_MESSAGE_BYTES)
		return "the size of the message is wrong";
	return it->flags != 0 ? "it has flags that a message cannot have" : NULL;
}
