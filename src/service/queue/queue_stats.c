/* SPDX-License-Identifier: MIT */
#include "service/queue/queue_stats.h"

#include "base/clock.h"
#include "service/queue/message_name.h"

#include <stdlib.h>

struct ids {
	uint64_t *all;
	size_t n, cap;
	uint64_t children;
	enum err error;
};

static bool on_item(void *arg, const struct item *it)
{
	struct ids *ids = arg;
	if (it->kind != ITEM_ACCOUNT && it->kind != ITEM_QUEUE)
		return true;
	if (ids->n == ids->cap) {
		size_t cap = ids->cap == 0 ? 64 : ids->cap * 2;
		uint64_t *more = reallocarray(ids->all, cap, sizeof(*more));
		ids->error = more != NULL ? ERR_OK : ERR_NO_MEMORY;
		if (more == NULL)
			return false;
		ids->all = more;
		ids->cap = cap;
	}
	ids->all[ids->n++] = it->id;
	ids->children += it->size;
	return true;
}

static enum err list_ids(struct service *s, struct store_view *view, uint64_t parent,
	enum item_class class, struct ids *ret)
{
	*ret = (struct ids){ 0 };
	enum err e = store_list(service_store(s), view, parent, class, (struct span){ 0 }, false,
		WANT_ATTRS, on_item, ret);
	return e == ERR_OK ? ret->error : e;
}

struct tally {
	struct queue_stats *stats;
	int64_t now;
	bool each;
};

static int64_t seconds(int64_t ticks)
{
	return ticks > 0 ? ticks / TICKS_PER_SECOND : 0;
}

static void raise_to(int64_t *value, int64_t other)
{
	if (*value < other)
		*value = other;
}

/* Messages come in the order in which they become visible. */
static bool on_message(void *arg, const struct item *it)
{
	struct tally *t = arg;
	struct message_key key;
	if (!message_key_read(it->key, &key) || key.expires <= t->now)
		return true;
	bool visible = key.visible <= t->now;
	if (visible)
		raise_to(&t->stats->waiting, seconds(t->now - key.visible));
	if (!t->each)
		return false;
	t->stats->messages++;
	t->stats->visible += visible;
	raise_to(&t->stats->oldest, seconds(t->now - key.inserted));
	return true;
}

static enum err tally_account(
	struct service *s, struct store_view *view, uint64_t account, struct tally *t)
{
	struct ids queues;
	enum err e = list_ids(s, view, account, CLASS_QUEUE, &queues);
	t->stats->queues += queues.n;
	if (!t->each)
		t->stats->messages += queues.children;
	for (size_t i = 0; e == ERR_OK && i < queues.n; i++)
		e = store_list(service_store(s), view, queues.all[i], CLASS_QUEUE,
			(struct span){ 0 }, false, WANT_KEYS, on_message, t);
	free(queues.all);
	return e;
}

enum err queue_stats(struct service *s, struct store_view *view, bool each, struct queue_stats *ret)
{
	struct ids accounts;
	*ret = (struct queue_stats){ .oldest = -1, .waiting = -1 };
	struct tally t = { .stats = ret, .now = service_now(s), .each = each };
	enum err e = list_ids(s, view, STORE_ROOT, CLASS_KEYED, &accounts);
	for (size_t i = 0; e == ERR_OK && i < accounts.n; i++)
		e = tally_account(s, view, accounts.all[i], &t);
	free(accounts.all);
	return e;
}
