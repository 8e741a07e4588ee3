/* SPDX-License-Identifier: MIT
 * Tables: query, get, create, delete; and the service document (protocol sections 2.1 to 2.3,
 * 2.16).  Table names are compared without case, so the filter is folded. */
#include "base/clock.h"
#include "model/names.h"
#include "query/page_token.h"
#include "rest/tables/change.h"
#include "rest/tables/ops.h"
#include "rest/tables/page.h"
#include "service/core/tables.h"

struct table_page {
	struct request_context *c;
	struct odata_style style;
	struct response *r;
	const struct filter *filter;
	unsigned slot; /* of TableName in the filter */
	size_t top, n;
	uint64_t deadline_us;
	struct buf next; /* the key of the first table of the next page */
	bool more;
};

static bool matches(const struct table_page *p, const struct item *it)
{
	struct value name = { .type = EDM_STRING, .bytes = it->key };
	const struct value *values[FILTER_SLOT_NAMED + 1] = { NULL };
	values[p->slot] = &name;
	return filter_eval(p->filter, values);
}

static bool add_table(void *arg, const struct item *it)
{
	struct table_page *p = arg;
	if (p->n == p->top || clock_mono_us() > p->deadline_us) {
		buf_add_span(&p->next, it->key);
		p->more = true;
		return false;
	}
	if (!matches(p, it))
		return true;
	table_request(p->c)->format->feed_table(&p->style, it->name, p->n == 0, &p->r->body);
	p->n++;
	return true;
}

/* Accepts only the name TableName. */
static enum err read_filter(struct request_context *c, struct filter *ret, unsigned *ret_slot)
{
	struct span text = { 0 };
	*ret_slot = FILTER_SLOT_NAMED;
	if (!context_param(c, "$filter", &text))
		text = SPAN_LIT("");
	enum err e = filter_parse_folded(text, ret, &c->detail);
	c->detail.line = 0; /* it is one line */
	for (unsigned i = 0; e == ERR_OK && i < ret->nslots; i++)
		if (filter_uses(ret, i) && !span_is(ret->names[i], "TableName"))
			return err_set(&c->detail, ERR_INVALID_INPUT,
				"Tables have the property TableName, not '%.*s'.",
				ret->names[i].n < 80 ? (int)ret->names[i].n : 80, ret->names[i].p);
	return e;
}

static enum err read_next(struct request_context *c, struct buf *ret)
{
	struct span token;
	if (!context_param(c, "NextTableName", &token) || token.n == 0)
		return ERR_OK;
	enum err e = page_token_decode(token, ret, &c->detail);
	if (e == ERR_OK && ret->data != NULL)
		table_name_fold(buf_span(ret), ret->data);
	return e;
}

static enum err list_tables(struct table_page *p, struct span from)
{
	struct request_context *c = p->c;
	response_odata(c, p->r, 200, true);
	table_request(c)->format->begin_feed(
		&p->style, SPAN_LIT("Tables"), (struct span){ 0 }, c->arena, &p->r->body);
	enum err e = p->top == 0 ? ERR_OK
				 : store_list(service_store(c->service), NULL, c->secrets.id,
					   CLASS_KEYED, from, true, WANT_ATTRS, add_table, p);
	table_request(c)->format->end_feed(&p->style, &p->r->body);
	if (e == ERR_OK && p->more) {
		struct buf token = BUF_INIT(1024);
		page_token_encode(buf_span(&p->next), &token);
		response_header(p->r, "x-ms-continuation-NextTableName", buf_span(&token));
		buf_fini(&token);
	}
	return e;
}

enum err op_query_tables(struct request_context *c, struct response *r)
{
	struct filter filter = { 0 };
	struct buf from = BUF_INIT(LIMIT_KEY_BYTES);
	struct table_page p = { .c = c, .style = context_style(c), .r = r, .filter = &filter };
	p.style.single = false;
	p.next = BUF_INIT(1024);
	enum err e = page_options(c, &p.top, &p.deadline_us);
	if (e == ERR_OK)
		e = read_filter(c, &filter, &p.slot);
	if (e == ERR_OK)
		e = read_next(c, &from);
	if (e == ERR_OK)
		e = list_tables(&p, from.len > 0 ? buf_span(&from) : (struct span){ 0 });
	filter_fini(&filter);
	buf_fini(&from);
	buf_fini(&p.next);
	return e;
}

/* Table operations report a missing resource, entity operations a missing table. */
static enum err find(struct request_context *c, struct item *ret)
{
	enum err e = table_find_in(c->service, c->secrets.id, c->container, ret);
	return e == ERR_TABLE_NOT_FOUND ? ERR_NOT_FOUND : e;
}

enum err op_get_table(struct request_context *c, struct response *r)
{
	struct item it = { 0 };
	enum err e = find(c, &it);
	if (e != ERR_OK)
		return e;
	struct odata_style style = context_style(c);
	response_odata(c, r, 200, true);
	table_request(c)->format->write_table(&style, it.name, &r->body);
	item_fini(&it);
	return ERR_OK;
}

static void table_url(const struct request_context *c, struct span name, struct buf *out)
{
	buf_add_span(out, c->url.base);
	buf_add_str(out, "Tables('");
	buf_add_span(out, name);
	buf_add_str(out, "')");
}

static enum err read_name(
	struct request_context *c, struct span *ret_name, struct err_detail *detail)
{
	enum err e = format_of_body(request_header(c->request, "Content-Type"), c->version,
		&table_request(c)->body_format, detail);
	return e == ERR_OK ? table_request(c)->body_format->read_table(
				     c->request->body, c->arena, ret_name, detail)
			   : e;
}

struct span new_table_name(struct request_context *c)
{
	struct span name;
	return read_name(c, &name, NULL) == ERR_OK ? name : SPAN_LIT("");
}

enum err op_create_table(struct request_context *c, struct response *r)
{
	struct span name;
	enum err e = read_name(c, &name, &c->detail);
	if (e == ERR_OK)
		e = table_create(c->service, ORIGIN_REST, c->secrets.id, name, NULL, &c->detail);
	if (e != ERR_OK)
		return e;
	bool no_content = context_wants_no_content(c);
	const char *preference = context_preference(c);
	struct buf url = BUF_INIT(4096);
	table_url(c, name, &url);
	response_odata(c, r, no_content ? 204 : 201, !no_content);
	if (preference != NULL)
		response_header_str(r, "Preference-Applied", preference);
	response_header(r, "Location", buf_span(&url));
	if (no_content)
		response_header(r, "DataServiceId", buf_span(&url));
	buf_fini(&url);
	struct odata_style style = context_style(c);
	if (!no_content)
		table_request(c)->format->write_table(&style, name, &r->body);
	return ERR_OK;
}

enum err op_delete_table(struct request_context *c, struct response *r)
{
	struct item it = { 0 };
	enum err e = find(c, &it);
	if (e != ERR_OK)
		return e;
	e = table_delete(c->service, ORIGIN_REST, it.id, &c->detail);
	item_fini(&it);
	if (e == ERR_OK)
		response_odata(c, r, 204, false);
	return e == ERR_TABLE_NOT_FOUND ? ERR_NOT_FOUND : e;
}

enum err op_get_service(struct request_context *c, struct response *r)
{
	response_odata(c, r, 200, false);
	response_header_str(r, "Content-Type",
		table_request(c)->format->content_type(table_request(c)->level, BODY_SERVICE));
	struct odata_style style = context_style(c);
	table_request(c)->format->write_service(&style, &r->body);
	return ERR_OK;
}
