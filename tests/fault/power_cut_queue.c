/* SPDX-License-Identifier: MIT
 * The writer of queues: what its queues hold after each set, and what a store shows of them.  Ten sets
 * go from one queue to the next; after any two sets the queues differ. */
#include "power_cut_plan.h"
#include "service/queue/message_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_BYTES 300
#define LARGEST 3 /* messages of a queue */

/* ---- as it should be ---- */

struct model {
	bool there;
	unsigned cycle, metadata, policy, n;
	struct {
		unsigned text, taken;
	} message[LARGEST];
};

static void put(struct model *q, unsigned set)
{
	q->message[q->n].text = set;
	q->message[q->n++].taken = 0;
}

/* A taken message stands behind the others. */
static void take(struct model *q)
{
	unsigned text = q->message[0].text;
	q->message[0] = q->message[1];
	q->message[1].text = text;
	q->message[1].taken = 1;
}

static void happen(struct model queues[2], unsigned set)
{
	unsigned cycle = (set - 1) / 10;
	struct model *q = &queues[cycle % 2];
	switch ((set - 1) % 10) {
	case 0:
		*q = (struct model){ .there = true, .cycle = cycle, .metadata = set };
		break;
	case 1: /* the first has none before it */
		if (cycle > 0)
			queues[(cycle + 1) % 2].there = false;
		else
			q->metadata = set;
		break;
	case 2:
	case 3:
		put(q, set);
		break;
	case 4:
		q->metadata = set;
		break;
	case 5:
		q->policy = set;
		break;
	case 6:
		take(q);
		break;
	case 7:
		q->message[1].text = set;
		break;
	case 8:
		q->n = 1;
		break;
	default:
		if (cycle % 2 == 0)
			q->n = 0;
		else
			put(q, set);
	}
}

static void add(char *out, const char *text)
{
	(void)strncat(out, text, STATE_BYTES - 1 - strlen(out));
}

static void tell(const struct model *q, char *out)
{
	char text[80];
	if (!q->there)
		return;
	(void)snprintf(
		text, sizeof(text), "%u: metadata %u, policy %u", q->cycle, q->metadata, q->policy);
	add(out, text);
	for (unsigned i = 0; i < q->n; i++) {
		(void)snprintf(text, sizeof(text), ", %u taken %u", q->message[i].text,
			q->message[i].taken);
		add(out, text);
	}
	add(out, "; ");
}

static void expected(const struct model queues[2], char out[STATE_BYTES])
{
	unsigned first = queues[1].there && queues[1].cycle < queues[0].cycle;
	out[0] = '\0';
	tell(&queues[first], out);
	tell(&queues[!first], out);
}

/* ---- as it is ---- */

struct seen_queues {
	struct store *store;
	unsigned writer, n, cycle[4];
	uint64_t id[4];
	char *out;
};

static bool on_queue(void *arg, const struct item *it)
{
	struct seen_queues *s = arg;
	char name[40];
	unsigned writer, cycle;
	(void)snprintf(name, sizeof(name), "%.*s", (int)it->key.n, it->key.p);
	if (sscanf(name, "cycle-%u-%u", &writer, &cycle) == 2 && writer == s->writer && s->n < 4) {
		s->id[s->n] = it->id;
		s->cycle[s->n++] = cycle;
	}
	return true;
}

static bool on_message(void *arg, const struct item *it)
{
	struct seen_queues *s = arg;
	struct message_key key = { 0 };
	char text[80];
	bool sound = message_key_read(it->key, &key);
	(void)snprintf(text, sizeof(text), ", %.*s taken %u%s", (int)it->body.n,
		it->body.p != NULL ? it->body.p : "", key.taken, sound ? "" : " (no key)");
	add(s->out, text);
	return true;
}

static unsigned number_behind(struct span body, const char *mark)
{
	char *text = strndup(body.p != NULL ? body.p : "", body.n);
	const char *at = text != NULL ? strstr(text, mark) : NULL;
	unsigned n = at != NULL ? (unsigned)strtoul(at + strlen(mark), NULL, 10) : 0;
	free(text);
	return n;
}

static enum err shown(struct seen_queues *s, uint64_t account)
{
	enum err e = store_list(s->store, NULL, account, CLASS_QUEUE, (struct span){ 0 }, false,
		WANT_KEYS, on_queue, s);
	for (unsigned i = 0; e == ERR_OK && i < s->n; i++) {
		struct item it = { 0 };
		char text[80];
		e = store_get(s->store, NULL, s->id[i], WANT_BODY, &it);
		(void)snprintf(text, sizeof(text), "%u: metadata %u, policy %u", s->cycle[i],
			number_behind(it.body, "n:"), number_behind(it.body, "<Id>"));
		item_fini(&it);
		add(s->out, text);
		if (e == ERR_OK)
			e = store_list(s->store, NULL, s->id[i], CLASS_QUEUE, (struct span){ 0 },
				false, WANT_BODY, on_message, s);
		add(s->out, "; ");
	}
	return e;
}

bool queues_set_of(struct store *s, const struct plan *p, uint64_t account, uint32_t *ret_set,
	char *ret_seen, size_t room)
{
	struct model queues[2] = { 0 };
	char is[STATE_BYTES] = "", want[STATE_BYTES];
	struct seen_queues seen = { .store = s, .writer = p->writer, .out = is };
	bool read = account == 0 || shown(&seen, account) == ERR_OK;
	for (unsigned set = 0; read && set <= p->sets; set++) {
		if (set > 0)
			happen(queues, set);
		expected(queues, want);
		if (strcmp(is, want) == 0) {
			*ret_set = set;
			return true;
		}
	}
	(void)snprintf(ret_seen, room, "%s", is);
	return false;
}
