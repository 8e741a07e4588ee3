/* SPDX-License-Identifier: MIT
 * Rows of an account elsewhere. */
#include "cloud/change.h"
#include "daemon/core/elsewhere.h"
#include "daemon/rows/rows.h"
#include "model/filename.h"
#include "model/limits.h"

#include <string.h>

#define FILTER_LIMIT ((size_t)64 << 10)

static enum err check_account(
	const struct cmd_env *env, struct span account, struct err_detail *why)
{
	const char *own = client_endpoint(env->client)->account;
	return span_eq(account, span_of(own))
		? ERR_OK
		: err_set(why, ERR_INVALID_INPUT, "the URL is of the account '%s', not of '%.*s'",
			  own, (int)account.n, account.p);
}

/* ---- paths ---- */

/* A digest does not tell the key, and the service cannot look it up. */
static enum err read_name(
	struct span name, enum filename_kind kind, struct filename *ret, struct err_detail *why)
{
	enum err e = filename_decode(name, kind, ret, why);
	if (e == ERR_OK && ret->form == FILENAME_DIGEST)
		e = err_set(why, ERR_KEY_MISSING,
			"the name is a digest (%%~) of a key that is not known here; find the row "
			"with: rowfs query");
	return e;
}

static enum err find(
	struct cmd_env *env, const char *path, struct rows_path *ret, struct err_detail *why)
{
	struct filename name;
	struct span rest;
	*ret = (struct rows_path){ 0 };
	rows_cut(path, &ret->at.account, &ret->at.table, &rest);
	enum err e = check_account(env, ret->at.account, why);
	bool deeper = rest.n > 0 && memchr(rest.p, '/', rest.n) != NULL;
	if (e == ERR_OK && (ret->at.table.n == 0 || deeper))
		e = rows_not_table(why);
	if (e != ERR_OK || rest.n == 0)
		return e;
	e = read_name(rest, FILENAME_PARTITION, &name, why);
	if (e == ERR_OK) {
		memcpy(ret->key, name.key, name.key_len);
		ret->pk = span_make(ret->key, name.key_len);
		ret->at.pk = &ret->pk;
	}
	return e;
}

/* ---- text ---- */

static void add_literal(struct span text, struct buf *out)
{
	buf_add_char(out, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'')
			buf_add_char(out, '\'');
		buf_add_char(out, text.p[i]);
	}
	buf_add_char(out, '\'');
}

/* The partition and the user's filter as one filter of the service. */
static enum err add_filter(const struct rows_at *at, const struct row_query *query, struct buf *out)
{
	bool both = at->pk != NULL && query->filter.root != NULL;
	if (at->pk != NULL) {
		buf_add_str(out, "PartitionKey eq ");
		add_literal(*at->pk, out);
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
	enum err e = check_account(env, at->account, why);
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
	enum err e = check_account(env, at->account, why);
	if (e == ERR_OK)
		e = cloud_table_create(env->client, at->table, why);
	bool forbidden = e != ERR_OK && err_http(e) == 403 && e != ERR_AUTH_FAILED;
	return e == ERR_TABLE_EXISTS || forbidden ? ERR_OK : e;
}

struct target {
	struct client *client;
	struct span table;
};

static enum cloud_change_kind kind_of(enum entity_op_kind kind)
{
	return kind == ENTITY_DELETE     ? CLOUD_DELETE
		: kind == ENTITY_INSERT  ? CLOUD_INSERT
		: kind == ENTITY_MERGE   ? CLOUD_MERGE
		: kind == ENTITY_REPLACE ? CLOUD_REPLACE
					 : CLOUD_UPSERT;
}

static enum err commit(void *arg, const struct entity_op *ops, size_t n, struct err_detail *detail)
{
	const struct target *t = arg;
	struct cloud_change changes[LIMIT_BATCH_OPS];
	for (size_t i = 0; i < n; i++)
		changes[i] = (struct cloud_change){ .kind = kind_of(ops[i].kind),
			.pk = ops[i].pk,
			.rk = ops[i].rk,
			.entity = ops[i].entity };
	return n == 1 ? cloud_change(t->client, t->table, changes, NULL, detail)
		      : cloud_change_group(t->client, t->table, changes, n, detail);
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
};
