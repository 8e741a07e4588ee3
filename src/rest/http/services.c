/* SPDX-License-Identifier: MIT
 * In path style all services have the same URLs, so each needs a socket of its own.  A host with the
 * service's label serves it on every socket, also on a Unix socket. */
#include "rest/http/services.h"

#include "base/compiler.h"
#include "rest/admin/admin.h"
#include "rest/blobs/blobs.h"
#include "rest/page/page.h"
#include "rest/queues/queues.h"
#include "rest/rest.h"
#include "rest/tables/tables.h"

#include <string.h>
#include <strings.h>

static const struct rest_service *const services[] = { &rest_tables, &rest_queues, &rest_blobs };

const struct rest_service *services_at(size_t i)
{
	return i < ARRAY_LEN(services) ? services[i] : NULL;
}

const char *rest_service_name(size_t i)
{
	const struct rest_service *s = services_at(i);
	return s != NULL ? s->name : NULL;
}

const char *rest_default_endpoint(size_t i)
{
	const struct rest_service *s = services_at(i);
	return s != NULL ? s->default_endpoint : NULL;
}

static bool is_name(const char *name, const char *text, size_t n)
{
	return strlen(name) == n && strncasecmp(name, text, n) == 0;
}

static const struct rest_service *named(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		if (is_name(services[i]->name, name, n))
			return services[i];
	return NULL;
}

const char *services_split(const char *endpoint, const struct rest_service **ret)
{
	const char *address = rest_endpoint_address(endpoint);
	size_t n = address == endpoint ? 0 : (size_t)(address - endpoint) - 1;
	*ret = address == endpoint                      ? services[0]
		: is_name(rest_admin.name, endpoint, n) ? &rest_admin
		: is_name(rest_page.name, endpoint, n)  ? &rest_page
							: named(endpoint, n);
	return address;
}

const char *rest_endpoint_address(const char *endpoint)
{
	size_t n = strspn(endpoint, "abcdefghijklmnopqrstuvwxyz");
	return n > 0 && endpoint[n] == '=' ? endpoint + n + 1 : endpoint;
}

const struct rest_service *services_of_host(
	const struct request *q, const struct rest_service *other)
{
	struct url_parts parts;
	if (other->answer != NULL)
		return other;
	url_split(q->target, &parts);
	struct span host = parts.host.n > 0 ? parts.host : request_header(q, "Host");
	const char *dot = host.n > 0 ? memchr(host.p, '.', host.n) : NULL;
	if (dot == NULL)
		return other;
	static const char *const absent[] = { "blob", "file", "dfs" };
	struct span label = span_make(dot + 1, (size_t)(host.p + host.n - dot - 1));
	const char *end = label.n > 0 ? memchr(label.p, '.', label.n) : NULL;
	if (end == NULL)
		return other;
	label.n = (size_t)(end - label.p);
	const struct rest_service *found = named(label.p, label.n);
	for (size_t i = 0; i < ARRAY_LEN(absent); i++)
		if (found == NULL && is_name(absent[i], label.p, label.n))
			return NULL;
	return found != NULL ? found : other;
}
