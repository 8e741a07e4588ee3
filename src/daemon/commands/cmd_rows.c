/* SPDX-License-Identifier: MIT
 * Rows by path, without a mount: get, put, merge, rm, mv and batch.  Names, checks and conditions are
 * those of the mount: service/tree/names.h and service/change. */
#include "codec/json_build.h"
#include "daemon/core/place.h"
#include "daemon/core/rows_out.h"
#include "model/etag.h"
#include "model/key.h"
#include "service/change/change_set.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The whole input, which may have so many bytes. */
static enum err read_input(
	struct cmd_env *env, size_t most, struct buf *ret, struct err_detail *why)
{
	const struct cmd_input *in = &env->inputs[0];
	*ret = BUF_INIT(most);
	char piece[16384];
	size_t n;
	while ((n = fread(piece, 1, sizeof(piece), in->file)) > 0 && buf_ok(ret))
		buf_add(ret, piece, n);
	if (ferror(in->file))
		return err_set(why, err_from_errno(errno), "cannot read %s: %s", in->name,
			strerrordesc_np(errno));
	return buf_full(ret);
}

/* ---- get ---- */

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

static enum err get_one(struct cmd_env *env, const char *path, bool keys, struct err_detail *why)
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

static int run_get(struct cmd_env *env, const struct args *args)
{
	int code = EXIT_DONE;
	for (int i = 1; i < args->nwords; i++) {
		struct err_detail why = { 0 };
		enum err e = get_one(env, args->words[i], args_has(args, "json"), &why);
		if (e != ERR_OK && rows_out_reader_left(env))
			return EXIT_FAILED;
		if (e != ERR_OK)
			code = place_fail(env, "get", args->words[i], e, &why);
	}
	return code;
}

static const struct option_spec get_options[] = {
	{ "json", 0, NULL, "one object a line, with PartitionKey, RowKey and Timestamp" },
	{ NULL },
};

const struct command command_get = {
	.name = "get",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH... [--json]",
	.summary = "Prints rows, as their files show them",
	.help = "PATH is ACCOUNT/TABLE/PARTITION/ROW.json, with the names that a mount shows.\n",
	.options = get_options,
	.min_words = 2,
	.max_words = -1,
	.flags = COMMAND_READS,
	.data = run_get,
};

/* ---- conditions ---- */

/* --if-match: an ETag; "*": any row; "": none. */
struct condition {
	bool given, any, absent;
	int64_t version;
};

static bool read_condition(const struct args *args, struct condition *ret)
{
	const char *text = args_value(args, "if-match");
	*ret = (struct condition){ .given = text != NULL, .absent = text != NULL && *text == 0 };
	return !ret->given || ret->absent ||
		etag_parse(span_of(text), &ret->any, &ret->version, NULL) == ERR_OK;
}

static bool check_condition(const struct args *args, const char *command, FILE *err)
{
	struct condition c;
	if (read_condition(args, &c))
		return true;
	(void)command_fail(err, command,
		"--if-match is an ETag, as 'rowfs ls --json' shows it, or '*', or empty, not '%s'",
		args_value(args, "if-match"));
	return false;
}

static enum err set_condition(struct entity_op *op, const struct condition *c, bool merge)
{
	if (merge && c->absent)
		return ERR_INVALID_INPUT;
	if (c->absent)
		op->kind = ENTITY_INSERT;
	else if (c->given)
		op->kind = merge ? ENTITY_MERGE : c->any ? ENTITY_REPLACE : ENTITY_UPSERT;
	op->if_match = c->given && !c->any && !c->absent;
	op->if_match_version = c->version;
	return ERR_OK;
}

static enum err condition_error(const struct condition *c, enum err e)
{
	bool unmet = e == ERR_NOT_FOUND || e == ERR_ENTITY_EXISTS || e == ERR_GONE;
	return c->given && unmet ? ERR_CONDITION_NOT_MET : e;
}

static bool check_put(const struct args *args, FILE *err)
{
	return check_condition(args, "put", err);
}

static bool check_merge(const struct args *args, FILE *err)
{
	return check_condition(args, "merge", err);
}

static bool check_rm(const struct args *args, FILE *err)
{
	return check_condition(args, "rm", err);
}

/* ---- put, merge ---- */

/* The table of the path, as import makes it. */
static enum err make_table(struct service *s, const char *path, struct err_detail *why)
{
	path += strspn(path, "/");
	struct span account = span_make(path, strcspn(path, "/"));
	path += account.n + strspn(path + account.n, "/");
	struct span table = span_make(path, strcspn(path, "/"));
	struct item in = { 0 }, made = { 0 };
	enum err e = account_find(s, account, &in);
	if (e == ERR_OK)
		e = table_create(s, ORIGIN_COMMAND, in.id, table, &made, why);
	item_fini(&in);
	item_fini(&made);
	/* Somebody else was faster. */
	return e == ERR_TABLE_EXISTS ? ERR_OK : e;
}

static enum err write_at(struct cmd_env *env, struct place *p, struct span text, bool merge,
	const struct condition *c, struct entity_op *op, struct err_detail *why)
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
	return condition_error(c, e);
}

static enum err write_row(struct cmd_env *env, const char *path, bool merge,
	const struct condition *c, struct entity_op *op, struct err_detail *why)
{
	struct buf text;
	struct place p = { 0 };
	enum err e = read_input(env, LIMIT_DOCUMENT_BYTES, &text, why);
	if (e == ERR_BODY_TOO_LARGE)
		e = ERR_ENTITY_TOO_LARGE;
	if (e == ERR_OK)
		e = place_find(env->service, path, true, &p, why);
	if (e == ERR_TABLE_NOT_FOUND) {
		place_fini(&p);
		e = make_table(env->service, path, why);
		if (e == ERR_OK)
			e = place_find(env->service, path, true, &p, why);
	}
	if (e == ERR_OK && !p.name.row_name)
		e = err_set(why, ERR_NAME_INVALID,
			"not the name of a row, which is ACCOUNT/TABLE/PARTITION/KEY.json");
	if (e == ERR_OK)
		e = write_at(env, &p, buf_span(&text), merge, c, op, why);
	place_fini(&p);
	buf_fini(&text);
	return e;
}

static int run_write(struct cmd_env *env, const struct args *args, const char *command, bool merge)
{
	struct err_detail why = { 0 };
	struct condition c;
	struct entity_op op;
	char etag[ETAG_MAX];
	(void)read_condition(args, &c);
	enum err e = write_row(env, args->words[1], merge, &c, &op, &why);
	if (e != ERR_OK)
		return place_fail(env, command, args->words[1], e, &why);
	struct json_build b;
	if (!args_has(args, "json"))
		return EXIT_DONE;
	etag_format(op.version, etag);
	json_begin(&b);
	json_add_str(&b, "path", args->words[1]);
	json_add_str(&b, "etag", etag);
	return json_end_print(&b, env->out) == ERR_OK
		? EXIT_DONE
		: command_fail(env->err, command, "the row is written, but memory is out");
}

static int run_put(struct cmd_env *env, const struct args *args)
{
	return run_write(env, args, "put", false);
}

static int run_merge(struct cmd_env *env, const struct args *args)
{
	return run_write(env, args, "merge", true);
}

static const struct option_spec write_options[] = {
	{ "if-match", 0, "ETAG", "only over the row with this ETag; '*': any row; '': no row" },
	{ "json", 0, NULL, "print the ETag of the new version" },
	{ NULL },
};

#define WRITE_HELP \
	"The document is read from FILE or standard input.  The account must exist; a table and a\n" \
	"partition that do not exist are made.\n"

const struct command command_put = {
	.name = "put",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH [FILE] [--if-match=ETAG] [--json]",
	.summary = "Inserts or replaces a row",
	.help = WRITE_HELP,
	.options = write_options,
	.min_words = 2,
	.max_words = 3,
	.first_input = 2,
	.check = check_put,
	.data = run_put,
};

const struct command command_merge = {
	.name = "merge",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH [FILE] [--if-match=ETAG] [--json]",
	.summary = "Merges properties into a row, or inserts it",
	.help = WRITE_HELP "Properties that the document lacks stay as they are.\n",
	.options = write_options,
	.min_words = 2,
	.max_words = 3,
	.first_input = 2,
	.check = check_merge,
	.data = run_merge,
};

/* ---- rm ---- */

static enum err remove_row(struct cmd_env *env, const struct place *p, const struct condition *c,
	struct err_detail *why)
{
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	struct entity_op op = { .kind = ENTITY_DELETE, .attrs = ATTRS_UNSET };
	key_from_order(p->name.dir.key.p, p->name.dir.key.n, pk);
	key_from_order(p->item.key.p, p->item.key.n, rk);
	op.pk = span_make(pk, p->name.dir.key.n);
	op.rk = span_make(rk, p->item.key.n);
	op.if_match = c->given && !c->any;
	op.if_match_version = c->version;
	return condition_error(c,
		entities_apply(env->service, ORIGIN_COMMAND, p->table, &op, 1,
			ENTITIES_SET | ENTITIES_DURABLE, why));
}

static enum err remove_one(struct cmd_env *env, const char *path, bool recursive,
	const struct condition *c, struct err_detail *why)
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

static int run_rm(struct cmd_env *env, const struct args *args)
{
	int code = EXIT_DONE;
	struct condition c;
	(void)read_condition(args, &c);
	for (int i = 1; i < args->nwords && !env->cancelled(env->cancel_arg); i++) {
		struct err_detail why = { 0 };
		enum err e = remove_one(env, args->words[i], args_has(args, "recursive"), &c, &why);
		if (e != ERR_OK)
			code = place_fail(env, "rm", args->words[i], e, &why);
	}
	return code;
}

/* A person is asked; a script is not. */
static bool ask_rm(const struct args *args)
{
	char answer[16];
	if (!args_has(args, "recursive") || args_has(args, "yes") || !isatty(STDIN_FILENO))
		return true;
	fprintf(stderr, "rowfs rm: remove ");
	for (int i = 1; i < args->nwords; i++)
		fprintf(stderr, "%s'%s'", i > 1 ? ", " : "", args->words[i]);
	fprintf(stderr, " with all below? [y/N] ");
	if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return true;
	fprintf(stderr, "rowfs rm: nothing was removed\n");
	return false;
}

static const struct option_spec rm_options[] = {
	{ "if-match", 0, "ETAG", "only the row with this ETag" },
	{ "recursive", 'r', NULL, "also partitions, tables and accounts, with all below them" },
	{ "yes", 'y', NULL, "do not ask before -r" },
	{ NULL },
};

const struct command command_rm = {
	.name = "rm",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH... [--recursive] [--yes] [--if-match=ETAG]",
	.summary = "Removes rows, partitions, tables or accounts",
	.help = "On a terminal -r asks first.  However much is below, it is gone in one step.\n"
		"What is removed so is not in the trash of a mount.\n",
	.options = rm_options,
	.min_words = 2,
	.max_words = -1,
	.check = check_rm,
	.ask = ask_rm,
	.data = run_rm,
};

/* ---- mv ---- */

static enum err check_move(const struct place *from, const struct place *to, struct err_detail *why)
{
	bool file = from->item.kind == ITEM_ROW || from->item.kind == ITEM_FILE;
	if (from->item.kind == ITEM_TABLE || from->item.id == STORE_ROOT)
		return err_set(why, ERR_NOT_PERMITTED,
			"a table gets another name in a mount, or by export and import");
	if (to->name.dir.id == 0)
		return ERR_NOT_FOUND;
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

static int run_mv(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	struct place from, to = { 0 };
	char *longer = NULL;
	const char *blamed = args->words[1];
	enum err e = place_find(env->service, blamed, false, &from, &why);
	if (e == ERR_OK) {
		blamed = args->words[2];
		e = place_find(env->service, blamed, true, &to, &why);
	}
	if (e == ERR_OK)
		e = into(env, &from, args->words[2], &to, &longer, &why);
	if (e == ERR_OK)
		e = move(env, &from, &to, &why);
	int code = e == ERR_OK ? EXIT_DONE
			       : place_fail(env, "mv", longer != NULL ? longer : blamed, e, &why);
	place_fini(&from);
	place_fini(&to);
	free(longer);
	return code;
}

const struct command command_mv = {
	.name = "mv",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE PATH NEW",
	.summary = "Gives a row, partition or account another name",
	.help = "The keys of a row are its name, so this changes them, in one step.  NEW may be the\n"
		"directory to move into.  A row at NEW is replaced.\n",
	.min_words = 3,
	.max_words = 3,
	.data = run_mv,
};

/* ---- batch ---- */

static enum err find_batch_place(struct cmd_env *env, const char *path, struct place *p,
	struct item *account, struct item *table, struct change_set_place *at, char *pk,
	struct err_detail *why)
{
	struct store *store = service_store(env->service);
	enum err e = place_find(env->service, path, false, p, why);
	bool partition = p->item.kind == ITEM_PARTITION;
	if (e == ERR_OK && !partition && p->item.kind != ITEM_TABLE)
		e = err_set(why, ERR_INVALID_INPUT, "not ACCOUNT/TABLE or ACCOUNT/TABLE/PARTITION");
	if (e == ERR_OK)
		e = store_get(store, NULL, p->table, WANT_ATTRS, table);
	if (e == ERR_OK)
		e = store_get(store, NULL, table->parent, WANT_ATTRS, account);
	if (e != ERR_OK)
		return e;
	*at = (struct change_set_place){ .account = account->key, .table = table->name };
	if (partition) {
		key_from_order(p->item.key.p, p->item.key.n, pk);
		at->pk = span_make(pk, p->item.key.n);
	}
	return ERR_OK;
}

static enum err apply_batch(struct cmd_env *env, const struct args *args, const struct place *p,
	const struct change_set_place *at, struct buf *out, struct err_detail *why)
{
	struct buf text;
	struct change_set set = { 0 };
	bool checked = args_has(args, "check");
	enum err e = read_input(env, LIMIT_BATCH_BYTES, &text, why);
	if (e == ERR_OK)
		e = change_set_parse(buf_span(&text), at, &set, why);
	if (e == ERR_OK)
		e = change_set_apply(env->service, ORIGIN_COMMAND, p->table, &set,
			checked ? ENTITIES_CHECK : ENTITIES_DURABLE, why);
	change_set_result(&set, e, why, checked, out);
	change_set_fini(&set);
	buf_fini(&text);
	return e;
}

static int run_batch(struct cmd_env *env, const struct args *args)
{
	struct err_detail why = { 0 };
	struct place p = { 0 };
	struct item account = { 0 }, table = { 0 };
	struct change_set_place at;
	char pk[LIMIT_KEY_BYTES];
	struct buf out = BUF_INIT((size_t)2 << 20);
	enum err e = find_batch_place(env, args->words[1], &p, &account, &table, &at, pk, &why);
	if (e == ERR_OK)
		e = apply_batch(env, args, &p, &at, &out, &why);
	(void)fwrite(out.data != NULL ? out.data : "", 1, out.len, env->out);
	int code = e == ERR_OK ? EXIT_DONE : place_fail(env, "batch", args->words[1], e, &why);
	buf_fini(&out);
	item_fini(&account);
	item_fini(&table);
	place_fini(&p);
	return code;
}

static const struct option_spec batch_options[] = {
	{ "check", 0, NULL, "say what would happen, and change nothing" },
	{ NULL },
};

const struct command command_batch = {
	.name = "batch",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE ACCOUNT/TABLE[/PARTITION] [FILE] [--check]",
	.summary = "Applies a change set: all of it or nothing",
	.help = "Reads what a .batch file of a mount takes, and prints the result as JSON.\n",
	.options = batch_options,
	.min_words = 2,
	.max_words = 3,
	.first_input = 2,
	.data = run_batch,
};
