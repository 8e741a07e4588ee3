/* SPDX-License-Identifier: MIT
 * model/etag.h. */
#include "base/clock.h"
#include "check.h"
#include "model/etag.h"

static int64_t parsed(const char *text)
{
	bool any = true;
	int64_t ticks = 0;

	CHECK_ERR(etag_parse(span_of(text), &any, &ticks, NULL), ERR_OK);
	CHECK(!any);
	return ticks;
}

TEST(an_etag_is_the_timestamp_with_its_colons_encoded)
{
	char out[ETAG_MAX];
	int64_t day;

	REQUIRE(clock_date(2021, 10, 15, &day));
	int n = etag_format(day + (16 * 3600 + 13 * 60 + 7) * TICKS_PER_SECOND + 2146300, out);
	CHECK_EQ_STR(out, "W/\"datetime'2021-10-15T16%3A13%3A07.21463Z'\"");
	CHECK_EQ_INT(n, strlen(out));
	(void)etag_format(day, out);
	CHECK_EQ_STR(out, "W/\"datetime'2021-10-15T00%3A00%3A00Z'\"");
	n = etag_format_full(day, out);
	CHECK_EQ_STR(out, "W/\"datetime'2021-10-15T00%3A00%3A00.0000000Z'\"");
	CHECK_EQ_INT(n, strlen(out));
}

TEST(etags_come_back)
{
	static const int64_t samples[] = { 0, 1, TICKS_UNIX_EPOCH, 132787339872146300, TICKS_MAX };

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		char out[ETAG_MAX];
		(void)etag_format(samples[i], out);
		CHECK_EQ_INT(parsed(out), samples[i]);
		(void)etag_format_full(samples[i], out);
		CHECK_EQ_INT(parsed(out), samples[i]);
	}
}

TEST(other_spellings_of_ours_are_understood)
{
	int64_t want = parsed("W/\"datetime'2021-10-15T16%3A13%3A07.5Z'\"");

	CHECK(want > 0);
	CHECK_EQ_INT(parsed("W/\"datetime'2021-10-15T16:13:07.5Z'\""), want);
	CHECK_EQ_INT(parsed("W/\"datetime'2021-10-15T16%3a13%3a07.5000000Z'\""), want);
}

TEST(etags_of_other_servers_match_nothing)
{
	static const char *const others[] = { "W/\"\"", "W/\"x\"", "W/\"datetime''\"",
		"W/\"datetime'\"", "W/\"datetime'2021-02-29T00%3A00%3A00Z'\"",
		"W/\"datetime'2021-02-28T24%3A00%3A00Z'\"",
		"W/\"datetime'1600-02-28T00%3A00%3A00Z'\"",
		"W/\"datetime'2021-02-28T00%3A00%3A00.Z'\"",
		"W/\"datetime'2021-02-28T00%3A00%3A00.00000001Z'\"",
		"W/\"datetime'2021-02-28T00%3A00%3A00'\"" };

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CHECK_EQ_INT(parsed(others[i]), -1);
}

TEST(the_star_is_any)
{
	bool any = false;
	int64_t ticks;

	CHECK_ERR(etag_parse(SPAN_LIT("*"), &any, &ticks, NULL), ERR_OK);
	CHECK(any);
}

TEST(malformed_etags_are_refused_with_the_services_text)
{
	static const char *const bad[] = { "", "**", "x", "W/", "W/\"", "\"x\"", "W/\"a\"b\"",
		"W/\"a\", W/\"b\"", "w/\"x\"", "W/\"a\nb\"", "W/\"x\" " };
	struct err_detail d;
	bool any;
	int64_t ticks;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(etag_parse(span_of(bad[i]), &any, &ticks, &d), ERR_INVALID_INPUT);
	CHECK_ERR(etag_parse(SPAN_LIT("bogus"), &any, &ticks, &d), ERR_INVALID_INPUT);
	CHECK_EQ_STR(d.text,
		"The etag value 'bogus' specified in one of the request headers is not "
		"valid. Please make sure only one etag value is specified and is valid.");
}

RUN_TESTS(T(an_etag_is_the_timestamp_with_its_colons_encoded), T(etags_come_back),
	T(other_spellings_of_ours_are_understood), T(etags_of_other_servers_match_nothing),
	T(the_star_is_any), T(malformed_etags_are_refused_with_the_services_text))
