/* SPDX-License-Identifier: MIT
 * Cross-origin requests.  The first rule, in stored order, that matches the origin and the method
 * decides.  A later rule cannot allow what it refuses. */
#include "rest/core/cors.h"

#include "base/buf.h"

#include <stdio.h>
#include <strings.h>

static bool same_name(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* Returns true if an item ("x", "x-ms-*", "*") matches this header name. */
static bool item_matches(struct span item, struct span name)
{
	if (!span_ends(item, SPAN_LIT("*")))
		return same_name(item, name);
	item.n--;
	return name.n >= item.n && strncasecmp(item.p, name.p, item.n) == 0;
}

static bool header_listed(struct span list, struct span name)
{
	struct span item;
	while (cors_list_next(&list, &item)) {
		if (item_matches(item, name))
			return true;
	}
	return false;
}

static bool listed(struct span list, struct span word)
{
	struct span item;
	while (cors_list_next(&list, &item)) {
		if (span_eq(item, word))
			return true;
	}
	return false;
}

static bool any_origin(const struct cors_rule *rule)
{
	return listed(rule->origins, SPAN_LIT("*"));
}

/* origin.p NULL: the client sent none, and only a rule for all origins matches. */
static const struct cors_rule *find_rule(
	const struct service_properties *p, struct span origin, struct span method)
{
	for (size_t i = 0; i < p->ncors; i++) {
		const struct cors_rule *rule = &p->cors[i];
		bool suits =
			any_origin(rule) || (origin.p != NULL && listed(rule->origins, origin));
		if (suits && listed(rule->methods, method))
			return rule;
	}
	return NULL;
}

static bool headers_allowed(const struct cors_rule *rule, struct span wanted)
{
	struct span name;
	while (cors_list_next(&wanted, &name)) {
		if (name.n == 0)
			continue; /* an empty element of a header list has no meaning */
		if (!cors_is_header_name(name) || !header_listed(rule->allowed, name))
			return false;
	}
	return true;
}

enum err cors_preflight(
	const struct service_properties *p, const struct request *request, struct response *r)
{
	struct span origin = request_header(request, "Origin");
	struct span method = request_header(request, "Access-Control-Request-Method");
	struct span headers = request_header(request, "Access-Control-Request-Headers");
	if (origin.n == 0 || method.n == 0)
		return ERR_CORS_HEADER;
	const struct cors_rule *rule = p == NULL ? NULL : find_rule(p, origin, method);
	if (rule == NULL || !headers_allowed(rule, headers))
		return ERR_CORS_FAILED;
	char age[16];
	int n = snprintf(age, sizeof(age), "%u", rule->max_age);
	r->status = 200;
	response_header(
		r, "Access-Control-Allow-Origin", any_origin(rule) ? SPAN_LIT("*") : origin);
	response_header(r, "Access-Control-Allow-Methods", method);
	if (headers.n > 0)
		response_header(r, "Access-Control-Allow-Headers", headers);
	response_header(r, "Access-Control-Max-Age", span_make(age, (size_t)n));
	response_header_str(r, "Access-Control-Allow-Credentials", "true");
	return ERR_OK;
}

/* ---- actual requests ---- */

static void add_name(struct buf *out, struct span name)
{
	if (out->len > 0)
		buf_add_char(out, ',');
	buf_add_span(out, name);
}

/* Adds the response's headers that begin with a prefix. */
static void add_expanded(struct buf *out, struct span prefix, const struct response *r)
{
	const char *name, *value;
	size_t at = 0;
	while (response_header_next(r, &at, &name, &value)) {
		struct span s = span_of(name);
		if (item_matches(prefix, s) && !header_listed(buf_span(out), s) &&
			!span_starts(s, SPAN_LIT("Access-Control-")))
			add_name(out, s);
	}
}

static void add_exposed(const struct cors_rule *rule, struct response *r)
{
	struct buf names = BUF_INIT(RESPONSE_HEADERS_LIMIT);
	struct span list = rule->exposed, item;
	while (cors_list_next(&list, &item)) {
		if (span_ends(item, SPAN_LIT("*")))
			add_expanded(&names, item, r);
		else
			add_name(&names, item);
	}
	if (names.len > 0)
		response_header(r, "Access-Control-Expose-Headers", buf_span(&names));
	buf_fini(&names);
}

void cors_decorate(
	const struct service_properties *p, const struct request *request, struct response *r)
{
	if (p == NULL || p->ncors == 0)
		return;
	struct span origin = request_header(request, "Origin");
	if (origin.n == 0)
		origin.p = NULL;
	bool reads = span_is(request->method, "GET") || span_is(request->method, "HEAD");
	const struct cors_rule *rule = find_rule(p, origin, request->method);
	bool any = rule != NULL && any_origin(rule);
	/* Caches may reuse a response that is the same for all origins. */
	if (reads && !any)
		response_header_str(r, "Vary", "Origin");
	if (rule == NULL || (origin.p == NULL && !reads))
		return;
	response_header(r, "Access-Control-Allow-Origin", any ? SPAN_LIT("*") : origin);
	if (!any)
		response_header_str(r, "Access-Control-Allow-Credentials", "true");
	add_exposed(rule, r);
}
