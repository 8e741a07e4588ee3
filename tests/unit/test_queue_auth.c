/* SPDX-License-Identifier: MIT
 * What SharedKey and a SAS sign for queues and blobs: signatures that real clients made. */
#include "base/buf.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "check.h"
#include "rest/core/shared_key.h"
#include "service/sas/sas.h"

#define KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

static const char *signature_of(struct span text)
{
	static char out[64];
	uint8_t code[32];
	struct buf key = BUF_INIT(100), b = BUF_INIT(60);

	CHECK(base64_decode(SPAN_LIT(KEY), &key));
	crypto_hmac_sha256(buf_span(&key), text, code);
	base64_encode(span_make(code, sizeof(code)), &b);
	(void)snprintf(out, sizeof(out), "%s", b.data);
	buf_fini(&b);
	buf_fini(&key);
	return out;
}

struct vector {
	const char *method, *path, *query, *signature;
	const struct header *headers;
	size_t n;
};

static void check_vector(const struct vector *v)
{
	const struct request r = {
		.method = span_of(v->method), .headers = v->headers, .nheaders = v->n
	};
	struct request_url url = { 0 };
	struct arena arena = { 0 };
	struct buf text = BUF_INIT(4096);

	CHECK_ERR(query_params_parse(span_of(v->query), &arena, &url.params, NULL), ERR_OK);
	shared_key_head(&r, false, &text);
	buf_add_str(&text, v->path);
	shared_key_query(&url, false, &text);
	CHECK_EQ_STR(signature_of(buf_span(&text)), v->signature);
	buf_fini(&text);
	arena_fini(&arena);
}

TEST(the_clients_signatures_are_right)
{
	static const struct header get[] = { { SPAN_LIT("x-ms-version"), SPAN_LIT("2026-04-06") },
		{ SPAN_LIT("x-ms-client-request-id"),
			SPAN_LIT("3bc71aa9-bc3a-4859-bc93-0ad4aa10a242") },
		{ SPAN_LIT("X-MS-Date"), SPAN_LIT("Mon, 23 Nov 2026 16:18:46 GMT") },
		{ SPAN_LIT("x-ms-range"), SPAN_LIT(" bytes=0-8191 ") } };
	static const struct header post[] = { { SPAN_LIT("Content-Length"), SPAN_LIT("135") },
		{ SPAN_LIT("Content-Type"), SPAN_LIT("application/xml") },
		{ SPAN_LIT("Date"), SPAN_LIT("not signed beside x-ms-date") },
		{ SPAN_LIT("x-ms-version"), SPAN_LIT("2026-04-06") },
		{ SPAN_LIT("x-ms-date"), SPAN_LIT("Mon, 23 Nov 2026 16:18:47 GMT") },
		{ SPAN_LIT("x-ms-client-request-id"),
			SPAN_LIT("53aa00ab-41d1-4c3b-bdea-b54804d8632b") } };
	static const struct vector vectors[] = {
		{ "GET", "/devstoreaccount1/devstoreaccount1/photos/disk.vhd",
			"maxresults=1&comp=pagelist",
			"FQOmVz83+NXXumAQUa/ALfL+J6tb8tzh1u/jSEc2tQA=", get, ARRAY_LEN(get) },
		{ "POST", "/devstoreaccount1/devstoreaccount1/jobs/messages",
			"visibilitytimeout=0&timeout=30&messagettl=60",
			"OZbHwr2BFBKEtoK6+eNbtSsFFw2Zz/5/lCATXqJTbRo=", post, ARRAY_LEN(post) },
	};

	for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
		check_vector(&vectors[i]);
}

TEST(the_clients_token_is_right)
{
	struct sas s = { .of = &sas_queues,
		.container = SPAN_LIT("jobs"),
		.sv = SPAN_LIT("2026-04-06"),
		.sp = SPAN_LIT("raup"),
		.st = SPAN_LIT("2020-01-01T00:00:00Z"),
		.se = SPAN_LIT("2035-01-01T00:00:00Z") };
	struct buf text = BUF_INIT(1000);

	CHECK_ERR(sas_string_to_sign(&s, SPAN_LIT("devstoreaccount1"), &text), ERR_OK);
	CHECK_EQ_STR(text.data,
		"raup\n2020-01-01T00:00:00Z\n2035-01-01T00:00:00Z\n/queue/devstoreaccount1/jobs"
		"\n\n\n\n2026-04-06");
	CHECK_EQ_STR(signature_of(buf_span(&text)), "XTCq2dKBZncOZZio7us8J7jsRKeJ50kBVtZMZy+rwfI=");
	s.tn = SPAN_LIT("jobs");
	CHECK_EQ_STR(sas_unsigned_field(&s), "tn");
	buf_fini(&text);
}

TEST(the_clients_tokens_for_blobs_are_right)
{
	static const struct {
		const char *sv, *sp, *sr, *signature;
	} vectors[] = {
		{ "2020-12-06", "r", "b", "vAny8AMhz2p5R+doAlevlKlcPTOWr8d1dxRL6DZZ7UU=" },
		{ "2019-02-02", "r", "b", "RIYyAiaAzfbOxfoVM95fvvpZrVLxj4DMzfCpk7rAdbc=" },
		{ "2018-03-28", "r", "b", "yn4nErcUFlQyGOf8PvsrBaHrOoBd5qxDDMA1ZeRkZrk=" },
		{ "2020-12-06", "rl", "c", "gipOGcjuZQiNbuy+c+cjwpEVuaNALFWj0HY3+StDoHU=" },
	};

	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct sas s = { .of = &sas_blobs,
			.container = SPAN_LIT("photos"),
			.blob = SPAN_LIT("photos/log"),
			.sv = span_of(vectors[i].sv),
			.sp = span_of(vectors[i].sp),
			.sr = span_of(vectors[i].sr),
			.st = SPAN_LIT("2020-01-01T00:00:00Z"),
			.se = SPAN_LIT("2035-01-01T00:00:00Z") };
		struct buf text = BUF_INIT(1000);
		CHECK_ERR(sas_string_to_sign(&s, SPAN_LIT("devstoreaccount1"), &text), ERR_OK);
		CHECK_EQ_STR(signature_of(buf_span(&text)), vectors[i].signature);
		s.tn = SPAN_LIT("photos");
		CHECK_EQ_STR(sas_unsigned_field(&s), "tn");
		buf_fini(&text);
	}
}

RUN_TESTS(T(the_clients_signatures_are_right), T(the_clients_token_is_right),
	T(the_clients_tokens_for_blobs_are_right))
