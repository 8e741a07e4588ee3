/* SPDX-License-Identifier: MIT
 * Names are signed in lower case and in order.  A request with more names than fit here gets another
 * string, so its signature never matches. */
#include "rest/core/shared_key.h"

#include "base/text.h"
#include "model/versions.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAMES_MAX 256

struct pair {
	struct span name, value;
};

static int compare_spans(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n > 0 ? strncasecmp(a.p, b.p, n) : 0;
	return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* Values of one name stay in their order, or are sorted too. */
static int compare(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = compare_spans(x->name, y->name);
	return order != 0 ? order : span_cmp(x->value, y->value);
}

static void add_line(struct buf *out, struct span value)
{
	buf_add_span(out, value);
	buf_add_char(out, '\n');
}

static void add_lower(struct buf *out, struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		buf_add_char(out, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
	}
}

/* Adds "name:value,value" of the pairs that begin at i; returns how many they are. */
static size_t add_one(const struct pair *all, size_t n, struct buf *out)
{
	size_t i = 0;
	add_lower(out, all[0].name);
	for (; i < n && compare_spans(all[0].name, all[i].name) == 0; i++) {
		buf_add_char(out, i == 0 ? ':' : ',');
		buf_add_span(out, all[i].value);
	}
	return i;
}

static void add_headers(const struct request *r, int version, struct buf *out)
{
	static const struct span prefix = SPAN_LIT("x-ms-");
	struct pair all[NAMES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < r->nheaders && n < NAMES_MAX; i++) {
		struct pair p = { r->headers[i].name, text_trim_line(r->headers[i].value) };
		if (p.name.n < prefix.n || strncasecmp(p.name.p, prefix.p, prefix.n) != 0 ||
			(p.value.n == 0 && !version_has(version, VERSION_SIGNED_EMPTY)))
			continue;
		all[n++] = p;
	}
	qsort(all, n, sizeof(all[0]), compare);
	for (size_t i = 0; i < n;) {
		i += add_one(all + i, n - i, out);
		buf_add_char(out, '\n');
	}
}

static struct span signed_length(const struct request *r, int version)
{
	struct span length = request_header(r, "Content-Length");
	return span_is(length, "0") && version_has(version, VERSION_SIGNED_LENGTH) ? SPAN_LIT("")
										   : length;
}

void shared_key_head(const struct request *r, bool lite, struct buf *out)
{
	static const char *const conditions[] = { "If-Modified-Since", "If-Match", "If-None-Match",
		"If-Unmodified-Since", "Range" };
	int version = version_parse(request_header(r, "x-ms-version"));
	add_line(out, r->method);
	if (!lite) {
		add_line(out, request_header(r, "Content-Encoding"));
		add_line(out, request_header(r, "Content-Language"));
		add_line(out, signed_length(r, version));
	}
	add_line(out, request_header(r, "Content-MD5"));
	add_line(out, request_header(r, "Content-Type"));
	bool own = request_header(r, "x-ms-date").n > 0;
	add_line(out, own ? SPAN_LIT("") : request_header(r, "Date"));
	for (size_t i = 0; i < ARRAY_LEN(conditions) && !lite; i++)
		add_line(out, request_header(r, conditions[i]));
	add_headers(r, version, out);
}

void shared_key_query(const struct request_url *url, bool lite, struct buf *out)
{
	struct pair all[NAMES_MAX];
	size_t n = 0;
	if (lite) {
		if (url->comp.p != NULL) {
			buf_add_str(out, "?comp=");
			buf_add_span(out, url->comp);
		}
		return;
	}
	for (; n < url->params.n && n < NAMES_MAX; n++)
		all[n] = (struct pair){ url->params.all[n].name, url->params.all[n].value };
	qsort(all, n, sizeof(all[0]), compare);
	for (size_t i = 0; i < n;) {
		buf_add_char(out, '\n');
		i += add_one(all + i, n - i, out);
	}
}
