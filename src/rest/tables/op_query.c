/* SPDX-License-Identifier: MIT
 * Query Entities (protocol sections 2.4 and 6): one page, and the token of the next one. */
#include "base/clock.h"
#include "base/text.h"
#include "query/page_token.h"
#include "rest/tables/change.h"
#include "rest/tables/ops.h"
#include "rest/tables/page.h"
#include "rest/tables/select.h"
#include "service/query/queries.h"

#include <inttypes.h>

#define PAGE_BYTES ((size_t)4 << 20)

struct page {
	struct request_context *c;
	struct odata_style style;
	struct response *r;
	bool any;
	enum err e;
};

static bool add_row(void *arg, const struct query_row *row)
{
	struct page *p = arg;
	struct odata_row out = { .pk = row->pk,
		.rk = row->rk,
		.version = row->version,
		.document = row->document,
		.canonical = (row->flags & ITEM_CANONICAL) != 0,
		.entity = row->entity };
	p->e = table_request(p->c)->format->feed_entity(&p->style, &out, !p->any, &p->r->body);
	if (p->e == ERR_OK && !buf_ok(&p->r->body))
		p->e = ERR_NO_MEMORY;
	p->any = true;
	/* The limit counts metadata and the nulls of $select too. */
	return p->e == ERR_OK && p->r->body.len < PAGE_BYTES;
}

static enum err read_token(struct request_context *c, const char *name, struct span *ret)
{
	struct span token;
	*ret = (struct span){ 0 };
	/* Some clients send an empty NextRowKey instead of none. */
	if (!context_param(c, name, &token) || token.n == 0)
		return ERR_OK;
	struct buf key = BUF_INIT(LIMIT_KEY_BYTES);
	enum err e = page_token_decode(token, &key, &c->detail);
	if (e == ERR_OK) {
		*ret = arena_copy(c->arena, buf_span(&key));
		e = ret->p != NULL ? ERR_OK : ERR_NO_MEMORY;
	}
	buf_fini(&key);
	return e;
}

static enum err write_token(struct response *r, const char *name, const struct buf *key)
{
	struct buf token = BUF_INIT(4 * LIMIT_KEY_BYTES);
	page_token_encode(buf_span(key), &token);
	response_header(r, name, buf_span(&token));
	bool ok = buf_ok(&token);
	buf_fini(&token);
	return ok ? ERR_OK : ERR_NO_MEMORY;
}

static enum err write_page(struct request_context *c, struct page *page, const struct query *q)
{
	struct span select;
	struct query_end end;
	if (!context_param(c, "$select", &select))
		select.p = NULL;
	struct span metadata_select = select;
	if (page->style.all)
		metadata_select.p = NULL;
	response_odata(c, page->r, 200, true);
	table_request(c)->format->begin_feed(
		&page->style, page->style.table, metadata_select, c->arena, &page->r->body);
	enum err e = query_run(c->service, NULL, q, add_row, page, &end);
	if (e == ERR_OK)
		e = page->e;
	if (e == ERR_OK && end.more) {
		e = write_token(page->r, "x-ms-continuation-NextPartitionKey", &end.next_pk);
		if (e == ERR_OK)
			e = write_token(page->r, "x-ms-continuation-NextRowKey", &end.next_rk);
	}
	query_end_fini(&end);
	table_request(c)->format->end_feed(&page->style, &page->r->body);
	return e;
}

enum err op_query_entities(struct request_context *c, struct response *r)
{
	struct page page = { .c = c, .style = context_style(c), .r = r };
	struct query q = { .max_bytes = PAGE_BYTES, .throttled = true };
	struct filter filter = { 0 };
	struct span text = { 0 };
	page.style.single = false;
	enum err e = context_table(c, &q.table_id);
	if (e == ERR_OK)
		e = page_options(c, &q.top, &q.deadline_us);
	if (e == ERR_OK)
		e = select_read(c, &page.style);
	if (e == ERR_OK)
		e = read_token(c, "NextPartitionKey", &q.from_pk);
	if (e == ERR_OK)
		e = read_token(c, "NextRowKey", &q.from_rk);
	if (e == ERR_OK && q.from_pk.p == NULL && q.from_rk.p != NULL)
		e = err_set(&c->detail, ERR_INVALID_INPUT,
			"NextRowKey was sent without NextPartitionKey.");
	if (e == ERR_OK && context_param(c, "$filter", &text)) {
		e = filter_parse(text, &filter, &c->detail);
		c->detail.line = 0; /* it is one line */
		q.filter = &filter;
	}
	if (table_request(c)->has_limit)
		q.limit = &table_request(c)->limit;
	/* $top=0 returns no rows and no token. */
	if (e == ERR_OK && q.top == 0) {
		response_odata(c, r, 200, true);
		table_request(c)->format->begin_feed(
			&page.style, page.style.table, (struct span){ 0 }, c->arena, &r->body);
		table_request(c)->format->end_feed(&page.style, &r->body);
	} else if (e == ERR_OK) {
		e = write_page(c, &page, &q);
	}
	filter_fini(&filter);
	return e;
}
