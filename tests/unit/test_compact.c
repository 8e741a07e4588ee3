/* SPDX-License-Identifier: MIT
 * Giving space back, stopped and killed at each of its steps: the store is as it was, or compact. */
#include "check.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))
#define ROWS 6000
#define KEPT 3000
#define DOCUMENT 1000
/* Fewer bytes than the store has before the compaction.  How much of that has left the log for the file
 * depends on other threads. */
#define ALL_DOCUMENTS ((uint64_t)ROWS * DOCUMENT)
#define STEPS_MAX 1000

struct world {
	char path[48];
	struct store *store;
	struct service *service;
	uint64_t account, table;
};

/* What a run of the compaction is told: to end at its at-th step. */
struct order {
	unsigned at, steps;
	bool kills;
	bool forward; /* it never went back */
	uint64_t done, total;
};

static void open_it(struct world *w)
{
	MUST(store_open(w->path, 0, &w->store, NULL, NULL) == ERR_OK);
	MUST(service_new(w->store, &w->service) == ERR_OK);
}

static void put_rows(struct world *w)
{
	char rk[16], text[DOCUMENT + 32];
	int n = snprintf(text, sizeof(text), "{\"t\":\"%0*d\"}\n", DOCUMENT, 7);
	struct change set[1];
	for (unsigned i = 0; i < ROWS; i++) {
		(void)snprintf(rk, sizeof(rk), "%05u", i);
		set[0] = (struct change){ .op = CHANGE_PUT,
			.at = { .parent = w->table,
				.has_pk = true,
				.pk = i < KEPT ? SPAN_LIT("kept") : SPAN_LIT("gone"),
				.key = span_of(rk) },
			.kind = ITEM_ROW,
			.body = span_make(text, (size_t)n),
			.item_flags = ITEM_CANONICAL,
			.attrs = ATTRS_UNSET };
		MUST(service_apply(w->service, ORIGIN_COMMAND, set, 1, false, NULL) == ERR_OK);
		changes_fini(set, 1);
	}
}

static void remove_partition(struct world *w, struct span pk)
{
	struct change c = { .op = CHANGE_DELETE,
		.flags = CHANGE_RECURSIVE,
		.at = { .parent = w->table, .key = pk } };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
}

static struct world world_new(void)
{
	struct world w = { .path = "/tmp/rowfs-compact-XXXXXX" };
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	open_it(&w);
	service_table(w.service, &w.account, &w.table);
	put_rows(&w);
	remove_partition(&w, SPAN_LIT("gone"));
	return w;
}

static void world_fini(struct world *w)
{
	service_free(w->service);
	unlink(w->path);
}

static bool has_copy(const struct world *w)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "%s.compact", w->path);
	return access(name, F_OK) == 0;
}

static uint64_t bytes(const struct world *w)
{
	struct stat st;
	MUST(stat(w->path, &st) == 0);
	return (uint64_t)st.st_size;
}

static bool count_row(void *arg, const struct item *it)
{
	*(unsigned *)arg += it->size > DOCUMENT;
	return true;
}

static bool on_finding(void *arg, const char *finding)
{
	(void)arg;
	check_fail(__FILE__, __LINE__, finding);
	return true;
}

static void is_whole(struct world *w)
{
	struct item p = { 0 };
	unsigned n = 0;
	CHECK_ERR(store_child(
			  w->store, NULL, w->table, CLASS_KEYED, SPAN_LIT("kept"), WANT_ATTRS, &p),
		ERR_OK);
	CHECK_ERR(store_list(w->store, NULL, p.id, CLASS_KEYED, (struct span){ NULL, 0 }, false,
			  WANT_BODY, count_row, &n),
		ERR_OK);
	item_fini(&p);
	CHECK_EQ_INT(n, KEPT);
	CHECK_ERR(store_check(w->store, on_finding, NULL, NULL), ERR_OK);
}

static bool on_step(void *arg, uint64_t done, uint64_t total)
{
	struct order *o = arg;
	o->forward = o->forward && done >= o->done && done <= total;
	o->done = done;
	o->total = total;
	if (++o->steps != o->at)
		return true;
	if (o->kills)
		_exit(7);
	return false;
}

static enum err compact(struct world *w, struct order *o)
{
	o->forward = true;
	return store_compact(w->store, on_step, o, NULL);
}

TEST(freed_pages_are_given_back)
{
	struct world w = world_new();
	struct order o = { 0 };
	CHECK_ERR(compact(&w, &o), ERR_OK);
	CHECK(bytes(&w) < ALL_DOCUMENTS * 8 / 10); /* half of them stayed */
	CHECK(o.steps > 1 && o.forward);
	is_whole(&w);
	CHECK(!has_copy(&w));
	/* There is nothing more to do, and no step. */
	o = (struct order){ 0 };
	CHECK_ERR(compact(&w, &o), ERR_OK);
	CHECK_EQ_INT(o.steps, 0);
	/* What is written then goes on as ever. */
	service_put_document(w.service, w.table, "kept", "00000", "{\"t\":1}");
	service_free(w.service);
	open_it(&w);
	CHECK_ERR(store_check(w.store, on_finding, NULL, NULL), ERR_OK);
	world_fini(&w);
}

TEST(one_that_is_stopped_changes_nothing)
{
	struct world w = world_new();
	struct order o = { 0 };
	unsigned at = 0;
	enum err e = ERR_CANCELLED;
	while (e == ERR_CANCELLED && at < STEPS_MAX) {
		o = (struct order){ .at = ++at };
		e = compact(&w, &o);
		is_whole(&w);
		CHECK(!has_copy(&w));
	}
	CHECK_ERR(e, ERR_OK);
	CHECK(at > 2);
	world_fini(&w);
}

TEST(one_that_is_killed_leaves_a_whole_store)
{
	int status = 0;
	unsigned at = 0;
	struct world w = world_new();
	do {
		struct order o = { .at = ++at, .kills = true };
		service_free(w.service);
		pid_t child = fork();
		if (child == 0) {
			open_it(&w);
			_exit(compact(&w, &o) == ERR_OK ? 0 : 1);
		}
		MUST(waitpid(child, &status, 0) == child);
		open_it(&w);
		is_whole(&w);
	} while (WIFEXITED(status) && WEXITSTATUS(status) == 7 && at < STEPS_MAX);
	CHECK_EQ_INT(WEXITSTATUS(status), 0);
	CHECK(at > 2);
	/* What the killed ones left goes with the next one. */
	remove_partition(&w, SPAN_LIT("kept"));
	struct order o = { 0 };
	CHECK_ERR(compact(&w, &o), ERR_OK);
	CHECK(!has_copy(&w));
	world_fini(&w);
}

TEST(a_view_keeps_what_it_shows)
{
	struct world w = world_new();
	struct store_view *view;
	struct item row = { 0 }, p = { 0 };
	struct order o = { 0 };
	MUST(store_view_hold(w.store, &view) == ERR_OK);
	remove_partition(&w, SPAN_LIT("kept"));
	CHECK_ERR(compact(&w, &o), ERR_OK);
	CHECK_ERR(
		store_child(w.store, view, w.table, CLASS_KEYED, SPAN_LIT("kept"), WANT_ATTRS, &p),
		ERR_OK);
	CHECK_ERR(store_child(w.store, view, p.id, CLASS_KEYED, SPAN_LIT("00001"), WANT_BODY, &row),
		ERR_OK);
	CHECK(row.body.n > DOCUMENT);
	item_fini(&row);
	item_fini(&p);
	store_view_close(w.store, view);
	service_free(w.service);
	open_it(&w);
	CHECK(bytes(&w) < (uint64_t)ROWS * DOCUMENT / 10);
	world_fini(&w);
}

/* clang-format off */
RUN_TESTS(
	T(freed_pages_are_given_back),
	T(one_that_is_stopped_changes_nothing),
	T(one_that_is_killed_leaves_a_whole_store),
	T(a_view_keeps_what_it_shows))
/* clang-format on */
