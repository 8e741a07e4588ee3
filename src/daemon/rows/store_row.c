/* SPDX-License-Identifier: MIT
 * Rows of the open store by path: read, written, removed, moved.  Names, checks and conditions are those
 * of the mount: service/tree/names.h and service/change. */
#include "codec/entity_json.h"
#include "daemon/core/place.h"
#include "daemon/rows/row_ops.h"
#include "model/etag.h"
#include "model/key.h"
#include "service/change/change_set.h"
#include "service/core/accounts.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static enum err copy_file(struct cmd_env *env, const struct item *file, struct err_detail *why)
{
	char piece[65536];
	uint64_t at = 0;
	size_t n;
	do {
		enum err e = store_file_read(
			service_store(env->service), NULL, file->id, at, piece, sizeof(piece), &n);
		if (e != ERR_OK)
			return e;
		if (fwrite(piece, 1, n, env->out) != n)
			return rows_out_error(why);
		at += n;
	} while (n > 0);
	return ERR_OK;
}

static enum err with_keys(const struct place *p, const struct item *row, struct buf *out)
{
	char pk[LIMIT_KEY_BYTES];
	struct entity entity = { 0 };
	key_from_order(p->name.dir.key.p, p->name.dir.key.n, pk);
	enum err e = entity_of_item(row, span_make(pk, p->name.dir.key.n), &entity);
	if (e == ERR_OK)
		entity_json_encode(&entity,
			ENTITY_JSON_PK | ENTITY_JSON_RK | ENTITY_JSON_TIMESTAMP |
				ENTITY_JSON_NEWLINE,
			out);
	entity_fini(&entity);
	return e == ERR_OK ? buf_full(out) : e;
}

static enum err get_row(
	struct cmd_env *env, const struct place *p, bool keys, struct err_detail *why)
{
	struct item row = { 0 };
	struct buf out = BUF_INIT((size_t)8 << 20);
	enum err e = store_get(service_store(env->service), NULL, p->item.id, WANT_BODY, &row);
	if (e == ERR_OK && !keys)
		buf_add_span(&out, row.body);
	else if (e == ERR_OK)
		e = with_keys(p, &row, &out);
	if (e == ERR_OK)
		e = buf_full(&out);
	if (e == ERR_OK && fwrite(out.data, 1, out.len, env->out) != out.len)
		e = rows_out_error(why);
	buf_fini(&out);
	item_fini(&row);
	return e;
}

enum err store_row_get(struct cmd_env *env, const char *path, bool keys, struct err_detail *why)
{
	struct place p;
	enum err e = place_find(env->service, path, false, &p, why);
	if (e == ERR_OK && p.item.kind == ITEM_ROW)
		e = item_is_empty_row(&p.item) ? ERR_OK : get_row(env, &p, keys, why);
	else if (e == ERR_OK && p.item.kind == ITEM_FILE)
		e = copy_file(env, &p.item, why);
	else if (e == ERR_OK)
		e = err_set(why, ERR_IS_A_DIRECTORY, "a directory; see: rowfs ls, rowfs query");
	place_fini(&p);
	return e;
}

/* ---- writing ---- */

/* The command has checked the text. */
static int64_t version_of(const struct row_condition *c)
{
	bool any;
	int64_t version = -1;
	(void)etag_parse(span_of(c->etag), &any, &version, NULL);
	return version;
}

static enum err set_condition(struct entity_op *op, const struct row_condition *c, bool merge)
{
	if (merge && c->absent)
		return ERR_INVALID_INPUT;
	if (c->absent)
		op->kind = ENTITY_INSERT;
	else if (c->given)
		op->kind = merge ? ENTITY_MERGE : c->any ? ENTITY_REPLACE : ENTITY_UPSERT;
	op->if_match = c->given && !c->any && !c->absent;
	if (op->if_match)
		op->if_match_version = version_of(c);
	return ERR_OK;
}

static enum err write_at(struct cmd_env *env, struct place *p, struct span text, bool merge,
	const struct row_condition *c, struct entity_op *op, struct err_detail *why)
{
	struct row_keys *k = malloc(sizeof(*k));
	struct entity entity = { 0 };
	struct item now = { 0 };
	if (k == NULL)
		return ERR_NO_MEMORY;
	*op = (struct entity_op){ .kind = merge ? ENTITY_UPSERT_MERGE : ENTITY_UPSERT,
		.attrs = ATTRS_UNSET };
	enum err e = resolved_name_keys(&p->name, text, k, why);
	if (e == ERR_OK) {
		op->pk = span_make(k->pk, k->pk_n);
		op->rk = span_make(k->rk, k->rk_n);
		e = document_check(text, op->pk, op->rk, &entity, &op->document_flags, why);
	}
	if (e == ERR_OK)
		e = set_condition(op, c, merge);
	if (e == ERR_OK && merge) {
		op->entity = &entity;
		e = entities_apply(env->service, ORIGIN_COMMAND, p->table, op, 1,
			ENTITIES_SET | ENTITIES_DURABLE, why);
	} else if (e == ERR_OK) {
		op->document = text;
		e = entity_commit_document(
			env->service, ORIGIN_COMMAND, p->table, op, true, &now, NULL, why);
		op->version = now.version;
	}
	item_fini(&now);
	entity_fini(&entity);
	free(k);
	return row_condition_error(c, e);
}

/* The table of the path, as import makes it. */
static enum err make_table(struct cmd_env *env, const char *path, struct err_detail *why)
{
	struct rows_at at = { 0 };
	struct span rest;
	uint64_t id;
	rows_cut(path, &at.account, &at.table, &rest);
	return store_table_make(env, &at, &id, why);
}

enum err store_row_write(struct cmd_env *env, const char *path, struct span text, bool merge,
	const struct row_condition *c, char etag[CLOUD_ETAG_MAX], struct err_detail *why)
{
	struct entity_op op = { 0 };
	struct place p = { 0 };
	enum err e = place_find(env->service, path, true, &p, why);
	if (e == ERR_TABLE_NOT_FOUND) {
		place_fini(&p);
		e = make_table(env, path, why);
		if (e == ERR_OK)
			e = place_find(env->service, path, true, &p, why);
	}
	if (e == ERR_OK && !p.name.row_name)
		e = err_set(why, ERR_NAME_INVALID,
			"not the name of a row, which is ACCOUNT/TABLE/PARTITION/KEY.json");
	if (e == ERR_OK)
		e = write_at(env, &p, text, merge, c, &op, why);
	if (e == ERR_OK)
		(void)etag_format(op.version, etag);
	place_fini(&p);
	return e;
}

/* ---- removing ---- */

static enum err remove_row(struct cmd_env *env, const struct place *p,
	const struct row_condition *c, struct err_detail *why)
{
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	struct entity_op op = { .kind = ENTITY_DELETE, .attrs = ATTRS_UNSET };
	key_from_order(p->name.dir.key.p, p->name.dir.key.n, pk);
	key_from_order(p->item.key.p, p->item.key.n, rk);
	op.pk = span_make(pk, p->name.dir.key.n);
	op.rk = span_make(rk, p->item.key.n);
	op.if_match = c->given && !c->any;
	op.if_match_version = op.if_match ? version_of(c) : 0;
	return row_condition_error(c,
		entities_apply(env->service, ORIGIN_COMMAND, p->table, &op, 1,
			ENTITIES_SET | ENTITIES_DURABLE, why));
}

enum err store_row_remove(struct cmd_env *env, const char *path, bool recursive,
	const struct row_condition *c, struct err_detail *why)
{
	struct place p;
	enum err e = place_find(env->service, path, false, &p, why);
	struct dentry at = resolved_name_dentry(&p.name, p.item.kind, ORIGIN_COMMAND);
	if (e == ERR_OK && p.item.kind == ITEM_ROW && !item_is_empty_row(&p.item))
		e = remove_row(env, &p, c, why);
	else if (e == ERR_OK && c->given)
		e = err_set(why, ERR_INVALID_INPUT, "only a row has an ETag");
	else if (e == ERR_OK && p.item.id == STORE_ROOT)
		e = err_set(why, ERR_NOT_PERMITTED, "the whole store: remove its file instead");
	else if (e == ERR_OK && p.item.kind == ITEM_ACCOUNT && recursive)
		e = account_remove(env->service, ORIGIN_COMMAND, p.item.key, true, why);
	else if (e == ERR_OK && item_is_dir(p.item.kind) && recursive)
		e = tree_remove(env->service, &at, why);
	else if (e == ERR_OK && item_is_dir(p.item.kind))
		e = err_set(why, ERR_IS_A_DIRECTORY, "a directory; -r removes all below it");
	else if (e == ERR_OK)
		e = tree_unlink(env->service, &at, NULL, why);
	place_fini(&p);
	return e;
}

/* ---- moving ---- */

static enum err check_move(const struct place *from, const struct place *to, struct err_detail *why)
{
	bool file = from->item.kind == ITEM_ROW || from->item.kind == ITEM_FILE;
	if (from->item.kind == ITEM_TABLE || from->item.id == STORE_ROOT)
		return err_set(why, ERR_NOT_PERMITTED,
			"a table gets another name in a mount, or by export and import");
	if (to->name.dir.id == 0)
		return err_set(why, ERR_NOT_FOUND,
			"its partition does not exist; a row that is put there makes it");
	if (to->name.name.p[0] == '.' || (file && !name_may_hold_files(&to->name)))
		return err_set(why, ERR_NOT_PERMITTED, "rows and files live in a partition");
	if (to->name.digest || to->name.pending_dir)
		return err_set(why, ERR_KEY_MISSING,
			"the name is a digest (%%~) of a key that is not known here; put the row "
			"with its keys in the document");
	return ERR_OK;
}

static enum err move(
	struct cmd_env *env, struct place *from, struct place *to, struct err_detail *why)
{
	enum err e = check_move(from, to, why);
	if (e != ERR_OK)
		return e;
	enum item_kind becomes = from->item.kind;
	if (!item_is_dir(becomes))
		becomes = to->name.row_name ? ITEM_ROW : ITEM_FILE;
	const struct dentry a = resolved_name_dentry(&from->name, from->item.kind, ORIGIN_COMMAND);
	const struct dentry b = resolved_name_dentry(&to->name, becomes, ORIGIN_COMMAND);
	return tree_move(env->service, &a, &b, 0, NULL, NULL, why);
}

/* As mv(1): into a directory that exists, under the same name. */
static enum err into(struct cmd_env *env, const struct place *from, const char *path,
	struct place *to, char **ret_path, struct err_detail *why)
{
	if (to->item.kind == ITEM_NONE || to->item.kind != from->name.dir.kind)
		return ERR_OK;
	struct span name = from->name.name;
	if (asprintf(ret_path, "%s/%.*s", path, (int)name.n, name.p) < 0) {
		*ret_path = NULL;
		return ERR_NO_MEMORY;
	}
	place_fini(to);
	return place_find(env->service, *ret_path, true, to, why);
}

enum err store_row_move(struct cmd_env *env, const char *path, const char *new_path,
	char **ret_blamed, struct err_detail *why)
{
	struct place from, to = { 0 };
	char *longer = NULL;
	const char *blamed = path;
	enum err e = place_find(env->service, path, false, &from, why);
	if (e == ERR_OK) {
		blamed = new_path;
		e = place_find(env->service, new_path, true, &to, why);
	}
	if (e == ERR_OK)
		e = into(env, &from, new_path, &to, &longer, why);
	if (e == ERR_OK)
		e = move(env, &from, &to, why);
	*ret_blamed = longer != NULL ? longer : strdup(blamed);
	place_fini(&from);
	place_fini(&to);
	return e;
}
