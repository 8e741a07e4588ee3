/* SPDX-License-Identifier: MIT */
#include "daemon/core/account_url.h"

#include "base/compiler.h"
#include "daemon/core/command.h"
#include "rest/rest.h"

#include <stdio.h>
#include <string.h>

#define UNIX_PREFIX "unix:"
#define HTTP "http://"
#define HTTPS "https://"

bool account_url_check(const struct args *args, const char *command, FILE *err)
{
	const char *url = args_value(args, "url");
	if (url == NULL)
		return true;
	struct span text = span_of(url);
	bool scheme = span_starts(text, SPAN_LIT(HTTP)) || span_starts(text, SPAN_LIT(HTTPS));
	/* A semicolon would end the field of a connection string. */
	if (scheme && strpbrk(url, "?#; \t\r\n") == NULL)
		return true;
	(void)command_fail(err, command,
		"--url begins with http:// or https:// and has no query, unlike '%s'", url);
	return false;
}

/* service: "" for tables, else the prefix, such as "queue=".  NULL: none is of this kind. */
static const char *first(const struct served *served, const char *service, bool unix_socket)
{
	for (size_t i = 0; served != NULL && served->endpoints[i][0] != '\0'; i++) {
		const char *text = served->endpoints[i], *address = rest_endpoint_address(text);
		bool same = span_is(span_make(text, (size_t)(address - text)), service);
		if (same && span_starts(span_of(address), SPAN_LIT(UNIX_PREFIX)) == unix_socket)
			return address;
	}
	return NULL;
}

const char *account_url_socket(const struct served *served)
{
	const char *at = first(served, "", false) == NULL ? first(served, "", true) : NULL;
	return at != NULL ? at + strlen(UNIX_PREFIX) : NULL;
}

/* Nobody can connect to "every address". */
static void add_host(struct span host, struct buf *out)
{
	static const struct {
		const char *all, *loopback;
	} names[] = { { "0.0.0.0:", "127.0.0.1:" }, { "[::]:", "[::1]:" } };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i].all);
		if (!span_starts(host, span_of(names[i].all)))
			continue;
		buf_add_str(out, names[i].loopback);
		host = span_make(host.p + n, host.n - n);
	}
	buf_add_span(out, host);
}

static void add_url(const char *endpoint, struct span account, bool https, struct buf *out)
{
	const char *host = strstr(endpoint, "//") + 2;
	bool tls = https || span_starts(span_of(endpoint), SPAN_LIT(HTTPS));
	buf_add_str(out, tls ? HTTPS : HTTP);
	add_host(span_of(host), out);
	buf_add_char(out, '/');
	buf_add_span(out, account);
}

void account_url_add(const struct served *served, const struct args *args, struct span account,
	bool https, struct buf *out)
{
	const char *given = args_value(args, "url"), *endpoint = first(served, "", false);
	if (given != NULL) {
		struct span url = span_of(given);
		while (url.n > 0 && url.p[url.n - 1] == '/')
			url.n--;
		buf_add_span(out, url);
		return;
	}
	if (endpoint == NULL)
		endpoint = account_url_socket(served) != NULL ? HTTP "localhost"
							      : HTTP REST_DEFAULT_ENDPOINT;
	add_url(endpoint, account, https, out);
}

bool account_url_add_service(const struct served *served, const char *service, struct span account,
	bool https, struct buf *out)
{
	char prefix[16];
	(void)snprintf(prefix, sizeof(prefix), "%s=", service);
	const char *endpoint = first(served, prefix, false);
	if (endpoint != NULL)
		add_url(endpoint, account, https, out);
	return endpoint != NULL;
}
