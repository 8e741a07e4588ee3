/* SPDX-License-Identifier: MIT
 * Lines of the access log: their fields, that no credential comes into them, and of which requests they are. */
#include "base/clock.h"
#include "check.h"
#include "rest/http/access_log.h"

#include <stdlib.h>
#include <unistd.h>

static const struct {
	const char *given, *shown;
} targets[] = {
	{ "/a/T?sv=1&sig=SECRET%3D&se=2", "/a/T?sv=1&sig=***&se=2" },
	{ "/a/T?sig=SECRET", "/a/T?sig=***" },
	{ "/a/T?%73i%67=SECRET", "/a/T?%73i%67=***" },
	{ "/a/T?SIG=SECRET", "/a/T?SIG=***" },
	{ "/a/T&sig=SECRET", "/a/T&sig=***" },
	{ "/a/T%3Fsv%3D1%26sig%3DSECRET", "/a/T%3Fsv%3D1%26sig%3D***" },
	{ "/a/T?sig=SEC?sig=RET;sig=S&x", "/a/T?sig=***&x" },
	{ "/?link=SECRET", "/?link=***" },
	{ "sig=SECRET", "sig=***" },
	/* These are no credentials. */
	{ "/a/T?signal=1&design=2&sig", "/a/T?signal=1&design=2&sig" },
	{ "/a/sigma?$filter=a%20eq%201", "/a/sigma?$filter=a%20eq%201" },
	/* Bytes that a reader of lines could take for something else. */
	{ "/a b\"c\\d\ne\x7f\xc3\xa9%", "/a%20b%22c%5Cd%0Ae%7F%C3%A9%" },
	{ "", "" },
};

TEST(credentials_are_hidden_and_text_is_printable)
{
	char out[200];
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		access_clean(span_of(targets[i].given), out, sizeof(out));
		CHECK_EQ_STR(out, targets[i].shown);
	}
}

TEST(a_long_text_is_cut_before_a_sequence_that_does_not_fit)
{
	char out[8];
	access_clean(SPAN_LIT("1234567"), out, sizeof(out));
	CHECK_EQ_STR(out, "1234567");
	access_clean(SPAN_LIT("12345678"), out, sizeof(out));
	CHECK_EQ_STR(out, "1234567");
	access_clean(SPAN_LIT("1234\n"), out, sizeof(out));
	CHECK_EQ_STR(out, "1234%0A");
	access_clean(SPAN_LIT("12345\n"), out, sizeof(out));
	CHECK_EQ_STR(out, "12345");
	access_clean(SPAN_LIT("?sig=SECRET"), out, sizeof(out));
	CHECK_EQ_STR(out, "?sig=");
}

static void answer(struct access_line *a, struct span target)
{
	static const struct header headers[] = {
		{ SPAN_LIT("User-Agent"), SPAN_LIT("agent/1 \"x\"") },
		{ SPAN_LIT("referer"), SPAN_LIT("http://x/?sig=SECRET") },
		{ SPAN_LIT("Authorization"), SPAN_LIT("SharedKey acct:SECRET") },
		{ SPAN_LIT("x-ms-client-request-id"), SPAN_LIT("mine") },
	};
	static const struct peer peer = { .ip = "127.0.0.1" };
	struct request q = { .method = SPAN_LIT("GET"),
		.target = target,
		.headers = headers,
		.nheaders = ARRAY_LEN(headers),
		.peer = &peer };
	struct response r;
	response_init(&r);
	r.status = 200;
	response_header_str(&r, "x-ms-request-id", "id-1");
	*a = (struct access_line){ .service = "table",
		.began_ticks = INT64_C(134087490000000000), /* 2025-11-27 */
		.received = 5,
		.sent = 6,
		.version = "HTTP/1.1",
		.facts = { "QueryEntities", CREDENTIAL_SAS, "acct" } };
	access_line_response(a, &q, &r);
	a->began_us = a->answered_us - 2500;
	response_fini(&r);
}

TEST(a_combined_line_has_the_usual_fields_first)
{
	struct access_line a;
	struct buf out = BUF_INIT(4096);
	answer(&a, SPAN_LIT("/acct/Tab?sig=SECRET"));
	access_line_combined(&a, 12345, &out);
	CHECK_EQ_STR(out.data,
		"127.0.0.1 - acct [27/Nov/2025:20:30:00 +0000] "
		"\"GET /acct/Tab?sig=*** HTTP/1.1\" 200 6 \"http://x/?sig=***\" "
		"\"agent/1%20%22x%22\" id-1 table QueryEntities sas 5 12.345\n");
	buf_fini(&out);
}

TEST(a_json_line_leaves_out_what_is_not_known)
{
	struct access_line a;
	struct buf out = BUF_INIT(4096);
	answer(&a, SPAN_LIT("/acct/Tab?sig=SECRET"));
	access_line_json(&a, 12345, true, &out);
	CHECK(strstr(out.data, "\"operation\":\"QueryEntities\"") != NULL);
	CHECK(strstr(out.data, "\"server_ms\":2.500,") != NULL);
	CHECK(strstr(out.data, "\"client_request_id\":\"mine\"") != NULL);
	CHECK(strstr(out.data, "SECRET") == NULL);
	a.facts = (struct request_facts){ 0 };
	buf_clear(&out);
	access_line_json(&a, 12345, false, &out);
	CHECK(strstr(out.data, "\"operation\"") == NULL && strstr(out.data, "\"account\"") == NULL);
	CHECK(strstr(out.data, "\"auth\":\"-\"") != NULL);
	CHECK(strstr(out.data, "\"complete\":false") != NULL);
	buf_fini(&out);
}

TEST(the_longest_line_fits)
{
	static char target[100000];
	struct access_line a;
	struct buf out = BUF_INIT(4096);
	memset(target, '"', sizeof(target));
	answer(&a, span_make(target, sizeof(target)));
	memset(a.referer, 'r', sizeof(a.referer) - 1);
	memset(a.agent, 'a', sizeof(a.agent) - 1);
	memset(a.client_id, 'c', sizeof(a.client_id) - 1);
	access_line_json(&a, UINT64_MAX, true, &out);
	CHECK(buf_ok(&out) && out.data[out.len - 1] == '\n');
	buf_clear(&out);
	access_line_combined(&a, UINT64_MAX, &out);
	CHECK(buf_ok(&out) && out.data[out.len - 1] == '\n');
	buf_fini(&out);
}

#define HOUR_MS 3600000u
#define MINUTE_US UINT64_C(60000000)

static char path[] = "/tmp/access.XXXXXX";

/* Ends a request that took us microseconds, and the moments of the test. */
static void end_after(struct access_log *log, const char *target, uint64_t us)
{
	struct access_line a;
	answer(&a, span_of(target));
	a.began_us = clock_mono_us() - us;
	access_log_end(log, &a, true);
}

/* Three requests that miss the limit by a minute, and one just at it between them.  A letter for each
 * line of the log. */
static const char *written(uint32_t slow_ms, uint32_t sample)
{
	static char seen[8];
	char line[4096];
	size_t n = 0;
	struct access_log *log;
	const struct rest_access_log options = {
		.path = path, .slow_ms = slow_ms, .sample = sample
	};
	CHECK_ERR(access_log_open(&options, &log, NULL), ERR_OK);
	end_after(log, "/a", HOUR_MS * UINT64_C(1000) - MINUTE_US);
	end_after(log, "/S", HOUR_MS * UINT64_C(1000));
	end_after(log, "/b", HOUR_MS * UINT64_C(1000) - MINUTE_US);
	end_after(log, "/c", HOUR_MS * UINT64_C(1000) - MINUTE_US);
	access_log_close(log);
	FILE *f = fopen(path, "r");
	while (f != NULL && n < sizeof(seen) - 1 && fgets(line, sizeof(line), f) != NULL)
		seen[n++] = strstr(line, "\"GET /")[6];
	seen[n] = 0;
	CHECK(f != NULL && fclose(f) == 0 && truncate(path, 0) == 0);
	return seen;
}

TEST(slow_requests_are_written_and_a_sample_of_the_others)
{
	int fd = mkstemp(path);
	CHECK(fd >= 0 && close(fd) == 0);
	CHECK_EQ_STR(written(0, 0), "aSbc");
	CHECK_EQ_STR(written(HOUR_MS, 0), "S");
	CHECK_EQ_STR(written(HOUR_MS, 2), "aSc");
	CHECK_EQ_STR(written(0, 2), "ab");
	CHECK_EQ_STR(written(0, 3), "ac");
	CHECK(unlink(path) == 0);
}

RUN_TESTS(T(credentials_are_hidden_and_text_is_printable),
	T(a_long_text_is_cut_before_a_sequence_that_does_not_fit),
	T(a_combined_line_has_the_usual_fields_first), T(a_json_line_leaves_out_what_is_not_known),
	T(the_longest_line_fits), T(slow_requests_are_written_and_a_sample_of_the_others))
