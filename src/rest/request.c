/* SPDX-License-Identifier: MIT */
#include "rest/request.h"

#include <strings.h>

static bool is_named(const struct header *h, struct span name)
{
	return h->name.n == name.n && (name.n == 0 || strncasecmp(h->name.p, name.p, name.n) == 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(struct span s)
{
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	while (s.n > 0 && is_blank(s.p[0]))
		s = span_make(s.p + 1, s.n - 1);
	return s;
}

struct span request_header(const struct request *r, const char *name)
{
	struct span wanted = span_of(name);

	for (size_t i = 0; i < r->nheaders; i++) {
		if (!is_named(&r->headers[i], wanted))
			continue;
		/* Never NULL: that would say that the header is absent. */
		struct span value = trim(r->headers[i].value);
		return value.p == NULL ? SPAN_LIT("") : value;
	}
	return (struct span){ NULL, 0 };
}

size_t request_header_count(const struct request *r, const char *name)
{
	struct span wanted = span_of(name);
	size_t n = 0;

	for (size_t i = 0; i < r->nheaders; i++)
		n += is_named(&r->headers[i], wanted);
	return n;
}
