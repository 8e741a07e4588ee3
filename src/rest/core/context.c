/* SPDX-License-Identifier: MIT */
#include "rest/core/context.h"

#include "base/text.h"
#include "model/versions.h"
#include "service/change/entity_request.h"
#include "service/core/tables.h"

#include <strings.h>

bool context_param(const struct request_context *c, const char *name, struct span *ret)
{
	return query_params_find(&c->url.params, name, ret);
}

enum err context_table(struct request_context *c, uint64_t *ret_id)
{
	return table_id(c->service, c->secrets.id, c->url.resource.table, ret_id);
}

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

enum err context_read_version(struct request_context *c)
{
	struct span sent = request_header(c->request, "x-ms-version");
	bool said = sent.p != NULL || context_param(c, "api-version", &sent) ||
		context_param(c, "sv", &sent);
	c->version = said ? version_parse(sent) : 0;
	if (version_has(c->version, VERSION_KNOWN))
		return ERR_OK;
	bool xml = c->url.comp.p != NULL || c->url.restype.p != NULL;
	c->version = !xml && names_atom(c) ? VERSION_OLDEST : VERSION_NEWEST;
	return said ? ERR_HEADER_INVALID : ERR_OK;
}

enum err context_read_method(struct request_context *c)
{
	return entity_request_method(c->request->method,
		request_header(c->request, "X-HTTP-Method"),
		request_header_count(c->request, "X-HTTP-Method"), &c->method);
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

enum err context_negotiate(struct request_context *c)
{
	struct span format = { 0 }, accept = { 0 };
	if (!context_param(c, "$format", &format))
		format.p = NULL;
	enum err e = join_headers(c, "Accept", &accept);
	c->format = format_default(c->version);
	c->level = ODATA_MINIMAL;
	return e != ERR_OK
		? e
		: format_negotiate(format, accept, c->version, &c->format, &c->level, &c->detail);
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

enum err context_options(struct request_context *c)
{
	struct span text;
	int64_t seconds = 0;
	const struct query_params *params = &c->url.params;
	for (size_t i = 0; i < params->n; i++) {
		struct span name = params->all[i].name;
		enum err e = name.n > 0 && name.p[0] == '$' ? check_option(c, name) : ERR_OK;
		if (e != ERR_OK)
			return e;
	}
	if (context_param(c, "timeout", &text) &&
		(!text_to_i64(text, &seconds) || seconds < 1 || seconds > INT32_MAX))
		return err_set(&c->detail, ERR_QUERY_VALUE,
			"%s 'timeout' is a number of seconds from 1 on.",
			err_text(ERR_QUERY_VALUE));
	c->seconds = (unsigned)seconds;
	return ERR_OK;
}
