/* SPDX-License-Identifier: MIT
 * Deletes what is in a queue, in several commits, while others put and take. */
#include "model/limits.h"
#include "service/queue/message_parts.h"

#include <stdlib.h>
#include <string.h>

/* Messages that one commit of queue_clear() deletes. */
#define CLEAR_AT_ONCE 1024

struct sweep {
	struct service *service;
	uint64_t queue;
	int64_t until;   /* messages inserted later stay */
	int64_t expired; /* and those that expire later */
	size_t n;
	char (*keys)[MESSAGE_KEY_CHARS];
	bool lost; /* a message was taken meanwhile, and may stand before this place now */
};

static bool on_swept(void *arg, const struct item *it)
{
	struct sweep *w = arg;
	struct message_key key;
	if (message_key_read(it->key, &key) && key.inserted <= w->until &&
		key.expires <= w->expired)
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
			.at = message_place(w->queue, key_of(w, i)),
			.attrs = ATTRS_UNSET };
	while (n > 0) {
		why->op = 0;
		e = service_apply(w->service, origin, changes, n, true, why);
		changes_fini(changes, n);
		if (!message_race_lost(e) || why->op >= n)
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

static enum err clear(struct service *s, enum origin origin, uint64_t queue_id, int64_t expired,
	struct err_detail *detail)
{
	struct err_detail scratch = { 0 };
	struct item queue = { 0 };
	struct sweep w = { .service = s,
		.queue = queue_id,
		.until = service_next_version(s),
		.expired = expired };
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

enum err queue_clear(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	return clear(s, origin, queue_id, INT64_MAX, detail);
}

enum err queue_clear_expired(
	struct service *s, enum origin origin, uint64_t queue_id, struct err_detail *detail)
{
	return clear(s, origin, queue_id, service_now(s), detail);
}
