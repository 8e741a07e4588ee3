/* SPDX-License-Identifier: MIT
 * The data of the page: "METHOD TARGET", over the in-memory engine with a table "tab" of account "acct".
 * Whatever comes: one JSON object, or an error below 500. */
#include "codec/uri.h"
#include "fuzz.h"
#include "rest/core/handle.h"
#include "rest/page/page_data.h"
#include "rest/tables/tables.h"
#include "small_service.h"

static void insert(struct service *s, const char *body)
{
	static const struct header headers[] = { { SPAN_LIT("Content-Type"),
		SPAN_LIT("application/json") } };
	struct peer peer = { .is_unix = true, .trusted = true };
	struct request q = { .method = SPAN_LIT("POST"),
		.target = SPAN_LIT("/acct/tab"),
		.headers = headers,
		.nheaders = ARRAY_LEN(headers),
		.body = span_of(body),
		.peer = &peer };
	struct response r;
	rest_handle(&rest_tables, s, &q, &r);
	MUST(r.status == 201);
	response_fini(&r);
}

static struct service *make_service(void)
{
	uint64_t account;
	struct service *s = small_service_new(&account);
	insert(s, "{\"PartitionKey\":\"\",\"RowKey\":\"\"}");
	insert(s, "{\"PartitionKey\":\"\",\"RowKey\":\"b\"}");
	insert(s, "{\"PartitionKey\":\"k\",\"RowKey\":\"\\u00e5\",\"A\":1}");
	insert(s, "{\"PartitionKey\":\"z\",\"RowKey\":\"\"}");
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span target = span_make(data, size);
	struct span method = span_take(&target, ' ');
	struct buf out = BUF_INIT((size_t)64 << 20);
	struct err_detail why = { 0 };
	struct url_parts parts;
	url_split(target, &parts);
	const struct page_data *found = page_data_find(parts.path);
	bool reads = span_is(method, "GET");
	bool changes = span_is(method, "POST") || span_is(method, "DELETE");
	if (found == NULL || !(reads || (changes && found->change != NULL)))
		return 0;
	struct service *s = make_service();
	const struct peer peer = { .ip = "127.0.0.1" };
	const struct request q = { .method = method, .target = target, .peer = &peer };
	enum err e = page_data_write(found, s, &q, &parts, &out, &why);
	if (e != ERR_OK)
		MUST(err_http(e) < 500 || e == ERR_NOT_SUPPORTED);
	else
		MUST(span_starts(buf_span(&out), SPAN_LIT("{")) &&
			span_ends(buf_span(&out), SPAN_LIT("}")));
	buf_fini(&out);
	service_free(s);
	return 0;
}
