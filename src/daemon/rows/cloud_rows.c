/* SPDX-License-Identifier: MIT
 * Rows of an account elsewhere. */
#include "cloud/change.h"
#include "cloud/row_scan.h"
#include "daemon/rows/cloud_path.h"
#include "daemon/rows/row_ops.h"
#include "model/limits.h"

#include <string.h>

#define FILTER_LIMIT ((size_t)64 << 10)

/* ---- paths ---- */

static enum err find(struct cmd_env *env, const char *path, bool making, struct rows_path *ret,
	struct err_detail *why)
{
	struct cloud_path p;
	struct span rest;
	*ret = (struct rows_path){ 0 };
	rows_cut(path, &ret->at.account, &ret->at.table, &rest);
	enum err e = cloud_path_read(env, path, making, &p, why);
	if (e == ERR_OK && p.level != CLOUD_TABLE && p.level != CLOUD_PARTITION)
		e = rows_not_table(why);
	if (e == ERR_OK && p.level == CLOUD_PARTITION) {
		memcpy(ret->key, p.pk.key, p.pk.key_len);
		ret->pk = span_make(ret->key, p.pk.key_len);
		ret->at.pk = &ret->pk;
	}
	return e;
}

/* ---- text ---- */

/* The partition and the user's filter as one filter of the service. */
static enum err add_filter(const struct rows_at *at, const struct row_query *query, struct buf *out)
{
	bool both = at->pk != NULL && query->filter.root != NULL;
	if (at->pk != NULL) {
		buf_add_str(out, "PartitionKey eq ");
		cloud_add_literal(*at->pk, out);
	}
	buf_add_str(out, both ? " and (" : "");
	filter_print(&query->filter, out);
	buf_add_str(out, both ? ")" : "");
	return buf_full(out);
}

static enum err stream(struct cmd_env *env, const struct rows_at *at, struct row_query *query,
	const char *what, struct row_source **ret, struct err_detail *why)
{
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	(void)what;
	enum err e = cloud_check_account(env, at->account, why);
	if (e == ERR_OK)
		e = add_filter(at, query, &filter);
	if (e == ERR_OK)
		e = cloud_text_open(env->client, at->table, buf_span(&filter), query, ret, why);
	else
		row_query_fini(query);
	buf_fini(&filter);
	return e;
}

/* ---- import ---- */

/* A credential that may write rows may be forbidden to make tables. */
static enum err make_table(
	struct cmd_env *env, const struct rows_at *at, uint64_t *ret_id, struct err_detail *why)
{
	*ret_id = 0;
	enum err e = cloud_check_account(env, at->account, why);
	if (e == ERR_OK)
		e = cloud_table_create(env->client, at->table, why);
	bool forbidden = e != ERR_OK && err_http(e) == 403 && e != ERR_AUTH_FAILED;
	return e == ERR_TABLE_EXISTS || forbidden ? ERR_OK : e;
}

struct target {
	struct client *client;
	struct span table;
};

static enum err commit(void *arg, const struct entity_op *ops, size_t n, struct err_detail *detail)
{
	const struct target *t = arg;
	return cloud_apply(t->client, t->table, ops, n, NULL, detail);
}

static enum err import(struct cmd_env *env, const struct rows_at *at, uint64_t id, FILE *in,
	const struct import_options *options, struct import_counts *counts, struct err_detail *why)
{
	struct target target = { env->client, at->table };
	struct import_options o = *options;
	(void)id;
	o.commit = commit;
	o.commit_arg = &target;
	return import_stream(NULL, ORIGIN_COMMAND, 0, in, &o, counts, why);
}

const struct rows rows_of_elsewhere = {
	.find = find,
	.stream = stream,
	.make_table = make_table,
	.import = import,
	.list = cloud_list,
	.get = cloud_row_get,
	.write = cloud_row_write,
	.remove = cloud_row_remove,
	.move = cloud_row_move,
	.apply = cloud_set_apply,
};
