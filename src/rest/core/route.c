/* SPDX-License-Identifier: MIT */
#include "rest/core/route.h"

#include "rest/core/rest_service.h"

static bool parameter_is(struct span given, const char *wanted)
{
	if (wanted == NULL)
		return given.p == NULL;
	return given.p != NULL && span_is(given, wanted);
}

static bool condition_holds(enum route_condition condition, bool if_match)
{
	switch (condition) {
	case ROUTE_IF_MATCH:
		return if_match;
	case ROUTE_NO_IF_MATCH:
		return !if_match;
	case ROUTE_ANY:
		break;
	}
	return true;
}

static enum err find(struct request_context *c, bool if_match, const struct route **ret)
{
	const struct request_url *url = &c->url;
	bool resource = false;
	/* HEAD is GET; MHD omits the body. */
	struct span wanted = span_is(c->method, "HEAD") ? SPAN_LIT("GET") : c->method;
	for (size_t i = 0; i < c->rest->nroutes; i++) {
		const struct route *r = &c->rest->routes[i];
		if (r->kind != c->kind || !parameter_is(url->restype, r->restype) ||
			!parameter_is(url->comp, r->comp))
			continue;
		resource = true;
		if (r->method != NULL && !span_is(wanted, r->method))
			continue;
		if (!condition_holds(r->condition, if_match))
			continue;
		*ret = r;
		return ERR_OK;
	}
	if (resource)
		return err_set(
			&c->detail, ERR_METHOD_NOT_ALLOWED, "The service is '%s'.", c->rest->name);
	return url->comp.p != NULL || url->restype.p != NULL
		? err_set(&c->detail, ERR_QUERY_VALUE,
			  "The parameters restype and comp do not name an operation here.")
		: err_set(&c->detail, ERR_URI_INVALID, "The service is '%s'.", c->rest->name);
}

enum err route_find(struct request_context *c)
{
	bool if_match = request_header(c->request, "If-Match").p != NULL;
	enum err e = find(c, if_match, &c->route);
	if (e != ERR_OK)
		return e;
	if (c->route->run != NULL && version_has(c->version, c->route->since))
		return ERR_OK;
	if (c->route->condition == ROUTE_NO_IF_MATCH)
		return err_set(&c->detail, ERR_HEADER_MISSING,
			"A required HTTP header was not specified: If-Match.");
	return ERR_NOT_SUPPORTED;
}
