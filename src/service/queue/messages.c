/* SPDX-License-Identifier: MIT
 * A change names its message by the key, which says all of its state but the text, and by its version.
 * So it fails if another thread or process was faster. */
#include "service/queue/messages.h"

#include "base/clock.h"
#include "model/limits.h"
#include "service/core/claims.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How often a take begins anew after others took all that it chose. */
#define TRIES 64
/* Expired messages that a take removes besides: few at first, since there are hardly ever any. */
#define EXPIRED_FIRST 8
#define EXPIRED_THEN 1024
/* Messages that one commit of queue_clear() deletes. */
#define CLEAR_AT_ONCE 1024

static enum err check_range(
	const char *what, int64_t value, int64_t min, int64_t max, struct err_detail *detail)
{
	if (value >= min && value <= max)
		return ERR_OK;
	return err_set(detail, ERR_QUERY_RANGE,
		"%s is %" PRId64 "; it can be from %" PRId64 " to %" PRId64 ".", what, value, min,
		max);
}

static enum err check_hidden(int64_t seconds, int64_t min, struct err_detail *detail)
{
	return check_range("visibilitytimeout", seconds, min, LIMIT_MESSAGE_HIDDEN_S, detail);
}

static enum err check_text(struct span text, struct err_detail *detail)
{
	return text.n <= LIMIT_MESSAGE_BYTES
		? ERR_OK
		: err_set(detail, ERR_MESSAGE_TOO_LARGE,
			  "The message has %zu bytes; it can have up to %d.", text.n,
			  LIMIT_MESSAGE_BYTES);
}

static int64_t later(int64_t ticks, int64_t seconds)
{
	return seconds > (MESSAGE_EXPIRES_NEVER - ticks) / TICKS_PER_SECOND
		? MESSAGE_EXPIRES_NEVER
		: ticks + seconds * TICKS_PER_SECOND;
}

static struct item_ref place_of(uint64_t queue, struct span key)
{
	return (struct item_ref){ .parent = queue, .class = CLASS_QUEUE, .key = key };
}

static void describe(struct queue_message *m, uint64_t item, int64_t version,
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

/* Another thread or process changed the message first. */
static bool lost_race(enum err e)
{
	return e == ERR_NOT_FOUND || e == ERR_CONDITION_NOT_MET || e == ERR_GONE;
}

/* ---- put ---- */

enum err message_prepare(struct service *s, uint64_t queue_id, struct span text,
	int64_t visibility_s, int64_t ttl_s, struct message_draft *ret, struct err_detail *detail)
{
	enum err e = check_text(text, detail);
	if (e == ERR_OK)
		e = check_hidden(visibility_s, 0, detail);
	if (e == ERR_OK && ttl_s != MESSAGE_NEVER)
		e = check_range("messagettl", ttl_s, 1, INT64_MAX, detail);
	if (e == ERR_OK && ttl_s != MESSAGE_NEVER && visibility_s >= ttl_s)
		e = err_set(
			detail, ERR_QUERY_RANGE, "visibilitytimeout is not less than messagettl.");
	if (e != ERR_OK)
		return e;
	ret->key.taken = 0;
	ret->key.inserted = service_next_version(s);
	ret->key.visible = later(service_now(s), visibility_s);
	ret->key.expires =
		ttl_s == MESSAGE_NEVER ? MESSAGE_EXPIRES_NEVER : later(ret->key.inserted, ttl_s);
	ret->change = (struct change){ .op = CHANGE_PUT,
		.at = place_of(queue_id, message_key_write(&ret->key, ret->text_of_key)),
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
		struct message_draft d;
		e = message_prepare(s, queue_id, text, visibility_s, ttl_s, &d, detail);
		if (e != ERR_OK)
			return e;
		e = service_apply(s, origin, &d.change, 1, durable, detail);
		if (e == ERR_OK)
			describe(ret, d.change.now.id, d.change.now.version, &d.key,
				(struct span){ 0 });
		changes_fini(&d.change, 1);
	} while (e == ERR_NAME_EXISTS); /* another process inserts at the same moment */
	return e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ? ERR_QUEUE_NOT_FOUND : e;
}

/* ---- choosing messages ---- */

struct pick {
	struct claim claim;
	struct item item;
	struct message_key key; /* after the commit: the new one */
	bool expired;
	bool dropped; /* it is not claimed, or no longer */
	char to[MESSAGE_KEY_CHARS + 1];
	int64_t version; /* after the commit */
};

struct picks {
	struct service *service;
	uint64_t queue;
	int64_t now;
	bool claims; /* else they are for reading only, without expired ones */
	size_t want, max, n, live;
	struct pick *all;
	enum err error;
};

static void drop(struct picks *p, struct pick *pick)
{
	if (p->claims && !pick->dropped)
		claims_release(service_claims(p->service), &pick->claim);
	pick->dropped = true;
}

static void release(struct picks *p)
{
	for (size_t i = 0; i < p->n; i++)
		drop(p, &p->all[i]);
}

static void picks_fini(struct picks *p)
{
	release(p);
	for (size_t i = 0; i < p->n; i++)
		item_fini(&p->all[i].item);
	free(p->all);
	p->all = NULL;
	p->n = p->live = 0;
}

static enum err picks_init(struct picks *p, size_t want, size_t expired)
{
	p->want = want;
	p->max = want + expired;
	p->all = calloc(p->max, sizeof(*p->all));
	return p->all != NULL ? ERR_OK : ERR_NO_MEMORY;
}

static bool on_message(void *arg, const struct item *it)
{
	struct picks *p = arg;
	struct pick *pick = &p->all[p->n];
	if (!message_key_read(it->key, &pick->key))
		return true; /* the check reports it */
	if (pick->key.visible > p->now)
		return false;
	pick->expired = pick->key.expires <= p->now;
	pick->claim.id = it->id;
	if (p->claims ? !claims_take(service_claims(p->service), &pick->claim) : pick->expired)
		return true;
	pick->dropped = false;
	p->n++;
	p->error = item_copy(&pick->item, it);
	p->live += !pick->expired;
	return p->error == ERR_OK && p->live < p->want && p->n < p->max;
}

/* Reads the large texts, which the listing left out. */
static enum err read_texts(struct picks *p)
{
	struct store *store = service_store(p->service);
	for (size_t i = 0; i < p->n; i++) {
		struct pick *pick = &p->all[i];
		struct item full = { 0 };
		if (pick->expired || pick->item.body.p != NULL)
			continue;
		enum err e = store_get(store, NULL, pick->item.id, WANT_BODY, &full);
		if (e == ERR_OK && full.version == pick->item.version) {
			item_fini(&pick->item);
			pick->item = full;
			continue;
		}
		item_fini(&full);
		if (e != ERR_OK && e != ERR_NOT_FOUND)
			return e;
		drop(p, pick);
	}
	return ERR_OK;
}

static enum err choose(struct picks *p)
{
	p->now = service_now(p->service);
	enum err e = store_list(service_store(p->service), NULL, p->queue, CLASS_QUEUE,
		(struct span){ 0 }, false, WANT_SMALL_BODY, on_message, p);
	if (e == ERR_OK)
		e = p->error;
	return e == ERR_OK ? read_texts(p) : e;
}

/* Finds one message by its id, as it is now. */
static enum err find(struct service *s, uint64_t queue, struct span id, unsigned want,
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

/* ---- take ---- */

/* Prepares the changes of all picks that are left; of[] says whose each is. */
static size_t prepare(
	struct picks *p, int64_t visibility_s, struct change *changes, struct pick **of)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct pick *pick = &p->all[i];
		if (pick->dropped)
			continue;
		struct change *c = &changes[n];
		of[n++] = pick;
		*c = (struct change){ .op = CHANGE_DELETE,
			.at = place_of(p->queue, pick->item.key),
			.cond = COND_VERSION,
			.cond_version = pick->item.version,
			.attrs = ATTRS_UNSET };
		if (pick->expired)
			continue;
		struct message_key to = pick->key;
		to.visible = later(p->now, visibility_s);
		to.taken += to.taken < UINT32_MAX;
		c->op = CHANGE_MOVE;
		c->to = place_of(p->queue, message_key_write(&to, pick->to));
	}
	return n;
}

static void keep_results(struct change *changes, struct pick **of, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (of[i]->expired)
			continue;
		of[i]->version = changes[i].now.version;
		(void)message_key_read(span_make(of[i]->to, MESSAGE_KEY_CHARS), &of[i]->key);
	}
}

/* Takes the picks, without those that others took first. */
static enum err commit(struct picks *p, enum origin origin, int64_t visibility_s, bool durable,
	struct err_detail *detail)
{
	struct err_detail scratch = { 0 };
	struct err_detail *why = detail != NULL ? detail : &scratch;
	struct change *changes = calloc(p->n, sizeof(*changes));
	struct pick **of = calloc(p->n, sizeof(struct pick *));
	enum err e = changes != NULL && of != NULL ? ERR_CONDITION_NOT_MET : ERR_NO_MEMORY;
	while (lost_race(e)) {
		size_t n = prepare(p, visibility_s, changes, of);
		why->op = 0;
		e = n == 0 ? ERR_OK : service_apply(p->service, origin, changes, n, durable, why);
		if (e == ERR_OK)
			keep_results(changes, of, n);
		else if (lost_race(e))
			drop(p, of[why->op < n ? why->op : 0]);
		changes_fini(changes, n);
	}
	free(of);
	free(changes);
	return e;
}

/* Ends the claims, then hands the messages on. */
static size_t deliver(struct picks *p, bool receipts, message_fn fn, void *arg)
{
	size_t n = 0;
	bool go_on = true;
	for (size_t i = 0; i < p->n; i++) {
		struct pick *pick = &p->all[i];
		pick->expired = pick->expired || pick->dropped;
	}
	release(p);
	for (size_t i = 0; i < p->n && go_on; i++) {
		struct queue_message m;
		const struct pick *pick = &p->all[i];
		if (pick->expired)
			continue;
		n++;
		describe(&m, pick->item.id, pick->version, &pick->key, pick->item.body);
		if (!receipts)
			m.receipt[0] = '\0';
		go_on = fn(arg, &m);
	}
	return n;
}

enum err message_take(struct service *s, enum origin origin, uint64_t queue_id, unsigned n,
	int64_t visibility_s, bool durable, message_fn fn, void *arg, struct err_detail *detail)
{
	enum err e = check_range("numofmessages", n, 1, LIMIT_MESSAGES_TAKEN, detail);
	if (e == ERR_OK)
		e = check_hidden(visibility_s, 1, detail);
	size_t expired = EXPIRED_FIRST;
	for (unsigned tries = 0; e == ERR_OK;) {
		struct picks p = { .service = s, .queue = queue_id, .claims = true };
		e = picks_init(&p, n, expired);
		if (e == ERR_OK)
			e = choose(&p);
		if (e == ERR_OK && p.n > 0)
			e = commit(&p, origin, visibility_s, durable, detail);
		bool any = p.n > 0, lost = p.live > 0;
		size_t taken = e == ERR_OK ? deliver(&p, true, fn, arg) : 0;
		picks_fini(&p);
		if (!any || taken > 0)
			break;
		expired = EXPIRED_THEN;
		if (e == ERR_OK && lost && ++tries == TRIES)
			e = err_set(detail, ERR_THROTTLED, "others took the messages first");
	}
	return e;
}

enum err message_take_one(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	int64_t visibility_s, bool durable, message_fn fn, void *arg, struct err_detail *detail)
{
	struct picks p = { .service = s, .queue = queue_id, .claims = true };
	enum err e = check_hidden(visibility_s, 1, detail);
	if (e == ERR_OK)
		e = picks_init(&p, 1, 0);
	if (e != ERR_OK)
		return e;
	struct pick *pick = &p.all[0];
	p.now = service_now(s);
	e = find(s, queue_id, id, WANT_BODY, &pick->item, &pick->key);
	pick->claim.id = pick->item.id;
	if (e == ERR_OK &&
		(pick->key.visible > p.now || !claims_take(service_claims(s), &pick->claim))) {
		item_fini(&pick->item);
		e = ERR_MESSAGE_NOT_FOUND;
	}
	p.n = e == ERR_OK;
	if (e == ERR_OK)
		e = commit(&p, origin, visibility_s, durable, detail);
	if (e == ERR_OK && deliver(&p, true, fn, arg) == 0)
		e = ERR_MESSAGE_NOT_FOUND;
	picks_fini(&p);
	return e;
}

/* ---- reading ---- */

enum err message_peek(struct service *s, uint64_t queue_id, unsigned n, message_fn fn, void *arg)
{
	struct picks p = { .service = s, .queue = queue_id };
	enum err e = check_range("numofmessages", n, 1, LIMIT_MESSAGES_TAKEN, NULL);
	if (e == ERR_OK)
		e = picks_init(&p, n, 0);
	if (e == ERR_OK)
		e = choose(&p);
	for (size_t i = 0; e == ERR_OK && i < p.n; i++) {
		struct queue_message m;
		const struct pick *pick = &p.all[i];
		if (pick->dropped)
			continue;
		describe(&m, pick->item.id, 0, &pick->key, pick->item.body);
		m.receipt[0] = '\0';
		if (!fn(arg, &m))
			break;
	}
	picks_fini(&p);
	return e;
}

enum err message_find(
	struct service *s, uint64_t queue_id, struct span id, message_fn fn, void *arg)
{
	struct item it = { 0 };
	struct message_key key;
	struct queue_message m;
	enum err e = find(s, queue_id, id, WANT_BODY, &it, &key);
	if (e == ERR_OK) {
		describe(&m, it.id, it.version, &key, it.body);
		(void)fn(arg, &m);
	}
	item_fini(&it);
	return e;
}

static bool on_first(void *arg, const struct item *it)
{
	int64_t *ret = arg;
	struct message_key key;
	if (!message_key_read(it->key, &key))
		return true;
	*ret = key.visible;
	return false;
}

enum err queue_next_visible(struct service *s, uint64_t queue_id, int64_t *ret)
{
	*ret = INT64_MAX;
	return store_list(service_store(s), NULL, queue_id, CLASS_QUEUE, (struct span){ 0 }, false,
		WANT_KEYS, on_first, ret);
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
	enum err e = find(s, queue, id, WANT_ATTRS, ret, ret_key);
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
	enum err e = check_hidden(visibility_s, 0, detail);
	if (e == ERR_OK && text != NULL)
		e = check_text(*text, detail);
	if (e == ERR_OK)
		e = find_by_receipt(s, queue_id, id, receipt, &it, &key, detail);
	if (e == ERR_OK) {
		int64_t visible = later(service_now(s), visibility_s);
		key.visible = visible != key.visible ? visible : visible - 1; /* another state */
		struct change c = { .op = CHANGE_MOVE,
			.at = place_of(queue_id, it.key),
			.cond = COND_VERSION,
			.cond_version = it.version,
			.to = place_of(queue_id, message_key_write(&key, to)),
			.attrs = ATTRS_UNSET };
		if (text != NULL)
			c.body = text->p != NULL ? *text : SPAN_LIT("");
		e = service_apply(s, origin, &c, 1, durable, detail);
		if (e == ERR_OK)
			describe(ret, c.now.id, c.now.version, &key, (struct span){ 0 });
		changes_fini(&c, 1);
	}
	item_fini(&it);
	return lost_race(e) ? ERR_MESSAGE_NOT_FOUND : e;
}

enum err message_delete(struct service *s, enum origin origin, uint64_t queue_id, struct span id,
	struct span receipt, bool durable, struct err_detail *detail)
{
	struct item it = { 0 };
	struct message_key key;
	enum err e = find_by_receipt(s, queue_id, id, receipt, &it, &key, detail);
	if (e == ERR_OK) {
		struct change c = { .op = CHANGE_DELETE,
			.at = place_of(queue_id, it.key),
			.cond = COND_VERSION,
			.cond_version = it.version,
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &c, 1, durable, detail);
		changes_fini(&c, 1);
	}
	item_fini(&it);
	return lost_race(e) ? ERR_MESSAGE_NOT_FOUND : e;
}

/* ---- clear ---- */

struct sweep {
	struct service *service;
	uint64_t queue;
	int64_t until; /* messages inserted later stay */
	size_t n;
	char (*keys)[MESSAGE_KEY_CHARS];
	bool lost; /* a message was taken meanwhile, and may stand before this place now */
};

static bool on_swept(void *arg, const struct item *it)
{
	struct sweep *w = arg;
	struct message_key key;
	if (message_key_read(it->key, &key) && key.inserted <= w->until)
		memcpy(w->keys[w->n++], it->key.p, MESSAGE_KEY_CHARS);
	return w->n < CLEAR_AT_ONCE;
}

static struct span key_of(struct sweep *w, size_t i)
{
	return span_make(w->keys[i], MESSAGE_KEY_CHARS);
}

/* Deletes the messages that were listed, without those that others took first. */
static enum err delete_swept(
	struct sweep *w, enum origin origin, struct change *changes, struct err_detail *why)
{
	enum err e = ERR_OK;
	size_t n = w->n;
	for (size_t i = 0; i < n; i++)
		changes[i] = (struct change){ .op = CHANGE_DELETE,
			.at = place_of(w->queue, key_of(w, i)),
			.attrs = ATTRS_UNSET };
	while (n > 0) {
		why->op = 0;
		e = service_apply(w->service, origin, changes, n, true, why);
		changes_fini(changes, n);
		if (!lost_race(e) || why->op >= n)
			break;
		w->lost = true;
		changes[why->op] = changes[--n];
		e = ERR_OK;
	}
	return e;
}

static enum err sweep_once(
	struct sweep *w, enum origin origin, struct change *changes, struct err_detail *why)
{
	char last[MESSAGE_KEY_CHARS];
	struct span after = { 0 };
	enum err e = ERR_OK;
	w->lost = false;
	do {
		w->n = 0;
		e = store_list(service_store(w->service), NULL, w->queue, CLASS_QUEUE, after, false,
			WANT_KEYS, on_swept, w);
		if (w->n > 0) {
			memcpy(last, w->keys[w->n - 1], sizeof(last));
			after = span_make(last, sizeof(last));
		}
		if (e == ERR_OK)
			e = delete_swept(w, origin, changes, why);
	} while (e == ERR_OK && w->n == CLEAR_AT_ONCE);
	return e;
}

enum err queue_clear(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	struct err_detail scratch = { 0 };
	struct item queue = { 0 };
	struct sweep w = { .service = s, .queue = queue_id, .until = service_next_version(s) };
	enum err e = store_get(service_store(s), NULL, queue_id, WANT_ATTRS, &queue);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && queue.kind != ITEM_QUEUE))
		e = ERR_QUEUE_NOT_FOUND;
	item_fini(&queue);
	if (e != ERR_OK)
		return e;
	w.keys = calloc(CLEAR_AT_ONCE, sizeof(*w.keys));
	struct change *changes = calloc(CLEAR_AT_ONCE, sizeof(*changes));
	e = w.keys != NULL && changes != NULL ? ERR_OK : ERR_NO_MEMORY;
	do
		e = e == ERR_OK
			? sweep_once(&w, origin, changes, detail != NULL ? detail : &scratch)
			: e;
	while (e == ERR_OK && w.lost);
	free(changes);
	free(w.keys);
	return e;
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
