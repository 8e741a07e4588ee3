/* SPDX-License-Identifier: MIT
 * Listings of an account elsewhere.  The service lists tables and rows, and no partitions: those are found
 * one after another, each with a request for the first row behind the last one. */
#include "cloud/change.h"
#include "cloud/row_scan.h"
#include "daemon/rows/cloud_path.h"
#include "daemon/rows/row_ops.h"

#define FILTER_LIMIT ((size_t)16 << 10)

static enum err add(struct rows_listing *l, const struct rows_entry *entry, struct err_detail *why)
{
	return l->add(l, entry) ? ERR_OK : l->flush(l, why);
}

static enum err add_name(
	struct rows_listing *l, enum item_kind kind, struct span name, struct err_detail *why)
{
	const struct rows_entry entry = { .kind = kind, .name = name };
	return add(l, &entry, why);
}

static enum err add_row(struct rows_listing *l, const struct cloud_row *row, struct span name,
	struct err_detail *why)
{
	const struct rows_entry entry = { .kind = ITEM_ROW,
		.name = name,
		.has_time = true,
		.changed = row->entity.timestamp,
		.etag = row->etag[0] != 0 ? row->etag : NULL };
	return add(l, &entry, why);
}

/* ---- tables ---- */

static enum err list_tables(struct cmd_env *env, struct rows_listing *l, struct err_detail *why)
{
	const struct row_scan_query q = { .top = 0 };
	struct row_scan scan;
	struct cloud_row row = { 0 };
	enum err e = row_scan_begin(env->client, &q, &scan);
	while (e == ERR_OK && (e = row_scan_next(&scan, &row, why)) == ERR_OK) {
		const struct property *p = entity_find(&row.entity, SPAN_LIT("TableName"));
		if (p != NULL && p->value.type == EDM_STRING)
			e = add_name(l, ITEM_TABLE, p->value.bytes, why);
	}
	cloud_row_fini(&row);
	row_scan_end(&scan);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* ---- partitions ---- */

/* The first partition behind *after, whose p is NULL for the first of all.  ERR_NOT_FOUND: there is none. */
static enum err next_partition(struct cmd_env *env, struct span table, struct span after,
	struct cloud_row *row, struct row_scan *scan, struct err_detail *why)
{
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	if (after.p != NULL) {
		buf_add_str(&filter, "PartitionKey gt ");
		cloud_add_literal(after, &filter);
	}
	const struct row_scan_query q = { .table = table,
		.filter = buf_span(&filter),
		.select = SPAN_LIT("PartitionKey"),
		.top = 1 };
	enum err e = row_scan_begin(env->client, &q, scan);
	if (e == ERR_OK)
		e = buf_full(&filter);
	if (e == ERR_OK)
		e = row_scan_next(scan, row, why);
	buf_fini(&filter);
	return e;
}

static enum err list_partitions(
	struct cmd_env *env, struct span table, struct rows_listing *l, struct err_detail *why)
{
	char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
	struct span after = { 0 };
	enum err e;
	do {
		struct cloud_row row = { 0 };
		struct row_scan scan;
		e = next_partition(env, table, after, &row, &scan, why);
		size_t n = row.entity.pk.n;
		if (e == ERR_OK && n > sizeof(key))
			e = ERR_KEY_TOO_LARGE;
		if (e == ERR_OK) {
			memcpy(key, n > 0 ? row.entity.pk.p : "", n);
			after = span_make(key, n);
			n = filename_encode(after, FILENAME_PARTITION, name);
			e = add_name(l, ITEM_PARTITION, span_make(name, n), why);
		}
		cloud_row_fini(&row);
		row_scan_end(&scan);
	} while (e == ERR_OK);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* ---- rows ---- */

static enum err list_rows(struct cmd_env *env, const struct cloud_path *p, struct rows_listing *l,
	struct err_detail *why)
{
	char name[LIMIT_NAME_BYTES + 1];
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	struct row_scan scan;
	struct cloud_row row = { 0 };
	bool some = false;
	buf_add_str(&filter, "PartitionKey eq ");
	cloud_add_literal(cloud_path_pk(p), &filter);
	const struct row_scan_query q = { .table = p->table,
		.filter = buf_span(&filter),
		.select = SPAN_LIT("PartitionKey,RowKey,Timestamp") };
	enum err e = row_scan_begin(env->client, &q, &scan);
	if (e == ERR_OK)
		e = buf_full(&filter);
	while (e == ERR_OK && (e = row_scan_next(&scan, &row, why)) == ERR_OK) {
		size_t n = filename_encode(row.entity.rk, FILENAME_ROW, name);
		e = add_row(l, &row, span_make(name, n), why);
		some = true;
	}
	cloud_row_fini(&row);
	row_scan_end(&scan);
	buf_fini(&filter);
	return e == ERR_NOT_FOUND && some ? ERR_OK : e;
}

static enum err list_row(struct cmd_env *env, const struct cloud_path *p, struct rows_listing *l,
	struct err_detail *why)
{
	struct cloud_row row = { 0 };
	struct buf body;
	enum err e = cloud_get(
		env->client, p->table, cloud_path_pk(p), cloud_path_rk(p), &row, &body, why);
	if (e == ERR_OK)
		e = add_row(l, &row, p->name, why);
	cloud_row_fini(&row);
	buf_fini(&body);
	return e;
}

enum err cloud_list(
	struct cmd_env *env, const char *path, struct rows_listing *l, struct err_detail *why)
{
	struct cloud_path p;
	enum err e = cloud_path_read(env, path, false, &p, why);
	if (e != ERR_OK)
		return e;
	switch (p.level) {
	case CLOUD_ROOT:
		return add_name(
			l, ITEM_ACCOUNT, span_of(client_endpoint(env->client)->account), why);
	case CLOUD_ACCOUNT:
		return list_tables(env, l, why);
	case CLOUD_TABLE:
		return list_partitions(env, p.table, l, why);
	case CLOUD_PARTITION:
		return list_rows(env, &p, l, why);
	case CLOUD_ROW:
		break;
	}
	return list_row(env, &p, l, why);
}
