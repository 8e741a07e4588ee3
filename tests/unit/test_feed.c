/* SPDX-License-Identifier: MIT
 * The feed of changes: for how long its lines are kept, when it ends, and what a change set that fails
 * leaves in it. */
#include "base/clock.h"
#include "check.h"
#include "service/feed/feed.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))
#define LINES 10
#define TICKS 1000

struct world {
	char path[40];
	struct store *store;
	struct service *service;
	uint64_t account, table;
	int64_t version;
};

static void open_it(struct world *w)
{
	MUST(store_open(w->path, 0, &w->store, NULL, NULL) == ERR_OK);
	MUST(service_new(w->store, &w->service) == ERR_OK);
	store_set_feed_limits(w->store, LINES, TICKS);
	w->version = store_version_floor(w->store);
}

static struct world world_new(void)
{
	struct world w = { .path = "/tmp/rowfs-feed-XXXXXX" };
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	open_it(&w);
	service_table(w.service, &w.account, &w.table);
	w.version = store_version_floor(w.store);
	return w;
}

static void world_fini(struct world *w)
{
	service_free(w->service);
	unlink(w->path);
}

static struct change put_of(struct world *w, const char *rk)
{
	return (struct change){ .op = CHANGE_PUT,
		.at = { .parent = w->table,
			.has_pk = true,
			.pk = SPAN_LIT("p"),
			.key = span_of(rk) },
		.version = ++w->version,
		.kind = ITEM_ROW,
		.body = SPAN_LIT("{}\n"),
		.item_flags = ITEM_CANONICAL,
		.attrs = ATTRS_UNSET };
}

static void put_at(struct world *w, const char *rk, int64_t version)
{
	struct change c = put_of(w, rk);
	c.version = w->version = version;
	CHECK_ERR(store_apply(w->store, &c, 1, false, NULL), ERR_OK);
	changes_fini(&c, 1);
}

static void put(struct world *w, const char *rk)
{
	put_at(w, rk, w->version + 1);
}

static void keep(struct world *w)
{
	CHECK_ERR(store_feed_keep(w->store, w->version, NULL), ERR_OK);
}

struct seen {
	struct store_feed_line first, last;
	char keys[200]; /* "+a -b " */
	size_t n;
};

static bool on_line(void *arg, const struct store_feed_line *l)
{
	struct seen *s = arg;
	s->first = s->n++ == 0 ? *l : s->first;
	s->last = *l;
	size_t len = strlen(s->keys);
	if (l->kind != STORE_FEED_BEGIN && len + l->rk.n + 3 < sizeof(s->keys))
		(void)snprintf(s->keys + len, sizeof(s->keys) - len, "%c%.*s ",
			l->kind == STORE_FEED_PUT ? '+' : '-', (int)l->rk.n,
			l->rk.p != NULL ? l->rk.p : "");
	return true;
}

static enum err read_after(
	struct world *w, const struct store_feed_position *after, struct seen *ret)
{
	*ret = (struct seen){ 0 };
	return store_feed_read(w->store, after, on_line, ret);
}

TEST(a_store_that_nobody_asked_keeps_no_feed)
{
	struct world w = world_new();
	struct seen s;
	put(&w, "a");
	CHECK_ERR(read_after(&w, NULL, &s), ERR_FEED_GONE);
	keep(&w);
	put(&w, "b");
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+b ");
	world_fini(&w);
}

TEST(the_latest_lines_are_kept)
{
	struct world w = world_new();
	struct seen all, s;
	keep(&w);
	CHECK_ERR(read_after(&w, NULL, &all), ERR_OK);
	const struct store_feed_position begin = all.last.at;
	for (int i = 0; i < LINES - 1; i++)
		put(&w, "a");
	CHECK_ERR(read_after(&w, &begin, &s), ERR_OK);
	CHECK_EQ_INT(s.n, LINES - 1);
	for (int i = 0; i < 3; i++)
		put(&w, "b");
	CHECK_ERR(read_after(&w, &begin, &s), ERR_FEED_GONE);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	CHECK_EQ_INT(s.n, LINES);
	CHECK_EQ_INT(s.last.at.number, begin.number + LINES + 2);
	world_fini(&w);
}

TEST(lines_are_kept_for_a_time)
{
	struct world w = world_new();
	struct seen s;
	keep(&w);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	const struct store_feed_position begin = s.last.at;
	put(&w, "a");
	CHECK_ERR(read_after(&w, &begin, &s), ERR_OK);
	const struct store_feed_position a = s.last.at;
	put_at(&w, "b", begin.version + TICKS);
	CHECK_ERR(read_after(&w, &begin, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+a +b ");
	keep(&w);
	put_at(&w, "c", a.version + TICKS + 1);
	CHECK_ERR(read_after(&w, &begin, &s), ERR_FEED_GONE);
	CHECK_ERR(read_after(&w, &a, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+b +c ");
	world_fini(&w);
}

TEST(a_reader_that_missed_nothing_goes_on_after_a_quiet_time)
{
	struct world w = world_new();
	struct seen s;
	keep(&w);
	put(&w, "a");
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	const struct store_feed_position a = s.last.at;
	/* Somebody asks, and nothing changes. */
	CHECK_ERR(store_feed_keep(w.store, a.version + TICKS, NULL), ERR_OK);
	put_at(&w, "b", a.version + TICKS + 5);
	CHECK_ERR(read_after(&w, &a, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+b ");
	world_fini(&w);
}

TEST(a_clock_that_was_ahead_does_not_end_it)
{
	struct world w = world_new();
	struct seen s;
	int64_t now = w.version;
	put_at(&w, "a", now + 10 * TICKS);
	CHECK_ERR(store_feed_keep(w.store, now, NULL), ERR_OK);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	const struct store_feed_position begin = s.last.at;
	put(&w, "b");
	CHECK_ERR(read_after(&w, &begin, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+b ");
	world_fini(&w);
}

TEST(a_feed_that_nobody_asks_for_ends)
{
	struct world w = world_new();
	struct seen s;
	keep(&w);
	int64_t asked = w.version;
	put_at(&w, "a", asked + TICKS);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	const struct store_feed_position last = s.last.at;
	put_at(&w, "b", asked + TICKS + 1);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_FEED_GONE);
	/* The one that begins now has none of its positions. */
	keep(&w);
	put(&w, "c");
	CHECK_ERR(read_after(&w, &last, &s), ERR_FEED_GONE);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+c ");
	CHECK(s.first.at.number > last.number);
	world_fini(&w);
}

TEST(asking_in_time_keeps_it)
{
	struct world w = world_new();
	struct seen s;
	keep(&w);
	int64_t asked = w.version;
	put_at(&w, "a", asked + TICKS);
	keep(&w);
	put_at(&w, "b", asked + 2 * TICKS);
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+a +b ");
	world_fini(&w);
}

TEST(a_change_set_that_fails_is_in_no_line)
{
	struct world w = world_new();
	struct seen s;
	keep(&w);
	put(&w, "a");
	struct change set[] = { put_of(&w, "b"), put_of(&w, "a") };
	set[1].cond = COND_ABSENT;
	CHECK_ERR(store_apply(w.store, set, 2, false, NULL), ERR_ENTITY_EXISTS);
	put(&w, "c");
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+a +c ");
	CHECK_EQ_INT(s.last.at.number - s.first.at.number, 2);
	world_fini(&w);
}

TEST(it_goes_on_after_the_store_was_closed)
{
	struct world w = world_new();
	struct seen s;
	keep(&w);
	put(&w, "a");
	CHECK_ERR(read_after(&w, NULL, &s), ERR_OK);
	const struct store_feed_position last = s.last.at;
	service_free(w.service);
	open_it(&w);
	put(&w, "b");
	CHECK_ERR(read_after(&w, &last, &s), ERR_OK);
	CHECK_EQ_STR(s.keys, "+b ");
	const struct store_feed_position other = { last.number, last.version + 1 };
	CHECK_ERR(read_after(&w, &other, &s), ERR_FEED_GONE);
	world_fini(&w);
}

TEST(an_engine_without_a_feed_says_so)
{
	struct store *memory;
	struct seen s = { 0 };
	MUST(store_open_memory(&memory) == ERR_OK);
	CHECK_ERR(store_feed_keep(memory, 1, NULL), ERR_NOT_SUPPORTED);
	CHECK_ERR(store_feed_read(memory, NULL, on_line, &s), ERR_NOT_SUPPORTED);
	store_close(memory);
}

/* clang-format off */
RUN_TESTS(
	T(a_store_that_nobody_asked_keeps_no_feed),
	T(the_latest_lines_are_kept),
	T(lines_are_kept_for_a_time),
	T(a_reader_that_missed_nothing_goes_on_after_a_quiet_time),
	T(a_clock_that_was_ahead_does_not_end_it),
	T(a_feed_that_nobody_asks_for_ends),
	T(asking_in_time_keeps_it),
	T(a_change_set_that_fails_is_in_no_line),
	T(it_goes_on_after_the_store_was_closed),
	T(an_engine_without_a_feed_says_so))
/* clang-format on */
