/* SPDX-License-Identifier: MIT
 * A ring: a new name takes the place of the oldest one that is not in use. */
#include "fs/queue/names.h"

#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 4096
#define TEXTS_MAX 256 /* texts that wait for a rename: 16 MiB at most */

struct entry {
	uint64_t number;
	struct queue_name n;
	unsigned open;
	bool waits; /* its text waits */
	struct buf text;
};

struct queue_names {
	struct mutex lock;
	uint64_t last; /* number */
	size_t texts;
	struct entry *all[NAMES_MAX]; /* by the number */
};

struct queue_names *queue_names_new(void)
{
	struct queue_names *t = calloc(1, sizeof(*t));
	if (t != NULL && mutex_init(&t->lock, RANK_QUEUE_NAMES) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

static void clear(struct queue_names *t, struct entry **at)
{
	if (*at == NULL)
		return;
	t->texts -= (*at)->waits;
	buf_fini(&(*at)->text);
	free(*at);
	*at = NULL;
}

void queue_names_free(struct queue_names *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < NAMES_MAX; i++)
		clear(t, &t->all[i]);
	mutex_destroy(&t->lock);
	free(t);
}

static struct entry **slot_of(struct queue_names *t, uint64_t number)
{
	struct entry **at = &t->all[number % NAMES_MAX];
	return *at != NULL && (*at)->number == number ? at : NULL;
}

static struct entry **find(
	struct queue_names *t, uint64_t queue, enum queue_place place, struct span name)
{
	for (size_t i = 0; i < NAMES_MAX; i++) {
		const struct entry *e = t->all[i];
		if (e != NULL && e->n.queue == queue && e->n.place == place &&
			span_is(name, e->n.name))
			return &t->all[i];
	}
	return NULL;
}

/* A text that waits is nobody's but the user's: it stays until it is removed. */
static struct entry **free_slot(struct queue_names *t)
{
	for (size_t i = 0; i < NAMES_MAX; i++) {
		struct entry **at = &t->all[++t->last % NAMES_MAX];
		if (*at == NULL || ((*at)->open == 0 && !(*at)->waits)) {
			clear(t, at);
			return at;
		}
	}
	return NULL;
}

uint64_t queue_names_add(struct queue_names *t, const struct queue_name *n)
{
	uint64_t number = 0;
	mutex_lock(&t->lock);
	struct entry **same = find(t, n->queue, n->place, span_of(n->name));
	if (same != NULL && (*same)->open == 0)
		clear(t, same);
	else if (same != NULL)
		(*same)->n.name[0] = '\0'; /* its files stay open */
	struct entry **at = free_slot(t);
	if (at != NULL && (*at = calloc(1, sizeof(**at))) != NULL) {
		(*at)->n = *n;
		(*at)->text = BUF_INIT(LIMIT_MESSAGE_BYTES);
		(*at)->number = number = t->last;
	}
	mutex_unlock(&t->lock);
	return number;
}

bool queue_names_find(struct queue_names *t, uint64_t queue, enum queue_place place,
	struct span name, uint64_t *ret_number, struct queue_name *ret)
{
	mutex_lock(&t->lock);
	struct entry **at = find(t, queue, place, name);
	if (at != NULL) {
		*ret_number = (*at)->number;
		*ret = (*at)->n;
	}
	mutex_unlock(&t->lock);
	return at != NULL;
}

bool queue_names_get(struct queue_names *t, uint64_t number, struct queue_name *ret)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	if (at != NULL)
		*ret = (*at)->n;
	mutex_unlock(&t->lock);
	return at != NULL;
}

void queue_names_set(struct queue_names *t, uint64_t number, const struct queue_name *n)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	if (at != NULL) {
		struct entry **same = find(t, n->queue, n->place, span_of(n->name));
		if (same != NULL && same != at)
			clear(t, same);
		(*at)->n = *n;
		if (n->item != 0 && (*at)->waits) {
			(*at)->waits = false;
			t->texts--;
			buf_fini(&(*at)->text);
		}
	}
	mutex_unlock(&t->lock);
}

void queue_names_drop(struct queue_names *t, uint64_t number)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	if (at != NULL && (*at)->open == 0)
		clear(t, at);
	else if (at != NULL)
		(*at)->n.name[0] = '\0';
	mutex_unlock(&t->lock);
}

enum err queue_names_keep(struct queue_names *t, uint64_t number, struct buf *text)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	bool may = at != NULL && ((*at)->waits || t->texts < TEXTS_MAX);
	if (may) {
		t->texts += !(*at)->waits;
		(*at)->waits = true;
		buf_fini(&(*at)->text);
		(*at)->n.size = text->len;
		(*at)->text = *text;
		*text = (struct buf){ 0 };
	}
	mutex_unlock(&t->lock);
	buf_fini(text);
	return may ? ERR_OK : ERR_NO_MEMORY;
}

bool queue_names_waits(struct queue_names *t, uint64_t number)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	bool waits = at != NULL && (*at)->waits;
	mutex_unlock(&t->lock);
	return waits;
}

enum err queue_names_text(struct queue_names *t, uint64_t number, struct buf *out)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	if (at != NULL)
		buf_add_span(out, buf_span(&(*at)->text));
	mutex_unlock(&t->lock);
	return at == NULL ? ERR_GONE : buf_full(out);
}

void queue_names_open(struct queue_names *t, uint64_t number, bool open)
{
	mutex_lock(&t->lock);
	struct entry **at = slot_of(t, number);
	if (at != NULL) {
		(*at)->open += open ? 1u : -1u;
		if ((*at)->open == 0 && (*at)->n.name[0] == '\0')
			clear(t, at);
	}
	mutex_unlock(&t->lock);
}
