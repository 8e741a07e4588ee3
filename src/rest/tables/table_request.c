/* SPDX-License-Identifier: MIT */
#include "rest/tables/table_request.h"

#include "base/text.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/change/entity_request.h"
#include "service/core/tables.h"

#include <strings.h>

_Static_assert(sizeof(struct table_request) <= REST_OWN_BYTES, "fits in the request's context");

enum err context_table(struct request_context *c, uint64_t *ret_id)
{
	return table_id(c->service, c->secrets.id, c->container, ret_id);
}

enum err table_request_read_path(struct request_context *c, struct span path)
{
	struct table_request *t = table_request(c);
	enum err e = resource_parse(path, c->arena, &t->resource, &c->detail);
	c->kind = t->resource.kind;
	c->container = t->resource.table;
	return e;
}

/* ---- version and format ---- */

static bool holds(struct span text, struct span wanted)
{
	for (size_t i = 0; i + wanted.n <= text.n; i++)
		if (strncasecmp(text.p + i, wanted.p, wanted.n) == 0)
			return true;
	return false;
}

/* application/xml does not count: browsers ask for it, and some operations use XML in every
 * version. */
static bool names_atom(const struct request_context *c)
{
	static const struct span atom = { "application/atom+xml", 20 };
	struct span format;
	if (context_param(c, "$format", &format) &&
		(span_is(format, "atom") || holds(format, atom)))
		return true;
	return holds(request_header(c->request, "Accept"), atom) ||
		holds(request_header(c->request, "Content-Type"), atom);
}

/* Clients without versions named ATOM. */
int table_request_version(const struct request_context *c)
{
	bool xml = c->url.comp.p != NULL || c->url.restype.p != NULL;
	return !xml && names_atom(c) ? VERSION_OLDEST : VERSION_NEWEST;
}

/* A list header may have several lines (RFC 9110 section 5.3). */
static enum err join_headers(struct request_context *c, const char *name, struct span *ret)
{
	size_t count = request_header_count(c->request, name), n = 0;
	*ret = request_header(c->request, name);
	if (count < 2)
		return ERR_OK;
	for (size_t i = 0; i < c->request->nheaders; i++)
		n += c->request->headers[i].value.n + 1;
	char *all = arena_alloc(c->arena, n);
	if (all == NULL)
		return ERR_NO_MEMORY;
	n = 0;
	for (size_t i = 0; i < c->request->nheaders; i++) {
		const struct header *h = &c->request->headers[i];
		if (h->name.n != strlen(name) || strncasecmp(h->name.p, name, h->name.n) != 0)
			continue;
		if (h->value.n > 0)
			memcpy(all + n, h->value.p, h->value.n);
		n += h->value.n;
		all[n++] = ',';
	}
	*ret = span_make(all, n);
	return ERR_OK;
}

enum err table_request_negotiate(struct request_context *c)
{
	struct table_request *t = table_request(c);
	struct span format = { 0 }, accept = { 0 };
	if (!context_param(c, "$format", &format))
		format.p = NULL;
	enum err e = join_headers(c, "Accept", &accept);
	t->format = format_default(c->version);
	t->level = ODATA_MINIMAL;
	return e != ERR_OK
		? e
		: format_negotiate(format, accept, c->version, &t->format, &t->level, &c->detail);
}

/* Errors use the negotiated format too.  Its own error is reported later, to authenticated
 * clients. */
void table_request_begin(struct request_context *c)
{
	struct table_request *t = table_request(c);
	struct err_detail before = c->detail;
	c->detail = (struct err_detail){ 0 };
	t->format_error = table_request_negotiate(c);
	t->format_detail = c->detail;
	c->detail = before;
}

/* ---- options ---- */

enum err table_request_read_method(struct request_context *c)
{
	return entity_request_method(c->request->method,
		request_header(c->request, "X-HTTP-Method"),
		request_header_count(c->request, "X-HTTP-Method"), &c->method);
}

static enum err check_option(struct request_context *c, struct span name)
{
	static const char *const known[] = { "$filter", "$select", "$top", "$format" };
	static const char *const odata[] = { "$orderby", "$skip", "$skiptoken", "$expand",
		"$inlinecount", "$count", "$apply", "$search" };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (span_is(name, known[i]))
			return ERR_OK;
	for (size_t i = 0; i < ARRAY_LEN(odata); i++)
		if (span_is(name, odata[i]))
			return err_set(&c->detail, ERR_NOT_SUPPORTED, "%s (%s)",
				err_text(ERR_NOT_SUPPORTED), odata[i]);
	return err_set(&c->detail, ERR_INVALID_INPUT, "%s There is no query option '%.*s'.",
		err_text(ERR_INVALID_INPUT), name.n < 60 ? (int)name.n : 60, name.p);
}

/* An empty bound counts if it is present: "" is the first key. */
enum err table_request_limit(struct table_request *t, const struct sas *s)
{
	if (s->spk.p == NULL && s->epk.p == NULL)
		return ERR_OK;
	t->has_limit = true;
	return key_ranges_between(s->spk, s->srk, s->epk, s->erk, &t->limit);
}

enum err table_request_check(struct request_context *c)
{
	struct table_request *t = table_request(c);
	const struct query_params *params = &c->url.params;
	if (t->format_error != ERR_OK && c->route->body == ROUTE_ODATA) {
		c->detail = t->format_detail;
		return t->format_error;
	}
	for (size_t i = 0; i < params->n; i++) {
		struct span name = params->all[i].name;
		enum err e = name.n > 0 && name.p[0] == '$' ? check_option(c, name) : ERR_OK;
		if (e != ERR_OK)
			return e;
	}
	return c->access.kind == ACCESS_SERVICE_SAS ? table_request_limit(t, &c->access.sas)
						    : ERR_OK;
}

void table_request_end(struct request_context *c)
{
	struct table_request *t = table_request(c);
	if (t->has_limit)
		key_ranges_fini(&t->limit);
}

enum err table_request_allows_row(const struct table_request *t, struct span pk, struct span rk)
{
	char pk_order[LIMIT_KEY_BYTES], rk_order[LIMIT_KEY_BYTES];

	if (!t->has_limit)
		return ERR_OK;
	/* An invalid key is outside of every range. */
	if (pk.n > sizeof(pk_order) || rk.n > sizeof(rk_order) || !utf8_valid(pk) ||
		!utf8_valid(rk))
		return ERR_NOT_PERMITTED;
	key_to_order(pk.p, pk.n, pk_order);
	key_to_order(rk.p, rk.n, rk_order);
	return key_ranges_hold(&t->limit, span_make(pk_order, pk.n), span_make(rk_order, rk.n))
		? ERR_OK
		: ERR_NOT_PERMITTED;
}
