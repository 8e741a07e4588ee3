/* SPDX-License-Identifier: MIT */
#include "rest/select.h"

#include "base/text.h"
#include "model/names.h"

#define VERSION_SELECT 20110818
#define NAMES_MAX 255

static bool holds(const struct span *names, size_t n, struct span name)
{
	for (size_t i = 0; i < n; i++)
		if (span_eq(names[i], name))
			return true;
	return false;
}

static enum err add(struct call *c, struct span name, struct span *names, size_t *n)
{
	if (name.n == 0)
		return err_set(&c->detail, ERR_INVALID_INPUT, "A name in $select is empty.");
	enum err e = property_name_check(name, &c->detail);
	if (e != ERR_OK)
		return ERR_INVALID_INPUT;
	if (holds(names, *n, name))
		return ERR_OK;
	if (*n == NAMES_MAX)
		return err_set(&c->detail, ERR_INVALID_INPUT, "$select holds more than %d names.",
			NAMES_MAX);
	names[(*n)++] = name;
	return ERR_OK;
}

enum err select_read(struct call *c, struct odata_style *style)
{
	struct span list;
	if (c->version < VERSION_SELECT || !call_param(c, "$select", &list) ||
		text_trim_line(list).n == 0)
		return ERR_OK;
	struct span *names = arena_alloc(c->arena, NAMES_MAX * sizeof(*names));
	if (names == NULL)
		return ERR_NO_MEMORY;
	size_t n = 0;
	for (;;) {
		const char *comma = memchr(list.p, ',', list.n);
		struct span name = text_trim_line(
			span_make(list.p, comma != NULL ? (size_t)(comma - list.p) : list.n));
		if (span_is(name, "*"))
			return ERR_OK;
		enum err e = add(c, name, names, &n);
		if (e != ERR_OK)
			return e;
		if (comma == NULL)
			break;
		list = span_make(comma + 1, list.n - (size_t)(comma - list.p) - 1);
	}
	style->all = false;
	style->select = names;
	style->nselect = n;
	return ERR_OK;
}
