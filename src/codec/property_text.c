/* SPDX-License-Identifier: MIT */
#include "codec/property_text.h"

#include "codec/edm_text.h"

/* For printf's "%.*s". */
static int shown(struct span name)
{
	return name.n < 100 ? (int)name.n : 100;
}

/* Makes a buffer in the arena that fits the bytes of n base64 characters. */
static bool bytes_buf(struct arena *arena, enum edm_type type, size_t n, struct buf *ret)
{
	size_t cap = type == EDM_BINARY ? n / 4 * 3 + 1 : 1;

	*ret = BUF_INIT(0);
	if (type != EDM_BINARY)
		return true;
	ret->data = arena_alloc(arena, cap);
	ret->cap = cap;
	ret->limit = cap - 1;
	return ret->data != NULL;
}

/* Shows a date such as "2026-11-20T12:29:19" in the service's form, 11/20/2026 12:29:19.  Only
 * dates are ever out of range.  The seconds may be missing. */
static enum err bad_date(struct span name, struct span text, struct err_detail *detail)
{
	bool seconds = text.n >= 19 && text.p[16] == ':';

	return err_set(detail, ERR_OUT_OF_RANGE,
		"The '%.*s' parameter of value '%.2s/%.2s/%.4s %.*s%s' is out of range.",
		shown(name), name.p, text.p + 5, text.p + 8, text.p, seconds ? 8 : 5, text.p + 11,
		seconds ? "" : ":00");
}

enum err property_text_parse(struct span name, enum edm_type type, struct span text,
	struct arena *arena, struct value *ret, struct err_detail *detail)
{
	struct err_detail why;
	struct buf bytes;

	if (!bytes_buf(arena, type, text.n, &bytes))
		return ERR_NO_MEMORY;
	enum err e = edm_text_parse(type, text, ret, &bytes, &why);
	if (e == ERR_OUT_OF_RANGE)
		return bad_date(name, text, detail);
	if (e == ERR_OK || e == ERR_NO_MEMORY)
		return e;
	return err_set(detail, e, "The property '%.*s': %s.", shown(name), name.p, why.text);
}
