/* SPDX-License-Identifier: MIT
 * The table of routes: protocol section 2.0, with the SAS permissions of sections 4.5 and 4.6.  PUT
 * and MERGE without If-Match are upserts, so each has two rows. */
#include "rest/core/route.h"

#define P(letter_) PERMISSION(letter_)

/* clang-format off */
static const struct route routes[] = {
	{ RESOURCE_SERVICE, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('s') | P('c'), P('l') | P('r'), 0, 0 }, REST_GET_SERVICE },
	{ RESOURCE_SERVICE, "service", "properties", "GET", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('r'), 0, 0 }, REST_GET_PROPERTIES },
	{ RESOURCE_SERVICE, "service", "properties", "PUT", ROUTE_ANY, VERSION_PROPERTIES, ROUTE_XML,
		{ P('s'), P('w'), 0, 0 }, REST_SET_PROPERTIES },
	{ RESOURCE_SERVICE, "service", "stats", "GET", ROUTE_ANY, VERSION_STATS, ROUTE_XML,
		{ P('s'), P('r'), 0, 0 }, REST_GET_STATS },

	{ RESOURCE_TABLES, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('s') | P('c'), P('l'), 0, 0 }, REST_QUERY_TABLES },
	{ RESOURCE_TABLES, NULL, NULL, "POST", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('c'), P('c') | P('w'), 0, 0 }, REST_CREATE_TABLE },
	{ RESOURCE_TABLE, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('s') | P('c'), P('l'), 0, 0 }, REST_QUERY_TABLE },
	{ RESOURCE_TABLE, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('c'), P('d'), 0, 0 }, REST_DELETE_TABLE },

	{ RESOURCE_ENTITIES, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('o'), P('r'), 0, P('r') }, REST_QUERY_ENTITIES },
	{ RESOURCE_ENTITIES, NULL, NULL, "POST", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('o'), P('a'), 0, P('a') }, REST_INSERT_ENTITY },
	{ RESOURCE_ENTITIES, NULL, "acl", "GET", ROUTE_ANY, VERSION_ACL, ROUTE_XML,
		{ 0, 0, 0, 0 }, REST_GET_ACL },
	{ RESOURCE_ENTITIES, NULL, "acl", "PUT", ROUTE_ANY, VERSION_ACL, ROUTE_XML,
		{ 0, 0, 0, 0 }, REST_SET_ACL },

	{ RESOURCE_ENTITY, NULL, NULL, "GET", ROUTE_ANY, VERSION_KNOWN, ROUTE_ODATA,
		{ P('o'), P('r'), 0, P('r') }, REST_QUERY_ENTITY },
	{ RESOURCE_ENTITY, NULL, NULL, "PUT", ROUTE_IF_MATCH, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), 0, P('u'), P('u') }, REST_UPDATE_ENTITY },
	{ RESOURCE_ENTITY, NULL, NULL, "PUT", ROUTE_NO_IF_MATCH, VERSION_UPSERT, ROUTE_EMPTY,
		{ P('o'), 0, P('a') | P('u'), P('a') | P('u') }, REST_INSERT_OR_REPLACE },
	{ RESOURCE_ENTITY, NULL, NULL, "MERGE", ROUTE_IF_MATCH, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), 0, P('u'), P('u') }, REST_MERGE_ENTITY },
	{ RESOURCE_ENTITY, NULL, NULL, "MERGE", ROUTE_NO_IF_MATCH, VERSION_UPSERT, ROUTE_EMPTY,
		{ P('o'), 0, P('a') | P('u'), P('a') | P('u') }, REST_INSERT_OR_MERGE },
	{ RESOURCE_ENTITY, NULL, NULL, "PATCH", ROUTE_IF_MATCH, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), 0, P('u'), P('u') }, REST_MERGE_ENTITY },
	{ RESOURCE_ENTITY, NULL, NULL, "PATCH", ROUTE_NO_IF_MATCH, VERSION_UPSERT, ROUTE_EMPTY,
		{ P('o'), 0, P('a') | P('u'), P('a') | P('u') }, REST_INSERT_OR_MERGE },
	{ RESOURCE_ENTITY, NULL, NULL, "DELETE", ROUTE_ANY, VERSION_KNOWN, ROUTE_EMPTY,
		{ P('o'), P('d'), 0, P('d') }, REST_DELETE_ENTITY },

	/* Each part is checked by its own route. */
	{ RESOURCE_BATCH, NULL, NULL, "POST", ROUTE_ANY, VERSION_KNOWN, ROUTE_MULTIPART,
		{ P('o'), 0, 0, 0 }, REST_BATCH },
};
/* clang-format on */

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

static enum err find(const struct request_url *url, struct span method, bool if_match,
	const struct route **ret, struct err_detail *detail)
{
	bool resource = false;
	/* HEAD is GET; MHD omits the body. */
	struct span wanted = span_is(method, "HEAD") ? SPAN_LIT("GET") : method;
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		const struct route *r = &routes[i];
		if (r->kind != url->resource.kind || !parameter_is(url->restype, r->restype) ||
			!parameter_is(url->comp, r->comp))
			continue;
		resource = true;
		if (!span_is(wanted, r->method) || !condition_holds(r->condition, if_match))
			continue;
		*ret = r;
		return ERR_OK;
	}
	if (resource)
		return err_set(
			detail, ERR_METHOD_NOT_ALLOWED, "%s", err_text(ERR_METHOD_NOT_ALLOWED));
	if (url->resource.kind == RESOURCE_METADATA)
		return ERR_NOT_SUPPORTED;
	return url->comp.p != NULL || url->restype.p != NULL
		? err_set(detail, ERR_QUERY_VALUE,
			  "The parameters restype and comp do not name an operation here.")
		: ERR_URI_INVALID;
}

enum err route_find(struct request_context *c, const struct route **ret)
{
	bool if_match = request_header(c->request, "If-Match").p != NULL;
	enum err e = find(&c->url, c->method, if_match, ret, &c->detail);
	if (e != ERR_OK || version_has(c->version, (*ret)->since))
		return e;
	if ((*ret)->condition == ROUTE_NO_IF_MATCH)
		return err_set(&c->detail, ERR_HEADER_MISSING,
			"A required HTTP header was not specified: If-Match.");
	return ERR_NOT_SUPPORTED;
}
