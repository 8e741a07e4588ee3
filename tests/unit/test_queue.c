/* SPDX-License-Identifier: MIT
 * Queues and messages, over the in-memory engine with each set of abilities and over SQLite. */
#include "base/clock.h"
#include "check.h"
#include "model/limits.h"
#include "service/check/salvage.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"
#include "store/engines.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

/* ---- a service with one queue, and a clock ---- */

static _Atomic int64_t fake_now;
static int64_t fake_clock(void)
{
	return atomic_load(&fake_now);
}

static void clock_begin(void)
{
	atomic_store(&fake_now, TICKS_UNIX_EPOCH + 1000000 * TICKS_PER_SECOND);
	clock_set_source(fake_clock);
}

static void seconds_pass(int64_t n)
{
	atomic_fetch_add(&fake_now, n * TICKS_PER_SECOND);
}

struct world {
	struct service *service;
	uint64_t account, queue;
	char path[40]; /* SQLite's file; empty: in memory */
};

static void world_begin(struct world *w, struct store *store)
{
	struct item it = { 0 };
	bool created;
	MUST(service_new(store, &w->service) == ERR_OK);
	if (account_find(w->service, SPAN_LIT("acct"), &it) != ERR_OK) {
		MUST(account_create(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL,
			     NULL) == ERR_OK);
		MUST(account_find(w->service, SPAN_LIT("acct"), &it) == ERR_OK);
	}
	w->account = it.id;
	item_fini(&it);
	MUST(queue_create(w->service, ORIGIN_REST, w->account, SPAN_LIT("jobs"), SPAN_LIT(""),
		     &created, NULL) == ERR_OK);
	MUST(queue_id(w->service, w->account, SPAN_LIT("jobs"), &w->queue) == ERR_OK);
}

static struct world world_with(unsigned abilities)
{
	struct world w = { 0 };
	struct store *store;
	MUST(store_open_memory_with(abilities, &store) == ERR_OK);
	world_begin(&w, store);
	return w;
}

static void world_open(struct world *w)
{
	struct store *store;
	MUST(store_open(w->path, 0, &store, NULL, NULL) == ERR_OK);
	world_begin(w, store);
}

static struct world world_sqlite(void)
{
	struct world w = { .path = "/tmp/rowfs-queue-XXXXXX" };
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	world_open(&w);
	return w;
}

static bool tell_finding(void *arg, const char *finding)
{
	(void)arg;
	printf("# finding: %s\n", finding);
	return true;
}

/* Every test ends with a check of its store. */
static void world_end(struct world *w)
{
	struct verify_counts counts;
	CHECK_ERR(service_verify(w->service, tell_finding, NULL, NULL, &counts), ERR_OK);
	service_free(w->service);
	w->service = NULL;
	if (w->path[0] != '\0')
		(void)unlink(w->path);
}

/* Runs a test over SQLite and over every set of abilities in memory. */
#define OVER_ALL(w_) \
	for (unsigned all_ = 0; all_ <= STORE_ABILITIES_MEMORY + 1; all_++) \
		for (struct world w_ = all_ > STORE_ABILITIES_MEMORY ? world_sqlite() \
								     : world_with(all_); \
			w_.service != NULL; world_end(&w_))

/* ---- short words ---- */

#define GOT_MAX 64
struct got {
	size_t n;
	struct queue_message m[GOT_MAX];
	char text[GOT_MAX][32]; /* the beginning */
	size_t bytes[GOT_MAX];
};

static bool on_got(void *arg, const struct queue_message *m)
{
	struct got *g = arg;
	MUST(g->n < GOT_MAX);
	g->m[g->n] = *m;
	g->bytes[g->n] = m->text.n;
	(void)snprintf(g->text[g->n], sizeof(g->text[0]), "%.*s",
		m->text.n < 31 ? (int)m->text.n : 31, m->text.p != NULL ? m->text.p : "");
	g->n++;
	return true;
}

static struct queue_message put(struct world *w, const char *text, int64_t hidden, int64_t ttl)
{
	struct queue_message m = { 0 };
	CHECK_ERR(message_put(w->service, ORIGIN_REST, w->queue, span_of(text), hidden, ttl, false,
			  &m, NULL),
		ERR_OK);
	return m;
}

static struct got take(struct world *w, unsigned n, int64_t hidden)
{
	struct got g = { 0 };
	CHECK_ERR(
		message_take(w->service, ORIGIN_REST, w->queue, n, hidden, false, on_got, &g, NULL),
		ERR_OK);
	return g;
}

static struct got peek(struct world *w, unsigned n)
{
	struct got g = { 0 };
	CHECK_ERR(message_peek(w->service, w->queue, n, on_got, &g), ERR_OK);
	return g;
}

static enum err delete (struct world *w, const struct queue_message *m) {
	return message_delete(w->service, ORIGIN_REST, w->queue, span_of(m->id),
		span_of(m->receipt), false, NULL);
}

static enum err update(struct world *w, const struct queue_message *m, int64_t hidden,
	const char *text, struct queue_message *ret)
{
	struct queue_message unused;
	struct span s = span_of(text != NULL ? text : "");
	return message_update(w->service, ORIGIN_REST, w->queue, span_of(m->id),
		span_of(m->receipt), hidden, text != NULL ? &s : NULL, false,
		ret != NULL ? ret : &unused, NULL);
}

static uint64_t count(struct world *w)
{
	struct collection q = { 0 };
	MUST(queue_find(w->service, w->account, SPAN_LIT("jobs"), &q) == ERR_OK);
	uint64_t n = q.children;
	collection_fini(&q);
	return n;
}

/* ---- messages ---- */

TEST(a_message_is_put_taken_and_deleted)
{
	clock_begin();
	OVER_ALL(w)
	{
		struct queue_message m = put(&w, "hello", 0, 60);
		CHECK(m.expires == m.inserted + 60 * TICKS_PER_SECOND);
		CHECK_EQ_INT(m.taken, 0);
		struct got g = peek(&w, 32);
		CHECK_EQ_INT(g.n, 1);
		CHECK_EQ_INT(g.m[0].taken, 0);
		CHECK_EQ_STR(g.m[0].receipt, "");
		g = take(&w, 32, 30);
		CHECK_EQ_INT(g.n, 1);
		CHECK_EQ_STR(g.text[0], "hello");
		CHECK_EQ_STR(g.m[0].id, m.id);
		CHECK_EQ_INT(g.m[0].taken, 1);
		CHECK(g.m[0].inserted == m.inserted && g.m[0].expires == m.expires);
		CHECK(g.m[0].visible == atomic_load(&fake_now) + 30 * TICKS_PER_SECOND);
		CHECK_EQ_INT(take(&w, 32, 30).n, 0);
		CHECK_EQ_INT(peek(&w, 32).n, 0);
		CHECK(count(&w) >= 1);
		CHECK_ERR(
			delete (&w, &m), ERR_MESSAGE_NOT_FOUND); /* the receipt of the put is old */
		CHECK_ERR(delete (&w, &g.m[0]), ERR_OK);
		CHECK_ERR(delete (&w, &g.m[0]), ERR_MESSAGE_NOT_FOUND);
		CHECK_EQ_INT(count(&w), 0);
	}
	clock_set_source(NULL);
}

TEST(a_message_comes_back_when_its_time_is_over_and_its_receipt_stays_good)
{
	clock_begin();
	OVER_ALL(w)
	{
		put(&w, "job", 0, MESSAGE_NEVER);
		struct got first = take(&w, 1, 30);
		seconds_pass(29);
		CHECK_EQ_INT(take(&w, 1, 30).n, 0);
		seconds_pass(1);
		CHECK_EQ_INT(peek(&w, 1).m[0].taken, 1);
		struct queue_message again;
		CHECK_ERR(update(&w, &first.m[0], 10, NULL, &again), ERR_OK);
		CHECK_ERR(update(&w, &first.m[0], 10, NULL, NULL), ERR_MESSAGE_NOT_FOUND);
		CHECK_EQ_INT(take(&w, 1, 30).n, 0);
		seconds_pass(10);
		struct got second = take(&w, 1, 30);
		CHECK_EQ_INT(second.m[0].taken, 2);
		CHECK_ERR(delete (&w, &again), ERR_MESSAGE_NOT_FOUND);
		seconds_pass(1000);
		CHECK_ERR(delete (&w, &second.m[0]), ERR_OK); /* nobody took it */
		CHECK_EQ_INT(count(&w), 0);
	}
	clock_set_source(NULL);
}

TEST(messages_come_in_the_order_in_which_they_become_visible)
{
	clock_begin();
	OVER_ALL(w)
	{
		put(&w, "c", 20, MESSAGE_NEVER);
		put(&w, "d", 20, MESSAGE_NEVER);
		put(&w, "a", 0, MESSAGE_NEVER);
		seconds_pass(1);
		put(&w, "b", 0, MESSAGE_NEVER);
		int64_t next;
		CHECK_ERR(queue_next_visible(w.service, w.queue, atomic_load(&fake_now), &next),
			ERR_OK);
		CHECK(next > atomic_load(&fake_now) + 18 * TICKS_PER_SECOND);
		CHECK(next < atomic_load(&fake_now) + 20 * TICKS_PER_SECOND);
		struct got g = take(&w, 32, 7);
		CHECK_EQ_INT(g.n, 2);
		CHECK_EQ_STR(g.text[0], "a");
		CHECK_EQ_STR(g.text[1], "b");
		CHECK_ERR(queue_next_visible(w.service, w.queue, atomic_load(&fake_now), &next),
			ERR_OK);
		CHECK(next == atomic_load(&fake_now) + 7 * TICKS_PER_SECOND);
		seconds_pass(20);
		g = take(&w, 3, 7);
		CHECK_EQ_INT(g.n, 3);
		CHECK_EQ_STR(g.text[0], "a");
		CHECK_EQ_STR(g.text[1], "b");
		CHECK_EQ_STR(g.text[2], "c");
		CHECK_EQ_STR(take(&w, 3, 7).text[0], "d");
		CHECK_EQ_INT(take(&w, 3, 7).n, 0);
	}
	clock_set_source(NULL);
}

TEST(an_expired_message_is_gone_for_every_operation)
{
	clock_begin();
	OVER_ALL(w)
	{
		struct queue_message m = put(&w, "short", 0, 10);
		for (int i = 0; i < 100; i++)
			put(&w, "short", 0, 10);
		put(&w, "long", 0, 1000);
		seconds_pass(11); /* each was inserted a little later */
		struct got g = { 0 };
		CHECK_EQ_INT(peek(&w, 32).n, 1);
		CHECK_ERR(delete (&w, &m), ERR_MESSAGE_NOT_FOUND);
		CHECK_ERR(update(&w, &m, 1, NULL, NULL), ERR_MESSAGE_NOT_FOUND);
		int64_t next;
		CHECK_ERR(queue_next_visible(w.service, w.queue, atomic_load(&fake_now), &next),
			ERR_OK);
		CHECK(next == INT64_MAX);
		CHECK_ERR(message_take_one(w.service, ORIGIN_REST, w.queue, span_of(m.id), 5, false,
				  on_got, &g, NULL),
			ERR_MESSAGE_NOT_FOUND);
		CHECK_EQ_INT(g.n, 0);
		CHECK(count(&w) >= 102);
		g = take(&w, 32, 30);
		CHECK_EQ_INT(g.n, 1);
		CHECK_EQ_STR(g.text[0], "long");
		if (service_can(w.service, STORE_COUNTS_EXACT))
			CHECK_EQ_INT(count(&w), 1); /* the take reclaimed the others */
	}
	clock_set_source(NULL);
}

TEST(a_taken_message_that_expires_does_not_come_back)
{
	clock_begin();
	OVER_ALL(w)
	{
		put(&w, "job", 0, 10);
		struct got g = take(&w, 1, 60);
		CHECK_EQ_INT(g.n, 1);
		seconds_pass(11);
		CHECK_ERR(delete (&w, &g.m[0]), ERR_MESSAGE_NOT_FOUND);
		seconds_pass(60);
		CHECK_EQ_INT(take(&w, 1, 60).n, 0);
		CHECK_EQ_INT(count(&w), 0);
	}
	clock_set_source(NULL);
}

TEST(an_update_changes_the_text_and_keeps_all_else)
{
	clock_begin();
	OVER_ALL(w)
	{
		struct queue_message m = put(&w, "one", 0, 500), u;
		CHECK_ERR(update(&w, &m, 0, "two", &u), ERR_OK); /* the receipt of a put works */
		CHECK(u.inserted == m.inserted && u.expires == m.expires && u.taken == 0);
		struct got g = take(&w, 1, 30);
		CHECK_EQ_STR(g.text[0], "two");
		CHECK_ERR(update(&w, &g.m[0], 0, "", &u), ERR_OK);
		CHECK_EQ_INT(u.taken, 1);
		CHECK_ERR(update(&w, &u, 0, NULL, &u), ERR_OK);
		g = take(&w, 1, 30);
		CHECK_EQ_INT(g.n, 1);
		CHECK_EQ_STR(g.text[0], "");
		CHECK_EQ_INT(g.m[0].taken, 2);
		CHECK_EQ_STR(g.m[0].id, m.id);
	}
	clock_set_source(NULL);
}

TEST(a_receipt_that_was_never_given_is_told_from_an_old_one)
{
	OVER_ALL(w)
	{
		struct queue_message a = put(&w, "a", 0, 500), b = put(&w, "b", 0, 500), x;
		x = a;
		memcpy(x.receipt, b.receipt, sizeof(x.receipt));
		CHECK_ERR(delete (&w, &x), ERR_RECEIPT_MISMATCH);
		for (size_t i = 0; i < MESSAGE_RECEIPT_CHARS; i++) {
			x = a;
			x.receipt[i] = 'g';
			CHECK_ERR(delete (&w, &x), ERR_QUERY_VALUE);
			x.receipt[i] = '\0';
			CHECK_ERR(delete (&w, &x), ERR_QUERY_VALUE);
		}
		x = a;
		x.id[0] = 'g';
		CHECK_ERR(delete (&w, &x), ERR_MESSAGE_NOT_FOUND);
		x = a;
		memcpy(x.id, b.id, 18); /* the item of one, the time of another */
		CHECK_ERR(delete (&w, &x), ERR_MESSAGE_NOT_FOUND);
		CHECK_ERR(delete (&w, &a), ERR_OK);
		CHECK_ERR(delete (&w, &b), ERR_OK);
		CHECK(strcmp(a.id, b.id) < 0); /* ids sort by insertion */
	}
}

TEST(no_receipt_reaches_another_queue_or_another_kind_of_item)
{
	OVER_ALL(w)
	{
		bool created;
		uint64_t other;
		struct queue_message m = put(&w, "a", 0, 500);
		CHECK_ERR(queue_create(w.service, ORIGIN_REST, w.account, SPAN_LIT("other"),
				  SPAN_LIT(""), &created, NULL),
			ERR_OK);
		CHECK_ERR(queue_id(w.service, w.account, SPAN_LIT("other"), &other), ERR_OK);
		CHECK_ERR(message_delete(w.service, ORIGIN_REST, other, span_of(m.id),
				  span_of(m.receipt), false, NULL),
			ERR_MESSAGE_NOT_FOUND);
		/* The queue itself, named as if it were a message. */
		struct item it = { 0 };
		MUST(store_get(service_store(w.service), NULL, other, WANT_ATTRS, &it) == ERR_OK);
		message_id_write(it.version, other, m.id);
		message_receipt_write(it.version, other, m.receipt);
		item_fini(&it);
		CHECK_ERR(message_delete(w.service, ORIGIN_REST, w.account, span_of(m.id),
				  span_of(m.receipt), false, NULL),
			ERR_MESSAGE_NOT_FOUND);
		CHECK_ERR(message_put(w.service, ORIGIN_REST, w.account, SPAN_LIT("x"), 0, 9, false,
				  &m, NULL),
			ERR_QUEUE_NOT_FOUND);
		CHECK_ERR(message_put(w.service, ORIGIN_REST, 999999, SPAN_LIT("x"), 0, 9, false,
				  &m, NULL),
			ERR_QUEUE_NOT_FOUND);
	}
}

TEST(one_message_is_taken_by_its_id)
{
	clock_begin();
	OVER_ALL(w)
	{
		struct queue_message a = put(&w, "a", 0, 500), b = put(&w, "b", 0, 500);
		struct got g = { 0 };
		CHECK_ERR(message_take_one(w.service, ORIGIN_MOUNT, w.queue, span_of(b.id), 30,
				  false, on_got, &g, NULL),
			ERR_OK);
		CHECK_EQ_INT(g.n, 1);
		CHECK_EQ_STR(g.text[0], "b");
		CHECK_ERR(message_take_one(w.service, ORIGIN_MOUNT, w.queue, span_of(b.id), 30,
				  false, on_got, &g, NULL),
			ERR_MESSAGE_NOT_FOUND);
		CHECK_EQ_INT(g.n, 1);
		CHECK_EQ_STR(take(&w, 32, 30).m[0].id, a.id);
	}
	clock_set_source(NULL);
}

TEST(a_text_has_up_to_64_kib_of_any_bytes)
{
	char *text = malloc(LIMIT_MESSAGE_BYTES + 1);
	MUST(text != NULL);
	for (size_t i = 0; i <= LIMIT_MESSAGE_BYTES; i++)
		text[i] = (char)(i * 7);
	OVER_ALL(w)
	{
		static const size_t sizes[] = { 0, 1, STORE_SMALL_BODY, STORE_SMALL_BODY + 1,
			LIMIT_MESSAGE_BYTES };
		struct queue_message m;
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
			CHECK_ERR(message_put(w.service, ORIGIN_REST, w.queue,
					  span_make(text, sizes[i]), 0, 500, false, &m, NULL),
				ERR_OK);
		CHECK_ERR(
			message_put(w.service, ORIGIN_REST, w.queue,
				span_make(text, LIMIT_MESSAGE_BYTES + 1), 0, 500, false, &m, NULL),
			ERR_MESSAGE_TOO_LARGE);
		struct got g = peek(&w, 32), taken = take(&w, 32, 30);
		CHECK_EQ_INT(g.n, ARRAY_LEN(sizes));
		for (size_t i = 0; i < g.n; i++) {
			CHECK_EQ_INT(g.bytes[i], sizes[i]);
			CHECK_EQ_INT(taken.bytes[i], sizes[i]);
		}
		CHECK_ERR(message_update(w.service, ORIGIN_REST, w.queue, span_of(taken.m[0].id),
				  span_of(taken.m[0].receipt), 0,
				  &(struct span){ text, LIMIT_MESSAGE_BYTES + 1 }, false, &m, NULL),
			ERR_MESSAGE_TOO_LARGE);
		CHECK_ERR(message_update(w.service, ORIGIN_REST, w.queue, span_of(taken.m[0].id),
				  span_of(taken.m[0].receipt), 0,
				  &(struct span){ text, LIMIT_MESSAGE_BYTES }, false, &m, NULL),
			ERR_OK);
		CHECK_EQ_INT(take(&w, 1, 30).bytes[0], LIMIT_MESSAGE_BYTES);
	}
	free(text);
}

TEST(every_number_has_its_limits)
{
	struct world w = world_with(STORE_ABILITIES_MEMORY);
	const struct {
		int64_t hidden, ttl;
		enum err result;
	} puts[] = { { 0, 1, ERR_OK }, { 0, 0, ERR_QUERY_RANGE }, { 0, -2, ERR_QUERY_RANGE },
		{ -1, 9, ERR_QUERY_RANGE }, { 8, 9, ERR_OK }, { 9, 9, ERR_QUERY_RANGE },
		{ LIMIT_MESSAGE_HIDDEN_S, MESSAGE_NEVER, ERR_OK },
		{ LIMIT_MESSAGE_HIDDEN_S + 1, MESSAGE_NEVER, ERR_QUERY_RANGE },
		{ 0, INT64_MAX, ERR_OK } };
	struct queue_message m;
	for (size_t i = 0; i < ARRAY_LEN(puts); i++)
		CHECK_ERR(message_put(w.service, ORIGIN_REST, w.queue, SPAN_LIT("x"),
				  puts[i].hidden, puts[i].ttl, false, &m, NULL),
			puts[i].result);
	CHECK(m.expires == MESSAGE_EXPIRES_NEVER);
	const struct {
		unsigned n;
		int64_t hidden;
		enum err result;
	} takes[] = { { 0, 30, ERR_QUERY_RANGE }, { 33, 30, ERR_QUERY_RANGE },
		{ 1, 0, ERR_QUERY_RANGE }, { 1, LIMIT_MESSAGE_HIDDEN_S + 1, ERR_QUERY_RANGE },
		{ 1, 1, ERR_OK }, { 32, LIMIT_MESSAGE_HIDDEN_S, ERR_OK } };
	for (size_t i = 0; i < ARRAY_LEN(takes); i++) {
		struct got g = { 0 };
		CHECK_ERR(message_take(w.service, ORIGIN_REST, w.queue, takes[i].n, takes[i].hidden,
				  false, on_got, &g, NULL),
			takes[i].result);
	}
	struct got g = { 0 };
	CHECK_ERR(message_peek(w.service, w.queue, 0, on_got, &g), ERR_QUERY_RANGE);
	CHECK_ERR(message_peek(w.service, w.queue, 33, on_got, &g), ERR_QUERY_RANGE);
	m = put(&w, "y", 0, MESSAGE_NEVER);
	CHECK_ERR(update(&w, &m, -1, NULL, NULL), ERR_QUERY_RANGE);
	CHECK_ERR(update(&w, &m, LIMIT_MESSAGE_HIDDEN_S + 1, NULL, NULL), ERR_QUERY_RANGE);
	CHECK_ERR(update(&w, &m, LIMIT_MESSAGE_HIDDEN_S, NULL, &m), ERR_OK);
	CHECK_ERR(update(&w, &m, 0, NULL, NULL), ERR_OK);
	world_end(&w);
}

/* ---- queues ---- */

static enum err create(struct world *w, const char *name, const char *metadata, bool *ret_created)
{
	return queue_create(w->service, ORIGIN_REST, w->account, span_of(name), span_of(metadata),
		ret_created, NULL);
}

TEST(a_queue_is_created_once_and_again_with_equal_metadata)
{
	OVER_ALL(w)
	{
		bool created;
		CHECK_ERR(create(&w, "q-1", "A:1\nbee: two\n", &created), ERR_OK);
		CHECK(created);
		CHECK_ERR(create(&w, "q-1", "bee: two\na:1\n", &created), ERR_OK);
		CHECK(!created);
		CHECK_ERR(create(&w, "q-1", "a:1\nbee: TWO\n", &created), ERR_QUEUE_EXISTS);
		CHECK_ERR(create(&w, "q-1", "", &created), ERR_QUEUE_EXISTS);
		CHECK_ERR(create(&w, "Q-1", "", &created), ERR_NAME_INVALID);
		CHECK_ERR(create(&w, "q2", "", &created), ERR_NAME_TOO_SHORT);
		CHECK_ERR(queue_create(w.service, ORIGIN_REST, 999999, SPAN_LIT("que"),
				  SPAN_LIT(""), &created, NULL),
			ERR_ACCOUNT_NOT_FOUND);
		struct collection q;
		CHECK_ERR(queue_find(w.service, w.account, SPAN_LIT("q-1"), &q), ERR_OK);
		CHECK(span_is(q.metadata, "A:1\nbee: two\n"));
		CHECK_EQ_INT(q.policies.n, 0);
		CHECK_EQ_INT(q.children, 0);
		uint64_t id = q.id;
		collection_fini(&q);
		CHECK_ERR(
			queue_find(w.service, w.account, SPAN_LIT("q-2"), &q), ERR_QUEUE_NOT_FOUND);
		CHECK_ERR(queue_delete(w.service, ORIGIN_REST, id, NULL), ERR_OK);
		CHECK_ERR(queue_delete(w.service, ORIGIN_REST, id, NULL), ERR_QUEUE_NOT_FOUND);
		CHECK_ERR(
			queue_delete(w.service, ORIGIN_REST, w.account, NULL), ERR_QUEUE_NOT_FOUND);
		CHECK_ERR(create(&w, "q-1", "", &created), ERR_OK);
		CHECK(created);
	}
}

/* NULL: it stays. */
static enum err set(struct world *w, uint64_t queue, const char *metadata, const char *policies)
{
	struct span m = span_of(metadata != NULL ? metadata : "");
	struct span p = span_of(policies != NULL ? policies : "");
	const struct collection_edit to = { .metadata = metadata != NULL ? &m : NULL,
		.policies = policies != NULL ? &p : NULL };
	int64_t etag;
	return collection_set(w->service, ORIGIN_REST, &collection_queue, queue, &to, &etag, NULL);
}

TEST(metadata_and_policies_are_replaced_one_by_one)
{
	OVER_ALL(w)
	{
		struct collection q;
		CHECK_ERR(set(&w, w.queue, NULL, "<x>\n\n</x>"), ERR_OK);
		CHECK_ERR(set(&w, w.queue, "k:v\n", NULL), ERR_OK);
		put(&w, "x", 0, 9);
		CHECK_ERR(queue_find(w.service, w.account, SPAN_LIT("jobs"), &q), ERR_OK);
		CHECK(span_is(q.metadata, "k:v\n"));
		CHECK(span_is(q.policies, "<x>\n\n</x>"));
		CHECK(q.children > 0);
		collection_fini(&q);
		CHECK_ERR(set(&w, w.queue, "", NULL), ERR_OK);
		CHECK_ERR(queue_find(w.service, w.account, SPAN_LIT("jobs"), &q), ERR_OK);
		CHECK_EQ_INT(q.metadata.n, 0);
		CHECK(span_is(q.policies, "<x>\n\n</x>"));
		collection_fini(&q);
		CHECK_ERR(set(&w, w.queue, "1k:v\n", NULL), ERR_METADATA_INVALID);
		CHECK_ERR(set(&w, 999999, "", NULL), ERR_QUEUE_NOT_FOUND);
	}
}

static bool on_name(void *arg, const struct collection *q)
{
	struct buf *out = arg;
	buf_add_span(out, q->name);
	buf_add_char(out, ' ');
	return true;
}

static const char *listed(struct world *w, const char *prefix, const char *marker, size_t max)
{
	static char text[500];
	struct buf out = BUF_INIT(400), next = BUF_INIT(64);
	CHECK_ERR(collection_list(w->service, &collection_queue, w->account, span_of(prefix),
			  span_of(marker), max, on_name, &out, &next),
		ERR_OK);
	(void)snprintf(text, sizeof(text), "%s| %s", out.len > 0 ? out.data : "",
		next.len > 0 ? next.data : "");
	buf_fini(&out);
	buf_fini(&next);
	return text;
}

TEST(queues_are_listed_by_name_prefix_and_page_and_no_table_is_among_them)
{
	OVER_ALL(w)
	{
		static const char *const names[] = { "aa0", "ab1", "ab2", "ab3", "ac4" };
		bool created;
		struct item it = { 0 };
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			CHECK_ERR(create(&w, names[i], "", &created), ERR_OK);
		CHECK_ERR(table_create(
				  w.service, ORIGIN_REST, w.account, SPAN_LIT("ab1"), NULL, NULL),
			ERR_OK);
		CHECK_EQ_STR(listed(&w, "", "", 100), "aa0 ab1 ab2 ab3 ac4 jobs | ");
		CHECK_EQ_STR(listed(&w, "ab", "", 2), "ab1 ab2 | ab3");
		CHECK_EQ_STR(listed(&w, "ab", "ab3", 2), "ab3 | ");
		CHECK_EQ_STR(listed(&w, "ab", "ab1", 3), "ab1 ab2 ab3 | ");
		CHECK_EQ_STR(listed(&w, "b", "", 3), "| ");
		CHECK_EQ_STR(listed(&w, "", "b", 3), "jobs | ");
		CHECK_EQ_STR(listed(&w, "", "", 0), "| aa0");
		CHECK_ERR(table_find(w.service, SPAN_LIT("acct"), SPAN_LIT("aa0"), &it),
			ERR_TABLE_NOT_FOUND);
		CHECK_ERR(account_remove(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), false, NULL),
			ERR_NOT_EMPTY);
	}
}

TEST(clear_removes_what_was_there_and_delete_all)
{
	clock_begin();
	OVER_ALL(w)
	{
		struct queue_message m = { 0 };
		/* In memory each change copies the whole state. */
		size_t many = w.path[0] != '\0' ? 3000 : 50;
		for (size_t i = 0; i < many; i++)
			m = put(&w, "x", i % 3 == 0 ? 10 : 0, 100);
		take(&w, 32, 50);
		CHECK_ERR(queue_clear(w.service, ORIGIN_REST, w.queue, NULL), ERR_OK);
		CHECK_EQ_INT(count(&w), 0);
		CHECK_ERR(delete (&w, &m), ERR_MESSAGE_NOT_FOUND);
		CHECK_ERR(queue_clear(w.service, ORIGIN_REST, w.queue, NULL), ERR_OK);
		m = put(&w, "x", 0, 100);
		for (size_t i = 0; i < many; i++)
			put(&w, "x", 0, 100);
		CHECK_ERR(queue_delete(w.service, ORIGIN_REST, w.queue, NULL), ERR_OK);
		CHECK_ERR(delete (&w, &m), ERR_MESSAGE_NOT_FOUND);
		CHECK_EQ_INT(take(&w, 32, 50).n, 0);
		CHECK_ERR(queue_clear(w.service, ORIGIN_REST, w.queue, NULL), ERR_QUEUE_NOT_FOUND);
		CHECK_ERR(message_put(w.service, ORIGIN_REST, w.queue, SPAN_LIT("x"), 0, 9, false,
				  &m, NULL),
			ERR_QUEUE_NOT_FOUND);
		bool created;
		CHECK_ERR(create(&w, "jobs", "", &created), ERR_OK);
		CHECK(created);
		CHECK_EQ_INT(count(&w), 0);
	}
	clock_set_source(NULL);
}

struct late_put {
	struct world *w;
	int64_t version;
};

/* A put that took its version before the queue changed last. */
static enum err put_late(void *arg, const struct collection *q)
{
	struct late_put *p = arg;
	struct prepared_message d;
	MUST(message_prepare(p->w->service, q->id, SPAN_LIT("late"), 0, 100, &d, NULL) == ERR_OK);
	d.change.version = p->version;
	MUST(store_apply(service_store(p->w->service), &d.change, 1, false, NULL) == ERR_OK);
	changes_fini(&d.change, 1);
	return ERR_OK;
}

TEST(a_queue_that_is_removed_while_empty_loses_no_message_that_is_put_meanwhile)
{
	clock_begin();
	OVER_ALL(w)
	{
		struct late_put p = { .w = &w, .version = service_next_version(w.service) };
		put(&w, "x", 0, 100);
		CHECK_ERR(queue_clear(w.service, ORIGIN_REST, w.queue, NULL), ERR_OK);
		CHECK_ERR(collection_delete(w.service, ORIGIN_MOUNT, &collection_queue, w.queue,
				  put_late, &p, true, NULL),
			ERR_NOT_EMPTY);
		CHECK_EQ_STR(peek(&w, 9).text[0], "late");
		CHECK_ERR(
			queue_delete_empty(w.service, ORIGIN_MOUNT, w.queue, NULL), ERR_NOT_EMPTY);
		seconds_pass(101); /* it has expired */
		CHECK_ERR(queue_delete_empty(w.service, ORIGIN_MOUNT, w.queue, NULL), ERR_OK);
		CHECK_ERR(queue_delete_empty(w.service, ORIGIN_MOUNT, w.queue, NULL),
			ERR_QUEUE_NOT_FOUND);
		bool created;
		CHECK_ERR(create(&w, "jobs", "", &created), ERR_OK);
	}
	clock_set_source(NULL);
}

/* ---- restart ---- */

TEST(messages_survive_a_restart_with_their_receipts_and_with_the_clock_set_back)
{
	clock_begin();
	struct world w = world_sqlite();
	put(&w, "taken", 0, MESSAGE_NEVER);
	struct got g = take(&w, 1, 30);
	put(&w, "free", 0, MESSAGE_NEVER);
	service_free(w.service);
	world_open(&w);
	struct got next = take(&w, 32, 30);
	CHECK_EQ_INT(next.n, 1);
	CHECK_EQ_STR(next.text[0], "free");
	CHECK_ERR(delete (&w, &g.m[0]), ERR_OK);
	seconds_pass(-1000);
	put(&w, "later", 0, MESSAGE_NEVER);
	CHECK_EQ_STR(take(&w, 32, 30).text[0], "later");
	seconds_pass(30);
	CHECK_EQ_STR(take(&w, 32, 2000).text[0], "later"); /* time does not stand still */
	seconds_pass(-5);
	put(&w, "latest", 0, MESSAGE_NEVER); /* and does not go back a little */
	CHECK_EQ_STR(take(&w, 32, 2000).text[0], "latest");
	seconds_pass(1010);
	CHECK_EQ_STR(take(&w, 32, 30).text[0], "free");
	world_end(&w);
	clock_set_source(NULL);
}

/* ---- a damaged file ---- */

#define KEPT 1500
#define DAMAGE_PAGE 4096

static void on_lost(void *arg, const struct store_loss *loss)
{
	(void)loss;
	(*(unsigned *)arg)++;
}

/* Salvages a copy of the store with this page zeroed; 0: with none.  Returns how many messages are in
 * the new store, which must be clean. */
static uint64_t salvaged(const char *bytes, size_t n, size_t page, unsigned *ret_losses)
{
	char from[64], to[64];
	struct store *store;
	struct service *service;
	struct verify_counts counts = { 0 };
	struct store_salvage how = { .lost = on_lost, .arg = ret_losses };
	(void)snprintf(from, sizeof(from), "/tmp/rowfs-queue-%d.damaged", (int)getpid());
	(void)snprintf(to, sizeof(to), "/tmp/rowfs-queue-%d.new", (int)getpid());
	char *damaged = malloc(n);
	MUST(damaged != NULL);
	memcpy(damaged, bytes, n);
	if (page > 0)
		memset(damaged + page * DAMAGE_PAGE, 0, DAMAGE_PAGE);
	FILE *f = fopen(from, "we");
	MUST(f != NULL && fwrite(damaged, 1, n, f) == n && fclose(f) == 0);
	free(damaged);
	*ret_losses = 0;
	enum err e = service_salvage_store(from, to, &how, NULL);
	CHECK_ERR(e, ERR_OK);
	if (e == ERR_OK) {
		MUST(store_open(to, 0, &store, NULL, NULL) == ERR_OK);
		MUST(service_new(store, &service) == ERR_OK);
		CHECK_ERR(service_verify(service, tell_finding, NULL, NULL, &counts), ERR_OK);
		service_free(service);
	}
	(void)unlink(from);
	(void)unlink(to);
	return counts.messages;
}

TEST(of_a_damaged_store_all_messages_on_sound_pages_are_salvaged)
{
	static char bytes[4 << 20];
	struct world w = world_sqlite();
	unsigned losses;
	for (unsigned i = 0; i < KEPT; i++)
		put(&w, i % 7 ? "a short text" : "", i % 3, MESSAGE_NEVER);
	take(&w, 32, 1000);
	service_free(w.service);
	FILE *f = fopen(w.path, "re");
	MUST(f != NULL);
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	MUST(n > 20 * DAMAGE_PAGE && n < sizeof(bytes) && fclose(f) == 0);
	CHECK_EQ_INT(salvaged(bytes, n, 0, &losses), KEPT);
	CHECK_EQ_INT(losses, 0);
	unsigned fewer = 0;
	for (size_t page = 1; page < n / DAMAGE_PAGE; page += 3) {
		uint64_t got = salvaged(bytes, n, page, &losses);
		CHECK(got > KEPT - 100 && got <= KEPT);
		CHECK(got == KEPT || losses > 0);
		fewer += got < KEPT;
	}
	CHECK(fewer > 3);
	world_open(&w);
	world_end(&w);
}

/* ---- change sets and events ---- */

struct heard {
	unsigned puts, moves, deletes;
	uint64_t queue;
};

static void on_change(void *arg, enum origin origin, const struct change *changes, size_t n)
{
	struct heard *h = arg;
	for (size_t i = 0; i < n; i++) {
		const struct change *c = &changes[i];
		if (origin != ORIGIN_REST || c->now.kind != ITEM_MESSAGE)
			continue;
		h->queue = c->now.parent;
		h->puts += c->op == CHANGE_PUT;
		h->moves += c->op == CHANGE_MOVE;
		h->deletes += c->op == CHANGE_DELETE;
	}
}

TEST(a_subscriber_is_told_of_every_message_that_comes_moves_and_goes)
{
	OVER_ALL(w)
	{
		struct heard h = { 0 };
		service_subscribe(w.service, on_change, &h);
		put(&w, "a", 0, 500);
		put(&w, "b", 0, 500);
		struct got g = take(&w, 2, 30);
		CHECK_EQ_INT(h.puts, 2);
		CHECK_EQ_INT(h.moves, 2);
		struct queue_message m;
		CHECK_ERR(update(&w, &g.m[0], 0, NULL, &m), ERR_OK);
		CHECK_EQ_INT(h.moves, 3);
		CHECK_ERR(delete (&w, &m), ERR_OK);
		CHECK_EQ_INT(h.deletes, 1);
		CHECK(h.queue == w.queue);
		service_unsubscribe(w.service);
	}
}

TEST(a_change_set_puts_a_message_with_all_else_or_not_at_all)
{
	OVER_ALL(w)
	{
		struct item table = { 0 };
		CHECK_ERR(table_create(
				  w.service, ORIGIN_REST, w.account, SPAN_LIT("Tab"), &table, NULL),
			ERR_OK);
		bool spans = service_can(w.service, STORE_CAN_SPAN);
		for (int fails = 1; fails >= 0; fails--) {
			struct prepared_message d;
			struct change set[2] = { 0 };
			CHECK_ERR(message_prepare(w.service, w.queue, SPAN_LIT("with a row"), 0, 60,
					  &d, NULL),
				ERR_OK);
			set[0] = d.change;
			set[1] = (struct change){ .op = CHANGE_PUT,
				.at = { .parent = table.id,
					.has_pk = true,
					.pk = SPAN_LIT("p"),
					.key = SPAN_LIT("r") },
				.cond = fails ? COND_PRESENT : COND_NONE,
				.kind = ITEM_ROW,
				.body = SPAN_LIT("{}\n"),
				.item_flags = ITEM_CANONICAL,
				.attrs = ATTRS_UNSET };
			enum err e = service_apply(w.service, ORIGIN_REST, set, 2, false, NULL);
			CHECK((e == ERR_OK) == (spans && !fails));
			changes_fini(set, 2);
			CHECK_EQ_INT(peek(&w, 32).n, e == ERR_OK);
		}
		item_fini(&table);
	}
}

/* ---- several takers ---- */

#define TAKERS 16
#define MANY 800
#define DIGITS 5

struct taker {
	struct world *w;
	pthread_t thread;
	unsigned n; /* at a time */
	bool deletes;
	atomic_uint *seen; /* [MANY] */
	unsigned errors;
};

static bool on_taken(void *arg, const struct queue_message *m)
{
	struct taker *t = arg;
	char number[DIGITS + 1] = "";
	if (m->text.n == DIGITS)
		memcpy(number, m->text.p, DIGITS);
	size_t i = strtoul(number, NULL, 10);
	if (i < MANY)
		atomic_fetch_add(&t->seen[i], 1);
	if (t->deletes && delete (t->w, m) != ERR_OK)
		t->errors++;
	return true;
}

static void *take_all(void *arg)
{
	struct taker *t = arg;
	/* Another thread may have claimed all that is visible. */
	for (int idle = 0; idle < 50;) {
		enum err e = message_take(t->w->service, ORIGIN_REST, t->w->queue, t->n, 3600,
			false, on_taken, t, NULL);
		if (e != ERR_OK)
			t->errors++;
		idle = peek(t->w, 1).n == 0 ? idle + 1 : 0;
	}
	return NULL;
}

/* other: another process with the same store; NULL: none. */
static void race(struct world *w, struct world *other, bool deletes)
{
	static atomic_uint seen[MANY];
	struct taker takers[TAKERS];
	for (unsigned i = 0; i < MANY; i++) {
		char text[16];
		(void)snprintf(text, sizeof(text), "%05u", i);
		put(w, text, 0, MESSAGE_NEVER);
		atomic_store(&seen[i], 0);
	}
	for (unsigned i = 0; i < TAKERS; i++) {
		takers[i] = (struct taker){ .w = other != NULL && i % 2 ? other : w,
			.n = i % 3 ? 1 : 1 + i,
			.deletes = deletes,
			.seen = seen };
		MUST(pthread_create(&takers[i].thread, NULL, take_all, &takers[i]) == 0);
	}
	for (unsigned i = 0; i < TAKERS; i++) {
		pthread_join(takers[i].thread, NULL);
		CHECK_EQ_INT(takers[i].errors, 0);
	}
	unsigned once = 0;
	for (unsigned i = 0; i < MANY; i++)
		once += atomic_load(&seen[i]) == 1;
	CHECK_EQ_INT(once, MANY);
	CHECK_EQ_INT(count(w), deletes ? 0 : MANY);
}

TEST(of_16_takers_each_message_goes_to_one)
{
	struct world w = world_sqlite();
	race(&w, NULL, false);
	CHECK_ERR(queue_clear(w.service, ORIGIN_REST, w.queue, NULL), ERR_OK);
	race(&w, NULL, true);
	world_end(&w);
	w = world_with(STORE_ABILITIES_MEMORY);
	race(&w, NULL, true);
	world_end(&w);
}

TEST(takers_in_two_processes_get_no_message_twice)
{
	struct world w = world_with(STORE_ABILITIES_MEMORY), other = w;
	struct store *again;
	MUST(store_open_memory_again(service_store(w.service), &again) == ERR_OK);
	MUST(service_new(again, &other.service) == ERR_OK);
	race(&w, &other, true);
	service_free(other.service);
	world_end(&w);
}

/* ---- against a plain array ---- */

#define MODEL_MAX 40
struct model_message {
	bool there;
	char id[MESSAGE_ID_CHARS + 1], receipt[MESSAGE_RECEIPT_CHARS + 1];
	char text[8];
	int64_t visible, inserted, expires;
	unsigned taken;
};
struct model {
	struct world *w;
	struct model_message all[MODEL_MAX];
	unsigned random, puts;
};

static unsigned random_below(struct model *m, unsigned n)
{
	m->random = m->random * 1103515245 + 12345;
	return (m->random >> 16) % n;
}

static bool is_alive(const struct model_message *m)
{
	return m->there && m->expires > atomic_load(&fake_now);
}

/* The visible message that comes next, after `last`; NULL: none. */
static struct model_message *model_next(struct model *m, const struct model_message *last)
{
	struct model_message *best = NULL;
	for (size_t i = 0; i < MODEL_MAX; i++) {
		struct model_message *x = &m->all[i];
		if (!is_alive(x) || x->visible > atomic_load(&fake_now))
			continue;
		if (last != NULL &&
			(x->visible < last->visible ||
				(x->visible == last->visible && x->inserted <= last->inserted)))
			continue;
		if (best == NULL || x->visible < best->visible ||
			(x->visible == best->visible && x->inserted < best->inserted))
			best = x;
	}
	return best;
}

static void model_put(struct model *m)
{
	struct model_message *x = m->all;
	while (x < m->all + MODEL_MAX && is_alive(x))
		x++;
	if (x == m->all + MODEL_MAX)
		return;
	int64_t hidden = random_below(m, 3) == 0 ? random_below(m, 20) : 0;
	int64_t ttl = random_below(m, 3) == 0 ? hidden + 1 + random_below(m, 30) : MESSAGE_NEVER;
	*x = (struct model_message){ .there = true };
	(void)snprintf(x->text, sizeof(x->text), "%u", m->puts++);
	struct queue_message got = put(m->w, x->text, hidden, ttl);
	CHECK(got.visible == atomic_load(&fake_now) + hidden * TICKS_PER_SECOND);
	x->visible = got.visible;
	x->inserted = got.inserted;
	x->expires = ttl == MESSAGE_NEVER ? MESSAGE_EXPIRES_NEVER
					  : got.inserted + ttl * TICKS_PER_SECOND;
	memcpy(x->id, got.id, sizeof(x->id));
	memcpy(x->receipt, got.receipt, sizeof(x->receipt));
}

static void model_read(struct model *m, bool takes)
{
	unsigned n = 1 + random_below(m, 6);
	int64_t hidden = 1 + random_below(m, 20);
	struct got g = takes ? take(m->w, n, hidden) : peek(m->w, n);
	struct model_message *order[8] = { NULL };
	size_t want = 0;
	for (; want < n; want++) {
		order[want] = model_next(m, want > 0 ? order[want - 1] : NULL);
		if (order[want] == NULL)
			break;
	}
	CHECK_EQ_INT(g.n, want);
	for (size_t i = 0; i < g.n && i < want; i++) {
		struct model_message *x = order[i];
		CHECK_EQ_STR(g.m[i].id, x->id);
		CHECK_EQ_STR(g.text[i], x->text);
		if (takes) {
			x->taken++;
			x->visible = atomic_load(&fake_now) + hidden * TICKS_PER_SECOND;
			memcpy(x->receipt, g.m[i].receipt, sizeof(x->receipt));
		}
		CHECK_EQ_INT(g.m[i].taken, x->taken);
		CHECK(g.m[i].visible == x->visible && g.m[i].expires == x->expires);
	}
}

static void model_by_receipt(struct model *m, bool deletes)
{
	struct model_message *x = &m->all[random_below(m, MODEL_MAX)];
	struct queue_message q = { 0 };
	if (!x->there)
		return;
	memcpy(q.id, x->id, sizeof(q.id));
	memcpy(q.receipt, x->receipt, sizeof(q.receipt));
	enum err want = is_alive(x) ? ERR_OK : ERR_MESSAGE_NOT_FOUND;
	if (deletes) {
		CHECK_ERR(delete (m->w, &q), want);
		x->there = false;
		return;
	}
	int64_t hidden = random_below(m, 10);
	char text[8];
	(void)snprintf(text, sizeof(text), "u%u", m->puts++);
	bool with_text = random_below(m, 2) == 0;
	CHECK_ERR(update(m->w, &q, hidden, with_text ? text : NULL, &q), want);
	if (want != ERR_OK)
		return;
	x->visible = q.visible; /* one tick less where that would be the same state */
	CHECK(atomic_load(&fake_now) + hidden * TICKS_PER_SECOND - q.visible <= 1);
	memcpy(x->receipt, q.receipt, sizeof(x->receipt));
	if (with_text)
		memcpy(x->text, text, sizeof(text));
}

static void walk(struct world *w, unsigned seed, unsigned steps)
{
	static struct model m;
	m = (struct model){ .w = w, .random = seed };
	for (unsigned i = 0; i < steps && check_failures == 0; i++) {
		unsigned what = random_below(&m, 20);
		if (what < 7)
			model_put(&m);
		else if (what < 11)
			model_read(&m, true);
		else if (what < 13)
			model_read(&m, false);
		else if (what < 16)
			model_by_receipt(&m, true);
		else if (what < 18)
			model_by_receipt(&m, false);
		else if (what < 19)
			seconds_pass(random_below(&m, 15));
		else if (random_below(&m, 20) == 0) {
			CHECK_ERR(queue_clear(w->service, ORIGIN_REST, w->queue, NULL), ERR_OK);
			memset(m.all, 0, sizeof(m.all));
		}
		unsigned alive = 0;
		for (size_t k = 0; k < MODEL_MAX; k++)
			alive += is_alive(&m.all[k]);
		CHECK(count(w) >= alive);
	}
	if (check_failures > 0)
		printf("# seed %u\n", seed);
}

TEST(random_operations_agree_with_a_plain_array)
{
	clock_begin();
	for (unsigned seed = 1; seed <= 6; seed++) {
		struct world w = world_sqlite();
		walk(&w, seed, 1500);
		world_end(&w);
	}
	OVER_ALL(w)
	{
		seconds_pass(100);
		walk(&w, 100 + all_, 300);
	}
	clock_set_source(NULL);
}

RUN_TESTS(T(a_message_is_put_taken_and_deleted),
	T(a_message_comes_back_when_its_time_is_over_and_its_receipt_stays_good),
	T(messages_come_in_the_order_in_which_they_become_visible),
	T(an_expired_message_is_gone_for_every_operation),
	T(a_taken_message_that_expires_does_not_come_back),
	T(an_update_changes_the_text_and_keeps_all_else),
	T(a_receipt_that_was_never_given_is_told_from_an_old_one),
	T(no_receipt_reaches_another_queue_or_another_kind_of_item),
	T(one_message_is_taken_by_its_id), T(a_text_has_up_to_64_kib_of_any_bytes),
	T(every_number_has_its_limits), T(a_queue_is_created_once_and_again_with_equal_metadata),
	T(metadata_and_policies_are_replaced_one_by_one),
	T(queues_are_listed_by_name_prefix_and_page_and_no_table_is_among_them),
	T(clear_removes_what_was_there_and_delete_all),
	T(a_queue_that_is_removed_while_empty_loses_no_message_that_is_put_meanwhile),
	T(messages_survive_a_restart_with_their_receipts_and_with_the_clock_set_back),
	T(of_a_damaged_store_all_messages_on_sound_pages_are_salvaged),
	T(a_subscriber_is_told_of_every_message_that_comes_moves_and_goes),
	T(a_change_set_puts_a_message_with_all_else_or_not_at_all),
	T(of_16_takers_each_message_goes_to_one), T(takers_in_two_processes_get_no_message_twice),
	T(random_operations_agree_with_a_plain_array))
