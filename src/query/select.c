/* SPDX-License-Identifier: MIT */
#include "query/select.h"

#include "base/text.h"
#include "model/names.h"

#define NAMES_MAX 255

static bool holds(const struct span *names, size_t n, struct span name)
{
	for (size_t i = 0; i < n; i++)
		if (span_eq(names[i], name))
			return true;
	return false;
}

static enum err add(struct span name, struct span *names, size_t *n, struct err_detail *detail)
{
	if (name.n == 0)
		return err_set(detail, ERR_INVALID_INPUT, "A name in $select is empty.");
	enum err e = property_name_check(name, detail);
	if (e != ERR_OK)
		return ERR_INVALID_INPUT;
	if (holds(names, *n, name))
		return ERR_OK;
	if (*n == NAMES_MAX)
		return err_set(
			detail, ERR_INVALID_INPUT, "$select has more than %d names.", NAMES_MAX);
	names[(*n)++] = name;
	return ERR_OK;
}

enum err selection_parse(
	struct span list, struct arena *arena, struct selection *ret, struct err_detail *detail)
{
	*ret = SELECTION_ALL;
	if (text_trim_line(list).n == 0)
		return ERR_OK;
	struct span *names = arena_alloc(arena, NAMES_MAX * sizeof(*names));
	if (names == NULL)
		return ERR_NO_MEMORY;
	size_t n = 0;
	for (;;) {
		const char *comma = memchr(list.p, ',', list.n);
		struct span name = text_trim_line(
			span_make(list.p, comma != NULL ? (size_t)(comma - list.p) : list.n));
		if (span_is(name, "*"))
			return ERR_OK;
		enum err e = add(name, names, &n, detail);
		if (e != ERR_OK)
			return e;
		if (comma == NULL)
			break;
		list = span_make(comma + 1, list.n - (size_t)(comma - list.p) - 1);
	}
	*ret = (struct selection){ .names = names, .n = n };
	return ERR_OK;
}

bool selection_holds(const struct selection *s, struct span name)
{
	return s->all || holds(s->names, s->n, name);
}

size_t selection_apply(const struct selection *s, const struct entity *e, struct property *out)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct property *p = entity_find(e, s->names[i]);
		if (p != NULL)
			out[n++] = *p;
	}
	return n;
}
