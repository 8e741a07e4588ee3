/* SPDX-License-Identifier: MIT
 * rest/core/request_url.h, and the plain data beside it: rest/core/request.h and rest/core/response.h. */
#include "check.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"
#include "rest/core/response.h"

#include <stdlib.h>

static struct arena arena;
static struct err_detail why;
static struct request_url t;
static struct resource resource; /* of t, for tables */
static struct peer peer;
static struct header headers[4];
static struct request request;

/* The accounts that exist: "devstoreaccount1", "acct" and "other". */
static bool exists(void *arg, struct span name)
{
	(void)arg;
	return span_is(name, "devstoreaccount1") || span_is(name, "acct") || span_is(name, "other");
}

static enum err parse(const char *host, const char *target, const char *authorization)
{
	size_t n = 0;

	arena_reset(&arena);
	if (host != NULL)
		headers[n++] = (struct header){ SPAN_LIT("hOsT"), span_of(host) };
	if (authorization != NULL)
		headers[n++] = (struct header){ SPAN_LIT("authorization"), span_of(authorization) };
	request = (struct request){ .method = SPAN_LIT("GET"),
		.target = span_of(target),
		.headers = headers,
		.nheaders = n,
		.peer = &peer };
	why.text[0] = '\0';
	enum err e = request_url_parse(&request, exists, NULL, &arena, &t, &why);
	return e == ERR_OK ? resource_parse(t.resource, &arena, &resource, &why) : e;
}

static const char *text_of(struct span s)
{
	struct span copy = arena_copy(&arena, s);

	return copy.p == NULL ? "(out of memory)" : copy.p;
}

struct layout {
	const char *host, *target, *authorization;
	const char *account, *base, *path;
	enum resource_kind kind;
	bool path_style, secondary;
};

static void check_layout(const struct layout *l)
{
	unsigned before = check_failures;

	CHECK_ERR(parse(l->host, l->target, l->authorization), ERR_OK);
	CHECK_EQ_STR(t.account, l->account);
	CHECK_EQ_STR(text_of(t.base), l->base);
	CHECK_EQ_STR(text_of(t.path), l->path);
	CHECK_EQ_INT(resource.kind, l->kind);
	CHECK_EQ_INT(t.path_style, l->path_style);
	CHECK_EQ_INT(t.secondary, l->secondary);
	if (check_failures != before)
		check_fail(__FILE__, __LINE__, l->target);
}

#define E RESOURCE_ENTITIES
#define S RESOURCE_SERVICE

TEST(every_layout_gives_account_base_and_resource)
{
	static const struct layout cases[] = {
		/* Path style: an address, localhost, one label. */
		{ "127.0.0.1:10002", "/devstoreaccount1/Customers", NULL, "devstoreaccount1",
			"http://127.0.0.1:10002/devstoreaccount1/", "/devstoreaccount1/Customers",
			E, true, false },
		{ "localhost", "/acct/t()", NULL, "acct", "http://localhost/acct/", "/acct/t()", E,
			true, false },
		{ "server:80", "/acct", NULL, "acct", "http://server:80/acct/", "/acct", S, true,
			false },
		{ "[::1]:10002", "/acct/", NULL, "acct", "http://[::1]:10002/acct/", "/acct/", S,
			true, false },
		{ "[::ffff:1.2.3.4]", "/acct/", NULL, "acct", "http://[::ffff:1.2.3.4]/acct/",
			"/acct/", S, true, false },
		{ "10.0.0.1", "/acct//Tables", NULL, "acct", "http://10.0.0.1/acct/",
			"/acct//Tables", RESOURCE_TABLES, true, false },
		/* A server with a real name that serves accounts by path. */
		{ "tables.example.com", "/acct/Tables", NULL, "acct",
			"http://tables.example.com/acct/", "/acct/Tables", RESOURCE_TABLES, true,
			false },
		/* Host style. */
		{ "acct.table.core.windows.net", "/Customers", NULL, "acct",
			"http://acct.table.core.windows.net/", "/Customers", E, false, false },
		{ "ACCT.table.localhost:10002", "/", NULL, "acct",
			"http://ACCT.table.localhost:10002/", "/", S, false, false },
		{ "acct.table.localhost", "/other", NULL, "acct", "http://acct.table.localhost/",
			"/other", E, false, false },
		/* Secondaries. */
		{ "acct-secondary.table.core.windows.net", "/", NULL, "acct",
			"http://acct-secondary.table.core.windows.net/", "/", S, false, true },
		{ "127.0.0.1:10002", "/acct-secondary/Customers", NULL, "acct",
			"http://127.0.0.1:10002/acct-secondary/", "/acct-secondary/Customers", E,
			true, true },
		{ "127.0.0.1:10002",
			"/devstoreaccount1-secondary/devstoreaccount1/?restype=service&comp=stats",
			NULL, "devstoreaccount1",
			"http://127.0.0.1:10002/devstoreaccount1-secondary/devstoreaccount1/",
			"/devstoreaccount1-secondary/devstoreaccount1/", S, true, true },
		/* A table may be called like its account. */
		{ "127.0.0.1", "/acct/acct", NULL, "acct", "http://127.0.0.1/acct/", "/acct/acct",
			E, true, false },
		{ "127.0.0.1", "/acct/acct/Tables", NULL, "acct", "http://127.0.0.1/acct/acct/",
			"/acct/acct/Tables", RESOURCE_TABLES, true, false },
		/* Host style behind an address: only the signature names the account. */
		{ "127.0.0.1:10002", "/Tables", "SharedKey acct:c2ln", "acct",
			"http://127.0.0.1:10002/", "/Tables", RESOURCE_TABLES, false, false },
		{ "127.0.0.1:10002", "/mytable", "SharedKeyLite acct:c2ln", "acct",
			"http://127.0.0.1:10002/", "/mytable", E, false, false },
		{ "127.0.0.1:10002", "/", "sharedkey acct:c2ln", "acct", "http://127.0.0.1:10002/",
			"/", S, false, false },
		/* The path's account wins over the signature's where it exists. */
		{ "127.0.0.1", "/acct/t", "SharedKey other:c2ln", "acct", "http://127.0.0.1/acct/",
			"/acct/t", E, true, false },
		/* The absolute form; its host wins. */
		{ "elsewhere", "http://127.0.0.1:1/acct/t?x=1", NULL, "acct",
			"http://127.0.0.1:1/acct/", "/acct/t", E, true, false },
		{ NULL, "HTTPS://acct.table.local", NULL, "acct", "http://acct.table.local/", "/",
			S, false, false },
		{ NULL, "http://acct.table.local?comp=properties&restype=service", NULL, "acct",
			"http://acct.table.local/", "/", S, false, false },
		{ "acct.table.local", "http:///t", NULL, "acct", "http://acct.table.local/", "/t",
			E, false, false },
		/* Nobody exists: what is meant most likely. */
		{ "127.0.0.1", "/nobody/t", NULL, "nobody", "http://127.0.0.1/nobody/", "/nobody/t",
			E, true, false },
		{ "127.0.0.1", "/nobody/t", "SharedKey someone:c2ln", "nobody",
			"http://127.0.0.1/nobody/", "/nobody/t", E, true, false },
		{ "nobody.example.com", "/mytable", NULL, "nobody", "http://nobody.example.com/",
			"/mytable", E, false, false },
		{ "tables.example.com", "/nobody/t", "SharedKey nobody:c2ln", "nobody",
			"http://tables.example.com/nobody/", "/nobody/t", E, true, false },
		{ "127.0.0.1", "/Tables", "SharedKey nobody:c2ln", "nobody", "http://127.0.0.1/",
			"/Tables", RESOURCE_TABLES, false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_layout(&cases[i]);
	arena_fini(&arena);
}

TEST(base_has_the_scheme_that_the_peer_speaks)
{
	peer.tls = true;
	CHECK_ERR(parse("localhost:1", "/acct/t", NULL), ERR_OK);
	CHECK_EQ_STR(text_of(t.base), "https://localhost:1/acct/");
	CHECK_ERR(parse(NULL, "http://localhost:1/acct/t", NULL), ERR_OK);
	CHECK_EQ_STR(text_of(t.base), "https://localhost:1/acct/");
	peer.tls = false;
	arena_fini(&arena);
}

TEST(a_host_is_needed_except_on_a_unix_socket)
{
	CHECK_ERR(parse(NULL, "/acct/t", NULL), ERR_INVALID_INPUT);
	CHECK(strstr(why.text, "host information") != NULL);
	CHECK_ERR(parse(" ", "/acct/t", NULL), ERR_INVALID_INPUT);
	peer.is_unix = true;
	CHECK_ERR(parse(NULL, "/acct/t", NULL), ERR_OK);
	CHECK_EQ_STR(text_of(t.base), "http://localhost/acct/");
	CHECK_ERR(parse("box", "/acct/t", NULL), ERR_OK);
	CHECK_EQ_STR(text_of(t.base), "http://box/acct/");
	peer.is_unix = false;
	arena_fini(&arena);
}

TEST(the_query_gives_parameters)
{
	CHECK_ERR(parse("localhost", "/acct/?%72estype=service&comp=a%20b&comp=c", NULL), ERR_OK);
	CHECK_EQ_STR(text_of(t.query), "%72estype=service&comp=a%20b&comp=c");
	CHECK_EQ_STR(text_of(t.path), "/acct/");
	CHECK_EQ_INT(t.params.n, 3);
	CHECK_EQ_STR(text_of(t.restype), "service");
	CHECK_EQ_STR(text_of(t.comp), "a b");
	CHECK_ERR(parse("localhost", "/acct/t?x=/a?b", NULL), ERR_OK);
	CHECK(t.comp.p == NULL && t.restype.p == NULL);
	CHECK_EQ_STR(text_of(t.params.all[0].value), "/a?b");
	CHECK_ERR(parse("localhost", "/acct/t?comp", NULL), ERR_OK);
	CHECK(t.comp.p != NULL && t.comp.n == 0);
	arena_fini(&arena);
}

TEST(keys_are_decoded_but_the_path_stays_as_it_was)
{
	CHECK_ERR(parse("127.0.0.1:10002",
			  "/devstoreaccount1/smoke(PartitionKey='a%20b%2Bc',RowKey='O''B')", NULL),
		ERR_OK);
	CHECK_EQ_STR(
		text_of(t.path), "/devstoreaccount1/smoke(PartitionKey='a%20b%2Bc',RowKey='O''B')");
	CHECK_EQ_STR(text_of(resource.table), "smoke");
	CHECK_EQ_STR(text_of(resource.pk), "a b+c");
	CHECK_EQ_STR(text_of(resource.rk), "O'B");
	arena_fini(&arena);
}

TEST(what_cannot_be_parsed_is_refused)
{
	static const struct {
		const char *host, *target;
	} cases[] = {
		{ "localhost", "" },
		{ "localhost", "*" },
		{ "localhost", "acct/t" },
		{ "localhost", "?x" },
		{ "localhost", "/" },
		{ "localhost", "/Tables" },
		{ "localhost", "/-secondary/t" },
		{ "localhost", "/ab/t" },
		{ "localhost", "/acctacctacctacctacctacct1/t" },
		{ "localhost", "/acct/a/b" },
		{ "localhost", "/acct/t%zz" },
		{ "localhost", "/acct/t%ff" },
		{ "localhost", "/acct/t%00" },
		{ "localhost", "/acct/t?a=%" },
		{ "localhost", "/acct/t?a=%fe" },
		{ "localhost", "/acct/t(PartitionKey='p')" },
		{ "local host", "/acct/t" },
		{ "user@localhost", "/acct/t" },
		{ "a\"b", "/acct/t" },
		{ "h\xc3\xbc", "/acct/t" },
		{ ":80", "/acct/t" },
		{ "localhost", "ftp://localhost/acct/t" },
		{ "localhost", "http://a b/acct/t" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (parse(cases[i].host, cases[i].target, NULL) != ERR_INVALID_INPUT)
			check_fail(__FILE__, __LINE__, cases[i].target);
		CHECK(why.text[0] != '\0');
	}
	arena_fini(&arena);
}

TEST(authorization_headers_of_any_shape_are_survived)
{
	static const char *const odd[] = { "", "SharedKey", "SharedKey ",
		"SharedKey :", "Bearer acct:x", "SharedKey acct", "SharedKey a/../b:x",
		"SharedKey  acct:x", ":", " " };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		CHECK_ERR(parse("localhost", "/Tables", odd[i]), ERR_INVALID_INPUT);
	arena_fini(&arena);
}

static const char *signed_part_of(
	const char *host, const char *outer, const char *authorization, const char *target)
{
	static struct request_url part;

	CHECK_ERR(parse(host, outer, authorization), ERR_OK);
	enum err e = request_url_parse_part(&t, span_of(target), exists, NULL, &arena, &part, &why);
	if (e == ERR_OK)
		e = resource_parse(part.resource, &arena, &resource, &why);
	if (e != ERR_OK)
		return why.text;
	CHECK_EQ_STR(part.account, t.account);
	CHECK(span_eq(part.base, t.base));
	t = part;
	return resource.kind == RESOURCE_SERVICE ? "service" : text_of(resource.table);
}

static const char *part_of(const char *host, const char *outer, const char *target)
{
	return signed_part_of(host, outer, NULL, target);
}

TEST(a_part_of_a_batch_belongs_to_the_outer_account)
{
	static const char outer[] = "/acct/$batch";

	CHECK_EQ_STR(part_of("127.0.0.1:1", outer, "http://127.0.0.1:1/acct/smoke"), "smoke");
	CHECK_EQ_STR(
		part_of("127.0.0.1:1", outer, "http://proxy.example.com/acct/smoke?a=b"), "smoke");
	CHECK_EQ_STR(text_of(t.query), "a=b");
	CHECK_EQ_INT(t.params.n, 1);
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "/acct/t(PartitionKey='p',RowKey='r')"), "t");
	CHECK_EQ_INT(resource.kind, RESOURCE_ENTITY);
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "/t"), "t");
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "/mytable()?$filter=x"), "mytable");
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "t?$format=x"), "t");
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "acct"), "acct");
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "/acct/acct"), "acct");
	CHECK_EQ_STR(part_of("127.0.0.1", "/acct-secondary/$batch", "/acct/t"), "t");
	CHECK_EQ_STR(part_of("acct.table.local", "/$batch", "https://acct.table.local/t"), "t");
	CHECK_EQ_STR(part_of("acct.table.local", "/$batch", "/acct/t"), "t");
	CHECK_EQ_STR(part_of("acct.table.local", "/$batch", "/acct"), "acct");
	CHECK_EQ_STR(part_of("acct.table.local", "/$batch", ""), "service");
	CHECK_EQ_STR(part_of("127.0.0.1", outer, "/other/t"),
		"A request in a batch names another account: 'other'.");
	CHECK_EQ_STR(part_of("acct.table.local", "/$batch", "http://x/other/t"),
		"A request in a batch names another account: 'other'.");
	CHECK_EQ_STR(
		part_of("127.0.0.1", outer, "/acct/a/b"), "Bad Request - Error in query syntax.");
	arena_fini(&arena);
}

#define NAMES(account) "A request in a batch names another account: '" account "'."

TEST(a_part_of_a_batch_names_no_other_account_by_its_host)
{
	static const char outer[] = "/acct/$batch", host[] = "acct.table.local";
	static const char by_key[] = "SharedKey acct:x";

	CHECK_EQ_STR(part_of("127.0.0.1:1", outer, "http://other.some.domain/t"), NAMES("other"));
	CHECK_EQ_STR(
		part_of("127.0.0.1:1", outer, "http://nobody.some.domain:1/t"), NAMES("nobody"));
	CHECK_EQ_STR(part_of("127.0.0.1:1", outer, "http://other-secondary.some.domain/t"),
		NAMES("other"));
	CHECK_EQ_STR(part_of(host, "/$batch", "https://OTHER.table.local/t"), NAMES("other"));
	CHECK_EQ_STR(part_of(host, "/$batch", "https://nobody.table.local/acct"), NAMES("nobody"));
	/* Its own host in any case, an address and one label name nobody; the path comes first. */
	CHECK_EQ_STR(part_of(host, "/$batch", "https://ACCT-secondary.x.y/t"), "t");
	CHECK_EQ_STR(part_of("box.lan:1", outer, "http://BOX.lan:1/t"), "t");
	CHECK_EQ_STR(part_of("box.lan:1", outer, "http://10.0.0.1/t"), "t");
	CHECK_EQ_STR(part_of("box.lan:1", outer, "http://localhost:1/t"), "t");
	CHECK_EQ_STR(part_of("box.lan:1", outer, "http://other.some.domain/acct/t"), "t");
	/* Where the URL of the whole names no account, a proxy may have changed the host. */
	CHECK_EQ_STR(signed_part_of("127.0.0.1", "/$batch", by_key, "http://proxy.lan/t"), "t");
	CHECK_EQ_STR(signed_part_of("127.0.0.1", "/$batch", by_key, "http://other.lan/t"),
		NAMES("other"));
	arena_fini(&arena);
}

TEST(headers_are_found_without_case_and_trimmed)
{
	static const struct header list[] = {
		{ SPAN_LIT("X-A"), SPAN_LIT(" \tone two\t ") },
		{ SPAN_LIT("x-a"), SPAN_LIT("three") },
		{ SPAN_LIT("Empty"), { NULL, 0 } },
	};
	struct request r = { .headers = list, .nheaders = 3 };

	CHECK(span_is(request_header(&r, "x-A"), "one two"));
	CHECK_EQ_INT(request_header_count(&r, "X-a"), 2);
	CHECK(request_header(&r, "empty").p != NULL && request_header(&r, "empty").n == 0);
	CHECK(request_header(&r, "X-").p == NULL);
	CHECK_EQ_INT(request_header_count(&r, "X-"), 0);
}

TEST(response_headers_keep_their_order)
{
	struct response r;
	const char *name, *value;
	size_t at = 0;

	response_init(&r);
	response_header_str(&r, "ETag", "W/\"1\"");
	response_header(&r, "Empty", (struct span){ NULL, 0 });
	response_header(&r, "Bad", SPAN_LIT("a\r\nSet: b\0c\td\x7f\x01\xc3\xbc"));
	CHECK(response_header_next(&r, &at, &name, &value));
	CHECK_EQ_STR(name, "ETag");
	CHECK_EQ_STR(value, "W/\"1\"");
	CHECK(response_header_next(&r, &at, &name, &value));
	CHECK_EQ_STR(name, "Bad");
	CHECK_EQ_STR(value, "aSet: bcd\xc3\xbc");
	CHECK(!response_header_next(&r, &at, &name, &value));
	CHECK_EQ_STR(response_header_get(&r, "etag"), "W/\"1\"");
	CHECK(response_header_get(&r, "eta") == NULL);
	r.status = 200;
	buf_add_str(&r.body, "x");
	response_clear(&r);
	CHECK_EQ_INT(r.status, 0);
	CHECK_EQ_INT(r.body.len, 0);
	CHECK(response_header_get(&r, "ETag") == NULL);
	response_fini(&r);
}

TEST(a_header_that_does_not_fit_leaves_the_others_whole)
{
	struct response r;
	char *big = calloc(1, RESPONSE_HEADERS_LIMIT);
	const char *name, *value;
	size_t at = 0;

	REQUIRE(big != NULL);
	response_init(&r);
	response_header_str(&r, "First", "1");
	response_header(&r, "Big", span_make(big, RESPONSE_HEADERS_LIMIT));
	CHECK(response_header_next(&r, &at, &name, &value));
	CHECK(!response_header_next(&r, &at, &name, &value));
	CHECK(!buf_ok(&r.headers));
	response_fini(&r);
	free(big);
}

TEST(every_status_of_the_error_list_has_a_reason)
{
	for (int e = 0; e < ERR_COUNT_; e++) {
		if (strcmp(http_reason(err_http((enum err)e)), "Unknown") == 0)
			check_fail(__FILE__, __LINE__, err_symbol((enum err)e));
	}
	CHECK_EQ_STR(http_reason(202), "Accepted");
	CHECK_EQ_STR(http_reason(299), "Unknown");
}

RUN_TESTS(T(every_layout_gives_account_base_and_resource),
	T(base_has_the_scheme_that_the_peer_speaks), T(a_host_is_needed_except_on_a_unix_socket),
	T(the_query_gives_parameters), T(keys_are_decoded_but_the_path_stays_as_it_was),
	T(what_cannot_be_parsed_is_refused), T(authorization_headers_of_any_shape_are_survived),
	T(a_part_of_a_batch_belongs_to_the_outer_account),
	T(a_part_of_a_batch_names_no_other_account_by_its_host),
	T(headers_are_found_without_case_and_trimmed), T(response_headers_keep_their_order),
	T(a_header_that_does_not_fit_leaves_the_others_whole),
	T(every_status_of_the_error_list_has_a_reason))
