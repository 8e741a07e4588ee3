/* SPDX-License-Identifier: MIT
 * The plan of a query of a table, and what it cost:
 *
 *   filter=TEXT   as $filter; none: all rows
 *
 * The response has `explain`: the text that `rowfs query --explain` prints, a JSON object.  The query runs
 * to its end for that. */
#include "rest/page/page_data.h"
#include "service/core/tables.h"
#include "service/query/row_stream.h"

#define PART_BYTES ((size_t)64 << 10)

static enum err read_filter(const struct page_ask *ask, struct row_query *q)
{
	struct span text;
	struct buf filter = BUF_INIT(RESPONSE_BODY_LIMIT);
	if (!query_params_find(&ask->params, "filter", &text) || text.n == 0)
		return ERR_OK;
	buf_add_span(&filter, text);
	enum err e = memchr(text.p, '\0', text.n) != NULL
		? err_set(ask->detail, ERR_INVALID_INPUT, "The filter has a byte that is zero.")
		: buf_full(&filter);
	if (e == ERR_OK)
		e = row_query_set(q, "filter", filter.data, ask->detail);
	buf_fini(&filter);
	return e;
}

static enum err run(const struct page_ask *ask, uint64_t table, struct buf *out)
{
	struct row_stream *s = NULL;
	struct row_query q = ROW_QUERY_ALL(ROW_FORM_EXPLAIN);
	enum err e = read_filter(ask, &q);
	if (e != ERR_OK) {
		row_query_fini(&q);
		return e;
	}
	e = row_stream_open(
		ask->service, table, NULL, &q, SPAN_LIT("page: explain"), &s, ask->detail);
	for (size_t was = SIZE_MAX; e == ERR_OK && was != out->len;) {
		was = out->len;
		e = row_stream_read(s, was, PART_BYTES, NULL, NULL, out, ask->detail);
	}
	row_stream_close(s);
	return e;
}

enum err page_explain_add(const struct page_ask *ask, struct json_build *b)
{
	struct item table = { 0 };
	struct buf text = BUF_INIT(RESPONSE_BODY_LIMIT);
	enum err e = table_find(ask->service, ask->account, ask->table, &table);
	if (e == ERR_OK)
		e = run(ask, table.id, &text);
	if (e == ERR_OK)
		json_add_text(b, "explain", buf_span(&text));
	buf_fini(&text);
	item_fini(&table);
	return e;
}
