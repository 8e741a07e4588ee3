/* SPDX-License-Identifier: MIT
 * ls: what is at a path, or in it.  Lists in pieces: no output is written while the store lists. */
#include "base/clock.h"
#include "codec/json_build.h"
#include "daemon/core/place.h"
#include "daemon/core/progress.h"
#include "daemon/core/rows_out.h"
#include "model/etag.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)64 << 10)

enum form {
	FORM_NAMES,
	FORM_LONG, /* for people */
	FORM_JSON,
};

struct list {
	enum form form;
	struct buf text; /* of the lines that wait */
	struct buf last; /* the key that was listed last */
	bool full;
};

static const char *kind_name(enum item_kind kind)
{
	return kind == ITEM_ACCOUNT      ? "account"
		: kind == ITEM_TABLE     ? "table"
		: kind == ITEM_PARTITION ? "partition"
		: kind == ITEM_ROW       ? "row"
		: kind == ITEM_FOLDER    ? "folder"
					 : "file";
}

static void add_json(struct buf *out, const struct item *it, struct span name)
{
	struct json_build b;
	char text[ETAG_MAX > CLOCK_TEXT_MAX ? ETAG_MAX : CLOCK_TEXT_MAX];
	json_begin(&b);
	json_add_text(&b, "name", name);
	json_add_str(&b, "kind", kind_name(it->kind));
	json_add_count(&b, item_is_dir(it->kind) ? "children" : "size", it->size);
	(void)clock_format(it->version, text);
	json_add_str(&b, "changed", text);
	if (it->kind == ITEM_ROW && !item_is_empty_row(it)) {
		(void)etag_format(it->version, text);
		json_add_str(&b, "etag", text);
	}
	json_end(&b, out);
	buf_add_char(out, '\n');
}

static void add_long(struct buf *out, const struct item *it, struct span name)
{
	char when[CLOCK_TEXT_MAX], n[NUMBER_MAX];
	bool dir = item_is_dir(it->kind);
	(void)clock_format(it->version, when);
	buf_addf(out, "%10s %-5s  %.10s %.8s  ", number_text(it->size, n), dir ? "names" : "bytes",
		when, when + 11);
	buf_add_span(out, name);
	buf_add_str(out, dir ? "/\n" : "\n");
}

static void add_line(struct buf *out, enum form form, const struct item *it, struct span name)
{
	if (form == FORM_JSON) {
		add_json(out, it, name);
	} else if (form == FORM_LONG) {
		add_long(out, it, name);
	} else {
		buf_add_span(out, name);
		buf_add_str(out, item_is_dir(it->kind) ? "/\n" : "\n");
	}
}

static bool on_item(void *arg, const struct item *it)
{
	struct list *l = arg;
	char component[COMPONENT_MAX];
	add_line(&l->text, l->form, it, span_make(component, item_component(it, component)));
	buf_clear(&l->last);
	buf_add_span(&l->last, it->key);
	l->full = l->text.len >= PIECE || !buf_ok(&l->text);
	return !l->full;
}

static enum err print(struct cmd_env *env, struct list *l, struct err_detail *why)
{
	enum err e = buf_full(&l->text);
	if (e == ERR_OK && l->text.len > 0 &&
		fwrite(l->text.data, 1, l->text.len, env->out) != l->text.len)
		e = rows_out_error(why);
	buf_clear(&l->text);
	return e;
}

static enum err list_class(struct cmd_env *env, struct list *l, uint64_t dir, enum item_class class,
	struct err_detail *why)
{
	enum err e;
	buf_clear(&l->last);
	bool begun = false;
	do {
		l->full = false;
		struct span after = begun ? buf_span(&l->last) : (struct span){ 0 };
		char key[LIMIT_KEY_BYTES + 1];
		memcpy(key, after.p != NULL ? after.p : "", after.n);
		if (begun)
			after.p = key;
		e = store_list(service_store(env->service), NULL, dir, class, after, false,
			WANT_ATTRS, on_item, l);
		begun = true;
		if (e == ERR_OK)
			e = print(env, l, why);
		if (e == ERR_OK && env->cancelled(env->cancel_arg))
			e = ERR_CANCELLED;
	} while (e == ERR_OK && l->full);
	return e;
}

static enum err list_one(
	struct cmd_env *env, struct list *l, const char *path, struct err_detail *why)
{
	struct place p;
	enum err e = place_find(env->service, path, false, &p, why);
	if (e == ERR_OK && !item_is_dir(p.item.kind) && p.item.id != STORE_ROOT) {
		add_line(&l->text, l->form, &p.item, p.name.name);
		e = print(env, l, why);
	} else if (e == ERR_OK) {
		e = list_class(env, l, p.item.id, CLASS_KEYED, why);
		if (e == ERR_OK && p.item.id != STORE_ROOT)
			e = list_class(env, l, p.item.id, CLASS_NAMED, why);
	}
	place_fini(&p);
	return e;
}

static int run(struct cmd_env *env, const struct args *args)
{
	int code = EXIT_DONE;
	bool people = args_has(args, "long") || isatty(env->out_fd);
	struct list l = { .form = args_has(args, "json") ? FORM_JSON
			: people                         ? FORM_LONG
							 : FORM_NAMES,
		.text = BUF_INIT(PIECE * 2),
		.last = BUF_INIT(LIMIT_KEY_BYTES) };
	for (int i = 1; i < args->nwords || i == 1; i++) {
		const char *path = i < args->nwords ? args->words[i] : "/";
		struct err_detail why = { 0 };
		enum err e = list_one(env, &l, path, &why);
		if (e != ERR_OK && rows_out_reader_left(env)) {
			code = EXIT_FAILED;
			break;
		}
		if (e != ERR_OK)
			code = place_fail(env, "ls", path, e, &why);
	}
	buf_fini(&l.text);
	buf_fini(&l.last);
	return code;
}

static const struct option_spec options_[] = {
	{ "json", 0, NULL, "one object a line: name, kind, size or children, changed, etag" },
	{ "long", 'l', NULL, "sizes and times too; the default on a terminal" },
	{ NULL },
};

const struct command command_ls = {
	.name = "ls",
	.topic = TOPIC_ROWS,
	.synopsis = "STORE [PATH...] [--long] [--json]",
	.summary = "Lists accounts, tables, partitions or rows",
	.help = "PATH is ACCOUNT/TABLE/PARTITION/ROW.json or a part of it, with the names that a mount\n"
		"shows.  Without PATH: the accounts.\n",
	.options = options_,
	.min_words = 1,
	.max_words = -1,
	.flags = COMMAND_READS,
	.data = run,
};
