/* SPDX-License-Identifier: MIT
 * The parsers of src/cloud: connection strings, files of them, answers of the service. */
#include "check.h"
#include "cloud/change.h"
#include "cloud/credentials.h"
#include "cloud/group_response.h"
#include "cloud/rows.h"
#include "cloud/service_error.h"
#include "codec/entity_json.h"
#include "codec/table_signature.h"

#include <stdio.h>

/* ---- connection strings ---- */

TEST(a_key_and_an_account_make_an_endpoint_of_azure)
{
	struct endpoint e;
	CHECK_ERR(endpoint_parse(SPAN_LIT("DefaultEndpointsProtocol=https;AccountName=acct;"
					  "AccountKey=a2V5;EndpointSuffix=core.example"),
			  &e, NULL),
		ERR_OK);
	CHECK_EQ_STR(e.url, "https://acct.table.core.example");
	CHECK_EQ_STR(e.url + e.path, "");
	CHECK_EQ_STR(e.account, "acct");
	CHECK_EQ_INT(e.key_len, 3);
}

TEST(a_table_endpoint_wins_and_names_the_account)
{
	struct endpoint e;
	CHECK_ERR(endpoint_parse(SPAN_LIT(" tableendpoint = http://127.0.0.1:10002/acct/ ; "
					  "BlobEndpoint=http://x;accountkey=a2V5;"),
			  &e, NULL),
		ERR_OK);
	CHECK_EQ_STR(e.url, "http://127.0.0.1:10002/acct");
	CHECK_EQ_STR(e.url + e.path, "/acct");
	CHECK_EQ_STR(e.account, "acct");
	CHECK_ERR(
		endpoint_parse(
			SPAN_LIT(
				"TableEndpoint=https://acct.host.example;SharedAccessSignature=?sv=1&sig=a%3D"),
			&e, NULL),
		ERR_OK);
	CHECK_EQ_STR(e.account, "acct");
	CHECK_EQ_STR(e.sas, "sv=1&sig=a%3D");
	CHECK_ERR(endpoint_parse(
			  SPAN_LIT("TableEndpoint=https://acct.host.example/?sv=2;"), &e, NULL),
		ERR_OK);
	CHECK_EQ_STR(e.url, "https://acct.host.example");
	CHECK_EQ_STR(e.sas, "sv=2");
}

TEST(development_storage_is_the_emulator)
{
	struct endpoint e;
	CHECK_ERR(endpoint_parse(SPAN_LIT("UseDevelopmentStorage=true"), &e, NULL), ERR_OK);
	CHECK_EQ_STR(e.url, "http://127.0.0.1:10002/devstoreaccount1");
	CHECK_EQ_INT(e.key_len, 64);
}

TEST(a_wrong_connection_string_is_refused_without_its_secrets)
{
	static const char *const wrong[] = { "", "nonsense", "AccountName=acct", "AccountKey=a2V5",
		"AccountName=acct;AccountKey=s3cret!",
		"AccountName=acct;AccountKey=", "TableEndpoint=ftp://acct.x;AccountKey=a2V5",
		"TableEndpoint=https://user:s3cret@acct.x;AccountKey=a2V5",
		"TableEndpoint=http://127.0.0.1:1;AccountKey=a2V5",
		"TableEndpoint=https://;AccountKey=a2V5" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct endpoint e;
		struct err_detail why = { 0 };
		CHECK_ERR(endpoint_parse(span_of(wrong[i]), &e, &why), ERR_INVALID_INPUT);
		CHECK(why.text[0] != 0 && strstr(why.text, "s3cret") == NULL);
	}
}

TEST(a_connection_string_has_one_credential)
{
	static const char *const all[] = { "AccountKey", "SharedAccessSignature",
		"BearerTokenFile" };
	static const char *const values[] = { "a2V5", "sv=1", "/run/token" };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t k = 0; k < ARRAY_LEN(all); k++) {
			struct endpoint e;
			struct err_detail why = { 0 };
			char text[128];
			(void)snprintf(text, sizeof(text), "AccountName=acct;%s=%s;%s=%s", all[i],
				values[i], all[k], values[k]);
			CHECK_ERR(endpoint_parse(span_of(text), &e, &why),
				i == k ? ERR_OK : ERR_INVALID_INPUT);
			CHECK(i == k || (strstr(why.text, all[i]) && strstr(why.text, all[k])));
		}
}

TEST(a_bearer_token_is_in_a_file_and_goes_over_https)
{
	static char text[ENDPOINT_TEXT_MAX] = "AccountName=acct;BearerTokenFile=/";
	struct endpoint e;
	CHECK_ERR(endpoint_parse(SPAN_LIT("AccountName=acct;BearerTokenFile=/run/token"), &e, NULL),
		ERR_OK);
	CHECK_EQ_STR(e.token_file, "/run/token");
	CHECK_ERR(endpoint_parse(SPAN_LIT("AccountName=acct;BearerTokenFile=token"), &e, NULL),
		ERR_INVALID_INPUT);
	CHECK_ERR(endpoint_parse(SPAN_LIT("TableEndpoint=http://127.0.0.1/acct;"
					  "BearerTokenFile=/run/token"),
			  &e, NULL),
		ERR_INVALID_INPUT);
	memset(text + strlen(text), 'x', sizeof(e.token_file) - 2);
	CHECK_ERR(endpoint_parse(span_of(text), &e, NULL), ERR_OK);
	CHECK_EQ_INT(strlen(e.token_file), sizeof(e.token_file) - 1);
	text[strlen(text)] = 'x';
	CHECK_ERR(endpoint_parse(span_of(text), &e, NULL), ERR_INVALID_INPUT);
}

TEST(a_connection_string_has_a_longest_length)
{
	static char text[ENDPOINT_TEXT_MAX + 2] = "AccountName=acct;AccountKey=a2V5;X=";
	struct endpoint e;
	memset(text + strlen(text), 'x', ENDPOINT_TEXT_MAX - strlen(text));
	CHECK_ERR(endpoint_parse(span_of(text), &e, NULL), ERR_OK);
	text[ENDPOINT_TEXT_MAX] = 'x';
	CHECK_ERR(endpoint_parse(span_of(text), &e, NULL), ERR_INVALID_INPUT);
}

TEST(a_url_of_the_command_line_has_no_secret)
{
	struct endpoint e;
	CHECK_ERR(endpoint_parse_url(SPAN_LIT("https://acct.table.core.windows.net/"), &e, NULL),
		ERR_OK);
	CHECK_EQ_STR(e.account, "acct");
	CHECK_ERR(endpoint_parse_url(
			  SPAN_LIT("https://acct.table.core.windows.net/?sig=x"), &e, NULL),
		ERR_INVALID_INPUT);
}

TEST(a_file_of_connection_strings_is_chosen_from_by_url)
{
	static const struct span text = SPAN_LIT("# production\n"
						 "AccountName=one;AccountKey=a2V5\r\n\n"
						 "AccountName=two;AccountKey=a2V5a2V5");
	struct endpoint e;
	CHECK_ERR(
		credentials_choose(text, "https://TWO.table.core.windows.net/", &e, NULL), ERR_OK);
	CHECK_EQ_STR(e.account, "two");
	CHECK_EQ_INT(e.key_len, 6);
	CHECK_ERR(credentials_choose(text, "https://three.table.core.windows.net", &e, NULL),
		ERR_NOT_FOUND);
	CHECK_ERR(credentials_choose(text, NULL, &e, NULL), ERR_INVALID_INPUT);
	CHECK_ERR(credentials_choose(SPAN_LIT("# none\n"), NULL, &e, NULL), ERR_NOT_FOUND);
	CHECK_ERR(credentials_choose(SPAN_LIT("AccountName=one;AccountKey=a2V5\n"), NULL, &e, NULL),
		ERR_OK);
}

/* ---- signatures ---- */

TEST(shared_key_signs_three_headers_and_lite_the_date)
{
	struct table_signature s = { .method = SPAN_LIT("GET"),
		.content_type = SPAN_LIT("application/json"),
		.date = SPAN_LIT("Fri, 20 Nov 2026 12:00:00 GMT") };
	struct buf out = BUF_INIT(256);
	table_signature_head(&s, &out);
	table_signature_query(SPAN_LIT("acl"), &out);
	CHECK_EQ_STR(out.data, "GET\n\napplication/json\nFri, 20 Nov 2026 12:00:00 GMT\n?comp=acl");
	buf_clear(&out);
	s.lite = true;
	table_signature_head(&s, &out);
	table_signature_query((struct span){ 0 }, &out);
	CHECK_EQ_STR(out.data, "Fri, 20 Nov 2026 12:00:00 GMT\n");
	buf_fini(&out);
}

/* ---- answers ---- */

TEST(a_page_gives_its_rows_with_types_times_and_etags)
{
	static const struct span text = SPAN_LIT(
		"{\"odata.metadata\":\"x\",\"value\":[{\"odata.etag\":\"W/\\\"1\\\"\",\"PartitionKey\":\"p\","
		"\"RowKey\":\"r\",\"Timestamp\":\"2026-11-20T12:00:00.5Z\",\"N@odata.type\":\"Edm.Int64\","
		"\"N\":\"5\"} ,\n{\"PartitionKey\":\"p\",\"RowKey\":\"s\",\"D\":1.0}]}");
	struct rows_page page;
	struct cloud_row row = { 0 };
	CHECK_ERR(rows_page_begin(text, &page, NULL), ERR_OK);
	CHECK_ERR(rows_page_next(&page, &row, NULL), ERR_OK);
	CHECK_EQ_STR(row.etag, "W/\"1\"");
	CHECK(span_is(row.entity.rk, "r") && row.entity.timestamp > 0);
	CHECK_EQ_INT(row.entity.nprops, 1);
	CHECK(row.entity.props[0].value.type == EDM_INT64 && row.entity.props[0].value.int64 == 5);
	CHECK_ERR(rows_page_next(&page, &row, NULL), ERR_OK);
	CHECK_EQ_STR(row.etag, "");
	CHECK(row.entity.props[0].value.type == EDM_DOUBLE);
	CHECK_ERR(rows_page_next(&page, &row, NULL), ERR_NOT_FOUND);
	cloud_row_fini(&row);
}

TEST(a_page_that_is_none_is_refused)
{
	static const char *const wrong[] = { "", "[]", "{}", "{\"value\":{}}", "<html>",
		"{\"value\":[", "{\"value\":[{\"PartitionKey\":\"p\"", "{\"value\":[{} {}]}",
		"{\"value\":[1]}" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct rows_page page;
		struct cloud_row row = { 0 };
		enum err e = rows_page_begin(span_of(wrong[i]), &page, NULL);
		while (e == ERR_OK)
			e = rows_page_next(&page, &row, NULL);
		CHECK(e != ERR_NOT_FOUND);
		cloud_row_fini(&row);
	}
}

TEST(properties_are_compared_in_any_order_and_by_type)
{
	struct cloud_row a = { 0 }, b = { 0 };
	size_t n;
	CHECK_ERR(cloud_row_read(SPAN_LIT("{\"A\":1,\"B\":\"x\"}"), &a, &n, NULL), ERR_OK);
	CHECK_ERR(cloud_row_read(SPAN_LIT("{\"B\":\"x\",\"A\":1}"), &b, &n, NULL), ERR_OK);
	CHECK(cloud_same_properties(&a.entity, &b.entity));
	CHECK_ERR(cloud_row_read(SPAN_LIT("{\"B\":\"x\",\"A\":1.0}"), &b, &n, NULL), ERR_OK);
	CHECK(!cloud_same_properties(&a.entity, &b.entity));
	CHECK_ERR(cloud_row_read(SPAN_LIT("{\"B\":\"x\"}"), &b, &n, NULL), ERR_OK);
	CHECK(!cloud_same_properties(&a.entity, &b.entity));
	CHECK(cloud_has_properties(&a.entity, &b.entity));
	cloud_row_fini(&a);
	cloud_row_fini(&b);
}

TEST(an_error_of_the_service_is_one_of_ours)
{
	static const struct {
		int status;
		enum err err;
		const char *body, *message;
	} all[] = {
		{ 204, ERR_OK, "", "" },
		{ 404, ERR_TABLE_NOT_FOUND,
			"{\"odata.error\":{\"code\":\"TableNotFound\",\"message\":{\"lang\":\"en-US\",\"value\":"
			"\"There is none.\\nRequestId:1\"}}}",
			"There is none." },
		{ 403, ERR_AUTH_FAILED,
			"<?xml version=\"1.0\"?><m:error xmlns:m=\"x\"><m:code>AuthenticationFailed</m:code>"
			"<m:message xml:lang=\"en-US\">No.</m:message></m:error>",
			"No." },
		{ 403, ERR_SAS_PERMISSION,
			"<Error><Code>AuthorizationPermissionMismatch</Code><Message>Not so.</Message></Error>",
			"Not so." },
		{ 503, ERR_THROTTLED, "", "the service answered with status 503" },
		{ 429, ERR_THROTTLED, "", "the service answered with status 429" },
		{ 500, ERR_OUTCOME_UNKNOWN, "<html>", "the service answered with status 500" },
		{ 412, ERR_CONDITION_NOT_MET, "", "the service answered with status 412" },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct err_detail why = { 0 };
		CHECK_ERR(service_error_of(all[i].status, span_of(all[i].body), &why), all[i].err);
		CHECK_EQ_STR(why.text, all[i].message);
	}
}

TEST(a_transaction_names_the_operation_that_failed)
{
	struct err_detail why = { 0 };
	CHECK_ERR(
		group_response(
			SPAN_LIT("--b\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 x"), &why),
		ERR_OK);
	CHECK_ERR(
		group_response(
			SPAN_LIT(
				"--b\r\n\r\nHTTP/1.1 409 Conflict\r\n\r\n{\"odata.error\":{\"code\":"
				"\"EntityAlreadyExists\",\"message\":{\"lang\":\"x\",\"value\":\"7:It "
				"exists.\"}}}\r\n--b--"),
			&why),
		ERR_ENTITY_EXISTS);
	CHECK_EQ_INT(why.op, 7);
	CHECK_EQ_STR(why.text, "It exists.");
	CHECK_ERR(group_response(SPAN_LIT("--b--"), &why), ERR_INVALID_INPUT);
}

TEST(a_transaction_answers_with_an_etag_for_each_operation)
{
	char etags[4][CLOUD_ETAG_MAX];
	group_response_etags(
		SPAN_LIT(
			"--b\r\n\r\nHTTP/1.1 204 No Content\r\netag: W/\"1\"\r\nX: y\r\n\r\nETag: no"
			"\r\n--b\r\n\r\nHTTP/1.1 204 No Content\r\nX: y\r\n\r\n"
			"\r\n--b\r\n\r\nHTTP/1.1 204 No Content\r\nETag: W/\"3\""),
		etags, 4);
	CHECK_EQ_STR(etags[0], "W/\"1\"");
	CHECK_EQ_STR(etags[1], "");
	CHECK_EQ_STR(etags[2], "W/\"3\"");
	CHECK_EQ_STR(etags[3], "");
}

TEST(a_double_is_sent_with_its_type)
{
	struct entity e = { 0 };
	struct buf out = BUF_INIT(4096);
	const char *text = "{\"D\":2.0,\"N\":2,\"I@odata.type\":\"Edm.Double\",\"I\":\"Infinity\"}";
	CHECK_ERR(entity_json_decode(span_of(text), ENTITY_JSON_FILE, &e, NULL, NULL), ERR_OK);
	const struct cloud_change change = {
		.kind = CLOUD_UPSERT, .pk = SPAN_LIT("p\""), .rk = SPAN_LIT(""), .entity = &e
	};
	cloud_change_body(&change, &out);
	buf_add_char(&out, 0);
	CHECK_EQ_STR(out.data,
		"{\"PartitionKey\":\"p\\\"\",\"RowKey\":\"\",\"D@odata.type\":\"Edm.Double\",\"D\":2.0,"
		"\"N\":2,\"I@odata.type\":\"Edm.Double\",\"I\":\"Infinity\"}");
	buf_fini(&out);
	entity_fini(&e);
}

RUN_TESTS(T(a_key_and_an_account_make_an_endpoint_of_azure),
	T(a_table_endpoint_wins_and_names_the_account), T(development_storage_is_the_emulator),
	T(a_wrong_connection_string_is_refused_without_its_secrets),
	T(a_connection_string_has_one_credential),
	T(a_bearer_token_is_in_a_file_and_goes_over_https),
	T(a_connection_string_has_a_longest_length), T(a_url_of_the_command_line_has_no_secret),
	T(a_file_of_connection_strings_is_chosen_from_by_url),
	T(shared_key_signs_three_headers_and_lite_the_date),
	T(a_page_gives_its_rows_with_types_times_and_etags), T(a_page_that_is_none_is_refused),
	T(properties_are_compared_in_any_order_and_by_type),
	T(an_error_of_the_service_is_one_of_ours), T(a_transaction_names_the_operation_that_failed),
	T(an_error_of_the_service_is_one_of_ours), T(a_transaction_names_the_operation_that_failed),
	T(a_transaction_answers_with_an_etag_for_each_operation), T(a_double_is_sent_with_its_type))
