/* SPDX-License-Identifier: MIT
 * A window on the partitions of a table, in the order of their keys:
 *
 *   from=KEY or after=KEY   where it begins; neither: at the first one
 *   skip=N                  so many are passed over, at most SKIP_MAX in a request
 *   until=KEY               those with this key and greater ones are not passed over
 *   top=N                   so many are shown, at most TOP_MAX
 *
 * The answer has `last`, the key of the last partition that was passed or shown: the next request goes
 * on after it.  A store keeps no positions, so a far skip reads the keys between. */
#include "base/text.h"
#include "model/key.h"
#include "rest/page/page_data.h"
#include "service/core/tables.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

#define SKIP_MAX 200000
#define TOP_MAX 1000

struct window {
	uint64_t skip, top; /* that are still to pass, and to show */
	uint64_t skipped;
	struct json_build *b;
	struct span until; /* in order form; p NULL: none */
	size_t last_n;     /* of the key behind which to go on, in order form */
	bool has_last;
	char last[LIMIT_KEY_BYTES];
};

static void remember(struct window *w, struct span key)
{
	w->has_last = true;
	w->last_n = key.n;
	memcpy(w->last, key.p, key.n);
}

static bool pass(void *arg, const struct item *it)
{
	struct window *w = arg;
	if (w->until.p != NULL && span_cmp(it->key, w->until) >= 0)
		return false;
	remember(w, it->key);
	return ++w->skipped < w->skip;
}

static void add_key(struct json_build *b, const char *name, struct span order)
{
	char key[LIMIT_KEY_BYTES];
	key_from_order(order.p, order.n, key);
	json_add_text(b, name, span_make(key, order.n));
}

static bool show(void *arg, const struct item *it)
{
	struct window *w = arg;
	json_open_object(w->b, NULL);
	add_key(w->b, "partition_key", it->key);
	json_add_count(w->b, "items", it->size);
	json_close(w->b);
	remember(w, it->key);
	return --w->top > 0;
}

static enum err read_number(
	const struct page_ask *ask, const char *name, uint64_t max, uint64_t *ret)
{
	struct span text;
	if (!query_params_find(&ask->params, name, &text))
		return ERR_OK;
	return text_to_u64(text, ret) && *ret <= max
		? ERR_OK
		: err_set(ask->detail, ERR_OUT_OF_RANGE, "%s is a number up to %" PRIu64 ".", name,
			  max);
}

/* Writes the key of a parameter in order form.  *ret_given is false if there is none. */
static enum err read_key(const struct page_ask *ask, const char *name, char out[LIMIT_KEY_BYTES],
	size_t *ret_n, bool *ret_given)
{
	struct span key;
	*ret_given = query_params_find(&ask->params, name, &key);
	if (!*ret_given)
		return ERR_OK;
	enum err e = key_check(key, "PartitionKey", ask->detail);
	if (e == ERR_OK) {
		key_to_order(key.p, key.n, out);
		*ret_n = key.n;
	}
	return e;
}

/* Reads where the window begins.  until: memory for that key. */
static enum err read_window(
	const struct page_ask *ask, struct window *w, char until[LIMIT_KEY_BYTES], bool *inclusive)
{
	size_t until_n = 0;
	bool has_until = false;
	enum err e = read_number(ask, "skip", SKIP_MAX, &w->skip);
	if (e == ERR_OK)
		e = read_number(ask, "top", TOP_MAX, &w->top);
	if (e == ERR_OK)
		e = read_key(ask, "until", until, &until_n, &has_until);
	if (e == ERR_OK)
		e = read_key(ask, "from", w->last, &w->last_n, inclusive);
	w->has_last = *inclusive;
	if (e == ERR_OK && !*inclusive)
		e = read_key(ask, "after", w->last, &w->last_n, &w->has_last);
	if (has_until)
		w->until = span_make(until, until_n);
	return e;
}

/* Lists what is behind the last key; `inclusive`: or has it. */
static enum err list(const struct page_ask *ask, struct window *w, uint64_t table, bool inclusive,
	unsigned want, store_list_fn fn)
{
	char begin[LIMIT_KEY_BYTES]; /* remember() writes while the listing reads */
	memcpy(begin, w->last, w->last_n);
	return store_list(service_store(ask->service), NULL, table, CLASS_KEYED,
		span_make(w->has_last ? begin : NULL, w->last_n), inclusive, want, fn, w);
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
	char until[LIMIT_KEY_BYTES];
	bool inclusive = false;
	enum err e = table_find(ask->service, ask->account, ask->table, &table);
	if (e == ERR_OK)
		e = read_window(ask, &w, until, &inclusive);
	json_add_count(b, "total", table.size);
	json_open_array(b, "partitions");
	if (e == ERR_OK)
		e = list_window(ask, &w, table.id, inclusive);
	json_close(b);
	json_add_count(b, "skipped", w.skipped);
	if (w.has_last)
		add_key(b, "last", span_make(w.last, w.last_n));
	item_fini(&table);
	return e;
}
