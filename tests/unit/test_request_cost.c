/* SPDX-License-Identifier: MIT
 * Which requests get the threads for long work. */
#include "base/buf.h"
#include "check.h"
#include "rest/blobs/blob_request.h"
#include "rest/tables/request_cost.h"

static bool is_long(const char *method, const char *target, const char *type, const char *body)
{
	struct header h = { SPAN_LIT("content-type"), span_of(type) };
	struct request r = { .method = span_of(method),
		.target = span_of(target),
		.headers = &h,
		.nheaders = 1,
		.body = span_of(body) };
	return table_request_cost(&r) == COST_LONG;
}

static bool get_is_long(const char *target)
{
	return is_long("GET", target, "", "");
}

TEST(a_query_that_looks_for_its_rows_is_long)
{
	CHECK(get_is_long("/acct/Tab()?$filter=A%20eq%201"));
	CHECK(get_is_long("/acct/Tab?$top=1&%24filter=A+eq+1"));
	CHECK(get_is_long("/acct/Tab()?$filter="));
	CHECK(get_is_long("/acct/Tab()?$filter=PartitionKey%20eq%20'p'%20and%20A%20eq%201"));
	CHECK(get_is_long("/acct/Tab()?$filter=PartitionKey%20eq%20'p'%20and%20Timestamp%20gt"
			  "%20datetime'2040-01-01T00:00:00Z'"));
	CHECK(get_is_long("/acct/Tab()?$filter=PartitionKey%20gt%20'p'"));
	CHECK(get_is_long("/acct/Tab()?$filter=RowKey%20eq%20'r'"));
	CHECK(get_is_long("/acct/Tab()?$filter=A%20eq%201%20or%20PartitionKey%20eq%20'p'"
			  "%20and%20RowKey%20eq%20'r'"));
	CHECK(get_is_long("/acct/Tab()?$filter=not%20(PartitionKey%20eq%20'p'"
			  "%20and%20RowKey%20eq%20'r')"));
	CHECK(get_is_long("/acct/Tables?$filter=TableName%20ge%20'a'"));
	CHECK(is_long("HEAD", "/acct/Tab()?$filter=A%20eq%201", "", ""));
}

TEST(one_that_names_its_rows_is_not)
{
	CHECK(!get_is_long(
		"/acct/Tab()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20eq%20'r'"));
	CHECK(!get_is_long("/acct/Tab()?$filter=PartitionKey+eq+'p'+and+(RowKey+eq+'r'+or+"
			   "RowKey+eq+'s')+and+A+gt+5"));
	CHECK(!get_is_long("/acct/Tab()?$filter=PartitionKey%20lt%20''"));
}

/* All rows in the range match, so the page is full or at the range's end soon. */
TEST(a_range_in_partitions_that_are_named_is_not)
{
	CHECK(!get_is_long("/acct/Tab()?$filter=PartitionKey+eq+'p'"));
	CHECK(!get_is_long("/acct/Tab()?$filter=PartitionKey+eq+'p'+and+RowKey+gt+'a'+and+"
			   "RowKey+lt+'b'"));
	CHECK(!get_is_long("/acct/Tab()?$filter=PartitionKey+eq+'p'+or+PartitionKey+eq+'q'"));
}

TEST(a_page_without_a_filter_is_not)
{
	CHECK(!get_is_long("/acct/Tab()"));
	CHECK(!get_is_long("/acct/Tab()?$top=1000&NextPartitionKey=1!4!cA--"));
	CHECK(!get_is_long("/acct/Tab()?comp=acl"));
	CHECK(!get_is_long(""));
	CHECK(!get_is_long("?"));
}

TEST(what_is_not_understood_is_answered_soon)
{
	CHECK(!get_is_long("/acct/Tab()?$filter=)"));
	CHECK(!get_is_long("/acct/Tab()?$filter=%zz"));
	CHECK(!get_is_long("/acct/Tab()?$filter=A%20add%201%20eq%202"));
}

TEST(a_long_filter_is_not_looked_into)
{
	struct buf target = BUF_INIT(1u << 16);
	buf_add_str(&target, "/acct/Tab()?$filter=PartitionKey+eq+'p'+and+(RowKey+eq+'r'");
	for (int i = 0; i < 100; i++)
		buf_add_str(&target, "+or+RowKey+eq+'r'");
	buf_add_str(&target, ")");
	CHECK(get_is_long(target.data));
	buf_fini(&target);
}

TEST(a_batch_is_long_where_it_may_hold_a_query)
{
	static const char type[] = "Multipart/mixed; boundary=b";
	CHECK(is_long("POST", "/acct/$batch", type,
		"--b\r\n\r\nGET /acct/Tab()?$filter=A+eq+1 HTTP/1.1\r\n\r\n--b--"));
	CHECK(is_long("POST", "/acct/$batch", type, "HEAD /acct/Tab() HTTP/1.1"));
	CHECK(!is_long("POST", "/acct/$batch", type, "--b\r\n\r\nPOST /acct/Tab HTTP/1.1\r\n"));
	CHECK(!is_long("POST", "/acct/Tab", "application/json", "{\"A\":\"GET \"}"));
	CHECK(!is_long("PUT", "/acct/Tab(PartitionKey='p',RowKey='r')?$filter=A+eq+1", "", ""));
	CHECK(!is_long("POST", "/acct/$batch", type, ""));
}

TEST(a_body_that_comes_from_a_blob_is_long)
{
	struct header h = { SPAN_LIT("x-ms-copy-source"), SPAN_LIT("http://h/acct/box/blob") };
	struct request r = { .method = SPAN_LIT("PUT"),
		.target = SPAN_LIT("/acct/box/log?comp=appendblock"),
		.headers = &h };
	CHECK(blob_request_cost(&r) == COST_USUAL);
	r.nheaders = 1;
	CHECK(blob_request_cost(&r) == COST_LONG);
}

RUN_TESTS(T(a_query_that_looks_for_its_rows_is_long), T(one_that_names_its_rows_is_not),
	T(a_range_in_partitions_that_are_named_is_not), T(a_page_without_a_filter_is_not),
	T(what_is_not_understood_is_answered_soon), T(a_long_filter_is_not_looked_into),
	T(a_batch_is_long_where_it_may_hold_a_query), T(a_body_that_comes_from_a_blob_is_long))
