/* SPDX-License-Identifier: MIT */
#include "daemon/core/account_url.h"

#include "base/compiler.h"
#include "daemon/core/command.h"
#include "rest/rest.h"

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

/* Returns the first socket of a service; NULL: there is none of this kind. */
static const char *first(const struct served *served, size_t service, bool unix_socket)
{
	struct span name = service == 0 ? SPAN_LIT("") : span_of(rest_service_name(service));
	for (size_t i = 0; served != NULL && served->endpoints[i][0] != '\0'; i++) {
		const char *text = served->endpoints[i], *address = rest_endpoint_address(text);
		size_t prefix = (size_t)(address - text); /* with its '=' */
		if (span_eq(span_make(text, prefix > 0 ? prefix - 1 : 0), name) &&
			span_starts(span_of(address), SPAN_LIT(UNIX_PREFIX)) == unix_socket)
			return address;
	}
	return NULL;
}

const char *account_url_socket(const struct served *served)
{
	const char *at = first(served, 0, true);
	for (size_t i = 0; rest_service_name(i) != NULL; i++)
		if (first(served, i, false) != NULL)
			return NULL;
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
	const char *slashes = strstr(endpoint, "//");
	bool tls = https || span_starts(span_of(endpoint), SPAN_LIT(HTTPS));
	buf_add_str(out, tls ? HTTPS : HTTP);
	add_host(span_of(slashes != NULL ? slashes + 2 : endpoint), out);
	buf_add_char(out, '/');
	buf_add_span(out, account);
}

/* On a Unix socket the host names the service, and for tables nothing. */
static void add_label(size_t service, struct span account, bool https, struct buf *out)
{
	if (service == 0) {
		add_url("localhost", account, https, out);
		return;
	}
	buf_add_str(out, https ? HTTPS : HTTP);
	buf_add_span(out, account);
	buf_addf(out, ".%s.localhost", rest_service_name(service));
}

static bool serves(const struct served *served)
{
	return served != NULL && served->endpoints[0][0] != '\0';
}

bool account_url_add(const struct served *served, size_t service, struct span account, bool https,
	struct buf *out)
{
	const char *endpoint = serves(served)
		? first(served, service, false)
		: rest_endpoint_address(rest_default_endpoint(service));
	if (endpoint != NULL)
		add_url(endpoint, account, https, out);
	else if (account_url_socket(served) != NULL)
		add_label(service, account, https, out);
	else
		return false;
	return true;
}

void account_url_add_given(const char *given, struct buf *out)
{
	struct span url = span_of(given);
	while (url.n > 0 && url.p[url.n - 1] == '/')
		url.n--;
	buf_add_span(out, url);
}
