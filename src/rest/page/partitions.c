/* SPDX-License-Identifier: MIT
 * A window on the partitions of a table, in the order of their keys:
 *
 *   from=KEY or after=KEY   where it begins; neither: at the first one
 *   skip=N                  so many are passed over, at most SKIP_MAX in a request
 *   until=KEY               those with this key and greater ones are not passed over
 *   top=N                   so many are shown, at most TOP_MAX
 *
 * The response has `last`, the key of the last partition that was passed or shown: the next request goes
 * on after it.  A store keeps no positions, so a far skip reads the keys between. */
#include "rest/page/page_key.h"
#include "service/core/tables.h"
#include "store/store.h"

#define SKIP_MAX 200000
#define TOP_MAX 1000

struct window {
	uint64_t skip, top; /* that are still to pass, and to show */
	uint64_t skipped;
	struct json_build *b;
	struct page_key until, last;
};

static bool pass(void *arg, const struct item *it)
{
	struct window *w = arg;
	if (w->until.given && span_cmp(it->key, page_key_span(&w->until)) >= 0)
		return false;
	page_key_set(&w->last, it->key);
	return ++w->skipped < w->skip;
}

static bool show(void *arg, const struct item *it)
{
	struct window *w = arg;
	json_open_object(w->b, NULL);
	page_key_add(w->b, "partition_key", it->key);
	json_add_count(w->b, "items", it->size);
	json_close(w->b);
	page_key_set(&w->last, it->key);
	return --w->top > 0;
}

static enum err read_window(const struct page_ask *ask, struct window *w, bool *inclusive)
{
	enum err e = page_number_read(ask, "skip", SKIP_MAX, &w->skip);
	if (e == ERR_OK)
		e = page_number_read(ask, "top", TOP_MAX, &w->top);
	if (e == ERR_OK)
		e = page_key_read(ask, "until", &w->until);
	if (e == ERR_OK)
		e = page_key_read(ask, "from", &w->last);
	*inclusive = w->last.given;
	if (e == ERR_OK && !*inclusive)
		e = page_key_read(ask, "after", &w->last);
	return e;
}

/* Lists what is behind the last key; `inclusive`: or has it. */
static enum err list(const struct page_ask *ask, struct window *w, uint64_t table, bool inclusive,
	unsigned want, store_list_fn fn)
{
	struct page_key begin = w->last; /* w->last moves while the listing reads */
	return store_list(service_store(ask->service), NULL, table, CLASS_KEYED,
		page_key_span(&begin), inclusive, want, fn, w);
}

static enum err list_window(
	const struct page_ask *ask, struct window *w, uint64_t table, bool inclusive)
{
	enum err e = ERR_OK;
	if (w->skip > 0)
		e = list(ask, w, table, inclusive, WANT_KEYS, pass);
	if (e == ERR_OK && w->top > 0)
		e = list(ask, w, table, inclusive && w->skipped == 0, WANT_ATTRS, show);
	return e;
}

enum err page_partitions_add(const struct page_ask *ask, struct json_build *b)
{
	struct item table = { 0 };
	struct window w = { .top = 100, .b = b };
	bool inclusive = false;
	enum err e = table_find(ask->service, ask->account, ask->table, &table);
	if (e == ERR_OK)
		e = read_window(ask, &w, &inclusive);
	json_add_count(b, "total", table.size);
	json_open_array(b, "partitions");
	if (e == ERR_OK)
		e = list_window(ask, &w, table.id, inclusive);
	json_close(b);
	json_add_count(b, "skipped", w.skipped);
	if (w.last.given)
		page_key_add(b, "last", page_key_span(&w.last));
	item_fini(&table);
	return e;
}
