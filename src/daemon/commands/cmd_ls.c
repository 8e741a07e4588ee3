/* SPDX-License-Identifier: MIT
 * ls: what is at a path, or in it. */
#include "base/clock.h"
#include "codec/json_build.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/place.h"
#include "daemon/core/progress.h"
#include "daemon/core/rows_out.h"
#include "daemon/rows/rows.h"

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
	struct rows_listing listing;
	struct cmd_env *env;
	enum form form;
	struct buf text; /* of the lines that wait */
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

static void add_json(struct buf *out, const struct rows_entry *it)
{
	struct json_build b;
	char text[CLOCK_TEXT_MAX];
	json_begin(&b);
	json_add_text(&b, "name", it->name);
	json_add_str(&b, "kind", kind_name(it->kind));
	if (it->has_size)
		json_add_count(&b, item_is_dir(it->kind) ? "children" : "size", it->size);
	if (it->has_time) {
		(void)clock_format(it->changed, text);
		json_add_str(&b, "changed", text);
	}
	if (it->etag != NULL)
		json_add_str(&b, "etag", it->etag);
	json_end(&b, out);
	buf_add_char(out, '\n');
}

static void add_long(struct buf *out, const struct rows_entry *it)
{
	char when[CLOCK_TEXT_MAX] = "", n[NUMBER_MAX];
	bool dir = item_is_dir(it->kind);
	if (it->has_time)
		(void)clock_format(it->changed, when);
	buf_addf(out, "%10s %-5s  %10.10s %8.8s  ", it->has_size ? number_text(it->size, n) : "-",
		dir ? "names" : "bytes", when, it->has_time ? when + 11 : "");
	buf_add_span(out, it->name);
	buf_add_str(out, dir ? "/\n" : "\n");
}

static bool add(struct rows_listing *to, const struct rows_entry *it)
{
	struct list *l = (struct list *)to;
	if (l->form == FORM_JSON) {
		add_json(&l->text, it);
	} else if (l->form == FORM_LONG) {
		add_long(&l->text, it);
	} else {
		buf_add_span(&l->text, it->name);
		buf_add_str(&l->text, item_is_dir(it->kind) ? "/\n" : "\n");
	}
	return l->text.len < PIECE && buf_ok(&l->text);
}

static enum err flush(struct rows_listing *to, struct err_detail *why)
{
	struct list *l = (struct list *)to;
	enum err e = buf_full(&l->text);
	if (e == ERR_OK && l->text.len > 0 &&
		fwrite(l->text.data, 1, l->text.len, l->env->out) != l->text.len)
		e = rows_out_error(why);
	buf_clear(&l->text);
	return e;
}

static enum err list_one(struct list *l, const char *path, struct err_detail *why)
{
	enum err e = rows_of(l->env)->list(l->env, path, &l->listing, why);
	struct err_detail unused = { 0 };
	enum err printed = flush(&l->listing, e == ERR_OK ? why : &unused);
	return e == ERR_OK ? printed : e;
}

static int run(struct cmd_env *env, const struct args *args)
{
	int code = EXIT_DONE;
	bool people = args_has(args, "long") || isatty(env->out_fd);
	struct list l = { .listing = { add, flush },
		.env = env,
		.form = args_has(args, "json") ? FORM_JSON
			: people               ? FORM_LONG
					       : FORM_NAMES,
		.text = BUF_INIT(PIECE * 2) };
	for (int i = 1; i < args->nwords || i == 1; i++) {
		const char *path = i < args->nwords ? args->words[i] : "/";
		struct err_detail why = { 0 };
		enum err e = list_one(&l, path, &why);
		if (e != ERR_OK && rows_out_reader_left(env)) {
			code = EXIT_FAILED;
			break;
		}
		if (e != ERR_OK)
			code = place_fail(env, "ls", path, e, &why);
	}
	buf_fini(&l.text);
	return code;
}

static const struct option_spec options_[] = {
	ELSEWHERE_OPTIONS,
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
	.flags = COMMAND_READS | COMMAND_ELSEWHERE,
	.data = run,
};
