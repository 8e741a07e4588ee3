/* SPDX-License-Identifier: MIT
 * codec/multipart.h.  Bodies are the ones that real clients send (protocol section 7). */
#include "base/buf.h"
#include "base/compiler.h"
#include "check.h"
#include "codec/multipart.h"

#include <stdlib.h>

static struct arena arena;
static struct batch_body body;
static struct err_detail why;

static enum err parse(const char *type, struct span text)
{
	arena_reset(&arena);
	memset(&why, 0, sizeof(why));
	return batch_body_parse(span_of(type), text, 100, &arena, &body, &why);
}

static const char *text_of(struct span s)
{
	struct span copy = arena_copy(&arena, s);

	return s.p == NULL ? "(none)" : copy.p == NULL ? "(out of memory)" : copy.p;
}

static const char *header(size_t i, const char *name)
{
	const struct span *value =
		mime_header_find(body.parts[i].headers, body.parts[i].nheaders, name);

	return value == NULL ? NULL : text_of(*value);
}

/* Part i's request; a change set of -1: none. */
static void check_part(size_t i, int change_set, const char *method, const char *target,
	const char *id, const char *text)
{
	const struct batch_part *p = &body.parts[i];

	CHECK_EQ_INT(p->in_change_set, change_set >= 0);
	if (change_set >= 0)
		CHECK_EQ_INT(p->change_set, change_set);
	CHECK_EQ_STR(text_of(p->method), method);
	CHECK_EQ_STR(text_of(p->target), target);
	CHECK_EQ_STR(text_of(p->content_id), id);
	CHECK_EQ_STR(text_of(p->body), text);
}

/* The same text with bare LF. */
static struct span without_cr(const char *text)
{
	struct span s = span_of(text);
	char *p = arena_alloc(&arena, s.n + 1);
	size_t n = 0;

	if (p == NULL)
		abort();
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '\r')
			p[n++] = s.p[i];
	}
	return span_make(p, n);
}

/* @azure/data-tables 13.3.2: an insert and a deletion. */
static const char js_type[] =
	"multipart/mixed; boundary=batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00";
static const char js[] =
	"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00\r\n"
	"content-type: multipart/mixed; boundary=changeset_11111111-2222-4333-8444-555555555555\r\n"
	"\r\n"
	"\r\n"
	"--changeset_11111111-2222-4333-8444-555555555555\r\n"
	"content-type: application/http\r\n"
	"content-transfer-encoding: binary\r\n"
	"\r\n"
	"POST http://127.0.0.1:21003/devstoreaccount1/smoke HTTP/1.1\r\n"
	"Content-Type: application/json;odata=nometadata\r\n"
	"Accept: application/json;odata=minimalmetadata\r\n"
	"DataServiceVersion: 3.0\r\n"
	"Prefer: return-no-content\r\n"
	"\r\n"
	"\r\n"
	"{\"PartitionKey\":\"B\",\"RowKey\":\"r0\",\"n\":0}\r\n"
	"--changeset_11111111-2222-4333-8444-555555555555\r\n"
	"content-type: application/http\r\n"
	"content-transfer-encoding: binary\r\n"
	"\r\n"
	"DELETE http://127.0.0.1:21003/devstoreaccount1/smoke(PartitionKey='B',RowKey='r1') HTTP/1.1\r\n"
	"Accept: application/json;odata=minimalmetadata\r\n"
	"If-Match: *\r\n"
	"\r\n"
	"\r\n"
	"--changeset_11111111-2222-4333-8444-555555555555--\r\n"
	"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00--\r\n";

static void check_js(void)
{
	REQUIRE(body.nparts == 2);
	CHECK_EQ_INT(body.nchange_sets, 1);
	check_part(0, 0, "POST", "http://127.0.0.1:21003/devstoreaccount1/smoke", "(none)",
		"{\"PartitionKey\":\"B\",\"RowKey\":\"r0\",\"n\":0}");
	CHECK_EQ_INT(body.parts[0].nheaders, 4);
	CHECK_EQ_STR(header(0, "content-TYPE"), "application/json;odata=nometadata");
	CHECK_EQ_STR(header(0, "Prefer"), "return-no-content");
	CHECK(header(0, "content-transfer-encoding") == NULL);
	check_part(1, 0, "DELETE",
		"http://127.0.0.1:21003/devstoreaccount1/smoke(PartitionKey='B',RowKey='r1')",
		"(none)", "");
	CHECK_EQ_STR(header(1, "if-match"), "*");
}

TEST(the_js_client_is_read)
{
	CHECK_ERR(parse(js_type, span_of(js)), ERR_OK);
	check_js();
	arena_fini(&arena);
}

TEST(bare_line_feeds_are_read_the_same)
{
	struct arena keep = { 0 };
	struct span text = without_cr(js);
	struct span copy = arena_copy(&keep, text);

	CHECK_ERR(parse(js_type, copy), ERR_OK);
	check_js();
	arena_fini(&keep);
	arena_fini(&arena);
}

TEST(missing_final_delimiters_are_forgiven)
{
	static const char *const endings[] = {
		"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00--\r\n",
		"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00--",
		"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00\r\n",
		"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00",
		"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00 \t\r\n\r\n",
		"--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00--\r\nan epilogue\r\n--x\r\n",
		"between\r\n--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00--",
		"",
	};
	size_t end = (size_t)(strstr(js, "--batch_9f2c1a34-0000-4000-8000-5b6c7d8e9f00--") - js);
	struct buf text = BUF_INIT(8192);

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		buf_clear(&text);
		buf_add(&text, js, end);
		buf_add_str(&text, endings[i]);
		CHECK_ERR(parse(js_type, buf_span(&text)), ERR_OK);
		check_js();
	}
	/* Nor does the change set need its end. */
	end = (size_t)(strstr(js, "--changeset_11111111-2222-4333-8444-555555555555--") - js);
	for (size_t i = 0; i < ARRAY_LEN(endings) - 2; i++) {
		buf_clear(&text);
		buf_add(&text, js, end);
		buf_add_str(&text, endings[i]);
		CHECK_ERR(parse(js_type, buf_span(&text)), ERR_OK);
		check_js();
	}
	buf_fini(&text);
	arena_fini(&arena);
}

/* azure-data-tables 12.4: Content-ID in the part's head, Content-Length in the request. */
static const char python[] =
	"--batch_36522ad7-fc75-4b56-8c71-56071383e77b\r\n"
	"Content-Type: multipart/mixed; boundary=changeset_357de4f7-6d0b-4e02-8cd2-6361411a9525\r\n"
	"\r\n"
	"--changeset_357de4f7-6d0b-4e02-8cd2-6361411a9525\r\n"
	"Content-Type: application/http\r\n"
	"Content-Transfer-Encoding: binary\r\n"
	"Content-ID: 0\r\n"
	"\r\n"
	"PATCH http://127.0.0.1:10002/devstoreaccount1/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\n"
	"x-ms-version: 2019-02-02\r\n"
	"Content-Type: application/json\r\n"
	"Content-Length: 41\r\n"
	"If-Match: W/\"datetime'2021-10-15T16%3A13%3A07.21463Z'\"\r\n"
	"\r\n"
	"{\"PartitionKey\": \"p\", \"RowKey\": \"\xc3\xa4\xc3\xa4\xc3\xa4\"}\r\n"
	"--changeset_357de4f7-6d0b-4e02-8cd2-6361411a9525\r\n"
	"Content-Type: application/http\r\n"
	"Content-Transfer-Encoding: binary\r\n"
	"Content-ID: 1\r\n"
	"\r\n"
	"DELETE http://127.0.0.1:10002/devstoreaccount1/t(PartitionKey='p',RowKey='s') HTTP/1.1\r\n"
	"If-Match: *\r\n"
	"\r\n"
	"\r\n"
	"--changeset_357de4f7-6d0b-4e02-8cd2-6361411a9525--\r\n"
	"\r\n"
	"--batch_36522ad7-fc75-4b56-8c71-56071383e77b--\r\n";

TEST(the_python_client_is_read)
{
	CHECK_ERR(parse("multipart/mixed; boundary=batch_36522ad7-fc75-4b56-8c71-56071383e77b",
			  span_of(python)),
		ERR_OK);
	REQUIRE(body.nparts == 2);
	check_part(0, 0, "PATCH",
		"http://127.0.0.1:10002/devstoreaccount1/t(PartitionKey='p',RowKey='r')", "0",
		"{\"PartitionKey\": \"p\", \"RowKey\": \"\xc3\xa4\xc3\xa4\xc3\xa4\"}");
	CHECK_EQ_STR(header(0, "if-match"), "W/\"datetime'2021-10-15T16%3A13%3A07.21463Z'\"");
	check_part(1, 0, "DELETE",
		"http://127.0.0.1:10002/devstoreaccount1/t(PartitionKey='p',RowKey='s')", "1", "");
	arena_fini(&arena);
}

/* azure-storage 2.10: bare LF, the boundary behind other parameters without a blank. */
static const char node_type[] = "multipart/mixed;charset=\"utf-8\";boundary=batch_a";
static const char node[] = "--batch_a\n"
			   "content-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_a\n"
			   "\n"
			   "--changeset_a\n"
			   "content-type: application/http\n"
			   "content-transfer-encoding: binary\n"
			   "\n"
			   "MERGE http://127.0.0.1/acct/t(PartitionKey='p',RowKey='r') HTTP/1.1\n"
			   "if-match: *\n"
			   "content-id: 1\n"
			   "content-length: 7\n"
			   "\n"
			   "{\"a\":1}\n"
			   "--changeset_a\n"
			   "content-type: application/http\n"
			   "content-transfer-encoding: binary\n"
			   "\n"
			   "DELETE http://127.0.0.1/acct/t(PartitionKey='p',RowKey='s') HTTP/1.1\n"
			   "content-id: 2\n"
			   "content-length: 0\n"
			   "\n"
			   "\n"
			   "--changeset_a--\n"
			   "--batch_a--";

TEST(azure_storage_is_read)
{
	CHECK_ERR(parse(node_type, span_of(node)), ERR_OK);
	REQUIRE(body.nparts == 2);
	CHECK_EQ_INT(body.nchange_sets, 1);
	check_part(0, 0, "MERGE", "http://127.0.0.1/acct/t(PartitionKey='p',RowKey='r')", "1",
		"{\"a\":1}");
	check_part(1, 0, "DELETE", "http://127.0.0.1/acct/t(PartitionKey='p',RowKey='s')", "2", "");
	arena_fini(&arena);
}

TEST(a_query_in_a_batch_is_in_no_change_set)
{
	CHECK_ERR(
		parse(node_type,
			SPAN_LIT(
				"--batch_a\n"
				"content-type: application/http\n"
				"content-transfer-encoding: binary\n"
				"\n"
				"GET http://127.0.0.1/acct/t(PartitionKey='p',RowKey='r') HTTP/1.1\n"
				"accept: application/json\n"
				"\n"
				"--batch_a--")),
		ERR_OK);
	REQUIRE(body.nparts == 1);
	CHECK_EQ_INT(body.nchange_sets, 0);
	check_part(
		0, -1, "GET", "http://127.0.0.1/acct/t(PartitionKey='p',RowKey='r')", "(none)", "");
	arena_fini(&arena);
}

/* azure 0.7: ATOM; Content-Length counts characters. */
TEST(azure_0_7_is_read_with_its_short_lengths)
{
	CHECK_ERR(
		parse(node_type,
			SPAN_LIT("--batch_a\n"
				 "content-type: multipart/mixed; boundary=changeset_a\n"
				 "\n"
				 "--changeset_a\n"
				 "content-type: application/http\n"
				 "content-transfer-encoding: binary\n"
				 "\n"
				 "POST http://127.0.0.1/acct/t HTTP/1.1\n"
				 "content-type: application/atom+xml;charset=\"utf-8\";type=entry\n"
				 "content-length: 8\n"
				 "\n"
				 "<a>\xc3\xbc\xc3\xbc</a>\n"
				 "--changeset_a--\n"
				 "--batch_a--")),
		ERR_OK);
	REQUIRE(body.nparts == 1);
	check_part(0, 0, "POST", "http://127.0.0.1/acct/t", "(none)", "<a>\xc3\xbc\xc3\xbc</a>");
	arena_fini(&arena);
}

/* .NET and WCF: a preamble, a quoted boundary, relative targets, several change sets. */
TEST(preamble_quotes_relative_targets_and_several_change_sets)
{
	CHECK_ERR(parse("Multipart/Mixed ; Boundary = \"batch a;b\" ; x=y",
			  SPAN_LIT("This is a preamble.\r\n--batch\r\n\r\n"
				   "--batch a;b\r\n"
				   "CONTENT-TYPE: MULTIPART/MIXED; BOUNDARY=\"cs;1\"\r\n"
				   "\r\n"
				   "another preamble\r\n"
				   "--cs;1\r\n"
				   "Content-Type: application/http; msgtype=request\r\n"
				   "Content-ID: <outer>\r\n"
				   "\r\n"
				   "\r\n"
				   "PUT /acct/t(PartitionKey='a', RowKey='b c') HTTP/1.1\r\n"
				   "Host: x\r\n"
				   "Content-ID: inner\r\n"
				   "\r\n"
				   "line one\r\n"
				   "--cs;12\r\n"
				   "--cs;1 x\r\n"
				   "line two\r\n"
				   "\r\n"
				   "--cs;1-- \r\n"
				   "epilogue of the change set\r\n"
				   "--batch a;b\r\n"
				   "Content-Type: multipart/mixed; boundary=cs2\r\n"
				   "\r\n"
				   "--cs2--\r\n"
				   "--batch a;b\r\n"
				   "Content-Type: multipart/mixed; boundary=cs3\r\n"
				   "\r\n"
				   "--batch a;b\r\n"
				   "Content-Type: multipart/mixed; boundary=cs3\r\n"
				   "\r\n"
				   "--cs3\r\n"
				   "Content-Type:application/http\r\n"
				   "\r\n"
				   "DELETE t HTTP/1.1\r\n"
				   "If-Match:*\r\n"
				   "--cs3--\r\n"
				   "--batch a;b--\r\n"
				   "--batch a;b\r\nnot looked at")),
		ERR_OK);
	REQUIRE(body.nparts == 2);
	CHECK_EQ_INT(body.nchange_sets, 4);
	check_part(0, 0, "PUT", "/acct/t(PartitionKey='a', RowKey='b c')", "inner",
		"line one\r\n--cs;12\r\n--cs;1 x\r\nline two\r\n");
	check_part(1, 3, "DELETE", "t", "(none)", "");
	CHECK_EQ_STR(header(1, "If-Match"), "*");
	arena_fini(&arena);
}

TEST(an_empty_batch_has_no_parts)
{
	CHECK_ERR(parse(node_type, SPAN_LIT("--batch_a--")), ERR_OK);
	CHECK_EQ_INT(body.nparts, 0);
	CHECK_ERR(parse(node_type, SPAN_LIT("--batch_a\n")), ERR_OK);
	CHECK_EQ_INT(body.nparts, 0);
	CHECK_EQ_INT(body.nchange_sets, 0);
	arena_fini(&arena);
}

/* One change; head and text are what stands in the request. */
static enum err parse_change(const char *head, const char *text)
{
	struct buf b = BUF_INIT(4096);
	struct span s;

	buf_addf(&b,
		"--batch_a\nContent-Type: multipart/mixed; boundary=c\n\n--c\n"
		"Content-Type: application/http\n\nPOST t HTTP/1.1\n%s\n%s--c--\n--batch_a--\n",
		head, text);
	arena_reset(&arena);
	s = arena_copy(&arena, buf_span(&b));
	buf_fini(&b);
	return batch_body_parse(
		SPAN_LIT("multipart/mixed; boundary=batch_a"), s, 100, &arena, &body, &why);
}

static void body_is(const char *head, const char *text, const char *want)
{
	CHECK_ERR(parse_change(head, text), ERR_OK);
	REQUIRE(body.nparts == 1);
	CHECK_EQ_STR(text_of(body.parts[0].body), want);
}

TEST(content_length_says_where_a_body_ends)
{
	body_is("Content-Length: 3\n", "abc\n", "abc");
	body_is("Content-Length: 3\n", "\n\nabc\n", "abc");
	body_is("Content-Length: 3\n", "abc\n\n \n\n", "abc");
	body_is("Content-Length: 4\n", "abc\n", "abc\n");
	body_is("Content-Length: 10\n", "abc\n--c\nde\n", "abc\n--c\nde");
	body_is("Content-Length: 0\n", "", "");
	body_is("Content-Length: 0\n", "abc\n", "abc");
	body_is("Content-Length: 2\n", "abc\nd\n", "abc\nd");
	body_is("", "abc\r\nd\r\n", "abc\r\nd");
	arena_fini(&arena);
}

TEST(a_body_shorter_than_its_length_is_refused)
{
	static const char *const lengths[] = { "5", "20", "60", "99999", "18446744073709551615",
		"99999999999999999999999999999999" };
	char head[80];

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		(void)snprintf(head, sizeof(head), "Content-Length: %s\n", lengths[i]);
		CHECK_ERR(parse_change(head, "abc\n"), ERR_INVALID_INPUT);
		CHECK(strstr(why.text, "Content-Length") != NULL);
		CHECK_EQ_INT(why.line, 10);
	}
	CHECK_ERR(parse_change("Content-Length: 5\n", ""), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("Content-Length: x\n", "abc\n"), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("Content-Length: -1\n", "abc\n"), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("Content-Length:\n", "abc\n"), ERR_INVALID_INPUT);
	arena_fini(&arena);
}

#define HEAD "--batch_a\n"
#define SET HEAD "Content-Type: multipart/mixed; boundary=c\n\n"
#define CHANGE SET "--c\nContent-Type: application/http\n\n"

TEST(what_is_missing_is_named_with_its_line)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "line 1: the batch's first delimiter is missing" },
		{ "abc\n--batch_b\n", "line 3: the batch's first delimiter is missing" },
		{ "--batch_a x\n", "first delimiter is missing" },
		{ HEAD "--batch_a\n", "line 2: a part is empty" },
		{ HEAD "abc\n\n", "line 2: expected a header" },
		{ HEAD "X-A: 1\n\n", "line 2: the Content-Type of a part is missing" },
		{ HEAD "Content-Type: application/http\n", "line 3: the empty line" },
		{ HEAD "Content-Type: application/http\n--batch_a--", "line 3: the empty line" },
		{ HEAD "Content-Type: text/plain\n\nabc\n", "line 2: a part is neither" },
		{ HEAD "Content-Type: multipart/mixed\n\n", "line 2: the boundary" },
		{ HEAD "Content-Type: multipart/mixed; boundary=\n\n", "line 2: the boundary" },
		{ HEAD "Content-Type: multipart/mixed; boundary=\"\"\n\n", "line 2: the boundary" },
		{ HEAD "Content-Type: application/http\n\n",
			"line 4: the request of a part is missing" },
		{ HEAD "Content-Type: application/http\n\n\n--batch_a--",
			"line 5: the request of a part is missing" },
		{ HEAD "Content-Type: application/http\n\nGET\n\n", "line 4: the HTTP version" },
		{ HEAD "Content-Type: application/http\n\nGET t\n\n", "line 4: the HTTP version" },
		{ HEAD "Content-Type: application/http\n\nGET HTTP/1.1\n\n", "line 4: the target" },
		{ HEAD "Content-Type: application/http\n\n{\"a\":1}\n",
			"line 4: expected a request" },
		{ HEAD "Content-Type: application/http\n\nGET t HTTP/1.1\nabc\n\n",
			"line 5: expected a header" },
		{ HEAD "Content-Type: application/http\n\nGET t HTTP/1.1\nA: b\n c\n\n",
			"line 6: a header must stand on one line" },
		{ HEAD "Content-Type: application/http\n\nGET t HTTP/1.1\nA b: c\n\n",
			"line 5: a header's name" },
		{ HEAD "Content-Type: application/http\n\nGET t HTTP/1.1\nA: b\rc\n\n",
			"line 5: a header's value" },
		{ HEAD "Content-Type: application/http\n\nGET t HTTP/1.1\n: c\n\n",
			"line 5: a header's name" },
		{ HEAD "Content-Type: application/http\n\nGET t HTTP/1.1\nA: b\n",
			"line 6: the text ends in the headers" },
		{ SET "", "line 2: the change set's first delimiter is missing" },
		{ SET "--d\n", "line 2: the change set's first delimiter is missing" },
		{ SET "--c\n--c--\n--batch_a--", "" },
		{ SET "--c\n--c\n", "line 5: a part is empty" },
		{ SET "--c\nContent-Type: multipart/mixed; boundary=d\n\n--d\n",
			"line 5: a change set must not contain a change set" },
		{ SET "--c\nContent-Type: text/plain\n\n",
			"line 5: a part in a change set is not" },
		{ SET "--c\nX: y\n\n", "line 5: the Content-Type" },
		{ CHANGE "--c--\n", "line 7: the request of a part is missing" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum err e = parse(node_type, span_of(cases[i].text));
		CHECK_ERR(e, cases[i].says[0] == '\0' ? ERR_OK : ERR_INVALID_INPUT);
		if (strstr(why.text, cases[i].says) == NULL) {
			check_fail(__FILE__, __LINE__, cases[i].text);
			check_fail(__FILE__, __LINE__, why.text);
		}
	}
	arena_fini(&arena);
}

TEST(the_content_type_of_the_batch_is_checked)
{
	static const char *const bad[] = { "", "application/json", "multipart/mixed",
		"multipart/mixed; boundary",
		"multipart/mixed; boundary=", "multipart/form-data; boundary=a",
		"multipart/mixed; xboundary=a", "multipart/mixed; x=\"; boundary=a\"",
		"boundary=a" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_ERR(parse(bad[i], SPAN_LIT("--a--")), ERR_INVALID_INPUT);
		CHECK(strstr(why.text, "Content-Type") != NULL);
	}
	CHECK_ERR(batch_body_parse((struct span){ NULL, 0 }, (struct span){ NULL, 0 }, 100, &arena,
			  &body, NULL),
		ERR_INVALID_INPUT);
	CHECK_ERR(batch_body_parse(SPAN_LIT("multipart/mixed;boundary=a"), (struct span){ NULL, 0 },
			  100, &arena, &body, NULL),
		ERR_INVALID_INPUT);
	arena_fini(&arena);
}

TEST(parameters_are_found_in_any_spelling)
{
	static const struct {
		const char *value, *want;
	} cases[] = {
		{ "a/b; boundary=x", "x" },
		{ "a/b;boundary=x", "x" },
		{ "a/b ; BOUNDARY = x ; y", "x" },
		{ "a/b; boundary=\"x y\"", "x y" },
		{ "a/b; q=\"a;boundary=no\\\";\"; boundary=\"yes\"", "yes" },
		{ "a/b; boundary=a=b", "a=b" },
		{ "a/b; boundary=\"", "\"" },
		{ "a/b; boundary=", "" },
		{ "boundary=x", NULL },
		{ "a/b; xboundary=x", NULL },
		{ "", NULL },
		{ ";;;", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct span got;
		bool found = mime_parameter(span_of(cases[i].value), "boundary", &got);
		CHECK_EQ_INT(found, cases[i].want != NULL);
		if (found && cases[i].want != NULL)
			CHECK_EQ_STR(text_of(got), cases[i].want);
	}
	arena_fini(&arena);
}

static void add_changes(struct buf *b, int n)
{
	buf_clear(b);
	buf_add_str(b, SET);
	for (int i = 0; i < n; i++)
		buf_addf(b, "--c\nContent-Type: application/http\n\nDELETE t%d HTTP/1.1\n\n\n", i);
	buf_add_str(b, "--c--\n--batch_a--\n");
}

TEST(parsing_stops_at_the_limit_of_parts)
{
	struct buf b = BUF_INIT(1u << 20);

	add_changes(&b, 100);
	CHECK_ERR(parse(node_type, buf_span(&b)), ERR_OK);
	CHECK_EQ_INT(body.nparts, 100);
	CHECK_EQ_STR(text_of(body.parts[99].target), "t99");
	CHECK_EQ_STR(text_of(body.parts[7].target), "t7");
	add_changes(&b, 101);
	CHECK_ERR(parse(node_type, buf_span(&b)), ERR_BATCH_TOO_LARGE);
	CHECK_EQ_STR(why.text,
		"The batch request operation exceeds the maximum 100 changes per change set.");
	CHECK_EQ_INT(why.op, 99);
	CHECK_ERR(batch_body_parse(span_of(node_type), buf_span(&b), 1000, &arena, &body, NULL),
		ERR_OK);
	CHECK_EQ_INT(body.nparts, 101);
	CHECK_ERR(batch_body_parse(span_of(node_type), buf_span(&b), 0, &arena, &body, NULL),
		ERR_BATCH_TOO_LARGE);
	buf_fini(&b);
	arena_fini(&arena);
}

TEST(too_many_headers_are_refused)
{
	struct buf b = BUF_INIT(1u << 20);

	buf_add_str(&b, CHANGE "GET t HTTP/1.1\n");
	for (int i = 0; i < 101; i++)
		buf_add_str(&b, "A:b\n");
	buf_add_str(&b, "\n--c--\n--batch_a--\n");
	CHECK_ERR(parse(node_type, buf_span(&b)), ERR_INVALID_INPUT);
	CHECK(strstr(why.text, "too many headers") != NULL);
	buf_fini(&b);
	arena_fini(&arena);
}

/* Every cut is an error or a parse with no more parts than the whole; the text stands in a
 * block of just its size, so that the sanitizer sees a byte read behind it. */
static void cut_everywhere(const char *type, const char *text, size_t nparts)
{
	for (size_t n = 0; n <= strlen(text); n++) {
		char *exact = malloc(n + (n == 0));
		if (exact == NULL)
			abort();
		memcpy(exact, text, n);
		enum err e = parse(type, span_make(exact, n));
		CHECK(e == ERR_OK || e == ERR_INVALID_INPUT);
		CHECK(e == ERR_OK || (why.text[0] != '\0' && why.offset <= n));
		CHECK(body.nparts <= nparts);
		for (size_t i = 0; i < body.nparts; i++) {
			const struct batch_part *p = &body.parts[i];
			CHECK(p->body.n == 0 ||
				(p->body.p >= exact && p->body.p + p->body.n <= exact + n));
			CHECK(p->method.n > 0 && p->target.n > 0);
		}
		free(exact);
	}
}

TEST(a_body_cut_at_any_byte_is_survived)
{
	cut_everywhere(js_type, js, 2);
	cut_everywhere(
		"multipart/mixed; boundary=batch_36522ad7-fc75-4b56-8c71-56071383e77b", python, 2);
	cut_everywhere(node_type, node, 2);
	arena_fini(&arena);
}

TEST(a_large_body_of_hostile_lines_takes_linear_time)
{
	struct buf b = BUF_INIT(8u << 20);

	buf_add_str(&b, CHANGE "POST t HTTP/1.1\nContent-Length: 4000000\n\nx\n");
	while (b.len < (4u << 20) + 1000)
		buf_add_str(&b, "--c-\n\n--batch_\n--\n--c x\n");
	buf_add_str(&b, "--c--\n");
	CHECK_ERR(parse(node_type, buf_span(&b)), ERR_OK);
	REQUIRE(body.nparts == 1);
	CHECK(body.parts[0].body.n > (4u << 20));
	buf_fini(&b);
	arena_fini(&arena);
}

TEST(a_batch_is_closed_by_its_own_last_delimiter_only)
{
	static const char *const open[] = { "", "--b", "--b\n", "--b\n--c--\n", "--b\n--b-",
		"--b--x\n", "--b\n x --b--\n" };
	static const char *const closed[] = { "--b--", "--b\n--c\n--b\n--b--\r\n",
		"x\n--b-- \nepilogue" };
	struct span type = SPAN_LIT("multipart/mixed; boundary=\"b\"");
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		CHECK(!batch_body_is_closed(type, span_of(open[i])));
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		CHECK(batch_body_is_closed(type, span_of(closed[i])));
	CHECK(!batch_body_is_closed(SPAN_LIT("text/plain"), SPAN_LIT("--b--")));
}

/* As text, 80 bytes of it at most. */
static const char *long_type(const char *before, size_t n)
{
	static char text[400];

	(void)snprintf(text, sizeof(text), "%s", before);
	memset(text + strlen(before), 'b', n);
	text[strlen(before) + n] = '\0';
	return text;
}

TEST(a_boundary_has_at_most_256_characters)
{
	char inner[600];
	const char *type = long_type("multipart/mixed; boundary=", 256);

	(void)snprintf(inner, sizeof(inner), "--%s--", type + 26);
	CHECK_ERR(parse(type, span_of(inner)), ERR_OK);
	CHECK_ERR(parse(long_type("multipart/mixed; boundary=", 257), SPAN_LIT("--b--")),
		ERR_INVALID_INPUT);
	(void)snprintf(inner, sizeof(inner), "--a\nContent-Type: %s\n\n--b\n",
		long_type("multipart/mixed; boundary=", 257));
	CHECK_ERR(parse("multipart/mixed; boundary=a", span_of(inner)), ERR_INVALID_INPUT);
	CHECK(strstr(why.text, "too long") != NULL);
}

TEST(a_long_type_is_shown_cut)
{
	CHECK_ERR(parse(long_type("text/", 100), SPAN_LIT("")), ERR_INVALID_INPUT);
	CHECK(strstr(why.text, "bbb'.") != NULL);
	CHECK(strstr(why.text, long_type("text/", 75)) != NULL);
	CHECK(strstr(why.text, long_type("text/", 76)) == NULL);
	CHECK_ERR(parse("", SPAN_LIT("")), ERR_INVALID_INPUT);
}

TEST(odd_heads_are_refused)
{
	CHECK_ERR(parse_change("\tx: y\n", ""), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("x\x7f: y\n", ""), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("x\xc3\xa9: y\n", ""), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("x: a\x01z\n", ""), ERR_INVALID_INPUT);
	CHECK_ERR(parse_change("x: a\tz\n", ""), ERR_OK);
	CHECK_ERR(parse_change("Content-Type: a; b=\"c\\\n", ""), ERR_OK);
	CHECK_ERR(parse("multipart/mixed; boundary=\"a\\", SPAN_LIT("--a--")), ERR_INVALID_INPUT);
	CHECK_ERR(
		parse("multipart/mixed; boundary=a", (struct span){ NULL, 0 }), ERR_INVALID_INPUT);
	arena_fini(&arena);
}

TEST(where_no_part_is_allowed_the_first_is_too_many)
{
	struct err_detail detail = { .op = 7 };

	CHECK_ERR(
		batch_body_parse(SPAN_LIT("multipart/mixed; boundary=a"),
			SPAN_LIT("--a\nContent-Type: application/http\n\nGET t HTTP/1.1\n\n--a--"),
			0, &arena, &body, &detail),
		ERR_BATCH_TOO_LARGE);
	CHECK_EQ_INT(detail.op, 0);
	CHECK_ERR(
		batch_body_parse(SPAN_LIT("multipart/mixed; boundary=a"),
			SPAN_LIT("--a\nContent-Type: application/http\n\nGET t HTTP/1.1\n\n--a--"),
			0, &arena, &body, NULL),
		ERR_BATCH_TOO_LARGE);
	arena_fini(&arena);
}

RUN_TESTS(T(the_js_client_is_read), T(a_batch_is_closed_by_its_own_last_delimiter_only),
	T(bare_line_feeds_are_read_the_same), T(missing_final_delimiters_are_forgiven),
	T(the_python_client_is_read), T(azure_storage_is_read),
	T(a_query_in_a_batch_is_in_no_change_set), T(azure_0_7_is_read_with_its_short_lengths),
	T(preamble_quotes_relative_targets_and_several_change_sets), T(an_empty_batch_has_no_parts),
	T(content_length_says_where_a_body_ends), T(a_body_shorter_than_its_length_is_refused),
	T(what_is_missing_is_named_with_its_line), T(the_content_type_of_the_batch_is_checked),
	T(parameters_are_found_in_any_spelling), T(parsing_stops_at_the_limit_of_parts),
	T(too_many_headers_are_refused), T(a_body_cut_at_any_byte_is_survived),
	T(a_large_body_of_hostile_lines_takes_linear_time),
	T(a_boundary_has_at_most_256_characters), T(a_long_type_is_shown_cut),
	T(odd_heads_are_refused), T(where_no_part_is_allowed_the_first_is_too_many))
