/* SPDX-License-Identifier: MIT */
#include "rest/page/page_data.h"

#include "base/compiler.h"
#include "rest/core/response.h"
#include "store/store.h"

static bool add_account(void *arg, const struct item *it)
{
	json_add_text(arg, NULL, it->key);
	return true;
}

static enum err accounts_add(const struct page_ask *ask, struct json_build *b)
{
	json_open_array(b, "accounts");
	enum err e = store_list(service_store(ask->service), NULL, STORE_ROOT, CLASS_KEYED,
		SPAN_LIT(""), false, WANT_ATTRS, add_account, b);
	json_close(b);
	return e;
}

static const struct page_data all[] = {
	{ SPAN_LIT("/accounts"), COST_USUAL, accounts_add },
	{ SPAN_LIT("/live"), COST_USUAL, page_live_add },
	{ SPAN_LIT("/heat/"), COST_USUAL, page_heat_add },
	{ SPAN_LIT("/partitions/"), COST_LONG, page_partitions_add },
	{ SPAN_LIT("/sizes/"), COST_LONG, page_sizes_add },
	{ SPAN_LIT("/compare/"), COST_LONG, page_compare_add },
	{ SPAN_LIT("/explain/"), COST_LONG, page_explain_add },
	{ SPAN_LIT("/snapshots"), COST_USUAL, page_snapshots_add, page_snapshots_change },
	{ SPAN_LIT("/sas/"), COST_USUAL, page_sas_add },
	{ SPAN_LIT("/import/"), COST_LONG, NULL, page_import },
	{ SPAN_LIT("/trash/"), COST_USUAL, NULL, page_trash_change },
};

const struct page_data *page_data_find(struct span path)
{
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct span own = all[i].path;
		bool has_names = span_ends(own, SPAN_LIT("/"));
		if (has_names ? span_starts(path, own) : span_eq(path, own))
			return &all[i];
	}
	return NULL;
}

/* Names of accounts and tables need no percent-encoding. */
static void read_names(const struct page_data *data, struct span path, struct page_ask *ask)
{
	struct span rest = span_make(path.p + data->path.n, path.n - data->path.n);
	ask->account = span_take(&rest, '/');
	ask->table = rest;
}

enum err page_data_write(const struct page_data *data, struct service *service,
	const struct request *q, const struct url_parts *parts, struct buf *out,
	struct err_detail *detail)
{
	struct json_build b;
	struct arena arena = { 0 };
	bool reads = span_is(q->method, "GET") || span_is(q->method, "HEAD");
	struct page_ask ask = { .service = service,
		.arena = &arena,
		.removes = span_is(q->method, "DELETE"),
		.body = q->body,
		.detail = detail };
	read_names(data, parts->path, &ask);
	enum err e = query_params_parse(parts->query, &arena, &ask.params, detail);
	json_begin(&b);
	if (e == ERR_OK)
		e = reads ? data->add(&ask, &b) : data->change(&ask, &b);
	json_end(&b, out);
	arena_fini(&arena);
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}
