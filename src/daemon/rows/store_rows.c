/* SPDX-License-Identifier: MIT
 * Rows of the open store. */
#include "daemon/core/place.h"
#include "daemon/rows/row_ops.h"
#include "model/key.h"

#include <stdlib.h>
#include <string.h>

/* ---- paths ---- */

static void set_partition(struct span order_key, struct rows_path *ret)
{
	key_from_order(order_key.p, order_key.n, ret->key);
	ret->pk = span_make(ret->key, order_key.n);
	ret->at.pk = &ret->pk;
}

/* The name of a partition that a change set will make. */
static enum err find_missing(
	struct cmd_env *env, const char *path, struct rows_path *ret, struct err_detail *why)
{
	struct place p;
	enum err e = place_find(env->service, path, true, &p, why);
	if (e == ERR_OK &&
		(p.name.dir.kind != ITEM_TABLE || p.name.class != CLASS_KEYED || p.name.digest))
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		set_partition(span_make(p.name.key, p.name.key_len), ret);
	place_fini(&p);
	return e;
}

static enum err find(struct cmd_env *env, const char *path, bool making, struct rows_path *ret,
	struct err_detail *why)
{
	struct place p;
	struct span rest;
	*ret = (struct rows_path){ 0 };
	rows_cut(path, &ret->at.account, &ret->at.table, &rest);
	enum err e = place_find(env->service, path, false, &p, why);
	if (e == ERR_OK && p.item.kind == ITEM_PARTITION)
		set_partition(p.item.key, ret);
	else if (e == ERR_OK && p.item.kind != ITEM_TABLE)
		e = rows_not_table(why);
	place_fini(&p);
	return e == ERR_NOT_FOUND && making ? find_missing(env, path, ret, why) : e;
}

/* ---- text ---- */

struct text {
	struct row_source source;
	struct row_stream *stream;
};

static enum err text_read(struct row_source *s, uint64_t offset, size_t n,
	row_stream_asked_fn asked, void *arg, struct buf *out, struct err_detail *why)
{
	return row_stream_read(((struct text *)s)->stream, offset, n, asked, arg, out, why);
}

static uint64_t text_rows(const struct row_source *s)
{
	return row_stream_rows(((const struct text *)s)->stream);
}

static void text_close(struct row_source *s)
{
	struct text *t = (struct text *)s;
	row_stream_close(t->stream);
	free(t);
}

static enum err find_partition(
	struct service *s, uint64_t table_id, struct span pk, struct err_detail *why)
{
	char key[LIMIT_KEY_BYTES];
	struct item it = { 0 };
	enum err e = key_check(pk, "PartitionKey", why);
	if (e != ERR_OK)
		return e;
	key_to_order(pk.p, pk.n, key);
	e = store_child(service_store(s), NULL, table_id, CLASS_KEYED, span_make(key, pk.n),
		WANT_ATTRS, &it);
	item_fini(&it);
	return e;
}

static enum err stream(struct cmd_env *env, const struct rows_at *at, struct row_query *query,
	const char *what, struct row_source **ret, struct err_detail *why)
{
	uint64_t id;
	struct text *t = calloc(1, sizeof(*t));
	enum err e = t != NULL ? store_table_find(env, at, &id) : ERR_NO_MEMORY;
	if (e == ERR_OK && at->pk != NULL)
		e = find_partition(env->service, id, *at->pk, why);
	if (e == ERR_OK)
		e = row_stream_open(
			env->service, id, at->pk, query, span_of(what), &t->stream, why);
	else
		row_query_fini(query);
	if (e != ERR_OK) {
		free(t);
		return e;
	}
	t->source = (struct row_source){ text_read, text_rows, text_close };
	*ret = &t->source;
	return ERR_OK;
}

/* ---- import ---- */

static enum err import(struct cmd_env *env, const struct rows_at *at, uint64_t id, FILE *in,
	const struct import_options *options, struct import_counts *counts, struct err_detail *why)
{
	(void)at;
	return import_stream(env->service, ORIGIN_COMMAND, id, in, options, counts, why);
}

/* ---- change sets ---- */

static enum err apply(struct cmd_env *env, const struct rows_at *at, struct change_set *set,
	bool checked, struct err_detail *why)
{
	uint64_t id;
	enum err e = store_table_find(env, at, &id);
	return e != ERR_OK ? e
			   : change_set_apply(env->service, ORIGIN_COMMAND, id, set,
				     checked ? ENTITIES_CHECK : ENTITIES_DURABLE, why);
}

const struct rows rows_of_store = {
	.find = find,
	.stream = stream,
	.make_table = store_table_make,
	.import = import,
	.list = store_path_list,
	.get = store_row_get,
	.write = store_row_write,
	.remove = store_row_remove,
	.move = store_row_move,
	.apply = apply,
};
