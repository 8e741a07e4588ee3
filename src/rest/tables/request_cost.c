/* SPDX-License-Identifier: MIT
 * The request is parsed again when it is handled.  An error here only costs time. */
#include "rest/tables/request_cost.h"

#include "codec/uri.h"
#include "query/key_ranges.h"

#include <string.h>
#include <strings.h>

/* A longer filter is not parsed here. */
#define FILTER_BYTES 1024

/* Returns true if the rows are in a few ranges, and all of them match or they are few. */
static bool costs_what_it_holds(const struct filter *f, enum key_plan plan)
{
	bool keys_only = !filter_needs_properties(f) && !filter_uses(f, FILTER_SLOT_TIMESTAMP);
	return plan <= KEY_PLAN_POINTS || (plan == KEY_PLAN_ROW_RANGE && keys_only);
}

static bool is_short(struct span text)
{
	struct filter f;
	struct key_ranges keys = { 0 };
	bool ret = false;
	if (text.n > FILTER_BYTES)
		return false;
	if (filter_parse(text, &f, NULL) != ERR_OK)
		ret = true; /* an invalid filter is answered soon */
	else if (key_ranges_of_filter(&f, &keys) == ERR_OK)
		ret = costs_what_it_holds(&f, key_ranges_plan(&keys));
	key_ranges_fini(&keys);
	filter_fini(&f);
	return ret;
}

static bool looks_for_rows(struct span target)
{
	struct arena arena = { 0 };
	struct query_params params;
	struct span text;
	const char *mark = memchr(target.p, '?', target.n);
	if (mark == NULL)
		return false;
	struct span query = span_make(mark + 1, (size_t)(target.p + target.n - mark - 1));
	bool ret = query_params_parse(query, &arena, &params, NULL) == ERR_OK &&
		query_params_find(&params, "$filter", &text) && !is_short(text);
	arena_fini(&arena);
	return ret;
}

static bool may_be_long(const struct request *r)
{
	static const char multipart[] = "multipart/";
	struct span type = request_header(r, "Content-Type");
	if (span_is(r->method, "GET") || span_is(r->method, "HEAD"))
		return looks_for_rows(r->target);
	return r->body.n > 0 && type.n >= sizeof(multipart) - 1 &&
		strncasecmp(type.p, multipart, sizeof(multipart) - 1) == 0 &&
		(memmem(r->body.p, r->body.n, "GET ", 4) != NULL ||
			memmem(r->body.p, r->body.n, "HEAD ", 5) != NULL);
}

static bool names_one_entity(struct span target)
{
	const char *query = memchr(target.p, '?', target.n);
	size_t n = query != NULL ? (size_t)(query - target.p) : target.n;
	const char *keys = memchr(target.p, '(', n);
	if (keys == NULL)
		return false;
	n -= (size_t)(keys - target.p);
	return memmem(keys, n, "PartitionKey=", 13) != NULL &&
		memmem(keys, n, "RowKey=", 7) != NULL;
}

enum request_cost table_request_cost(const struct request *r)
{
	bool reads = span_is(r->method, "GET") || span_is(r->method, "HEAD");
	if (span_is(r->method, "OPTIONS") || (reads && names_one_entity(r->target)))
		return COST_BOUNDED;
	return may_be_long(r) ? COST_LONG : COST_USUAL;
}
