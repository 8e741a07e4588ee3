/* SPDX-License-Identifier: MIT */
#include "power_cut_plan.h"

#include "blob_cycle.h"
#include "power_cut_disk.h"
#include "service/blobs/upload.h"
#include "service/check/verify.h"
#include "store/engines.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOVES 6 /* the row that is moved */
#define MESSAGE 9

static uint64_t roll(const struct plan *p, unsigned set, unsigned slot)
{
	return mix(p->seed + mix(((uint64_t)p->writer << 40) + ((uint64_t)set << 8) + slot));
}

static uint32_t length(uint64_t r, unsigned slot, bool large)
{
	static const uint32_t most[] = { 60, 400, 900, 40, 3000, 200, 300, 5000, 40000, 700 };
	if (large && slot > 0)
		return 15000 + (uint32_t)(r >> 20) % 30000;
	return 24 + (uint32_t)(r >> 20) % most[slot];
}

static void plan_mixed(const struct plan *p, unsigned set, struct slot slots[SLOTS])
{
	bool large = p->seed & SEED_LARGE && roll(p, set, 100) % 8 == 0;
	for (unsigned i = 0; i < SLOTS; i++) {
		uint64_t r = roll(p, set, i);
		struct slot *s = &slots[i];
		/* The first set makes the partition: files come later. */
		if (i != 0 && ((!large && r % 3 != 0) || (set == 1 && i > MOVES)))
			continue;
		if ((i == MOVES || i == MESSAGE) && s->set != 0 && (r >> 4) % 4 != 0)
			s->moved = !s->moved;
		else if (i != 0 && s->set != 0 && (r >> 4) % 4 == 0)
			*s = (struct slot){ 0 };
		else
			*s = (struct slot){ set, length(r, i, large), s->moved };
	}
}

void plan_make(struct plan *p, enum writer_kind kind, unsigned writer, uint64_t seed, unsigned sets)
{
	if (sets > SETS_MAX || writer >= WRITERS)
		errx(2, "a writer with too high a number, or too many sets");
	*p = (struct plan){ .kind = kind, .writer = writer, .seed = seed, .sets = sets };
	p->after = calloc(sets + 1, sizeof(*p->after));
	if (p->after == NULL)
		errx(2, "out of memory");
	for (unsigned s = 1; s <= sets; s++) {
		memcpy(p->after[s], p->after[s - 1], sizeof(p->after[s]));
		if (kind == MIXED)
			plan_mixed(p, s, p->after[s]);
		for (unsigned i = 0; kind != MIXED && i < 8; i++) {
			if (kind != ONE || s % 8 == i)
				p->after[s][i].set = s;
		}
	}
}

void plan_free(struct plan *p)
{
	free(p->after);
}

bool slot_is_file(const struct plan *p, unsigned slot)
{
	return p->kind == MIXED && slot > MOVES && slot < MESSAGE;
}

bool slot_is_message(const struct plan *p, unsigned slot)
{
	return p->kind == MIXED && slot == MESSAGE;
}

void message_name(const struct plan *p, bool moved, char out[16])
{
	(void)snprintf(out, 16, "%c%u", moved ? 'n' : 'm', p->writer);
}

void slot_name(const struct plan *p, unsigned slot, char out[16])
{
	(void)snprintf(out, 16, "%c%u", slot_is_file(p, slot) ? 'f' : 'r', slot);
}

void partition_name(const struct plan *p, bool moved, char out[16])
{
	(void)snprintf(out, 16, "%c%u", moved ? 'q' : 'p', p->writer);
}

char *slot_bytes(const struct plan *p, unsigned slot, const struct slot *is)
{
	char head[40], *out = malloc(is->n + sizeof(head));
	if (out == NULL)
		errx(2, "out of memory");
	int n = snprintf(head, sizeof(head), "{\"N\":%u,\"F\":\"", is->set);
	for (uint32_t i = 0; i < is->n; i++)
		out[i] = (char)('a' + mix(roll(p, is->set, slot) + i / 8) % 26);
	memcpy(out, head, (size_t)n < is->n ? (size_t)n : is->n);
	memcpy(out + is->n - 2, "\"}", 2);
	return out;
}

/* ---- what is in a store ---- */

static void wrong(struct truth *t, const char *what, const char *where, uint64_t set)
{
	if (t->wrong[0] == '\0')
		(void)snprintf(t->wrong, sizeof(t->wrong), "%s %s (set %llu)", what, where,
			(unsigned long long)set);
}

static bool finding(void *arg, const char *text)
{
	wrong(arg, "check:", text, 0);
	return false;
}

/* 0: not there. */
static uint64_t id_of(struct store *s, uint64_t parent, const char *name, enum item_class class)
{
	struct item it = { 0 };
	enum err e = store_child(s, NULL, parent, class, span_of(name), WANT_ATTRS, &it);
	uint64_t id = e == ERR_OK ? it.id : 0;
	item_fini(&it);
	return id;
}

static char *read_slot(struct store *s, const struct item *it, size_t *ret_n)
{
	char *out = malloc((it->size > it->body.n ? it->size : it->body.n) + 1);
	if (out == NULL)
		errx(2, "out of memory");
	*ret_n = it->body.n;
	if (it->body.p != NULL)
		memcpy(out, it->body.p, it->body.n);
	else if (store_file_read(s, NULL, it->id, 0, out, it->size, ret_n) != ERR_OK)
		*ret_n = 0;
	out[*ret_n] = '\0';
	return out;
}

/* Where a writer's slots are; 0: not there. */
struct places {
	uint64_t partitions[2], queue;
};

/* The number of the set that wrote a slot; with its bytes, NULL: not there. */
static uint32_t look(struct store *s, const struct plan *p, const struct places *in, bool moved,
	unsigned slot, char **ret, size_t *ret_n)
{
	char name[16];
	struct item it = { 0 };
	unsigned set = 0;
	bool message = slot_is_message(p, slot);
	uint64_t dir = message ? in->queue : in->partitions[moved];
	enum item_class class = message ? CLASS_QUEUE
		: slot_is_file(p, slot) ? CLASS_NAMED
					: CLASS_KEYED;
	*ret = NULL;
	if (message)
		message_name(p, moved, name);
	else
		slot_name(p, slot, name);
	/* A row that waits for its document was made, but nothing was written to it. */
	if (dir != 0 && store_child(s, NULL, dir, class, span_of(name), WANT_BODY, &it) == ERR_OK &&
		!item_is_empty_row(&it))
		*ret = read_slot(s, &it, ret_n);
	item_fini(&it);
	const char *n = *ret ? strstr(*ret, "\"N\":") : NULL;
	return n && sscanf(n + 4, "%u", &set) == 1 ? set : 0;
}

static void compare(struct store *s, const struct plan *p, const struct places *in, struct truth *t)
{
	uint32_t set = t->sets[p->writer];
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct slot *want = &p->after[set][i];
		for (int other = 0; other < 2; other++) {
			char where[40], *got;
			size_t n = 0;
			uint32_t is = look(s, p, in, other == 1, i, &got, &n);
			bool there = want->set != 0 && want->moved == (other == 1);
			(void)snprintf(where, sizeof(where), "%u/%d/%u", p->writer, other, i);
			if (there != (got != NULL))
				wrong(t, there ? "missing" : "too much", where, set);
			else if (there && is != want->set)
				wrong(t, "of another set", where, set);
			if (there && got && p->kind == MIXED) {
				char *bytes = slot_bytes(p, i, want);
				if (n != want->n || memcmp(got, bytes, n) != 0)
					wrong(t, "other bytes", where, set);
				free(bytes);
			}
			free(got);
		}
	}
}

struct messages {
	uint32_t n;
	bool wrong;
};

/* They stand in the order in which they were put. */
static bool on_message(void *arg, const struct item *it)
{
	struct messages *m = arg;
	char number[16];
	int n = snprintf(number, sizeof(number), "%u", ++m->n);
	m->wrong |= !span_eq(it->body, span_make(number, (size_t)n));
	return true;
}

/* Each set has put its message, and no other set has. */
static void compare_messages(
	struct store *s, const struct plan *p, uint64_t account, struct truth *t)
{
	char name[16];
	struct messages m = { 0 };
	(void)snprintf(name, sizeof(name), QUEUE "%u", p->writer);
	uint64_t queue = account ? id_of(s, account, name, CLASS_QUEUE) : 0;
	if (queue != 0 &&
		store_list(s, NULL, queue, CLASS_QUEUE, (struct span){ 0 }, false, WANT_BODY,
			on_message, &m) != ERR_OK)
		wrong(t, "messages that cannot be read", name, m.n);
	if (m.wrong || m.n != t->sets[p->writer])
		wrong(t, m.wrong ? "other messages" : "another number of messages", name, m.n);
}

static void look_at(
	struct store *s, const struct plan *p, uint64_t table, uint64_t queue, struct truth *t)
{
	char name[16];
	struct places in = { .queue = queue };
	uint32_t highest = 0;
	for (int other = 0; other < 2 && table != 0; other++) {
		partition_name(p, other == 1, name);
		in.partitions[other] = id_of(s, table, name, CLASS_KEYED);
	}
	for (unsigned i = 0; i < (p->kind == ONE ? 8 : 1); i++) {
		char *bytes;
		size_t n;
		uint32_t set = look(s, p, &in, false, i, &bytes, &n);
		highest = set > highest ? set : highest;
		free(bytes);
	}
	t->sets[p->writer] = highest;
	if (highest > p->sets)
		wrong(t, "a set that was refused", "", highest);
	else
		compare(s, p, &in, t);
}

static void look_at_queues(struct store *s, const struct plan *p, uint64_t account, struct truth *t)
{
	char seen[200];
	if (!queues_set_of(s, p, account, &t->sets[p->writer], seen, sizeof(seen)))
		wrong(t, "queues as after no set:", seen, p->sets);
}

static void look_at_all(struct store *s, const struct plan plans[WRITERS], struct truth *t)
{
	uint64_t account = id_of(s, STORE_ROOT, ACCOUNT, CLASS_KEYED);
	uint64_t table = account ? id_of(s, account, TABLE, CLASS_KEYED) : 0;
	uint64_t queue = account ? id_of(s, account, QUEUE, CLASS_QUEUE) : 0;
	for (unsigned i = 0; i < WRITERS; i++) {
		if (plans[i].kind == QUEUES)
			look_at_queues(s, &plans[i], account, t);
		else if (plans[i].kind != NOBODY && plans[i].kind != BLOBS)
			look_at(s, &plans[i], table, queue, t);
		if (plans[i].kind == WITH)
			compare_messages(s, &plans[i], account, t);
	}
	if (store_check(s, finding, NULL, t) != ERR_OK)
		wrong(t, "check", "", 0);
}

static struct store *open_store(const char *path, struct truth *t)
{
	struct store *s = NULL;
	struct err_detail d = { 0 };
	enum err e = store_open(path, 0, &s, NULL, &d);
	if (e == ERR_NOT_FOUND)
		t->absent = true;
	else if (e != ERR_OK)
		wrong(t, err_symbol(e), d.text, 0);
	return e == ERR_OK ? s : NULL;
}

static void look_at_blobs(struct service *v, const struct plan *p, struct truth *t)
{
	char state[BLOB_CYCLE_STATE], shorter[320];
	uint64_t account = id_of(service_store(v), STORE_ROOT, ACCOUNT, CLASS_KEYED);
	enum err e = blob_cycle_tell(v, account, p->writer, state);
	(void)snprintf(shorter, sizeof(shorter), "%.300s", state);
	if (e != ERR_OK)
		wrong(t, "blobs that cannot be read:", err_symbol(e), 0);
	else if (!blob_cycle_find(state, p->sets, &t->sets[p->writer]))
		wrong(t, "blobs as after no operation:", shorter, p->sets);
}

/* Blobs are read through the service, on a store that it opens. */
static void look_through_service(
	const char *path, const struct plan plans[WRITERS], struct truth *t)
{
	struct verify_counts counts;
	struct service *v = NULL;
	struct store *s = open_store(path, t);
	if (s == NULL || service_new(s, &v) != ERR_OK || blob_uploads_drop(v) != ERR_OK)
		errx(2, "a store that was opened cannot be opened again");
	for (unsigned i = 0; i < WRITERS; i++) {
		if (plans[i].kind == BLOBS)
			look_at_blobs(v, &plans[i], t);
	}
	if (service_verify(v, finding, NULL, t, &counts) != ERR_OK)
		wrong(t, "check", "", 0);
	service_free(v);
}

static bool have_blobs(const struct plan plans[WRITERS])
{
	for (unsigned i = 0; i < WRITERS; i++) {
		if (plans[i].kind == BLOBS)
			return true;
	}
	return false;
}

void truth_of(const char *path, const struct plan plans[WRITERS], bool again, struct truth *ret)
{
	memset(ret, 0, sizeof(*ret));
	struct store *s = open_store(path, ret);
	if (s == NULL)
		return;
	look_at_all(s, plans, ret);
	if (have_blobs(plans)) {
		store_close(s);
		look_through_service(path, plans, ret);
		s = open_store(path, ret);
	}
	if (again && s != NULL) {
		struct truth first = *ret;
		struct change c = { .op = CHANGE_PUT,
			.at = { .parent = STORE_ROOT, .key = SPAN_LIT("later") },
			.kind = ITEM_ACCOUNT,
			.version = store_version_floor(s) + 1,
			.attrs = ATTRS_UNSET,
			.body = SPAN_LIT("{}") };
		struct err_detail d;
		if (store_apply(s, &c, 1, true, &d) != ERR_OK)
			wrong(ret, "it cannot be written", "", 0);
		changes_fini(&c, 1);
		store_close(s);
		s = open_store(path, ret);
		if (s != NULL)
			look_at_all(s, plans, ret);
		if (s == NULL || memcmp(first.sets, ret->sets, sizeof(first.sets)) != 0)
			wrong(ret, "changed by opening it again", "", 0);
	}
	store_close(s);
}
