/* SPDX-License-Identifier: MIT */
#include "rest/page/page_key.h"

#include "base/text.h"
#include "model/key.h"

#include <inttypes.h>
#include <string.h>

enum err page_key_read(const struct page_ask *ask, const char *name, struct page_key *ret)
{
	struct span key;
	*ret = (struct page_key){ .given = query_params_find(&ask->params, name, &key) };
	if (!ret->given)
		return ERR_OK;
	enum err e = key_check(key, name, ask->detail);
	if (e == ERR_OK) {
		key_to_order(key.p, key.n, ret->order);
		ret->n = key.n;
	}
	return e;
}

void page_key_set(struct page_key *k, struct span order)
{
	k->given = true;
	k->n = order.n;
	memcpy(k->order, order.p, order.n);
}

struct span page_key_span(const struct page_key *k)
{
	return k->given ? span_make(k->order, k->n) : (struct span){ 0 };
}

void page_key_add(struct json_build *b, const char *name, struct span order)
{
	char key[LIMIT_KEY_BYTES];
	key_from_order(order.p, order.n, key);
	json_add_text(b, name, span_make(key, order.n));
}

enum err page_number_read(const struct page_ask *ask, const char *name, uint64_t max, uint64_t *ret)
{
	struct span text;
	if (!query_params_find(&ask->params, name, &text))
		return ERR_OK;
	return text_to_u64(text, ret) && *ret <= max
		? ERR_OK
		: err_set(ask->detail, ERR_OUT_OF_RANGE, "%s is a number up to %" PRIu64 ".", name,
			  max);
}
