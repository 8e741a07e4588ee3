/* SPDX-License-Identifier: MIT
 * Entity group transactions (protocol section 7).  A batch is one change set or one query.  An
 * error of the whole batch is an ordinary error.  An error of one operation is reported in the only
 * part of the response, with the index of the operation. */
#include "base/crypto.h"
#include "codec/multipart.h"
#include "model/names.h"
#include "rest/tables/change.h"
#include "rest/tables/error_body.h"
#include "rest/tables/operations.h"
#include "rest/tables/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct part {
	const struct batch_part *text;
	struct request request;
	struct request_context context;
	struct table_request own; /* of the context */
	struct entity_change change;
};

struct batch {
	struct request_context *c; /* of the whole batch */
	struct batch_body body;
	struct part *parts; /* of the first change set, or the query */
	size_t n;
	char boundary[40];
};

/* ---- from the text of a part to a context ---- */

static enum err read_part_headers(struct part *p)
{
	struct header *headers =
		arena_alloc(p->context.arena, (p->text->nheaders + 1) * sizeof(*headers));
	if (headers == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < p->text->nheaders; i++)
		headers[i] = (struct header){ p->text->headers[i].name, p->text->headers[i].value };
	p->request = (struct request){ .method = p->text->method,
		.target = p->text->target,
		.headers = headers,
		.nheaders = p->text->nheaders,
		.body = p->text->body,
		.peer = p->context.request->peer };
	p->context.request = &p->request;
	return ERR_OK;
}

/* A part uses the credential of the batch, without a copy of its keys. */
static void begin_part(
	struct part *p, const struct request_context *whole, const struct batch_part *text)
{
	p->text = text;
	p->context = *whole;
	explicit_bzero(&p->context.secrets.keys, sizeof(p->context.secrets.keys));
	memset(p->context.secrets.properties, 0, sizeof(p->context.secrets.properties));
	/* The ranges of the SAS are those of the batch, which frees them. */
	p->own = *table_request(whole);
	p->context.own = &p->own;
	p->context.route = NULL;
	p->context.detail = (struct err_detail){ 0 };
}

/* Without an Accept header, the format of a part's body decides.  Old clients request ATOM in every
 * part, also in versions without it.  That is no error, since most responses are empty. */
static void choose_format(struct request_context *c)
{
	struct span type = request_header(c->request, "Content-Type"), format;
	const struct format *own;

	if (table_request_negotiate(c) != ERR_OK)
		c->detail = (struct err_detail){ 0 };
	if (type.p != NULL && request_header(c->request, "Accept").p == NULL &&
		!context_param(c, "$format", &format) &&
		format_of_body(type, c->version, &own, NULL) == ERR_OK)
		table_request(c)->format = own;
}

static bool account_exists(void *arg, struct span name)
{
	struct service *s = arg;
	struct item account = { 0 };
	bool there = account_find(s, name, &account) == ERR_OK;

	item_fini(&account);
	return there;
}

static enum err read_part(struct part *p, const struct request_context *whole)
{
	struct request_context *c = &p->context;
	enum err e = read_part_headers(p);
	if (e == ERR_OK)
		e = request_url_parse_part(&whole->url, p->text->target, account_exists, c->service,
			c->arena, &c->url, &c->detail);
	if (e == ERR_OK)
		e = table_request_read_path(c, c->url.resource);
	if (e == ERR_OK)
		e = table_request_read_method(c);
	if (e == ERR_OK)
		choose_format(c);
	if (e == ERR_OK)
		e = route_find(c);
	if (e == ERR_OK)
		e = access_allows(c->rest, &c->access, &c->route->need, c->container, &c->detail);
	return e;
}

static bool is_query(const struct route *r)
{
	return r->operation == REST_QUERY_ENTITY || r->operation == REST_QUERY_ENTITIES;
}

static bool is_change(const struct route *r)
{
	return r->kind == RESOURCE_ENTITY ? !is_query(r) : r->operation == REST_INSERT_ENTITY;
}

static enum err read_change(struct part *p, const struct request_context *whole)
{
	enum err e = read_part(p, whole);
	if (e == ERR_OK && !is_change(p->context.route))
		e = err_set(&p->context.detail, ERR_INVALID_INPUT,
			"A change set can contain only operations that change one entity.");
	return e == ERR_OK ? entity_change_read(&p->context, &p->change) : e;
}

/* ---- the response ---- */

static void make_boundary(char out[40], const char *name)
{
	unsigned char b[8];
	crypto_random(b, sizeof(b));
	uint64_t n;
	memcpy(&n, b, sizeof(n));
	(void)snprintf(out, 40, "%s_%016llx", name, (unsigned long long)n);
}

/* Writes the response to one request as text. */
static void write_http(const struct part *p, const struct format *format, const struct response *r,
	bool insert, struct buf *out)
{
	const char *name, *value;
	size_t at = 0;
	buf_addf(out,
		"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
		"HTTP/1.1 %d %s\r\n",
		r->status, http_reason(r->status));
	if (p != NULL && p->text->content_id.p != NULL) {
		buf_add_str(out, "Content-ID: ");
		buf_add_span(out, p->text->content_id);
		buf_add_str(out, "\r\n");
	}
	while (response_header_next(r, &at, &name, &value))
		if (strncasecmp(name, "x-ms-error", 10) != 0)
			buf_addf(out, "%s: %s\r\n", name, value);
	buf_addf(out, "DataServiceVersion: %s;\r\n\r\n",
		insert || r->body.len > 0 ? format->version : "1.0");
	buf_add_span(out, buf_span(&r->body));
	buf_add_str(out, "\r\n");
}

static void begin_response(struct batch *b, struct response *r)
{
	char type[80];
	make_boundary(b->boundary, "batchresponse");
	(void)snprintf(type, sizeof(type), "multipart/mixed; boundary=%s", b->boundary);
	r->status = 202;
	response_header_str(r, "Cache-Control", "no-cache");
	response_header_str(r, "Content-Type", type);
	response_header_str(r, "X-Content-Type-Options", "nosniff");
}

static void end_response(const struct batch *b, struct response *r)
{
	buf_addf(&r->body, "--%s--\r\n", b->boundary);
}

static void begin_set(const struct batch *b, char boundary[40], struct response *r)
{
	make_boundary(boundary, "changesetresponse");
	buf_addf(&r->body, "--%s\r\nContent-Type: multipart/mixed; boundary=%s\r\n\r\n",
		b->boundary, boundary);
}

/* Writes the responses of a change set that was applied. */
static enum err write_done(const struct batch *b, struct response *r)
{
	char boundary[40];
	enum err e = ERR_OK;
	begin_set(b, boundary, r);
	for (size_t i = 0; i < b->n && e == ERR_OK; i++) {
		const struct part *p = &b->parts[i];
		struct response one;
		response_init(&one);
		e = entity_change_respond(&p->context, &p->change, &one);
		if (e == ERR_OK && !buf_ok(&one.body))
			e = ERR_NO_MEMORY;
		buf_addf(&r->body, "--%s\r\n", boundary);
		write_http(p, p->own.format, &one, p->change.op.kind == ENTITY_INSERT, &r->body);
		response_fini(&one);
	}
	buf_addf(&r->body, "--%s--\r\n", boundary);
	return e;
}

/* Writes one part for a change set that failed. */
static void write_failed(
	const struct batch *b, enum err e, const struct err_detail *detail, struct response *r)
{
	char boundary[40];
	const struct part *p = detail->op < b->n ? &b->parts[detail->op] : NULL;
	const struct request_context *c = p != NULL && p->text != NULL ? &p->context : b->c;
	struct response one;
	struct error_facts facts = { .e = e,
		.detail = detail,
		.request_id = b->c->request_id,
		.indexed = true,
		.format = table_request(c)->format,
		.level = table_request(c)->level };
	response_init(&one);
	response_error(&one, &facts);
	const char *preference = c != b->c ? context_preference(c) : NULL;
	if (preference != NULL)
		response_header_str(&one, "Preference-Applied", preference);
	begin_set(b, boundary, r);
	buf_addf(&r->body, "--%s\r\n", boundary);
	write_http(p != NULL && p->text != NULL ? p : NULL, table_request(c)->format, &one, true,
		&r->body);
	buf_addf(&r->body, "--%s--\r\n", boundary);
	response_fini(&one);
}

/* Other errors than an operation's fail the batch, so that the client retries it. */
static bool fails_whole(enum err e)
{
	return e != ERR_OK && err_http(e) >= 500 && e != ERR_NOT_SUPPORTED;
}

/* ---- change sets ---- */

static enum err read_changes(struct batch *b, struct err_detail *detail)
{
	for (size_t i = 0; i < b->n; i++) {
		enum err e = read_change(&b->parts[i], b->c);
		if (e == ERR_OK)
			continue;
		*detail = b->parts[i].context.detail;
		detail->op = i;
		return e;
	}
	return ERR_OK;
}

static bool same_table(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static enum err check_tables(const struct batch *b, struct err_detail *detail)
{
	for (size_t i = 1; i < b->n; i++)
		if (!same_table(b->parts[0].context.container, b->parts[i].context.container)) {
			detail->op = i;
			return ERR_BATCH_PARTITIONS;
		}
	return ERR_OK;
}

static enum err apply_changes(struct batch *b, struct err_detail *detail)
{
	uint64_t table;
	enum err e = context_table(&b->parts[0].context, &table);
	struct entity_op *ops = calloc(b->n, sizeof(*ops));
	if (ops == NULL)
		e = ERR_NO_MEMORY;
	for (size_t i = 0; e == ERR_OK && i < b->n; i++)
		ops[i] = b->parts[i].change.op;
	if (e == ERR_OK)
		e = entities_apply(b->c->service, ORIGIN_REST, table, ops, b->n,
			ENTITIES_SET | ENTITIES_DURABLE, detail);
	for (size_t i = 0; e == ERR_OK && i < b->n; i++)
		b->parts[i].change.op.version = ops[i].version;
	free(ops);
	return e;
}

/* The service applies the first change set of a batch and refuses the others. */
static void refuse_later_sets(const struct batch *b, struct response *r)
{
	for (size_t i = 1; i < b->body.nchange_sets; i++) {
		struct err_detail detail = { 0 };
		(void)err_set(
			&detail, ERR_INVALID_INPUT, "A batch can contain only one change set.");
		write_failed(b, ERR_INVALID_INPUT, &detail, r);
	}
}

static enum err run_changes(struct batch *b, struct response *r)
{
	struct err_detail detail = { 0 };
	enum err e = read_changes(b, &detail);
	if (e == ERR_OK)
		e = check_tables(b, &detail);
	if (e == ERR_OK)
		e = apply_changes(b, &detail);
	if (fails_whole(e)) {
		b->c->detail = detail;
		return e;
	}
	begin_response(b, r);
	bool answer_failed = false;
	r->outcome = e != ERR_OK ? err_http(e) : 0;
	if (e != ERR_OK)
		write_failed(b, e, &detail, r);
	else
		answer_failed = write_done(b, r) != ERR_OK;
	if (e == ERR_OK)
		refuse_later_sets(b, r);
	end_response(b, r);
	return answer_failed ? ERR_NO_MEMORY : ERR_OK;
}

/* ---- a query ---- */

static enum err run_query(struct batch *b, struct response *r)
{
	struct part *p = &b->parts[0];
	struct response one;
	response_init(&one);
	enum err e = read_part(p, b->c);
	if (e == ERR_OK && !is_query(p->context.route))
		e = err_set(&p->context.detail, ERR_INVALID_INPUT,
			"Outside of a change set, a batch can contain only one query.");
	if (e == ERR_OK)
		e = p->context.route->run(&p->context, &one);
	if (e == ERR_OK && (!buf_ok(&one.body) || !buf_ok(&one.headers)))
		e = ERR_NO_MEMORY;
	if (fails_whole(e)) {
		response_fini(&one);
		b->c->detail = p->context.detail;
		return e;
	}
	if (e != ERR_OK) {
		struct error_facts facts = { .e = e,
			.detail = &p->context.detail,
			.request_id = b->c->request_id,
			.format = p->own.format,
			.level = p->own.level };
		response_error(&one, &facts);
	}
	begin_response(b, r);
	r->outcome = e != ERR_OK ? err_http(e) : 0;
	buf_addf(&r->body, "--%s\r\n", b->boundary);
	write_http(p, p->own.format, &one, false, &r->body);
	end_response(b, r);
	response_fini(&one);
	return ERR_OK;
}

/* ---- the whole ---- */

static enum err check_shape(const struct batch *b)
{
	struct request_context *c = b->c;
	size_t queries = 0;
	for (size_t i = 0; i < b->body.nparts; i++)
		queries += !b->body.parts[i].in_change_set;
	if (b->body.nparts == 0)
		return err_set(&c->detail, ERR_INVALID_INPUT, "The batch holds no operation.");
	if (queries > 0 && b->body.nparts > 1)
		return err_set(
			&c->detail, ERR_INVALID_INPUT, "Bad Request - Error in query syntax.");
	return ERR_OK;
}

static enum err begin_parts(struct batch *b)
{
	while (b->n < b->body.nparts &&
		(b->n == 0 ||
			(b->body.parts[b->n].in_change_set &&
				b->body.parts[b->n].change_set == b->body.parts[0].change_set)))
		b->n++;
	b->parts = calloc(b->n, sizeof(*b->parts));
	if (b->parts == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < b->n; i++)
		begin_part(&b->parts[i], b->c, &b->body.parts[i]);
	return ERR_OK;
}

static enum err too_many(struct batch *b, struct response *r)
{
	struct err_detail detail = { .op = LIMIT_BATCH_OPS - 1 };
	b->c->detail = (struct err_detail){ 0 };
	begin_response(b, r);
	r->outcome = err_http(ERR_BATCH_TOO_LARGE);
	write_failed(b, ERR_BATCH_TOO_LARGE, &detail, r);
	end_response(b, r);
	return ERR_OK;
}

struct span batch_table_name(struct request_context *c)
{
	struct batch_body body;
	struct request_url url;
	struct resource resource = { 0 };
	enum err e = batch_body_parse(request_header(c->request, "Content-Type"), c->request->body,
		LIMIT_BATCH_OPS, c->arena, &body, NULL);
	if (e == ERR_OK && body.nparts > 0)
		e = request_url_parse_part(&c->url, body.parts[0].target, account_exists,
			c->service, c->arena, &url, NULL);
	if (e != ERR_OK || body.nparts == 0)
		return SPAN_LIT("");
	e = resource_parse(url.resource, c->arena, &resource, NULL);
	return e == ERR_OK && resource.table.p != NULL ? resource.table : SPAN_LIT("");
}

enum err op_batch(struct request_context *c, struct response *r)
{
	struct batch b = { .c = c };
	enum err e = batch_body_parse(request_header(c->request, "Content-Type"), c->request->body,
		LIMIT_BATCH_OPS, c->arena, &b.body, &c->detail);
	if (e == ERR_BATCH_TOO_LARGE)
		return too_many(&b, r);
	if (e == ERR_OK)
		e = check_shape(&b);
	if (e == ERR_OK)
		e = begin_parts(&b);
	if (e == ERR_OK && b.body.parts[0].in_change_set)
		e = run_changes(&b, r);
	else if (e == ERR_OK)
		e = run_query(&b, r);
	for (size_t i = 0; i < b.n && b.parts != NULL; i++)
		entity_change_fini(&b.parts[i].change);
	free(b.parts);
	return e;
}
