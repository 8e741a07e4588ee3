/* SPDX-License-Identifier: MIT */
#include "cloud/row_scan.h"

#include "base/compiler.h"
#include "codec/uri.h"

#include <stdio.h>

#define TEXT_LIMIT ((size_t)64 << 10)

static void add_option(struct buf *out, const char *name, struct span value)
{
	if (value.n == 0)
		return;
	if (out->len > 0)
		buf_add_char(out, '&');
	buf_addf(out, "%s=", name);
	percent_encode_value(value, out);
}

void cloud_add_literal(struct span text, struct buf *out)
{
	buf_add_char(out, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'')
			buf_add_char(out, '\'');
		buf_add_char(out, text.p[i]);
	}
	buf_add_char(out, '\'');
}

enum err row_scan_begin(struct client *c, const struct row_scan_query *q, struct row_scan *ret)
{
	*ret = (struct row_scan){ .client = c,
		.tables = q->table.n == 0,
		.path = BUF_INIT(TEXT_LIMIT),
		.options = BUF_INIT(TEXT_LIMIT),
		.token = BUF_INIT(TEXT_LIMIT),
		.body = BUF_INIT(HTTP_BODY_MAX) };
	buf_add_char(&ret->path, '/');
	buf_add_span(&ret->path, q->table.n > 0 ? q->table : SPAN_LIT("Tables"));
	if (q->table.n > 0)
		buf_add_str(&ret->path, "()");
	add_option(&ret->options, "$filter", q->filter);
	add_option(&ret->options, "$select", q->select);
	if (q->top > 0)
		buf_addf(&ret->options, "%s$top=%u", ret->options.len > 0 ? "&" : "", q->top);
	return buf_ok(&ret->path) ? buf_full(&ret->options) : buf_full(&ret->path);
}

/* The next page begins with the key that the headers name. */
static enum err take_token(struct row_scan *s, const struct http_response *r)
{
	static const char *const names[] = { "NextPartitionKey", "NextRowKey", "NextTableName" };
	buf_clear(&s->token);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char header[64] = "x-ms-continuation-";
		(void)snprintf(header + 18, sizeof(header) - 18, "%s", names[i]);
		add_option(&s->token, names[i], http_response_header(r, header));
	}
	s->last = s->token.len == 0;
	return buf_full(&s->token);
}

static enum err read_page(struct row_scan *s, struct err_detail *detail)
{
	struct buf query = BUF_INIT(TEXT_LIMIT * 2);
	struct http_response response = { 0 };
	buf_add_span(&query, buf_span(&s->options));
	if (query.len > 0 && s->token.len > 0)
		buf_add_char(&query, '&');
	buf_add_span(&query, buf_span(&s->token));
	const struct client_request r = { .kind = s->tables ? TRAFFIC_TABLES : TRAFFIC_QUERY,
		.method = "GET",
		.path = buf_span(&s->path),
		.query = buf_span(&query),
		.idempotent = true };
	enum err e = buf_full(&query);
	if (e == ERR_OK)
		e = client_send(s->client, &r, &response, NULL, detail);
	if (e == ERR_OK)
		e = take_token(s, &response);
	buf_fini(&s->body);
	s->body = response.body;
	response.body = (struct buf){ 0 };
	if (e == ERR_OK)
		e = rows_page_begin(buf_span(&s->body), &s->page, detail);
	s->open = e == ERR_OK;
	http_response_fini(&response);
	buf_fini(&query);
	return e == ERR_NOT_FOUND ? ERR_TABLE_NOT_FOUND : e;
}

enum err row_scan_next(struct row_scan *s, struct cloud_row *ret, struct err_detail *detail)
{
	enum err e = ERR_NOT_FOUND;
	bool stop = s->open && s->stops;
	if (s->open)
		e = rows_page_next(&s->page, ret, detail);
	while (e == ERR_NOT_FOUND && !s->last && !stop) {
		e = read_page(s, detail);
		if (e == ERR_OK)
			e = rows_page_next(&s->page, ret, detail);
		stop = s->stops;
	}
	if (e == ERR_NOT_FOUND)
		s->open = false;
	return e;
}

void row_scan_end(struct row_scan *s)
{
	buf_fini(&s->path);
	buf_fini(&s->options);
	buf_fini(&s->token);
	buf_fini(&s->body);
}
