/* SPDX-License-Identifier: MIT
 * Which partitions are hot, and the throttle: by a clock of the test's own; then what the
 * service counts and refuses. */
#include "check.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/admission.h"
#include "service/core/tables.h"
#include "service/query/queries.h"
#include "service_table.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdlib.h>

#define S(n_) ((uint64_t)(n_)*1000000)

static struct hot_spot spots[8];

static size_t hottest(struct heat *h, uint64_t now_us)
{
	memset(spots, 0, sizeof(spots));
	return heat_hottest(h, now_us, spots, 8);
}

static bool is_spot(size_t i, uint64_t table, const char *pk, uint64_t changed, uint64_t read)
{
	return spots[i].table == table && span_is(span_make(spots[i].pk, spots[i].pk_n), pk) &&
		spots[i].entities[HEAT_CHANGED] == changed && spots[i].entities[HEAT_READ] == read;
}

TEST(partitions_are_listed_hottest_first)
{
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	CHECK_EQ_INT(hottest(h, S(100)), 0);
	heat_count(h, S(100), 1, SPAN_LIT("a"), HEAT_CHANGED, 5);
	heat_count(h, S(100), 1, SPAN_LIT("b"), HEAT_READ, 7);
	heat_count(h, S(101), 2, SPAN_LIT("a"), HEAT_CHANGED, 4);
	heat_count(h, S(101), 2, SPAN_LIT("a"), HEAT_READ, 4);
	heat_count(h, S(101), 2, SPAN_LIT(""), HEAT_READ, 1);
	CHECK_EQ_INT(hottest(h, S(101)), 4);
	CHECK(is_spot(0, 2, "a", 4, 4));
	CHECK(is_spot(1, 1, "b", 0, 7));
	CHECK(is_spot(2, 1, "a", 5, 0));
	CHECK(is_spot(3, 2, "", 0, 1));
	CHECK_EQ_INT(heat_hottest(h, S(101), spots, 2), 2);
	CHECK(is_spot(1, 1, "b", 0, 7));
	heat_free(h);
}

static void keep_spot(void *arg, const struct hot_spot *spot)
{
	size_t *n = arg;
	spots[(*n)++] = *spot;
}

TEST(the_heat_of_one_table_has_the_busiest_second)
{
	size_t n = 0;
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_count(h, S(100), 1, SPAN_LIT("a"), HEAT_CHANGED, 5);
	heat_count(h, S(101), 1, SPAN_LIT("a"), HEAT_CHANGED, 4);
	heat_count(h, S(101), 1, SPAN_LIT("a"), HEAT_READ, 3);
	heat_count(h, S(101), 2, SPAN_LIT("a"), HEAT_READ, 50);
	heat_of_table(h, S(101), 1, keep_spot, &n);
	REQUIRE(n == 1);
	CHECK(is_spot(0, 1, "a", 9, 3));
	CHECK_EQ_INT(spots[0].peak, 7);
	n = 0;
	heat_of_table(h, S(160), 1, keep_spot, &n);
	CHECK_EQ_INT(n, 1);
	n = 0;
	heat_of_table(h, S(161), 1, keep_spot, &n);
	CHECK_EQ_INT(n, 0);
	heat_free(h);
}

TEST(what_is_a_minute_old_does_not_count)
{
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_count(h, S(100) + 999999, 1, SPAN_LIT("a"), HEAT_CHANGED, 5);
	heat_count(h, S(130), 1, SPAN_LIT("a"), HEAT_CHANGED, 3);
	CHECK_EQ_INT(hottest(h, S(159)), 1);
	CHECK(is_spot(0, 1, "a", 8, 0));
	CHECK_EQ_INT(hottest(h, S(160)), 1);
	CHECK(is_spot(0, 1, "a", 3, 0));
	CHECK_EQ_INT(hottest(h, S(189)), 1);
	CHECK_EQ_INT(hottest(h, S(190)), 0);
	heat_count(h, S(100000), 1, SPAN_LIT("a"), HEAT_READ, 1);
	CHECK_EQ_INT(hottest(h, S(100000)), 1);
	CHECK(is_spot(0, 1, "a", 0, 1));
	heat_free(h);
}

TEST(a_thread_whose_clock_is_a_little_behind_counts_too)
{
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_count(h, S(100), 1, SPAN_LIT("a"), HEAT_CHANGED, 1);
	heat_count(h, S(99), 1, SPAN_LIT("a"), HEAT_CHANGED, 1);
	CHECK_EQ_INT(hottest(h, S(98)), 1);
	CHECK(is_spot(0, 1, "a", 2, 0));
	heat_free(h);
}

TEST(the_hot_ones_stay_among_very_many)
{
	char pk[16];
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_count(h, S(100), 7, SPAN_LIT("hot"), HEAT_CHANGED, 3);
	for (unsigned i = 0; i < 20000; i++) {
		int n = snprintf(pk, sizeof(pk), "p%u", i);
		heat_count(h, S(100), 7, span_make(pk, (size_t)n), HEAT_READ, 1);
	}
	CHECK_EQ_INT(hottest(h, S(100)), 8);
	CHECK(is_spot(0, 7, "hot", 3, 0));
	heat_free(h);
}

TEST(a_table_is_forgotten_and_no_other)
{
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	for (int i = 0; i < 500; i++) {
		char pk[16];
		int n = snprintf(pk, sizeof(pk), "%d", i);
		heat_count(h, S(100), 1, span_make(pk, (size_t)n), HEAT_CHANGED, 9);
	}
	heat_count(h, S(100), 2, SPAN_LIT("7"), HEAT_CHANGED, 1);
	heat_forget(h, 1);
	CHECK_EQ_INT(hottest(h, S(100)), 1);
	CHECK(is_spot(0, 2, "7", 1, 0));
	heat_count(h, S(100), 1, SPAN_LIT("7"), HEAT_READ, 2);
	CHECK_EQ_INT(hottest(h, S(100)), 2);
	CHECK(is_spot(0, 1, "7", 0, 2));
	heat_free(h);
}

TEST(keys_of_any_length)
{
	static char key[LIMIT_KEY_BYTES + 1];
	memset(key, 'k', sizeof(key));
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_count(h, S(1), 1, span_make(key, LIMIT_KEY_BYTES), HEAT_READ, 1);
	heat_count(h, S(1), 1, span_make(key, sizeof(key)), HEAT_READ, 1);
	CHECK_EQ_INT(hottest(h, S(1)), 1);
	CHECK_EQ_INT(spots[0].pk_n, LIMIT_KEY_BYTES);
	heat_free(h);
}

TEST(a_partition_admits_its_target_in_each_second)
{
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_set_target(h, 3);
	for (int i = 0; i < 3; i++)
		CHECK(heat_admit(h, S(5), 1, SPAN_LIT("a"), HEAT_CHANGED, 1));
	CHECK(!heat_admit(h, S(5) + 999999, 1, SPAN_LIT("a"), HEAT_CHANGED, 1));
	CHECK(!heat_admit(h, S(5), 1, SPAN_LIT("a"), HEAT_READ, 1));
	CHECK(!heat_admit(h, S(5), 1, SPAN_LIT("a"), HEAT_READ, 0));
	CHECK(heat_admit(h, S(5), 1, SPAN_LIT("b"), HEAT_READ, 1));
	CHECK(heat_admit(h, S(5), 2, SPAN_LIT("a"), HEAT_READ, 1));
	CHECK(heat_admit(h, S(6), 1, SPAN_LIT("a"), HEAT_CHANGED, 1));
	CHECK_EQ_INT(heat_refusals(h), 3);
	CHECK_EQ_INT(hottest(h, S(6)), 3);
	CHECK(is_spot(0, 1, "a", 4, 0));
	heat_free(h);
}

TEST(a_large_request_is_admitted_whole_once)
{
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_set_target(h, 1);
	CHECK(heat_admit(h, S(5), 1, SPAN_LIT("a"), HEAT_CHANGED, 100));
	CHECK(!heat_admit(h, S(5), 1, SPAN_LIT("a"), HEAT_CHANGED, 100));
	CHECK(heat_admit(h, S(6), 1, SPAN_LIT("a"), HEAT_CHANGED, 100));
	heat_set_target(h, 0);
	CHECK(heat_admit(h, S(6), 1, SPAN_LIT("a"), HEAT_CHANGED, 100));
	heat_free(h);
}

static void *admit_many(void *arg)
{
	uintptr_t admitted = 0;
	for (int i = 0; i < 1000; i++)
		admitted += heat_admit(arg, S(9), 1, SPAN_LIT("a"), HEAT_CHANGED, 1);
	return (void *)admitted;
}

TEST(no_more_is_admitted_where_many_ask)
{
	pthread_t threads[4];
	uintptr_t all = 0;
	struct heat *h = heat_new();
	REQUIRE(h != NULL);
	heat_set_target(h, 50);
	for (int i = 0; i < 4; i++)
		REQUIRE(pthread_create(&threads[i], NULL, admit_many, h) == 0);
	for (int i = 0; i < 4; i++) {
		void *admitted;
		pthread_join(threads[i], &admitted);
		all += (uintptr_t)admitted;
	}
	CHECK_EQ_INT(all, 50);
	CHECK_EQ_INT(heat_refusals(h), 3950);
	heat_free(h);
}

/* ---- the service ---- */

struct world {
	struct service *service;
	uint64_t account, table;
};

static bool world_init(struct world *w)
{
	struct store *store;
	if (store_open_memory(&store) != ERR_OK || service_new(store, &w->service) != ERR_OK)
		return false;
	service_table(w->service, &w->account, &w->table);
	return true;
}

static enum err upsert(struct world *w, const char *pk, size_t n, unsigned flags)
{
	static const char *const rks[] = { "0", "1", "2", "3" };
	struct entity e = { 0 };
	struct entity_op ops[4];
	for (size_t i = 0; i < n; i++)
		ops[i] = (struct entity_op){ .kind = ENTITY_UPSERT,
			.pk = span_of(pk),
			.rk = span_of(rks[i]),
			.entity = &e,
			.attrs = ATTRS_UNSET };
	return entities_apply(w->service, ORIGIN_COMMAND, w->table, ops, n, flags, NULL);
}

/* "acct/Tab/p changed read", hottest first. */
static const char *heat_text(struct world *w)
{
	static char text[512];
	size_t at = 0;
	struct hottest *h = hottest_partitions(w->service);
	text[0] = '\0';
	for (size_t i = 0; h != NULL && i < h->n; i++) {
		const struct hot_partition *p = &h->partitions[i];
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"%s/%s/%.*s %" PRIu64 " %" PRIu64 "\n", p->account, p->table,
			(int)p->spot.pk_n, p->spot.pk, p->spot.entities[HEAT_CHANGED],
			p->spot.entities[HEAT_READ]);
	}
	free(h);
	return text;
}

static bool take(void *arg, const struct query_row *row)
{
	(void)row;
	++*(size_t *)arg;
	return true;
}

static enum err query(struct world *w, struct query *q, size_t *ret_rows, bool *ret_more)
{
	struct query_end end;
	*ret_rows = 0;
	enum err e = query_run(w->service, NULL, q, take, ret_rows, &end);
	*ret_more = end.more;
	query_end_fini(&end);
	return e;
}

TEST(what_is_changed_and_read_is_counted)
{
	struct world w = { 0 };
	size_t rows;
	bool more;
	REQUIRE(world_init(&w));
	CHECK_ERR(upsert(&w, "p", 4, ENTITIES_SET), ERR_OK);
	CHECK_ERR(upsert(&w, "q", 2, 0), ERR_OK);
	CHECK_ERR(upsert(&w, "r", 3, ENTITIES_SET | ENTITIES_CHECK), ERR_OK);
	CHECK_ERR(upsert(&w, "no/key", 1, 0), ERR_KEY_INVALID);
	CHECK_EQ_STR(heat_text(&w), "acct/Tab/p 4 0\nacct/Tab/q 2 0\n");
	struct query q = { .table_id = w.table };
	CHECK_ERR(query(&w, &q, &rows, &more), ERR_OK);
	CHECK_EQ_INT(rows, 6);
	q.top = 1;
	CHECK_ERR(query(&w, &q, &rows, &more), ERR_OK);
	CHECK_EQ_STR(heat_text(&w), "acct/Tab/p 4 5\nacct/Tab/q 2 2\n");
	service_free(w.service);
}

TEST(a_table_that_is_gone_is_not_hot)
{
	struct world w = { 0 };
	REQUIRE(world_init(&w));
	CHECK_ERR(upsert(&w, "p", 4, ENTITIES_SET), ERR_OK);
	CHECK_ERR(table_delete(w.service, ORIGIN_COMMAND, w.table, NULL), ERR_OK);
	CHECK_EQ_STR(heat_text(&w), "");
	service_free(w.service);
}

/* The clock is real here: a second may end at any moment, but not a thousand of them. */
TEST(change_sets_over_the_target_are_refused_and_bulk_loads_are_not)
{
	struct world w = { 0 };
	unsigned done = 0, refused = 0;
	REQUIRE(world_init(&w));
	heat_set_target(service_heat(w.service), 2);
	for (int i = 0; i < 1000; i++) {
		enum err e = upsert(&w, "p", 1, ENTITIES_SET);
		done += e == ERR_OK;
		refused += e == ERR_THROTTLED;
	}
	CHECK_EQ_INT(done + refused, 1000);
	CHECK(done >= 2 && refused >= 500);
	for (int i = 0; i < 1000; i++)
		if (upsert(&w, "p", 1, 0) != ERR_OK)
			check_fail(__FILE__, __LINE__, "a bulk load was refused");
	for (int i = 0; i < 1000; i++)
		if (upsert(&w, "p", 1, ENTITIES_SET | ENTITIES_CHECK) != ERR_OK)
			check_fail(__FILE__, __LINE__, "a check was refused");
	service_free(w.service);
}

TEST(a_query_ends_at_a_partition_over_the_target)
{
	struct world w = { 0 };
	size_t rows;
	bool more;
	bool ended_there = false, refused = false;
	REQUIRE(world_init(&w));
	CHECK_ERR(upsert(&w, "a", 1, 0), ERR_OK);
	CHECK_ERR(upsert(&w, "b", 4, 0), ERR_OK);
	heat_set_target(service_heat(w.service), 100);
	struct query all = { .table_id = w.table, .throttled = true };
	struct query from_b = { .table_id = w.table, .from_pk = SPAN_LIT("b"), .throttled = true };
	for (int i = 0; i < 1000 && !(ended_there && refused); i++) {
		for (int k = 0; k < 30; k++)
			CHECK_ERR(upsert(&w, "b", 4, 0), ERR_OK);
		CHECK_ERR(query(&w, &all, &rows, &more), ERR_OK);
		ended_there = ended_there || (rows == 1 && more);
		refused = refused || query(&w, &from_b, &rows, &more) == ERR_THROTTLED;
	}
	CHECK(ended_there);
	CHECK(refused);
	all.throttled = false;
	CHECK_ERR(query(&w, &all, &rows, &more), ERR_OK);
	CHECK_EQ_INT(rows, 5);
	service_free(w.service);
}

RUN_TESTS(T(partitions_are_listed_hottest_first), T(the_heat_of_one_table_has_the_busiest_second),
	T(what_is_a_minute_old_does_not_count),
	T(a_thread_whose_clock_is_a_little_behind_counts_too), T(the_hot_ones_stay_among_very_many),
	T(a_table_is_forgotten_and_no_other), T(keys_of_any_length),
	T(a_partition_admits_its_target_in_each_second), T(a_large_request_is_admitted_whole_once),
	T(no_more_is_admitted_where_many_ask), T(what_is_changed_and_read_is_counted),
	T(a_table_that_is_gone_is_not_hot),
	T(change_sets_over_the_target_are_refused_and_bulk_loads_are_not),
	T(a_query_ends_at_a_partition_over_the_target))
