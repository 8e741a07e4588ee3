/* SPDX-License-Identifier: MIT
 * Counters of operations, and their text for Prometheus. */
#include "check.h"
#include "codec/prometheus_text.h"
#include "service/core/metrics.h"

#include <pthread.h>

static const char *const names[] = { "first", "second" };

static struct metrics *named(void)
{
	struct metrics *m = metrics_new();
	if (m != NULL)
		metrics_name(m, METRICS_REST, names, 2);
	return m;
}

TEST(an_operation_is_there_once_it_is_named)
{
	struct metrics_figures f;
	struct metrics *m = metrics_new();
	REQUIRE(m != NULL);
	metrics_count(m, METRICS_REST, 0, 5, METRICS_DONE);
	CHECK(!metrics_read(m, METRICS_REST, 0, &f));
	metrics_name(m, METRICS_REST, names, 2);
	CHECK(metrics_read(m, METRICS_REST, 0, &f));
	CHECK_EQ_STR(f.name, "first");
	CHECK_EQ_INT(f.count, 1);
	CHECK(metrics_read(m, METRICS_REST, 1, &f));
	CHECK_EQ_INT(f.count, 0);
	CHECK(!metrics_read(m, METRICS_REST, 2, &f));
	CHECK(!metrics_read(m, METRICS_REST, METRICS_OPERATIONS, &f));
	CHECK(!metrics_read(m, METRICS_MOUNT, 0, &f));
	metrics_free(m);
}

TEST(each_end_is_counted_and_each_latency_falls_into_its_bucket)
{
	struct metrics_figures f;
	struct metrics *m = named();
	REQUIRE(m != NULL);
	metrics_count(m, METRICS_REST, 1, 0, METRICS_DONE);
	metrics_count(m, METRICS_REST, 1, 16, METRICS_DONE);
	metrics_count(m, METRICS_REST, 1, 17, METRICS_REFUSED);
	metrics_count(m, METRICS_REST, 1, 16u << 19, METRICS_FAILED);
	metrics_count(m, METRICS_REST, 1, (16u << 19) + 1, METRICS_FAILED);
	metrics_count(m, METRICS_REST, 1, UINT64_C(1) << 40, METRICS_FAILED);
	REQUIRE(metrics_read(m, METRICS_REST, 1, &f));
	CHECK_EQ_INT(f.count, 6);
	CHECK_EQ_INT(f.refused, 1);
	CHECK_EQ_INT(f.failed, 3);
	CHECK_EQ_INT(f.buckets[0], 2);
	CHECK_EQ_INT(f.buckets[1], 1);
	CHECK_EQ_INT(f.buckets[METRICS_BUCKETS - 2], 1);
	CHECK_EQ_INT(f.buckets[METRICS_BUCKETS - 1], 2);
	CHECK_EQ_INT(f.max_us, INT64_C(1) << 40);
	CHECK_EQ_INT(f.total_us, 33 + 2 * (16 << 19) + 1 + (INT64_C(1) << 40));
	CHECK_EQ_INT(metrics_bucket_us(0), 16);
	CHECK_EQ_INT(metrics_bucket_us(METRICS_BUCKETS - 2), 16 << 19);
	CHECK(metrics_bucket_us(METRICS_BUCKETS - 1) == UINT64_MAX);
	metrics_free(m);
}

TEST(a_percentile_is_the_bound_of_its_bucket_or_the_longest)
{
	struct metrics_figures f;
	struct metrics *m = named();
	REQUIRE(m != NULL);
	REQUIRE(metrics_read(m, METRICS_REST, 0, &f));
	CHECK_EQ_INT(metrics_percentile_us(&f, 99), 0);
	for (int i = 0; i < 98; i++)
		metrics_count(m, METRICS_REST, 0, 10, METRICS_DONE);
	metrics_count(m, METRICS_REST, 0, 100, METRICS_DONE);
	metrics_count(m, METRICS_REST, 0, 3000, METRICS_DONE);
	REQUIRE(metrics_read(m, METRICS_REST, 0, &f));
	CHECK_EQ_INT(metrics_percentile_us(&f, 50), 16);
	CHECK_EQ_INT(metrics_percentile_us(&f, 98), 16);
	CHECK_EQ_INT(metrics_percentile_us(&f, 99), 128);
	CHECK_EQ_INT(metrics_percentile_us(&f, 100), 3000);
	metrics_free(m);
}

static void *count_many(void *arg)
{
	for (int i = 0; i < 10000; i++)
		metrics_count(arg, METRICS_MOUNT, 0, (uint64_t)i, METRICS_REFUSED);
	return NULL;
}

TEST(nothing_is_lost_where_many_count)
{
	pthread_t threads[4];
	struct metrics_figures f;
	struct metrics *m = metrics_new();
	REQUIRE(m != NULL);
	metrics_name(m, METRICS_MOUNT, names, 1);
	for (int i = 0; i < 4; i++)
		REQUIRE(pthread_create(&threads[i], NULL, count_many, m) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	REQUIRE(metrics_read(m, METRICS_MOUNT, 0, &f));
	CHECK_EQ_INT(f.count, 40000);
	CHECK_EQ_INT(f.refused, 40000);
	CHECK_EQ_INT(f.max_us, 9999);
	CHECK_EQ_INT(f.total_us, 4 * INT64_C(49995000));
	metrics_free(m);
}

TEST(who_reads_meanwhile_sees_no_contradiction)
{
	pthread_t threads[2];
	struct metrics_figures f;
	struct metrics *m = metrics_new();
	REQUIRE(m != NULL);
	metrics_name(m, METRICS_MOUNT, names, 1);
	for (int i = 0; i < 2; i++)
		REQUIRE(pthread_create(&threads[i], NULL, count_many, m) == 0);
	bool sound = true;
	do {
		REQUIRE(metrics_read(m, METRICS_MOUNT, 0, &f));
		sound = sound && f.refused <= f.count && f.total_us <= f.max_us * f.count;
	} while (sound && f.refused < 20000);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(sound);
	metrics_free(m);
}

TEST(the_text_for_prometheus)
{
	struct buf out = BUF_INIT(4096);
	prometheus_family(&out, "a_total", "counter", "What it is.");
	prometheus_sample(&out, &(struct prometheus_sample){ .family = "a_total", .value = 7 });
	prometheus_sample(&out,
		&(struct prometheus_sample){ .family = "b",
			.suffix = "_sum",
			.labels = { { "x", SPAN_LIT("plain") },
				{ "y", SPAN_LIT("a\\b\"c\nd\xc3\xa9") } },
			.value = 1000007,
			.decimals = 6 });
	REQUIRE(buf_ok(&out));
	CHECK_EQ_STR(out.data,
		"# HELP a_total What it is.\n"
		"# TYPE a_total counter\n"
		"a_total 7\n"
		"b_sum{x=\"plain\",y=\"a\\\\b\\\"c\\nd\xc3\xa9\"} 1.000007\n");
	buf_fini(&out);
}

RUN_TESTS(T(an_operation_is_there_once_it_is_named),
	T(each_end_is_counted_and_each_latency_falls_into_its_bucket),
	T(a_percentile_is_the_bound_of_its_bucket_or_the_longest),
	T(nothing_is_lost_where_many_count), T(who_reads_meanwhile_sees_no_contradiction),
	T(the_text_for_prometheus))
