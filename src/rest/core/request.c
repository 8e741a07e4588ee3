/* SPDX-License-Identifier: MIT */
#include "rest/core/request.h"

#include "base/compiler.h"
#include "base/text.h"

#include <strings.h>

/* The last letter differs in most names of the same length. */
static bool is_named(const struct header *h, struct span name)
{
	return h->name.n == name.n &&
		(name.n == 0 ||
			(((h->name.p[name.n - 1] ^ name.p[name.n - 1]) & ~0x20) == 0 &&
				strncasecmp(h->name.p, name.p, name.n) == 0));
}

struct span request_header(const struct request *r, const char *name)
{
	struct span wanted = span_of(name);

	for (size_t i = 0; i < r->nheaders; i++) {
		if (!is_named(&r->headers[i], wanted))
			continue;
		/* Never NULL, which means that the header is absent. */
		struct span value = text_trim_line(r->headers[i].value);
		return value.p == NULL ? SPAN_LIT("") : value;
	}
	return (struct span){ NULL, 0 };
}

bool request_host_is_local(const struct request *r)
{
	static const struct span names[] = { SPAN_LIT("127.0.0.1"), SPAN_LIT("localhost"),
		SPAN_LIT("[::1]") };
	struct span host = request_header(r, "Host");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = names[i].n;
		if (host.n >= n && strncasecmp(host.p, names[i].p, n) == 0 &&
			(host.n == n || host.p[n] == ':'))
			return true;
	}
	return false;
}

struct span request_date(const struct request *r)
{
	struct span date = request_header(r, "x-ms-date");

	return date.n > 0 ? date : request_header(r, "Date");
}

size_t request_header_count(const struct request *r, const char *name)
{
	struct span wanted = span_of(name);
	size_t n = 0;

	for (size_t i = 0; i < r->nheaders; i++)
		n += is_named(&r->headers[i], wanted);
	return n;
}
