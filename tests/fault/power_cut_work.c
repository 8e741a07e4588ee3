/* SPDX-License-Identifier: MIT
 * Writers over one store in this process: several threads in rounds, between which the log is
 * copied and begun anew, the store closed and opened, and views held. */
#include "blob_cycle.h"
#include "calls.h"
#include "power_cut_disk.h"
#include "power_cut_plan.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <sqlite3.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct work works[] = {
	{ "alone", 1, 8, 6, 0, false, false, true },
	{ "several", 4, 6, 5, 12, false, false, true },
	{ "large", 4, 5, 10, 20, true, true, true },
	{ "tiny cache", 2, 5, 8, 8, true, false, true },
	{ "many", 8, 8, 8, 16, false, true, false },
	{ "long log", 2, 3, 150, 0, true, true, false },
	{ "blobs", 2, 4, 15, 0, false, false, true, true },
	{ NULL, 0, 0, 0, 0, false, false, false, false },
};

struct writer {
	struct scene *scene;
	const struct plan *plan;
	unsigned first, last; /* sets of this round */
};

struct scene {
	const struct work *work;
	char path[200];
	struct store *store;
	struct service *service; /* of BLOBS: owns the store */
	uint64_t account, table, queue;
	uint64_t seed;
	struct plan plans[WRITERS];
	_Atomic int64_t version;
};

/* The engine's first connection is the one that writes. */
static sqlite3 *first_opened;

static int on_open(sqlite3 *db, const char **error, const struct sqlite3_api_routines *api)
{
	(void)error;
	(void)api;
	if (first_opened == NULL)
		first_opened = db;
	return SQLITE_OK;
}

static void must(enum err e, const char *what)
{
	if (e != ERR_OK)
		errx(2, "%s: %s", what, err_symbol(e));
}

static struct span key_of(const char *name)
{
	return span_of(name);
}

/* ---- change sets ---- */

#define CHANGES 40
struct set {
	struct change c[CHANGES];
	size_t n;
	char names[CHANGES][16], partitions[2][16];
	char *bytes[CHANGES];
	uint64_t partition;
	unsigned nnames;
};

static struct change *add(struct set *s, enum change_op op, struct item_ref at)
{
	if (s->n == CHANGES)
		errx(2, "too many changes");
	s->c[s->n] = (struct change){ .op = op, .at = at, .attrs = ATTRS_UNSET };
	return &s->c[s->n++];
}

static struct item_ref place_of(
	struct scene *sc, struct set *s, const struct plan *p, unsigned slot, bool moved)
{
	char *name = s->names[s->nnames++ % CHANGES];
	if (slot_is_message(p, slot)) {
		message_name(p, moved, name);
		return (struct item_ref){
			.parent = sc->queue, .class = CLASS_QUEUE, .key = key_of(name)
		};
	}
	slot_name(p, slot, name);
	if (slot_is_file(p, slot))
		return (struct item_ref){
			.parent = s->partition, .class = CLASS_NAMED, .key = key_of(name)
		};
	partition_name(p, moved, s->partitions[moved]);
	return (struct item_ref){ .parent = sc->table,
		.has_pk = true,
		.pk = key_of(s->partitions[moved]),
		.key = key_of(name) };
}

static void add_file(struct scene *sc, struct set *s, const struct plan *p, unsigned slot,
	bool is_there, struct span body)
{
	struct item_ref at = place_of(sc, s, p, slot, false);
	if (!is_there)
		add(s, CHANGE_PUT, at)->kind = ITEM_FILE;
	else
		add(s, CHANGE_RESIZE, at)->offset = body.n / 2;
	struct change *c = add(s, CHANGE_WRITE, at);
	c->body = body;
	if (is_there)
		add(s, CHANGE_RESIZE, at)->offset = body.n;
}

static void add_slot(
	struct scene *sc, struct set *s, const struct plan *p, unsigned set, unsigned slot)
{
	const struct slot *was = &p->after[set - 1][slot], *is = &p->after[set][slot];
	if (memcmp(was, is, sizeof(*is)) == 0)
		return;
	struct item_ref at = place_of(sc, s, p, slot, was->moved);
	if (is->set == 0) {
		add(s, CHANGE_DELETE, at);
	} else if (is->set != set) {
		struct change *c = add(s, CHANGE_MOVE, at);
		c->to = place_of(sc, s, p, slot, is->moved);
	} else {
		char *bytes = s->bytes[s->n] = slot_bytes(p, slot, is);
		struct span body = span_make(bytes, is->n);
		if (slot_is_file(p, slot)) {
			add_file(sc, s, p, slot, was->set != 0, body);
		} else if (slot_is_message(p, slot) && was->set != 0) {
			struct change *c = add(s, CHANGE_MOVE, at);
			c->to = place_of(sc, s, p, slot, is->moved);
			c->body = body;
		} else {
			struct change *c = add(s, CHANGE_PUT, place_of(sc, s, p, slot, is->moved));
			c->kind = slot_is_message(p, slot) ? ITEM_MESSAGE : ITEM_ROW;
			c->body = body;
		}
	}
}

static uint64_t partition_id(struct scene *sc, const struct plan *p)
{
	char name[16];
	struct item it = { 0 };
	partition_name(p, false, name);
	enum err e =
		store_child(sc->store, NULL, sc->table, CLASS_KEYED, key_of(name), WANT_ATTRS, &it);
	uint64_t id = e == ERR_OK ? it.id : 0;
	item_fini(&it);
	return id;
}

static void set_make(struct scene *sc, const struct plan *p, unsigned set, struct set *s)
{
	memset(s, 0, sizeof(*s));
	s->partition = partition_id(sc, p);
	for (unsigned i = 0; i < SLOTS; i++)
		add_slot(sc, s, p, set, i);
}

static void set_free(struct set *s)
{
	for (size_t i = 0; i < CHANGES; i++)
		free(s->bytes[i]);
}

/* Versions are taken anew until none of the folders above has a later one. */
static enum err apply(struct scene *sc, struct set *s, bool durable)
{
	struct err_detail d;
	enum err e;
	do {
		for (size_t i = 0; i < s->n; i++)
			s->c[i].version = atomic_fetch_add(&sc->version, 1) + 1;
		e = store_apply(sc->store, s->c, s->n, durable, &d);
	} while (e == ERR_STALE_VERSION);
	if (e == ERR_OK)
		changes_fini(s->c, s->n);
	return e;
}

/* Some of what the next set would do, a set's worth that no plan knows, and then what cannot be. */
static void be_refused(struct scene *sc, const struct plan *p, uint64_t r)
{
	static const struct slot never = { 999999, 500, false };
	struct set s = { 0 };
	s.partition = partition_id(sc, p);
	/* The later ones twice: after they may have been written to the log. */
	for (unsigned k = 0; k < 9; k++) {
		unsigned i = k < 6 ? k : k - 3;
		struct slot is = never;
		is.set += k;
		is.n = sc->work->large && r % 2 ? 40000 : 500 + i;
		s.bytes[s.n] = slot_bytes(p, i, &is);
		struct span body = span_make(s.bytes[s.n], is.n);
		struct change *c = add(&s, CHANGE_PUT, place_of(sc, &s, p, i, false));
		c->kind = ITEM_ROW;
		c->body = body;
	}
	static const char nothing[] = "nothing";
	struct change *c = add(&s, CHANGE_DELETE, place_of(sc, &s, p, 0, false));
	c->at.key = span_of(nothing);
	if (apply(sc, &s, false) == ERR_OK)
		errx(2, "a change set that removes nothing was accepted");
	set_free(&s);
}

static void *write_sets(void *arg)
{
	struct writer *w = arg;
	struct scene *sc = w->scene;
	for (unsigned set = w->first; set <= w->last; set++) {
		uint64_t r = mix(sc->seed ^ mix((uint64_t)w->plan->writer * 5000 + set));
		bool durable = r % 3 == 0;
		struct set s;
		if (set > 1 && (r >> 8) % 4 == 0)
			be_refused(sc, w->plan, r >> 16);
		set_make(sc, w->plan, set, &s);
		calls_mark("ask %u %u", w->plan->writer, set);
		must(apply(sc, &s, durable), "a change set");
		calls_mark("%s %u %u", durable ? "durable" : "seen", w->plan->writer, set);
		set_free(&s);
		if ((r >> 4) % 8 == 0) {
			calls_mark("sync %u", w->plan->writer);
			must(store_sync(sc->store), "a sync");
			calls_mark("synced %u", w->plan->writer);
		}
	}
	return NULL;
}

static void *write_blobs(void *arg)
{
	struct writer *w = arg;
	struct scene *sc = w->scene;
	unsigned writer = w->plan->writer;
	for (unsigned set = w->first; set <= w->last; set++) {
		calls_mark("ask %u %u", writer, set);
		must(blob_cycle_do(sc->service, sc->account, writer, set, NULL),
			blob_cycle_name(set));
		calls_mark(
			"%s %u %u", blob_cycle_is_durable(set) ? "durable" : "seen", writer, set);
	}
	return NULL;
}

/* ---- rounds ---- */

static void open_store(struct scene *sc)
{
	struct err_detail d = { 0 };
	first_opened = NULL;
	must(store_open(sc->path, 0, &sc->store, NULL, &d), d.text);
	if (sc->work->blobs)
		must(service_new(sc->store, &sc->service), "a service");
	char text[64];
	(void)snprintf(text, sizeof(text), "PRAGMA cache_size=%d", sc->work->cache);
	if (sc->work->cache != 0 && sqlite3_exec(first_opened, text, NULL, NULL, NULL) != 0)
		errx(2, "%s", text);
	if (store_version_floor(sc->store) > atomic_load(&sc->version))
		atomic_store(&sc->version, store_version_floor(sc->store));
}

static void close_store(struct scene *sc)
{
	if (sc->work->blobs)
		service_free(sc->service);
	else
		store_close(sc->store);
}

static uint64_t make(struct scene *sc, uint64_t parent, enum item_kind kind, const char *name)
{
	struct set s = { 0 };
	enum item_class class = kind == ITEM_QUEUE ? CLASS_QUEUE : CLASS_KEYED;
	struct item_ref at = { .parent = parent, .class = class, .key = key_of(name) };
	struct change *c = add(&s, CHANGE_PUT, at);
	c->kind = kind;
	c->name = key_of(name);
	c->body = SPAN_LIT("{}");
	c->item_flags = ITEM_MADE;
	must(apply(sc, &s, true), name);
	struct item it = { 0 };
	must(store_child(sc->store, NULL, parent, class, key_of(name), WANT_ATTRS, &it), name);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

static void begin(struct scene *sc)
{
	struct err_detail d = { 0 };
	for (unsigned i = 0; i < sc->work->writers; i++)
		calls_mark("writer %u %c %llu %u", i, (int)sc->plans[i].kind,
			(unsigned long long)sc->plans[i].seed, sc->plans[i].sets);
	must(store_create(sc->path, &d), d.text);
	calls_mark("made");
	open_store(sc);
	if (sc->work->blobs) {
		struct item it = { 0 };
		must(account_create(
			     sc->service, ORIGIN_COMMAND, SPAN_LIT(ACCOUNT), NULL, NULL, NULL),
			"an account");
		must(account_find(sc->service, SPAN_LIT(ACCOUNT), &it), "an account");
		sc->account = it.id;
		item_fini(&it);
		return;
	}
	sc->account = make(sc, STORE_ROOT, ITEM_ACCOUNT, ACCOUNT);
	sc->table = make(sc, sc->account, ITEM_TABLE, TABLE);
	sc->queue = make(sc, sc->account, ITEM_QUEUE, QUEUE);
}

static void run_round(struct scene *sc, unsigned round)
{
	pthread_t threads[WRITERS];
	struct writer writers[WRITERS];
	struct store_view *view = NULL;
	const struct work *w = sc->work;
	void *(*write)(void *) = w->blobs ? write_blobs : write_sets;
	if (w->views)
		must(store_view_hold(sc->store, &view), "a view");
	for (unsigned i = 0; i < w->writers; i++) {
		writers[i] = (struct writer){ sc, &sc->plans[i], round * w->sets + 1,
			(round + 1) * w->sets };
		if (pthread_create(&threads[i], NULL, write, &writers[i]) != 0)
			errx(2, "pthread_create");
	}
	/* Ends beside the writers: the log is copied meanwhile. */
	if (view != NULL && round % 2 == 0)
		(void)usleep(20000);
	if (round % 2 == 0)
		store_view_close(sc->store, view);
	for (unsigned i = 0; i < w->writers; i++)
		(void)pthread_join(threads[i], NULL);
	if (round % 2 != 0)
		store_view_close(sc->store, view);
}

/* As the engine does it by itself, but that takes a long log. */
static void between(struct scene *sc, unsigned round)
{
	static const int modes[] = { SQLITE_CHECKPOINT_PASSIVE, SQLITE_CHECKPOINT_RESTART,
		SQLITE_CHECKPOINT_TRUNCATE };
	unsigned what = (unsigned)(mix(sc->seed + round) % 5);
	if (what < 3) {
		(void)sqlite3_wal_checkpoint_v2(first_opened, NULL, modes[what], NULL, NULL);
	} else if (what == 3) {
		close_store(sc);
		open_store(sc);
	}
}

char *work_record(const struct work *w, const char *folder, uint64_t seed)
{
	struct scene *sc = calloc(1, sizeof(*sc));
	char *record = NULL;
	if (sc == NULL || asprintf(&record, "%s.record", folder) < 0)
		errx(2, "out of memory");
	(void)sqlite3_auto_extension((void (*)(void))(uintptr_t)on_open);
	sc->work = w;
	sc->seed = seed;
	(void)snprintf(sc->path, sizeof(sc->path), "%s/store", folder);
	for (unsigned i = 0; i < w->writers; i++)
		plan_make(&sc->plans[i], w->blobs ? BLOBS : MIXED, i,
			mix(seed + i) << 1 | (w->large ? SEED_LARGE : 0), w->rounds * w->sets);
	calls_watch(sc->path);
	calls_record(record);
	begin(sc);
	for (unsigned round = 0; round < w->rounds; round++) {
		run_round(sc, round);
		between(sc, round);
	}
	close_store(sc);
	calls_record(NULL);
	calls_watch("/nowhere/");
	(void)sqlite3_cancel_auto_extension((void (*)(void))(uintptr_t)on_open);
	for (unsigned i = 0; i < w->writers; i++)
		plan_free(&sc->plans[i]);
	free(sc);
	return record;
}
