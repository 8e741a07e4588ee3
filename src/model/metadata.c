/* SPDX-License-Identifier: MIT */
#include "model/metadata.h"

#include "model/limits.h"
#include "model/names.h"

#include <string.h>
#include <strings.h>

bool metadata_next(struct span *rest, struct metadata_pair *ret)
{
	if (rest->n == 0)
		return false;
	const char *end = memchr(rest->p, '\n', rest->n);
	size_t n = end != NULL ? (size_t)(end - rest->p) : rest->n;
	const char *colon = memchr(rest->p, ':', n);
	size_t name = colon != NULL ? (size_t)(colon - rest->p) : n;
	ret->name = span_make(rest->p, name);
	ret->value = name < n ? span_make(rest->p + name + 1, n - name - 1) : SPAN_LIT("");
	size_t used = end != NULL ? n + 1 : n;
	*rest = span_make(rest->p + used, rest->n - used);
	return true;
}

static bool same_name(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static bool find(struct span text, struct span name, struct metadata_pair *ret)
{
	while (metadata_next(&text, ret))
		if (same_name(ret->name, name))
			return true;
	return false;
}

static bool has_control(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

static enum err check_pair(const struct metadata_pair *p, struct err_detail *detail)
{
	if (property_name_check(p->name, NULL) != ERR_OK)
		return err_set(
			detail, ERR_METADATA_INVALID, "A name of metadata is not a C# identifier.");
	if (has_control(p->value))
		return err_set(detail, ERR_METADATA_INVALID,
			"The value of '%.*s' has control characters.", (int)p->name.n, p->name.p);
	return ERR_OK;
}

static enum err twice(struct span name, struct err_detail *detail)
{
	return err_set(detail, ERR_METADATA_INVALID, "The name '%.*s' is there twice.", (int)name.n,
		name.p);
}

/* Each pair has a colon and a line's end besides. */
static size_t bytes_of(struct span text)
{
	struct metadata_pair p;
	size_t n = 0;
	while (metadata_next(&text, &p))
		n += p.name.n + p.value.n;
	return n;
}

enum err metadata_add(
	struct buf *text, struct span name, struct span value, struct err_detail *detail)
{
	const struct metadata_pair pair = { name, value };
	struct metadata_pair there;
	enum err e = check_pair(&pair, detail);
	if (e != ERR_OK)
		return e;
	if (find(buf_span(text), name, &there))
		return twice(name, detail);
	if (bytes_of(buf_span(text)) + name.n + value.n > LIMIT_METADATA_BYTES)
		return ERR_METADATA_TOO_LARGE;
	buf_add_span(text, name);
	buf_add_char(text, ':');
	buf_add_span(text, value);
	buf_add_char(text, '\n');
	return buf_ok(text) ? ERR_OK : ERR_NO_MEMORY;
}

enum err metadata_check(struct span text, struct err_detail *detail)
{
	struct metadata_pair p, other;
	if (bytes_of(text) > LIMIT_METADATA_BYTES)
		return ERR_METADATA_TOO_LARGE;
	for (struct span rest = text; metadata_next(&rest, &p);) {
		enum err e = check_pair(&p, detail);
		if (e != ERR_OK)
			return e;
		if (find(rest, p.name, &other))
			return twice(p.name, detail);
	}
	return text.n == 0 || text.p[text.n - 1] == '\n'
		? ERR_OK
		: err_set(detail, ERR_METADATA_INVALID, "The last line has no end.");
}

bool metadata_equal(struct span a, struct span b)
{
	struct metadata_pair p, there;
	if (a.n != b.n)
		return false;
	while (metadata_next(&a, &p))
		if (!find(b, p.name, &there) || !span_eq(p.value, there.value))
			return false;
	return true;
}
