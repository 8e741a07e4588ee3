/* SPDX-License-Identifier: MIT
 * Held views: what they show, how they are let go, and how they are ended by force.  The
 * log's bounds are tested on SQLite; the in-memory engine has no log. */
#include "base/clock.h"
#include "check.h"
#include "service/core/service.h"
#include "service/view/views.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))
#define KIB 1024
#define MIB (1024 * 1024)
#define TIMEOUT_US UINT64_C(30000000)

/* ---- a service over SQLite, with a layer that fails on demand ---- */

struct world {
	struct service *service;
	struct views *views;
	struct store *store;
	char path[40];
	/* Of on_end(), which may run in another thread. */
	atomic_uint let_go, forced;
	char last_name[SNAPSHOT_NAME_MAX + 1], last_why[160];
	pthread_mutex_t lock;
};

static void on_end(void *arg, const struct view_info *info, const char *why)
{
	struct world *w = arg;
	pthread_mutex_lock(&w->lock);
	(void)snprintf(w->last_name, sizeof(w->last_name), "%s", info->name);
	(void)snprintf(w->last_why, sizeof(w->last_why), "%s", why != NULL ? why : "");
	pthread_mutex_unlock(&w->lock);
	atomic_fetch_add(why != NULL ? &w->forced : &w->let_go, 1);
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	struct store *inner;
	MUST(w != NULL);
	(void)snprintf(w->path, sizeof(w->path), "/tmp/rowfs-views-XXXXXX");
	int fd = mkstemp(w->path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w->path) == 0);
	MUST(store_create(w->path, NULL) == ERR_OK);
	MUST(store_open(w->path, 0, &inner, NULL, NULL) == ERR_OK);
	MUST(store_open_fault(inner, &w->store) == ERR_OK);
	MUST(service_new(w->store, &w->service) == ERR_OK);
	w->views = service_views(w->service);
	pthread_mutex_init(&w->lock, NULL);
	views_on_end(w->views, on_end, w);
	return w;
}

static void world_free(struct world *w)
{
	service_free(w->service);
	unlink(w->path);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* One item whose body is `text` and what it never was before, n bytes in all. */
static enum err put_item(struct world *w, const char *text, size_t n)
{
	static unsigned char filling;
	char *body = malloc(n);
	MUST(body != NULL && strlen(text) <= n);
	memset(body, ++filling, n);
	memcpy(body, text, strlen(text));
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = STORE_ROOT, .class = CLASS_KEYED, .key = SPAN_LIT("acct") },
		.kind = ITEM_ACCOUNT,
		.body = span_make(body, n),
		.attrs = ATTRS_UNSET };
	enum err e = service_apply(w->service, ORIGIN_COMMAND, &c, 1, false, NULL);
	if (e == ERR_OK)
		changes_fini(&c, 1);
	free(body);
	return e;
}

static void put_text(struct world *w, const char *text)
{
	MUST(put_item(w, text, 16) == ERR_OK);
}

/* So that what is written from here on makes the log grow. */
static void grow_log(struct world *w, size_t bytes)
{
	for (; bytes >= 100 * KIB; bytes -= 100 * KIB)
		MUST(put_item(w, "", 100 * KIB) == ERR_OK);
}

static char shown_in(struct world *w, struct store_view *v)
{
	struct item it = { 0 };
	enum err e =
		store_child(w->store, v, STORE_ROOT, CLASS_KEYED, SPAN_LIT("acct"), WANT_BODY, &it);
	char c = e == ERR_OK && it.body.n > 0 ? it.body.p[0] : '-';
	item_fini(&it);
	return c;
}

static char shown_by(struct world *w, struct view *v)
{
	struct store_view *moment;
	if (view_begin(v, &moment) != ERR_OK)
		return '!';
	char c = shown_in(w, moment);
	view_end(v);
	return c;
}

static char shown_by_number(struct world *w, uint32_t number)
{
	struct store_view *moment;
	struct view *v;
	if (snapshot_begin(w->views, number, &v, &moment) != ERR_OK)
		return '!';
	char c = shown_in(w, moment);
	view_end(v);
	return c;
}

static bool wait_for(const atomic_uint *counter, unsigned n)
{
	const struct timespec step = { .tv_nsec = 5000000 };
	uint64_t end = clock_mono_us() + TIMEOUT_US;
	while (atomic_load(counter) < n && clock_mono_us() < end)
		nanosleep(&step, NULL);
	return atomic_load(counter) >= n;
}

static struct view_info make(struct world *w, const char *name)
{
	struct view_info info = { 0 };
	CHECK_ERR(snapshot_make(w->views, span_of(name), &info, NULL), ERR_OK);
	return info;
}

static struct view *stream(struct world *w)
{
	struct view *v = NULL;
	MUST(views_open(w->views, SPAN_LIT("acct/Tab"), &v) == ERR_OK);
	return v;
}

/* ---- what they show ---- */

TEST(a_stream_sees_its_moment_until_it_is_closed)
{
	struct world *w = world_new();
	put_text(w, "1");
	struct view *v = stream(w);
	put_text(w, "2");
	CHECK_EQ_INT(shown_by(w, v), '1');
	CHECK_EQ_INT(shown_in(w, NULL), '2');
	struct view_info info;
	CHECK_EQ_INT(views_list(w->views, &info, 1), 1);
	CHECK_EQ_STR(info.name, "acct/Tab");
	CHECK_EQ_INT(info.number, 0);
	views_close(v);
	views_close(NULL);
	CHECK_EQ_INT(views_list(w->views, NULL, 0), 0);
	CHECK_EQ_INT(atomic_load(&w->forced), 0);
	world_free(w);
}

TEST(a_snapshot_sees_its_moment_under_its_number)
{
	struct world *w = world_new();
	put_text(w, "1");
	struct view_info one = make(w, "one"), info;
	put_text(w, "2");
	struct view_info two = make(w, "two");
	put_text(w, "3");
	CHECK_EQ_INT(shown_by_number(w, one.number), '1');
	CHECK_EQ_INT(shown_by_number(w, two.number), '2');
	CHECK_ERR(snapshot_find(w->views, SPAN_LIT("two"), &info), ERR_OK);
	CHECK_EQ_INT(info.number, two.number);
	CHECK_ERR(snapshot_next(w->views, 0, &info), ERR_OK);
	CHECK_EQ_STR(info.name, "one");
	CHECK_ERR(snapshot_next(w->views, one.number, &info), ERR_OK);
	CHECK_EQ_STR(info.name, "two");
	CHECK_ERR(snapshot_next(w->views, two.number, &info), ERR_NOT_FOUND);
	CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("one")), ERR_OK);
	CHECK_EQ_INT(shown_by_number(w, one.number), '!');
	CHECK_EQ_INT(shown_by_number(w, two.number), '2');
	CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("one")), ERR_NOT_FOUND);
	CHECK_ERR(snapshot_get(w->views, one.number, &info), ERR_GONE);
	CHECK_EQ_INT(atomic_load(&w->let_go), 1);
	world_free(w);
}

TEST(a_number_is_never_used_again)
{
	struct world *w = world_new();
	uint32_t last = 0;
	for (int i = 0; i < 100; i++) {
		struct view_info info = make(w, "same");
		CHECK(info.number > last);
		last = info.number;
		CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("same")), ERR_OK);
	}
	world_free(w);
}

TEST(names_are_checked)
{
	struct world *w = world_new();
	struct view_info info;
	char name[SNAPSHOT_NAME_MAX + 2];
	memset(name, 'n', sizeof(name));
	CHECK_ERR(snapshot_make(w->views, span_make(name, SNAPSHOT_NAME_MAX + 1), &info, NULL),
		ERR_NAME_TOO_LONG);
	CHECK_ERR(snapshot_make(w->views, span_make(name, SNAPSHOT_NAME_MAX), &info, NULL), ERR_OK);
	CHECK_EQ_INT(strlen(info.name), SNAPSHOT_NAME_MAX);
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT(""), &info, NULL), ERR_NAME_INVALID);
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT(".n"), &info, NULL), ERR_NAME_INVALID);
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT("a\xff"), &info, NULL), ERR_NAME_NOT_UTF8);
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT("a 'b\"\xc3\xa4"), &info, NULL), ERR_OK);
	CHECK_ERR(
		snapshot_make(w->views, SPAN_LIT("a 'b\"\xc3\xa4"), &info, NULL), ERR_NAME_EXISTS);
	world_free(w);
}

TEST(so_many_snapshots_and_no_more)
{
	struct world *w = world_new();
	struct view_info info;
	struct err_detail detail = { 0 };
	char name[16];
	struct view *v = stream(w); /* does not count */
	for (int i = 0; i < SNAPSHOTS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		(void)make(w, name);
	}
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT("more"), &info, &detail), ERR_NO_SPACE);
	CHECK(strstr(detail.text, "32") != NULL);
	CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("n7")), ERR_OK);
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT("more"), &info, NULL), ERR_OK);
	views_close(v);
	world_free(w);
}

static void fill_streams(struct world *w, struct view *all[STREAMS_MAX])
{
	for (int i = 0; i < STREAMS_MAX; i++)
		all[i] = stream(w);
}

static void *close_soon(void *arg)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
	views_close(arg);
	return NULL;
}

TEST(a_stream_too_many_waits_for_a_place_but_not_for_long)
{
	struct world *w = world_new();
	struct view *all[STREAMS_MAX], *more;
	pthread_t closer;
	fill_streams(w, all);
	uint64_t start = clock_mono_us();
	CHECK_ERR(views_open(w->views, SPAN_LIT("x"), &more), ERR_THROTTLED);
	CHECK(clock_mono_us() - start >= 200 * 1000);
	CHECK_EQ_INT(views_list(w->views, NULL, 0), STREAMS_MAX);
	MUST(pthread_create(&closer, NULL, close_soon, all[7]) == 0);
	all[7] = stream(w);
	pthread_join(closer, NULL);
	CHECK_ERR(views_open(w->views, SPAN_LIT("x"), &more), ERR_THROTTLED);
	for (int i = 0; i < STREAMS_MAX; i++)
		views_close(all[i]);
	world_free(w);
}

TEST(a_place_is_given_back_once)
{
	struct world *w = world_new();
	struct view *all[STREAMS_MAX], *more;
	views_set_bounds(w->views, MIB, 0);
	store_fault_arm(w->store, FAULT_READS, 1, ERR_IO);
	CHECK_ERR(views_open(w->views, SPAN_LIT("x"), &more), ERR_IO);
	more = stream(w);
	grow_log(w, 2 * MIB);
	CHECK(wait_for(&w->forced, 1));
	fill_streams(w, all);
	views_close(more); /* its place is another's */
	CHECK_ERR(views_open(w->views, SPAN_LIT("x"), &more), ERR_THROTTLED);
	for (int i = 0; i < STREAMS_MAX; i++)
		views_close(all[i]);
	world_free(w);
}

/* ---- let go while it is used ---- */

TEST(a_use_that_has_begun_is_finished)
{
	struct world *w = world_new();
	struct store_view *moment;
	struct view *v;
	put_text(w, "1");
	struct view_info info = make(w, "one");
	REQUIRE(snapshot_begin(w->views, info.number, &v, &moment) == ERR_OK);
	CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("one")), ERR_OK);
	put_text(w, "2");
	CHECK_EQ_INT(shown_by_number(w, info.number), '!');
	CHECK_EQ_INT(shown_in(w, moment), '1');
	view_end(v);
	world_free(w);
}

static void *use_all_the_time(void *arg)
{
	struct world *w = arg;
	struct view_info info;
	while (atomic_load(&w->let_go) < 200)
		if (snapshot_find(w->views, SPAN_LIT("one"), &info) == ERR_OK) {
			char c = shown_by_number(w, info.number);
			MUST(c == 'a' || c == '!');
		}
	return NULL;
}

TEST(users_and_makers_at_once)
{
	struct world *w = world_new();
	pthread_t threads[4];
	put_text(w, "a");
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		MUST(pthread_create(&threads[i], NULL, use_all_the_time, w) == 0);
	for (int i = 0; i < 200; i++) {
		(void)make(w, "one");
		struct view *v = stream(w);
		CHECK_EQ_INT(shown_by(w, v), 'a');
		CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("one")), ERR_OK);
		views_close(v);
	}
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ_INT(views_list(w->views, NULL, 0), 0);
	world_free(w);
}

/* ---- ended by force ---- */

TEST(a_lifetime_ends_also_what_nobody_uses)
{
	struct world *w = world_new();
	struct view_info one = make(w, "one"), info;
	(void)make(w, "two");
	CHECK_EQ_INT(one.left_s, 0);
	CHECK_ERR(snapshot_set_lifetime(w->views, one.number, 3600), ERR_OK);
	CHECK_ERR(snapshot_get(w->views, one.number, &info), ERR_OK);
	CHECK(info.left_s > 3500 && info.left_s <= 3600);
	CHECK_ERR(snapshot_set_lifetime(w->views, one.number, UINT64_MAX / 2), ERR_OUT_OF_RANGE);
	CHECK_ERR(snapshot_set_lifetime(w->views, one.number, 1), ERR_OK);
	CHECK(wait_for(&w->forced, 1));
	CHECK_EQ_STR(w->last_name, "one");
	CHECK_EQ_STR(w->last_why, "its lifetime is over");
	CHECK_ERR(snapshot_get(w->views, one.number, &info), ERR_GONE);
	CHECK_ERR(snapshot_set_lifetime(w->views, one.number, 1), ERR_GONE);
	CHECK_ERR(snapshot_find(w->views, SPAN_LIT("two"), &info), ERR_OK);
	CHECK_EQ_INT(atomic_load(&w->forced), 1);
	world_free(w);
}

TEST(a_lifetime_of_all_is_taken_at_birth_and_can_be_lifted)
{
	struct world *w = world_new();
	struct view_info info;
	views_set_bounds(w->views, VIEWS_LOG_BYTES, 1000);
	struct view_info one = make(w, "one");
	CHECK(one.left_s > 900);
	CHECK_ERR(snapshot_set_lifetime(w->views, one.number, 0), ERR_OK);
	CHECK_ERR(snapshot_get(w->views, one.number, &info), ERR_OK);
	CHECK_EQ_INT(info.left_s, 0);
	struct view *v = stream(w); /* has none */
	CHECK_EQ_INT(views_list(w->views, &info, 1), 2);
	views_close(v);
	world_free(w);
}

TEST(the_log_ends_the_oldest)
{
	struct world *w = world_new();
	struct view_info infos[2];
	views_set_bounds(w->views, MIB, 0);
	struct view *old = stream(w);
	grow_log(w, 700 * KIB);
	struct view_info young = make(w, "young");
	CHECK_EQ_INT(views_list(w->views, infos, 2), 2);
	CHECK(infos[0].log_bytes >= 600 * KIB && infos[0].log_bytes <= MIB);
	CHECK(infos[1].log_bytes < 100 * KIB);
	CHECK_EQ_INT(atomic_load(&w->forced), 0);
	grow_log(w, 400 * KIB);
	CHECK(wait_for(&w->forced, 1));
	CHECK_EQ_STR(w->last_name, "acct/Tab");
	CHECK(strstr(w->last_why, "the log on disk grew by") != NULL);
	CHECK_EQ_INT(shown_by(w, old), '!');
	CHECK(shown_by_number(w, young.number) != '!');
	CHECK_EQ_INT(atomic_load(&w->forced), 1);
	views_close(old);
	world_free(w);
}

TEST(views_that_overlap_are_bounded_together)
{
	struct world *w = world_new();
	struct store_info before, after;
	views_set_bounds(w->views, MIB, 0);
	store_info(w->store, &before);
	struct view *last = stream(w);
	/* None grows by more than its own bound, but the log never begins anew. */
	for (int i = 0; i < 4; i++) {
		grow_log(w, 400 * KIB);
		struct view *next = stream(w);
		views_close(last);
		last = next;
	}
	store_info(w->store, &after);
	CHECK(after.log_bytes - before.log_bytes < 2 * MIB);
	CHECK_EQ_INT(atomic_load(&w->forced), 0);
	grow_log(w, 800 * KIB);
	CHECK(wait_for(&w->forced, 1));
	CHECK(strstr(w->last_why, "overlap") != NULL);
	CHECK_EQ_INT(shown_by(w, last), '!');
	views_close(last);
	world_free(w);
}

TEST(a_full_disk_ends_what_made_the_log_grow)
{
	struct world *w = world_new();
	(void)make(w, "old");
	grow_log(w, 2 * MIB);
	(void)make(w, "young");
	store_fault_arm(w->store, FAULT_APPLY_BEFORE, 1, ERR_NO_SPACE);
	CHECK_ERR(put_item(w, "x", 16), ERR_OK);
	CHECK_EQ_INT(atomic_load(&w->forced), 1);
	CHECK_EQ_STR(w->last_name, "old");
	CHECK_EQ_STR(w->last_why, "the disk is full");
	/* The log is as large as before: the young one holds it. */
	store_fault_arm(w->store, FAULT_APPLY_BEFORE, 1, ERR_NO_SPACE);
	CHECK_ERR(put_item(w, "y", 16), ERR_OK);
	CHECK_EQ_INT(atomic_load(&w->forced), 2);
	CHECK_EQ_STR(w->last_name, "young");
	/* It would bring nothing to end this one. */
	struct view_info last = make(w, "last");
	store_fault_arm(w->store, FAULT_APPLY_BEFORE, 1, ERR_NO_SPACE);
	CHECK_ERR(put_item(w, "z", 16), ERR_NO_SPACE);
	CHECK(shown_by_number(w, last.number) != '!');
	CHECK_EQ_INT(atomic_load(&w->forced), 2);
	world_free(w);
}

static void *end_later(void *arg)
{
	const struct timespec step = { .tv_nsec = 50000000 };
	nanosleep(&step, NULL);
	view_end(arg);
	return NULL;
}

TEST(who_finds_the_disk_full_waits_for_the_last_use)
{
	struct world *w = world_new();
	struct store_view *moment;
	struct view *v;
	pthread_t user;
	struct view_info info = make(w, "one");
	grow_log(w, 2 * MIB);
	REQUIRE(snapshot_begin(w->views, info.number, &v, &moment) == ERR_OK);
	uint64_t before = views_room(w->views);
	MUST(pthread_create(&user, NULL, end_later, v) == 0);
	CHECK(views_make_room(w->views, before));
	CHECK_EQ_INT(views_room(w->views), before + 1);
	/* Another writer, who failed before that. */
	CHECK(views_make_room(w->views, before));
	CHECK(!views_make_room(w->views, before + 1));
	pthread_join(user, NULL);
	world_free(w);
}

/* The engine leaves a log of 96 MiB as it is. */
TEST(a_log_at_rest_ends_nothing)
{
	struct world *w = world_new();
	const struct timespec watched = { .tv_nsec = 300000000 };
	struct store_info info;
	views_set_bounds(w->views, MIB, 0);
	views_close(stream(w)); /* over an empty log */
	grow_log(w, 8 * MIB);
	store_info(w->store, &info);
	CHECK(info.log_bytes > 4 * MIB && info.log_bytes < info.log_rest);
	struct view *v = stream(w);
	nanosleep(&watched, NULL);
	put_text(w, "x");
	nanosleep(&watched, NULL);
	CHECK_EQ_INT(atomic_load(&w->forced), 0);
	CHECK(shown_by(w, v) != '!');
	views_close(v);
	world_free(w);
}

TEST(a_view_that_cannot_be_opened_is_told)
{
	struct world *w = world_new();
	struct view_info info;
	struct view *v;
	store_fault_arm(w->store, FAULT_READS, 1, ERR_IO);
	CHECK_ERR(snapshot_make(w->views, SPAN_LIT("one"), &info, NULL), ERR_IO);
	store_fault_arm(w->store, FAULT_READS, 1, ERR_NO_MEMORY);
	CHECK_ERR(views_open(w->views, SPAN_LIT("x"), &v), ERR_NO_MEMORY);
	CHECK_EQ_INT(views_list(w->views, NULL, 0), 0);
	world_free(w);
}

/* After all views went, the log of before is not needed any more. */
TEST(the_log_is_given_back)
{
	struct world *w = world_new();
	struct store_info held, after;
	(void)make(w, "one");
	grow_log(w, 10 * MIB);
	store_info(w->store, &held);
	CHECK(held.log_bytes > 9 * MIB);
	CHECK_ERR(snapshot_drop(w->views, SPAN_LIT("one")), ERR_OK);
	store_info(w->store, &after);
	CHECK_EQ_INT(after.log_bytes, 0);
	put_text(w, "z");
	CHECK_EQ_INT(shown_in(w, NULL), 'z');
	world_free(w);
}

RUN_TESTS(T(a_stream_sees_its_moment_until_it_is_closed),
	T(a_snapshot_sees_its_moment_under_its_number), T(a_number_is_never_used_again),
	T(names_are_checked), T(so_many_snapshots_and_no_more),
	T(a_stream_too_many_waits_for_a_place_but_not_for_long), T(a_place_is_given_back_once),
	T(a_use_that_has_begun_is_finished), T(users_and_makers_at_once),
	T(a_lifetime_ends_also_what_nobody_uses),
	T(a_lifetime_of_all_is_taken_at_birth_and_can_be_lifted), T(the_log_ends_the_oldest),
	T(views_that_overlap_are_bounded_together), T(a_full_disk_ends_what_made_the_log_grow),
	T(who_finds_the_disk_full_waits_for_the_last_use), T(a_log_at_rest_ends_nothing),
	T(a_view_that_cannot_be_opened_is_told), T(the_log_is_given_back))
