/* SPDX-License-Identifier: MIT
 * Rows of an account elsewhere by path: read, written, removed, moved. */
#include "cloud/change.h"
#include "cloud/row_scan.h"
#include "codec/entity_json.h"
#include "daemon/core/progress.h"
#include "daemon/rows/cloud_path.h"
#include "daemon/rows/row_ops.h"
#include "model/limits.h"
#include "service/change/entities.h"

#include <stdlib.h>
#include <string.h>

static enum err is_directory(const char *hint, struct err_detail *why)
{
	return err_set(why, ERR_IS_A_DIRECTORY, "a directory; %s", hint);
}

static enum err read_row_path(struct cmd_env *env, const char *path, struct cloud_path *ret,
	const char *hint, struct err_detail *why)
{
	enum err e = cloud_path_read(env, path, false, ret, why);
	return e == ERR_OK && ret->level != CLOUD_ROW ? is_directory(hint, why) : e;
}

/* ---- reading ---- */

static enum err print_row(
	struct cmd_env *env, const struct entity *e, bool keys, struct err_detail *why)
{
	struct buf out = BUF_INIT((size_t)8 << 20);
	unsigned flags = keys ? ENTITY_JSON_PK | ENTITY_JSON_RK | ENTITY_JSON_TIMESTAMP : 0;
	entity_json_encode(e, flags | ENTITY_JSON_NEWLINE, &out);
	enum err err = buf_full(&out);
	if (err == ERR_OK && fwrite(out.data, 1, out.len, env->out) != out.len)
		err = rows_out_error(why);
	buf_fini(&out);
	return err;
}

enum err cloud_row_get(struct cmd_env *env, const char *path, bool keys, struct err_detail *why)
{
	struct cloud_path p;
	struct cloud_row row = { 0 };
	struct buf body = BUF_INIT(0);
	enum err e = read_row_path(env, path, &p, "see: rowfs ls, rowfs query", why);
	if (e == ERR_OK)
		e = cloud_get(env->client, p.table, cloud_path_pk(&p), cloud_path_rk(&p), &row,
			&body, why);
	if (e == ERR_OK)
		e = print_row(env, &row.entity, keys, why);
	cloud_row_fini(&row);
	buf_fini(&body);
	return e;
}

/* ---- writing ---- */

static enum cloud_change_kind kind_of(bool merge, const struct row_condition *c)
{
	if (c->absent)
		return CLOUD_INSERT;
	if (merge)
		return c->given ? CLOUD_MERGE : CLOUD_UPSERT_MERGE;
	return c->given ? CLOUD_REPLACE : CLOUD_UPSERT;
}

/* The table is made when the service says that it lacks it. */
static enum err change_in_table(struct cmd_env *env, struct span table,
	const struct cloud_change *change, char etag[CLOUD_ETAG_MAX], struct err_detail *why)
{
	enum err e = cloud_change(env->client, table, change, etag, why);
	if (e != ERR_TABLE_NOT_FOUND || change->kind == CLOUD_REPLACE ||
		change->kind == CLOUD_MERGE)
		return e;
	e = cloud_table_create(env->client, table, why);
	return e == ERR_OK || e == ERR_TABLE_EXISTS
		? cloud_change(env->client, table, change, etag, why)
		: e;
}

enum err cloud_row_write(struct cmd_env *env, const char *path, struct span text, bool merge,
	const struct row_condition *c, char etag[CLOUD_ETAG_MAX], struct err_detail *why)
{
	struct cloud_path p;
	struct entity entity = { 0 };
	unsigned flags;
	enum err e = cloud_path_read(env, path, true, &p, why);
	if (e == ERR_OK && p.level != CLOUD_ROW)
		e = err_set(why, ERR_NAME_INVALID,
			"not the name of a row, which is ACCOUNT/TABLE/PARTITION/KEY.json");
	if (e == ERR_OK && merge && c->absent)
		e = ERR_INVALID_INPUT;
	if (e == ERR_OK)
		e = document_check(
			text, cloud_path_pk(&p), cloud_path_rk(&p), &entity, &flags, why);
	const struct cloud_change change = { .kind = kind_of(merge, c),
		.pk = cloud_path_pk(&p),
		.rk = cloud_path_rk(&p),
		.entity = &entity,
		.if_match = c->etag != NULL ? span_of(c->etag) : (struct span){ 0 } };
	if (e == ERR_OK)
		e = change_in_table(env, p.table, &change, etag, why);
	entity_fini(&entity);
	return row_condition_error(c, e);
}

/* ---- removing ---- */

/* Keys of one partition, which are removed together. */
struct removal {
	struct cloud_change changes[LIMIT_BATCH_OPS];
	size_t n;
	struct arena keys;
};

/* A row that somebody else removed meanwhile is gone as well, but it fails the group. */
static enum err remove_collected(
	struct cmd_env *env, struct span table, struct removal *r, struct err_detail *why)
{
	enum err e = ERR_NOT_FOUND;
	if (r->n > 1)
		e = cloud_change_group(env->client, table, r->changes, r->n, NULL, why);
	bool one_by_one = e == ERR_NOT_FOUND;
	for (size_t i = 0; i < r->n && one_by_one; i++) {
		e = cloud_change(env->client, table, &r->changes[i], NULL, why);
		one_by_one = e == ERR_OK || e == ERR_NOT_FOUND;
	}
	if (one_by_one)
		e = ERR_OK;
	r->n = 0;
	arena_reset(&r->keys);
	return e;
}

static enum err remove_scanned(struct cmd_env *env, struct row_scan *scan, struct span table,
	struct span pk, uint64_t *ret_n, struct err_detail *why)
{
	struct removal r = { 0 };
	struct cloud_row row = { 0 };
	struct progress progress;
	enum err e = ERR_OK;
	bool more = true;
	progress_start(&progress, env, "rows");
	while (e == ERR_OK && more) {
		progress_show(&progress, *ret_n, 0, 0);
		e = row_scan_next(scan, &row, why);
		more = e == ERR_OK;
		struct span rk = more ? arena_copy(&r.keys, row.entity.rk) : SPAN_LIT("");
		if (more && rk.p == NULL)
			e = ERR_NO_MEMORY;
		else if (more)
			r.changes[r.n++] =
				(struct cloud_change){ .kind = CLOUD_DELETE, .pk = pk, .rk = rk };
		*ret_n += more;
		if (e == ERR_NOT_FOUND || r.n == LIMIT_BATCH_OPS)
			e = remove_collected(env, table, &r, why);
	}
	progress_clear(&progress);
	cloud_row_fini(&row);
	arena_fini(&r.keys);
	return e;
}

/* The service has no request for this: 100 rows go at a time. */
static enum err remove_partition(
	struct cmd_env *env, const struct cloud_path *p, struct err_detail *why)
{
	struct buf filter = BUF_INIT((size_t)16 << 10);
	struct row_scan scan;
	uint64_t n = 0;
	buf_add_str(&filter, "PartitionKey eq ");
	cloud_add_literal(cloud_path_pk(p), &filter);
	const struct row_scan_query q = { .table = p->table,
		.filter = buf_span(&filter),
		.select = SPAN_LIT("PartitionKey,RowKey") };
	enum err e = row_scan_begin(env->client, &q, &scan);
	if (e == ERR_OK)
		e = buf_full(&filter);
	if (e == ERR_OK)
		e = remove_scanned(env, &scan, p->table, cloud_path_pk(p), &n, why);
	row_scan_end(&scan);
	buf_fini(&filter);
	return e == ERR_OK && n == 0 ? ERR_NOT_FOUND : e;
}

static enum err remove_row(struct cmd_env *env, const struct cloud_path *p,
	const struct row_condition *c, struct err_detail *why)
{
	const struct cloud_change change = { .kind = CLOUD_DELETE,
		.pk = cloud_path_pk(p),
		.rk = cloud_path_rk(p),
		.if_match = c->etag != NULL ? span_of(c->etag) : (struct span){ 0 } };
	return row_condition_error(c, cloud_change(env->client, p->table, &change, NULL, why));
}

enum err cloud_row_remove(struct cmd_env *env, const char *path, bool recursive,
	const struct row_condition *c, struct err_detail *why)
{
	struct cloud_path p;
	enum err e = cloud_path_read(env, path, false, &p, why);
	if (e != ERR_OK)
		return e;
	if (p.level == CLOUD_ROW)
		return remove_row(env, &p, c, why);
	if (c->given)
		return err_set(why, ERR_INVALID_INPUT, "only a row has an ETag");
	if (p.level <= CLOUD_ACCOUNT)
		return err_set(why, ERR_NOT_PERMITTED, "an account elsewhere; remove its tables");
	if (!recursive)
		return is_directory("-r removes all below it", why);
	return p.level == CLOUD_TABLE ? cloud_table_delete(env->client, p.table, why)
				      : remove_partition(env, &p, why);
}

/* ---- moving ---- */

/* Within a partition both are one step.  Else the row is there twice before it is there once. */
static enum err move_row(struct cmd_env *env, const struct cloud_path *from,
	const struct cloud_path *to, const struct cloud_row *row, struct err_detail *why)
{
	const struct cloud_change both[] = {
		{ .kind = CLOUD_UPSERT,
			.pk = cloud_path_pk(to),
			.rk = cloud_path_rk(to),
			.entity = &row->entity },
		{ .kind = CLOUD_DELETE,
			.pk = cloud_path_pk(from),
			.rk = cloud_path_rk(from),
			.if_match = span_of(row->etag) },
	};
	bool same_table = span_eq(from->table, to->table);
	bool same = same_table && span_eq(both[0].pk, both[1].pk);
	if (same && span_eq(both[0].rk, both[1].rk))
		return ERR_OK;
	if (same)
		return cloud_change_group(env->client, to->table, both, 2, NULL, why);
	enum err e = change_in_table(env, to->table, &both[0], NULL, why);
	if (e != ERR_OK)
		return e;
	e = cloud_change(env->client, from->table, &both[1], NULL, why);
	return e != ERR_CONDITION_NOT_MET
		? e
		: err_set(why, e, "the row was changed meanwhile, so it is left beside its copy");
}

static enum err read_and_move(struct cmd_env *env, const struct cloud_path *from,
	const struct cloud_path *to, struct err_detail *why)
{
	struct cloud_row row = { 0 };
	struct buf body;
	enum err e = cloud_get(env->client, from->table, cloud_path_pk(from), cloud_path_rk(from),
		&row, &body, why);
	if (e == ERR_OK)
		e = move_row(env, from, to, &row, why);
	cloud_row_fini(&row);
	buf_fini(&body);
	return e;
}

enum err cloud_row_move(struct cmd_env *env, const char *path, const char *new_path,
	char **ret_blamed, struct err_detail *why)
{
	struct cloud_path from, to;
	*ret_blamed = strdup(path);
	enum err e = cloud_path_read(env, path, false, &from, why);
	if (e == ERR_OK)
		e = cloud_path_read(env, new_path, true, &to, why);
	if (e == ERR_OK && from.level != CLOUD_ROW)
		return err_set(why, ERR_CROSS_DEVICE,
			"elsewhere only rows get another name; use rowfs copy or export and import");
	if (e == ERR_OK && to.level == CLOUD_PARTITION) {
		to.rk = from.rk;
		to.level = CLOUD_ROW;
	}
	if (e == ERR_OK && to.level != CLOUD_ROW)
		e = err_set(why, ERR_NOT_PERMITTED, "rows and files live in a partition");
	return e == ERR_OK ? read_and_move(env, &from, &to, why) : e;
}
