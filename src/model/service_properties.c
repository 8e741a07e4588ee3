/* SPDX-License-Identifier: MIT
 * The default settings are the service's own: hour metrics are on, with a retention of 7 days. */
#include "model/service_properties.h"

void service_properties_default(struct service_properties *p)
{
	*p = (struct service_properties){
		.hour = { .enabled = true, .include_apis = true, .retention = { true, 7 } },
	};
}

void service_properties_fini(struct service_properties *p)
{
	arena_fini(&p->arena);
	*p = (struct service_properties){ 0 };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool cors_list_next(struct span *list, struct span *ret)
{
	while (list->n > 0 && is_blank(list->p[0]))
		*list = span_make(list->p + 1, list->n - 1);
	if (list->n == 0)
		return false;
	const char *comma = memchr(list->p, ',', list->n);
	size_t n = comma == NULL ? list->n : (size_t)(comma - list->p);
	*ret = span_make(list->p, n);
	while (ret->n > 0 && is_blank(ret->p[ret->n - 1]))
		ret->n--;
	*list = span_make(list->p + n, list->n - n);
	if (comma != NULL)
		*list = span_make(list->p + 1, list->n - 1);
	return true;
}

/* Accepts the characters of nearly all header names; the caller checks the rest. */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '-';
}

bool cors_is_header_name(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (is_plain(s.p[i]))
			continue;
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\"(),/:;<=>?@[\\]{}", s.p[i]) != NULL)
			return false;
	}
	return s.n > 0;
}
