/* SPDX-License-Identifier: MIT
 * base/clock.h.  Expected numbers come from the calendar, not from the code. */
#include "base/clock.h"
#include "check.h"

static const char *text(int64_t ticks)
{
	static char out[CLOCK_TEXT_MAX];

	int n = clock_format(ticks, out);
	CHECK_EQ_INT(n, strlen(out));
	return out;
}

TEST(known_instants_are_written_right)
{
	CHECK_EQ_STR(text(0), "1601-01-01T00:00:00Z");
	CHECK_EQ_STR(text(TICKS_UNIX_EPOCH), "1970-01-01T00:00:00Z");
	CHECK_EQ_STR(text(TICKS_MAX), "9999-12-31T23:59:59.9999999Z");
	/* 2000-02-29 is day 11016 since 1970; 1700 was no leap year. */
	CHECK_EQ_STR(text(TICKS_UNIX_EPOCH + 11016 * 864000000000), "2000-02-29T00:00:00Z");
	CHECK_EQ_STR(text(INT64_C(36217) * 864000000000), "1700-02-28T00:00:00Z");
	CHECK_EQ_STR(text(INT64_C(36218) * 864000000000), "1700-03-01T00:00:00Z");
}

TEST(fractions_are_trimmed_or_full)
{
	char out[CLOCK_TEXT_MAX];

	CHECK_EQ_STR(text(TICKS_UNIX_EPOCH + 1), "1970-01-01T00:00:00.0000001Z");
	CHECK_EQ_STR(text(TICKS_UNIX_EPOCH + 30000), "1970-01-01T00:00:00.003Z");
	CHECK_EQ_STR(text(TICKS_UNIX_EPOCH + 5000000), "1970-01-01T00:00:00.5Z");
	CHECK_EQ_INT(clock_format_full(TICKS_UNIX_EPOCH, out), 28);
	CHECK_EQ_STR(out, "1970-01-01T00:00:00.0000000Z");
}

TEST(times_before_1601_are_written_right)
{
	int64_t t;

	CHECK_EQ_STR(text(-1), "1600-12-31T23:59:59.9999999Z");
	CHECK_EQ_STR(text(TICKS_YEAR_1), "0001-01-01T00:00:00Z");
	CHECK_EQ_STR(text(TICKS_YEAR_1 + 1), "0001-01-01T00:00:00.0000001Z");
	CHECK(clock_date(1, 1, 1, &t));
	CHECK_EQ_INT(t, TICKS_YEAR_1);
	CHECK(clock_date(1582, 10, 4, &t));
	CHECK_EQ_STR(text(t + 864000000000 - 10000000), "1582-10-04T23:59:59Z");
}

TEST(what_is_out_of_range_is_clamped_when_written)
{
	CHECK_EQ_STR(text(TICKS_YEAR_1 - 1), "0001-01-01T00:00:00Z");
	CHECK_EQ_STR(text(INT64_MIN), "0001-01-01T00:00:00Z");
	CHECK_EQ_STR(text(TICKS_MAX + 1), "9999-12-31T23:59:59.9999999Z");
}

TEST(every_day_is_one_after_the_day_before)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t want = 0, got;

	for (int y = 1601; y <= 9999; y++) {
		for (int m = 1; m <= 12; m++) {
			int n = days[m - 1];
			if (m == 2 && ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0))
				n++;
			for (int d = 1; d <= n; d++, want += 864000000000) {
				char date[40], out[CLOCK_TEXT_MAX];
				REQUIRE(clock_date(y, m, d, &got));
				if (got != want) {
					CHECK_EQ_INT(got, want);
					return;
				}
				if (d != 1 && d != n)
					continue;
				(void)snprintf(
					date, sizeof(date), "%04d-%02d-%02dT00:00:00Z", y, m, d);
				(void)clock_format(got, out);
				CHECK_EQ_STR(out, date);
			}
			CHECK(!clock_date(y, m, n + 1, &got));
		}
	}
	CHECK_EQ_INT(want, TICKS_MAX + 1);
}

TEST(there_is_no_such_day)
{
	int64_t t;

	CHECK(!clock_date(0, 12, 31, &t));
	CHECK(!clock_date(10000, 1, 1, &t));
	CHECK(!clock_date(2000, 0, 1, &t));
	CHECK(!clock_date(2000, 13, 1, &t));
	CHECK(!clock_date(2000, 1, 0, &t));
	CHECK(!clock_date(1900, 2, 29, &t));
	CHECK(clock_date(2000, 2, 29, &t));
	CHECK(clock_date(1600, 12, 31, &t));
	CHECK_EQ_INT(t, -864000000000);
	CHECK(clock_date(1, 1, 1, &t));
}

TEST(timespec_round_trips_and_clamps)
{
	int64_t samples[] = { 0, 1, TICKS_UNIX_EPOCH - 1, TICKS_UNIX_EPOCH, TICKS_MAX };

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct timespec t = ticks_to_timespec(samples[i]);
		CHECK(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
		CHECK_EQ_INT(timespec_to_ticks(t), samples[i]);
	}
	CHECK_EQ_INT(ticks_to_timespec(TICKS_UNIX_EPOCH - 1).tv_sec, -1);
	CHECK_EQ_INT(timespec_to_ticks((struct timespec){ .tv_sec = INT64_MIN }), 0);
	CHECK_EQ_INT(timespec_to_ticks((struct timespec){ .tv_sec = INT64_MAX }), TICKS_MAX);
	CHECK_EQ_INT(timespec_to_ticks((struct timespec){ .tv_sec = 253402300800 }), TICKS_MAX);
}

TEST(unix_nanoseconds_are_clamped)
{
	CHECK_EQ_INT(ticks_to_unix_ns(TICKS_UNIX_EPOCH + 3), 300);
	CHECK_EQ_INT(ticks_to_unix_ns(TICKS_UNIX_EPOCH - 3), -300);
	CHECK_EQ_INT(ticks_to_unix_ns(0), INT64_MIN);
	CHECK_EQ_INT(ticks_to_unix_ns(TICKS_MAX), INT64_MAX);
}

static int64_t frozen(void)
{
	return 42;
}

TEST(a_test_can_replace_the_wall_clock)
{
	clock_set_source(frozen);
	CHECK_EQ_INT(clock_ticks(), 42);
	clock_set_source(NULL);
	CHECK(clock_ticks() > TICKS_UNIX_EPOCH);
	CHECK(clock_mono_us() > 0);
}

RUN_TESTS(T(known_instants_are_written_right), T(fractions_are_trimmed_or_full),
	T(times_before_1601_are_written_right), T(what_is_out_of_range_is_clamped_when_written),
	T(every_day_is_one_after_the_day_before), T(there_is_no_such_day),
	T(timespec_round_trips_and_clamps), T(unix_nanoseconds_are_clamped),
	T(a_test_can_replace_the_wall_clock))
