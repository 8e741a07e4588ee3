/* SPDX-License-Identifier: MIT
 * Requests as plain data through rest_handle(), over the in-memory engine: what an answer
 * looks like to the byte.  A trusted peer stands in for a signature. */
#include "base/buf.h"
#include "check.h"
#include "rest/core/handle.h"
#include "rest/tables/tables.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <stdlib.h>

#define BASE "http://127.0.0.1:10002/acct/"

static struct service *service;
static const struct peer peer = { .is_unix = true, .trusted = true };

static void setup(void)
{
	struct store *store;
	BUG_ON(store_open_memory(&store) != ERR_OK);
	BUG_ON(service_new(store, &service) != ERR_OK);
	BUG_ON(account_create(service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) !=
		ERR_OK);
}

static void teardown(void)
{
	service_free(service);
	service = NULL;
}

#define HEADERS_MAX 16

/* headers: "Name: value\n" lines. */
static struct response ask(
	const char *method, const char *target, const char *headers, const char *body)
{
	struct header list[HEADERS_MAX] = { { SPAN_LIT("Host"), SPAN_LIT("127.0.0.1:10002") } };
	size_t n = 1;
	while (headers != NULL && *headers != '\0') {
		const char *colon = strchr(headers, ':'), *end = strchr(headers, '\n');
		BUG_ON(colon == NULL || end == NULL || n == HEADERS_MAX);
		list[n].name = span_make(headers, (size_t)(colon - headers));
		list[n++].value = span_make(colon + 2, (size_t)(end - colon) - 2);
		headers = end + 1;
	}
	struct request q = { .method = span_of(method),
		.target = span_of(target),
		.headers = list,
		.nheaders = n,
		.body = span_of(body != NULL ? body : ""),
		.peer = &peer };
	struct response r;
	rest_handle(&rest_tables, service, &q, &r);
	buf_add(&r.body, "", 1); /* for string functions */
	r.body.len--;
	return r;
}

static int status_of(const char *method, const char *target, const char *headers, const char *body)
{
	struct response r = ask(method, target, headers, body);
	int status = r.status;
	response_fini(&r);
	return status;
}

static bool has(const struct response *r, const char *text)
{
	return r->body.data != NULL && strstr(r->body.data, text) != NULL;
}

#define NO_CONTENT "Prefer: return-no-content\n"
#define NOMETA "Accept: application/json;odata=nometadata\n"

static void make_rows(void)
{
	CHECK_EQ_INT(status_of("POST", "/acct/Tables", NULL, "{\"TableName\":\"Blogs\"}"), 201);
	CHECK_EQ_INT(status_of("POST", "/acct/Blogs", NO_CONTENT,
			     "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"N@odata.type\":\"Edm."
			     "Int64\",\"N\":\"5\",\"S\":\"x\"}"),
		204);
	CHECK_EQ_INT(status_of("PUT", "/acct/Blogs(PartitionKey='p',RowKey='2')", NULL,
			     "{\"D\":1.5,\"I\":7}"),
		204);
}

TEST(a_table_is_made_found_and_dropped)
{
	setup();
	struct response r = ask("POST", "/acct/Tables", NULL, "{\"TableName\":\"Blogs\"}");
	CHECK_EQ_INT(r.status, 201);
	CHECK_EQ_STR(r.body.data,
		"{\"odata.metadata\":\"" BASE
		"$metadata#Tables/@Element\",\"TableName\":\"Blogs\"}");
	CHECK_EQ_STR(response_header_get(&r, "Location"), BASE "Tables('Blogs')");
	response_fini(&r);
	r = ask("POST", "/acct/Tables", NULL, "{\"TableName\":\"blogs\"}");
	CHECK_EQ_INT(r.status, 409);
	CHECK(has(&r, "{\"odata.error\":{\"code\":\"TableAlreadyExists\""));
	response_fini(&r);
	r = ask("GET", "/acct/Tables", NOMETA, NULL);
	CHECK_EQ_STR(r.body.data, "{\"value\":[{\"TableName\":\"Blogs\"}]}");
	response_fini(&r);
	CHECK_EQ_INT(status_of("DELETE", "/acct/Tables('BLOGS')", NULL, NULL), 204);
	r = ask("DELETE", "/acct/Tables('Blogs')", NULL, NULL);
	CHECK_EQ_INT(r.status, 404);
	CHECK_EQ_STR(response_header_get(&r, "x-ms-error-code"), "ResourceNotFound");
	response_fini(&r);
	teardown();
}

TEST(an_entity_is_shown_at_each_level)
{
	setup();
	make_rows();
	struct response r = ask("GET", "/acct/Blogs(PartitionKey='p',RowKey='1')", NULL, NULL);
	CHECK_EQ_INT(r.status, 200);
	CHECK(has(&r,
		"{\"odata.metadata\":\"" BASE
		"$metadata#Blogs/@Element\",\"odata.etag\":\"W/\\\"datetime'"));
	CHECK(has(&r, "\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"S\":\"x\"}"));
	CHECK(response_header_get(&r, "ETag") != NULL);
	response_fini(&r);
	r = ask("GET", "/acct/Blogs(PartitionKey='p',RowKey='1')?$select=S,Gone,N", NOMETA, NULL);
	CHECK_EQ_STR(r.body.data, "{\"S\":\"x\",\"Gone\":null,\"N\":\"5\"}");
	response_fini(&r);
	r = ask("GET", "/acct/Blogs()?$filter=I%20gt%206", NOMETA, NULL);
	CHECK(has(&r, "{\"value\":[{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"Timestamp\":"));
	CHECK(has(&r, "\"D\":1.5,\"I\":7}]}"));
	response_fini(&r);
	teardown();
}

TEST(a_condition_that_fails_is_412_and_a_missing_one_is_an_upsert)
{
	const char *row = "/acct/Blogs(PartitionKey='p',RowKey='1')";
	setup();
	make_rows();
	CHECK_EQ_INT(
		status_of("PUT", row, "If-Match: W/\"datetime'2001-01-01T00%3A00%3A00Z'\"\n", "{}"),
		412);
	CHECK_EQ_INT(status_of("PUT", row, "If-Match: nonsense\n", "{}"), 400);
	CHECK_EQ_INT(status_of("MERGE", row, "If-Match: *\n", "{\"Z\":1}"), 204);
	CHECK_EQ_INT(status_of("DELETE", row, NULL, NULL), 400);
	CHECK_EQ_INT(status_of("DELETE", row, "If-Match: *\n", NULL), 204);
	CHECK_EQ_INT(status_of("PATCH", row, "If-Match: *\n", "{}"), 404);
	CHECK_EQ_INT(status_of("PATCH", row, NULL, "{}"), 204);
	CHECK_EQ_INT(status_of("POST", row, "X-HTTP-Method: MERGE\n", "{}"), 204);
	CHECK_EQ_INT(status_of("PUT", row, "X-HTTP-Method: MERGE\n", "{}"), 400);
	teardown();
}

#define PART(method_, url_, extra_, body_) \
	"--cs\r\ncontent-type: application/http\r\ncontent-transfer-encoding: binary\r\n\r\n" method_ \
	" http://127.0.0.1:10002/acct/" url_ " HTTP/1.1\r\n" extra_ \
	"Content-Type: application/json\r\n\r\n\r\n" body_ "\r\n"
#define SET(parts_) \
	"--b\r\ncontent-type: multipart/mixed; boundary=cs\r\n\r\n\r\n" parts_ "--cs--\r\n--b--\r\n"
#define MULTIPART "Content-Type: multipart/mixed; boundary=b\n"

TEST(a_change_set_is_all_or_nothing_and_tells_the_index)
{
	setup();
	make_rows();
	struct response r = ask("POST", "/acct/$batch", MULTIPART,
		SET(PART("POST", "Blogs", "Prefer: return-no-content\r\n",
			"{\"PartitionKey\":\"p\",\"RowKey\":\"8\"}") PART("DELETE",
			"Blogs(PartitionKey='p',RowKey='1')", "If-Match: *\r\n", "")));
	CHECK_EQ_INT(r.status, 202);
	CHECK(has(&r, "HTTP/1.1 204 No Content\r\n"));
	CHECK(has(&r, "Location: " BASE "Blogs(PartitionKey='p',RowKey='8')\r\n"));
	response_fini(&r);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs(PartitionKey='p',RowKey='1')", NULL, NULL), 404);

	r = ask("POST", "/acct/$batch", MULTIPART,
		SET(PART("POST", "Blogs", "", "{\"PartitionKey\":\"p\",\"RowKey\":\"9\"}") PART(
			"POST", "Blogs", "", "{\"PartitionKey\":\"p\",\"RowKey\":\"8\"}")));
	CHECK_EQ_INT(r.status, 202);
	CHECK(has(&r, "HTTP/1.1 409 Conflict\r\n"));
	CHECK(has(&r, "\"value\":\"1:The specified entity already exists.\\nRequestId:"));
	response_fini(&r);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs(PartitionKey='p',RowKey='9')", NULL, NULL), 404);
	teardown();
}

TEST(a_query_in_a_batch_is_answered_in_its_part)
{
	setup();
	make_rows();
	struct response r = ask("POST", "/acct/$batch",
		"Content-Type: multipart/mixed;charset=\"utf-8\";boundary=b\n",
		"--b\ncontent-type: application/http\ncontent-transfer-encoding: binary\n\n"
		"GET http://127.0.0.1:10002/acct/Blogs(PartitionKey='p',RowKey='1') HTTP/1.1\n"
		"accept: application/json;odata=nometadata\n\n--b--\n");
	CHECK_EQ_INT(r.status, 202);
	CHECK(has(&r, "HTTP/1.1 200 OK\r\n"));
	CHECK(has(&r, "{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"Timestamp\":"));
	response_fini(&r);
	teardown();
}

TEST(pages_lead_to_each_other)
{
	setup();
	make_rows();
	struct response r = ask("GET", "/acct/Blogs()?$top=1", NOMETA, NULL);
	CHECK(has(&r, "\"RowKey\":\"1\"") && !has(&r, "\"RowKey\":\"2\""));
	CHECK_EQ_STR(response_header_get(&r, "x-ms-continuation-NextRowKey"), "1!4!Mg--");
	response_fini(&r);
	r = ask("GET", "/acct/Blogs()?$top=1&NextPartitionKey=1!4!cA--&NextRowKey=1!4!Mg--", NOMETA,
		NULL);
	CHECK(has(&r, "\"RowKey\":\"2\"") && !has(&r, "\"RowKey\":\"1\""));
	CHECK(response_header_get(&r, "x-ms-continuation-NextRowKey") == NULL);
	response_fini(&r);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?NextPartitionKey=zzz", NULL, NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?$top=1001", NULL, NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?$top=1000", NULL, NULL), 200);
	teardown();
}

TEST(every_answer_carries_its_ids_and_the_version_it_was_asked_in)
{
	setup();
	struct response r = ask("GET", "/acct/Tables",
		"x-ms-version: 2019-02-02\nx-ms-client-request-id: abc\n", NULL);
	CHECK_EQ_STR(response_header_get(&r, "x-ms-version"), "2019-02-02");
	CHECK_EQ_STR(response_header_get(&r, "x-ms-client-request-id"), "abc");
	CHECK_EQ_INT(strlen(response_header_get(&r, "x-ms-request-id")), 36);
	response_fini(&r);
	CHECK_EQ_INT(status_of("GET", "/acct/Tables", "x-ms-version: 2008-01-01\n", NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Tables", "x-ms-version: today\n", NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Tables",
			     "x-ms-version: 2019-02-02\nAccept: application/atom+xml\n", NULL),
		415);
	CHECK_EQ_INT(
		status_of("GET", "/acct/Tables", "Accept: application/json;odata=verbose\n", NULL),
		415);
	CHECK_EQ_INT(status_of("PUT", "/acct/Tables", NULL, "{}"), 405);
	CHECK_EQ_INT(status_of("GET", "/nobody/Tables", NULL, NULL), 403);
	teardown();
}

TEST(the_first_operation_that_fails_is_to_blame)
{
	setup();
	make_rows();
	struct response r = ask("POST", "/acct/$batch", MULTIPART,
		SET(PART("POST", "Blogs", "", "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}")
				PART("MERGE", "Blogs(PartitionKey='p',RowKey='gone')",
					"If-Match: *\r\n", "{}")));
	CHECK(has(&r, "HTTP/1.1 409 Conflict\r\n"));
	CHECK(has(&r, "\"value\":\"0:The specified entity already exists."));
	response_fini(&r);
	r = ask("POST", "/acct/$batch", MULTIPART,
		SET(PART("POST", "Blogs", "Prefer: return-no-content\r\n",
			"{\"PartitionKey\":\"p\",\"RowKey\":\"7\"}") PART("MERGE",
			"Blogs(PartitionKey='p',RowKey='gone')", "If-Match: *\r\n", "{}")));
	CHECK(has(&r, "\"value\":\"1:The specified resource does not exist."));
	response_fini(&r);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs(PartitionKey='p',RowKey='7')", NULL, NULL), 404);
	teardown();
}

static const char *challenge_of(struct response *r)
{
	const char *value = response_header_get(r, "WWW-Authenticate");
	return value != NULL ? value : "(none)";
}

TEST(a_bearer_token_is_answered_with_a_challenge)
{
	static const char want[] = "Bearer authorization_uri=https://login.microsoftonline.com/"
				   "00000000-0000-0000-0000-000000000000/oauth2/authorize "
				   "resource_id=https://storage.azure.com";
	setup();
	struct response r = ask("GET", "/acct/Tables",
		"Authorization: Bearer a.b.c\nx-ms-version: 2019-02-02\n", NULL);
	CHECK_EQ_INT(r.status, 401);
	CHECK_EQ_STR(challenge_of(&r), want);
	CHECK_EQ_STR(response_header_get(&r, "x-ms-error-code"), "InvalidAuthenticationInfo");
	CHECK(has(&r, "Please refer to the information in the www-authenticate header."));
	response_fini(&r);
	r = ask("GET", "/acct/Tables", "Authorization: Bearer a.b.c\nx-ms-version: 2015-04-05\n",
		NULL);
	CHECK_EQ_INT(r.status, 403);
	CHECK_EQ_STR(challenge_of(&r), "(none)");
	CHECK_EQ_STR(response_header_get(&r, "x-ms-error-code"), "AuthenticationFailed");
	response_fini(&r);
	r = ask("GET", "/acct/Tables", "Authorization: SharedKey acct:AAAA\n", NULL);
	CHECK_EQ_INT(r.status, 403);
	CHECK_EQ_STR(challenge_of(&r), "(none)");
	response_fini(&r);
	teardown();
}

TEST(what_cannot_be_honoured_is_refused)
{
	const char *row = "/acct/Blogs(PartitionKey='p',RowKey='1')";
	setup();
	make_rows();
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?$fliter=I%20eq%201", NULL, NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?$orderby=I", NULL, NULL), 501);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?$top=1&$top=2", NULL, NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?timeout=0", NULL, NULL), 400);
	CHECK_EQ_INT(status_of("GET", "/acct/Blogs()?timeout=1", NULL, NULL), 200);
	CHECK_EQ_INT(status_of("PUT", row, "If-Match: *\nIf-Match: W/\"x\"\n", "{}"), 400);
	CHECK_EQ_INT(
		status_of("GET", row, "x-ms-version: 2019-02-02\nx-ms-version: x\n", NULL), 400);
	/* A list may come in two lines. */
	CHECK_EQ_INT(
		status_of("GET", row, "Accept: text/html\nAccept: application/json\n", NULL), 200);
	/* No body, no format: old clients ask for ATOM. */
	CHECK_EQ_INT(
		status_of("DELETE", row,
			"x-ms-version: 2012-02-12\nAccept: application/atom+xml\nIf-Match: *\n",
			NULL),
		204);
	teardown();
}

TEST(a_page_is_bounded_in_what_it_shows)
{
	enum {
		ROWS = 30,
		NAMES = 250,
		NAME = 250
	};
	struct buf target = BUF_INIT(1 << 20);
	char body[64], name[NAME + 1];
	setup();
	CHECK_EQ_INT(status_of("POST", "/acct/Tables", NULL, "{\"TableName\":\"Blogs\"}"), 201);
	for (int i = 0; i < ROWS * 4; i++) {
		(void)snprintf(body, sizeof(body), "{\"PartitionKey\":\"p\",\"RowKey\":\"%d\"}", i);
		CHECK_EQ_INT(status_of("POST", "/acct/Blogs", NO_CONTENT, body), 204);
	}
	buf_add_str(&target, "/acct/Blogs()?$select=");
	for (int i = 0; i < NAMES; i++) {
		memset(name, 'x', NAME);
		(void)snprintf(name, sizeof(name), "x%d", i);
		name[strlen(name)] = 'y';
		name[NAME] = '\0';
		buf_addf(&target, "%s%s", i > 0 ? "," : "", name);
	}
	struct response r = ask("GET", target.data, NOMETA, NULL);
	CHECK_EQ_INT(r.status, 200);
	CHECK(r.body.len < (5 << 20));
	CHECK(response_header_get(&r, "x-ms-continuation-NextRowKey") != NULL);
	response_fini(&r);
	buf_fini(&target);
	teardown();
}

RUN_TESTS(T(a_table_is_made_found_and_dropped), T(an_entity_is_shown_at_each_level),
	T(a_condition_that_fails_is_412_and_a_missing_one_is_an_upsert),
	T(a_change_set_is_all_or_nothing_and_tells_the_index),
	T(a_query_in_a_batch_is_answered_in_its_part), T(pages_lead_to_each_other),
	T(every_answer_carries_its_ids_and_the_version_it_was_asked_in),
	T(the_first_operation_that_fails_is_to_blame),
	T(a_bearer_token_is_answered_with_a_challenge), T(what_cannot_be_honoured_is_refused),
	T(a_page_is_bounded_in_what_it_shows))
