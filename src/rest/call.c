/* SPDX-License-Identifier: MIT */
#include "rest/call.h"

#include "service/tables.h"

bool call_param(const struct call *c, const char *name, struct span *ret)
{
	return query_params_find(&c->target.params, name, ret);
}

enum err call_table(struct call *c, uint64_t *ret_id)
{
	struct item it = { 0 };
	enum err e =
		table_find(c->service, span_of(c->target.account), c->target.resource.table, &it);
	if (e != ERR_OK)
		return e == ERR_ACCOUNT_NOT_FOUND ? ERR_TABLE_NOT_FOUND : e;
	*ret_id = it.id;
	item_fini(&it);
	return ERR_OK;
}

/* X-HTTP-Method: for clients behind proxies that know only GET and POST. */
enum err call_read_method(struct call *c)
{
	static const char *const known[] = { "MERGE", "PATCH", "PUT", "DELETE" };
	struct span tunnelled = request_header(c->request, "X-HTTP-Method");
	c->method = c->request->method;
	if (tunnelled.p == NULL)
		return ERR_OK;
	if (request_header_count(c->request, "X-HTTP-Method") > 1)
		return ERR_XMETHOD_COUNT;
	if (!span_is(c->method, "POST"))
		return ERR_XMETHOD_VERB;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (span_is(tunnelled, known[i]))
			c->method = tunnelled;
	return c->method.p == tunnelled.p ? ERR_OK : ERR_XMETHOD_VALUE;
}

enum err call_negotiate(struct call *c)
{
	struct span format = { 0 };
	if (!call_param(c, "$format", &format))
		format.p = NULL;
	return format_negotiate(format, request_header(c->request, "Accept"), c->version,
		&c->format, &c->level, &c->detail);
}
