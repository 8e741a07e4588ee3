/* SPDX-License-Identifier: MIT */
#include "rest/core/request.h"

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
