/* SPDX-License-Identifier: MIT
 * Takes and peeks: choosing visible messages, so that threads of one process skip each other's. */
#include "base/clock.h"
#include "model/limits.h"
#include "service/core/claims.h"
#include "service/queue/message_parts.h"

#include <stdlib.h>

/* How often a take begins anew after others took all that it chose. */
#define TRIES 64
/* Expired messages that a take removes besides: few at first, since there are hardly ever any. */
#define EXPIRED_FIRST 8
#define EXPIRED_THEN 1024
/* So many messages are read with a lock held that writers need (WANT_FEW). */
#define FEW 16

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
	unsigned want = WANT_SMALL_BODY;
	p->now = service_now(p->service);
	/* The commit that follows reads the same pages on the writer's connection. */
	if (p->claims && p->max <= FEW)
		want |= WANT_FEW;
	enum err e = store_list(service_store(p->service), NULL, p->queue, CLASS_QUEUE,
		(struct span){ 0 }, false, want, on_message, p);
	if (e == ERR_OK)
		e = p->error;
	return e == ERR_OK ? read_texts(p) : e;
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
			.at = message_place(p->queue, pick->item.key),
			.cond = COND_VERSION,
			.cond_version = pick->item.version,
			.attrs = ATTRS_UNSET };
		if (pick->expired)
			continue;
		struct message_key to = pick->key;
		to.visible = message_time_later(p->now, visibility_s);
		to.taken += to.taken < UINT32_MAX;
		c->op = CHANGE_MOVE;
		c->to = message_place(p->queue, message_key_write(&to, pick->to));
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
	while (message_race_lost(e)) {
		size_t n = prepare(p, visibility_s, changes, of);
		why->op = 0;
		e = n == 0 ? ERR_OK : service_apply(p->service, origin, changes, n, durable, why);
		if (e == ERR_OK)
			keep_results(changes, of, n);
		else if (message_race_lost(e))
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
		message_describe(&m, pick->item.id, pick->version, &pick->key, pick->item.body);
		if (!receipts)
			m.receipt[0] = '\0';
		go_on = fn(arg, &m);
	}
	return n;
}

enum err message_take(struct service *s, enum origin origin, uint64_t queue_id, unsigned n,
	int64_t visibility_s, bool durable, message_fn fn, void *arg, struct err_detail *detail)
{
	enum err e = message_check_range("numofmessages", n, 1, LIMIT_MESSAGES_TAKEN, detail);
	if (e == ERR_OK)
		e = message_check_hidden(visibility_s, 1, detail);
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
	enum err e = message_check_hidden(visibility_s, 1, detail);
	if (e == ERR_OK)
		e = picks_init(&p, 1, 0);
	if (e != ERR_OK)
		return e;
	struct pick *pick = &p.all[0];
	p.now = service_now(s);
	e = message_find_item(s, queue_id, id, WANT_BODY, &pick->item, &pick->key);
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

/* ---- peek ---- */

enum err message_peek(struct service *s, uint64_t queue_id, unsigned n, message_fn fn, void *arg)
{
	struct picks p = { .service = s, .queue = queue_id };
	enum err e = message_check_range("numofmessages", n, 1, LIMIT_MESSAGES_TAKEN, NULL);
	if (e == ERR_OK)
		e = picks_init(&p, n, 0);
	if (e == ERR_OK)
		e = choose(&p);
	for (size_t i = 0; e == ERR_OK && i < p.n; i++) {
		struct queue_message m;
		const struct pick *pick = &p.all[i];
		if (pick->dropped)
			continue;
		message_describe(&m, pick->item.id, 0, &pick->key, pick->item.body);
		m.receipt[0] = '\0';
		if (!fn(arg, &m))
			break;
	}
	picks_fini(&p);
	return e;
}
