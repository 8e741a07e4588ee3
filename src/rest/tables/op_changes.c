/* SPDX-License-Identifier: MIT
 * GET /TABLE?comp=changes: one page of the feed of changes (service/feed/feed.h), as lines of JSON.  The
 * protocol of the service has no such operation. */
#include "model/key.h"
#include "rest/tables/ops.h"
#include "service/feed/feed.h"

static enum feed_start read_start(struct request_context *c, struct span *ret_from)
{
	if (!context_param(c, "from", ret_from))
		return FEED_START_KEPT;
	return span_is(*ret_from, "now") ? FEED_START_NOW : FEED_START_POSITION;
}

static enum err read_rows(struct request_context *c, bool *ret)
{
	struct span text;
	*ret = true;
	if (!context_param(c, "rows", &text) || span_is(text, "true"))
		return ERR_OK;
	*ret = false;
	return span_is(text, "false")
		? ERR_OK
		: err_set(&c->detail, ERR_QUERY_VALUE, "The parameter rows is true or false.");
}

/* key: LIMIT_KEY_BYTES, for the order form. */
static enum err read_partition(struct request_context *c, char *key, struct span *ret)
{
	struct span pk;
	*ret = (struct span){ NULL, 0 };
	if (!context_param(c, "partition", &pk))
		return ERR_OK;
	enum err e = key_check(pk, "PartitionKey", &c->detail);
	if (e == ERR_OK) {
		key_to_order(pk.p, pk.n, key);
		*ret = span_make(key, pk.n);
	}
	return e;
}

static enum err write_page(struct feed *f, struct response *r, struct err_detail *detail)
{
	char position[FEED_POSITION_MAX];
	bool more = true;
	enum err e = ERR_OK;
	while (e == ERR_OK && more && r->body.len == 0)
		e = feed_read(f, &r->body, &more, detail);
	r->status = 200;
	response_header_str(r, "Content-Type", "application/x-ndjson");
	response_header(r, "x-ms-continuation-position",
		span_make(position, (size_t)feed_position(f, position)));
	return e;
}

enum err op_query_changes(struct request_context *c, struct response *r)
{
	struct feed f = { 0 };
	struct span from = SPAN_LIT("");
	enum feed_start start = read_start(c, &from);
	struct span pk;
	char key[LIMIT_KEY_BYTES];
	uint64_t table;
	bool rows = true;
	if (table_request(c)->has_limit)
		return err_set(&c->detail, ERR_NOT_PERMITTED,
			"A SAS with a range of keys reads no changes, which are of the whole table.");
	enum err e = context_table(c, &table);
	if (e == ERR_OK)
		e = read_rows(c, &rows);
	if (e == ERR_OK)
		e = read_partition(c, key, &pk);
	if (e == ERR_OK)
		e = feed_open(c->service, table, pk, start, from, rows, &f, &c->detail);
	if (e == ERR_OK)
		e = write_page(&f, r, &c->detail);
	feed_close(&f);
	return e;
}
