/* SPDX-License-Identifier: MIT
 * A process that puts, takes and deletes messages in several threads is killed at random moments.
 * It reports each operation through a pipe, before it begins and when it was acknowledged.  Then
 * the store must hold every message that was put and that nobody asked to delete, none that was
 * deleted, and no message may go to two takers while it is invisible. */
#include "base/clock.h"
#include "killed_child.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdlib.h>

#define ROUNDS 25
#define WORKERS 4
#define NUMBERS 65536
#define HIDDEN_S 3600

struct report {
	enum report_kind {
		PUT_ASKED,
		PUT_DONE,
		TAKEN,
		DELETE_ASKED,
		DELETE_DONE
	} what;
	unsigned number; /* the message's text */
};

static char path[64];
static struct service *service;
static uint64_t queue;
static unsigned highest; /* number that was reported */

static void must(enum err e, const char *what)
{
	if (e != ERR_OK)
		errx(2, "%s: %s", what, err_symbol(e));
}

static void open_queue(void)
{
	struct store *store;
	struct item it = { 0 };
	bool created;
	must(store_open(path, 0, &store, NULL, NULL), "store_open");
	must(service_new(store, &service), "service_new");
	enum err e = account_create(service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL);
	must(e == ERR_ACCOUNT_EXISTS ? ERR_OK : e, "account_create");
	must(account_find(service, SPAN_LIT("acct"), &it), "account_find");
	must(queue_create(
		     service, ORIGIN_REST, it.id, SPAN_LIT("jobs"), SPAN_LIT(""), &created, NULL),
		"queue_create");
	must(queue_id(service, it.id, SPAN_LIT("jobs"), &queue), "queue_id");
	item_fini(&it);
}

static unsigned number_of(struct span text)
{
	char digits[8] = "";
	memcpy(digits, text.p, text.n < 7 ? text.n : 7);
	return (unsigned)strtoul(digits, NULL, 10);
}

/* ---- the process that is killed ---- */

struct worker {
	int pipe;
	unsigned next, random;
};

static void tell(const struct worker *w, enum report_kind what, unsigned number)
{
	struct report r = { .what = what, .number = number };
	if (write(w->pipe, &r, sizeof(r)) != sizeof(r))
		_exit(0);
}

static bool on_taken(void *arg, const struct queue_message *m)
{
	struct worker *w = arg;
	unsigned number = number_of(m->text);
	tell(w, TAKEN, number);
	if (number % 3 == 0)
		return true; /* it stays, invisible */
	tell(w, DELETE_ASKED, number);
	must(message_delete(
		     service, ORIGIN_REST, queue, span_of(m->id), span_of(m->receipt), false, NULL),
		"message_delete");
	tell(w, DELETE_DONE, number);
	return true;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (;;) {
		struct queue_message m;
		char text[8];
		w->random = w->random * 1103515245 + 12345;
		if (w->random >> 16 & 1) {
			(void)snprintf(text, sizeof(text), "%u", w->next % NUMBERS);
			tell(w, PUT_ASKED, w->next);
			must(message_put(service, ORIGIN_REST, queue, span_of(text), 0,
				     MESSAGE_NEVER, false, &m, NULL),
				"message_put");
			tell(w, PUT_DONE, w->next);
			w->next += WORKERS;
		} else {
			must(message_take(service, ORIGIN_REST, queue, 1 + (w->random >> 20) % 3,
				     HIDDEN_S, false, on_taken, w, NULL),
				"message_take");
		}
	}
	return NULL;
}

static void run(int to)
{
	unsigned first = highest + 1;
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	open_queue();
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .pipe = to, .next = first + i, .random = first + i };
		if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
			_exit(2);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- what it said ---- */

static struct {
	unsigned char put_asked, put_done, taken, delete_asked, delete_done, there;
} all[NUMBERS];

static void hear(const void *report)
{
	const struct report *r = report;
	if (r->number >= NUMBERS)
		errx(2, "too many messages");
	highest = r->number > highest ? r->number : highest;
	switch (r->what) {
	case PUT_ASKED:
		all[r->number].put_asked = 1;
		break;
	case PUT_DONE:
		all[r->number].put_done = 1;
		break;
	case TAKEN:
		CHECK(all[r->number].put_asked);
		CHECK(++all[r->number].taken == 1);
		break;
	case DELETE_ASKED:
		all[r->number].delete_asked = 1;
		break;
	case DELETE_DONE:
		all[r->number].delete_done = 1;
		break;
	}
}

static bool on_there(void *arg, const struct item *it)
{
	struct message_key key;
	int64_t now = *(int64_t *)arg;
	unsigned i = number_of(it->body);
	CHECK(message_key_read(it->key, &key));
	CHECK(++all[i].there == 1);
	CHECK(all[i].put_asked && !all[i].delete_done);
	CHECK(key.taken <= 1 && key.taken >= all[i].taken);
	CHECK((key.visible > now) == (key.taken > 0));
	return true;
}

static void check(void)
{
	struct verify_counts counts;
	int64_t now = clock_ticks();
	open_queue();
	CHECK_ERR(service_verify(service, NULL, NULL, NULL, &counts), ERR_OK);
	for (unsigned i = 0; i < NUMBERS; i++)
		all[i].there = 0;
	CHECK_ERR(store_list(service_store(service), NULL, queue, CLASS_QUEUE, (struct span){ 0 },
			  false, WANT_BODY, on_there, &now),
		ERR_OK);
	for (unsigned i = 0; i < NUMBERS; i++)
		CHECK(!all[i].put_done || all[i].delete_asked || all[i].there);
	service_free(service);
}

TEST(a_kill_loses_no_message_and_gives_none_to_two_takers)
{
	(void)snprintf(path, sizeof(path), "/tmp/rowfs-queue-kill-%d", (int)getpid());
	must(store_create(path, NULL), "store_create");
	unsigned random = 7;
	for (unsigned i = 0; i < ROUNDS && check_failures == 0; i++) {
		random = random * 1103515245 + 12345;
		run_and_kill(run, sizeof(struct report), hear, (random >> 16) % 1500);
		check();
	}
	unsigned taken = 0, deleted = 0;
	for (unsigned i = 0; i < NUMBERS; i++) {
		taken += all[i].taken;
		deleted += all[i].delete_done;
	}
	CHECK(taken > 100 && deleted > 100);
	remove_store(path);
}

RUN_TESTS(T(a_kill_loses_no_message_and_gives_none_to_two_takers))
