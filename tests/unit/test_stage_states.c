/* SPDX-License-Identifier: MIT
 * The two tables of fs/write/stage_state.h: every cell, first by itself, then with a real stage over
 * an engine that can run out of space. */
#include "../fuzz/fuse_kernel.h"
#include "check.h"
#include "fs/core/nid.h"
#include "fs/fs.h"
#include "fs/write/stage.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service_table.h"
#include "store/engines.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))

/* ---- the tables ---- */

#define LINE(event_, ...) { STAGE_##event_, #event_ },
static const struct {
	enum stage_event event;
	const char *name;
} document_lines[] = { STAGE_DOCUMENTS(LINE) }, name_lines[] = { STAGE_NAMES(LINE) };

/* Returns whether the step stops the program. */
static bool step_stops(struct stage_state s, enum stage_event event)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		(void)close(STDERR_FILENO); /* the log */
		stage_step(&s, event);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

TEST(a_step_leads_where_the_table_says_or_stops_the_program)
{
	for (size_t i = 0; i < ARRAY_LEN(document_lines); i++)
		for (int now = DOC_NO + 1; now < DOC_COUNT_; now++) {
			enum stage_event event = document_lines[i].event;
			enum stage_document then =
				stage_document_after((enum stage_document)now, event);
			struct stage_state s = { (enum stage_document)now, NAME_ITEM };
			CHECK_EQ_INT(step_stops(s, event), then == DOC_NO);
			if (then != DOC_NO) {
				stage_step(&s, event);
				CHECK_EQ_INT(s.document, then);
				CHECK_EQ_INT(s.name, NAME_ITEM);
			}
		}
	for (size_t i = 0; i < ARRAY_LEN(name_lines); i++)
		for (int now = NAME_NO + 1; now < NAME_COUNT_; now++) {
			enum stage_event event = name_lines[i].event;
			enum stage_name then = stage_name_after((enum stage_name)now, event);
			struct stage_state s = { DOC_WRITING, (enum stage_name)now };
			CHECK_EQ_INT(step_stops(s, event), then == NAME_NO);
			if (then != NAME_NO) {
				stage_step(&s, event);
				CHECK_EQ_INT(s.name, then);
			}
		}
}

TEST(every_event_has_its_line)
{
	for (int event = 0; event < STAGE_EVENTS_; event++) {
		unsigned lines = 0;
		for (size_t i = 0; i < ARRAY_LEN(document_lines); i++)
			lines += document_lines[i].event == (enum stage_event)event;
		for (size_t i = 0; i < ARRAY_LEN(name_lines); i++)
			lines += name_lines[i].event == (enum stage_event)event;
		CHECK_EQ_INT(lines, event == STAGE_COMMIT ? 2 : 1);
	}
}

TEST(a_state_says_what_is_to_be_committed_and_what_is_final)
{
	for (int i = DOC_NO + 1; i < DOC_COUNT_; i++) {
		const struct stage_state s = { (enum stage_document)i, NAME_ITEM };
		bool refused = i == DOC_REFUSED || i == DOC_ASIDE;
		CHECK_EQ_INT(stage_is_refused(&s), refused);
		CHECK_EQ_INT(stage_is_final(&s), refused || i == DOC_LOST);
		CHECK_EQ_INT(
			stage_is_edited(&s), i != DOC_UNREAD && i != DOC_CLEAN && i != DOC_EMPTIED);
	}
}

/* ---- a partition, and an engine that can be full ---- */

static struct {
	struct service *service;
	struct store *store;
	struct fs *fs;
	uint64_t table, partition;
	char rk[16], name[24]; /* the row that it is about */
	unsigned rows;
} world;
static const struct store_ops *real;
static bool full;

static enum err apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *detail)
{
	return full ? ERR_NO_SPACE : real->apply(s, changes, n, durable, detail);
}

/* By another front end. */
static void change(enum entity_op_kind kind, const char *json)
{
	struct entity e = { 0 };
	struct entity_op op = { .kind = kind,
		.pk = SPAN_LIT("p"),
		.rk = span_of(world.rk),
		.entity = &e,
		.attrs = ATTRS_UNSET };
	MUST(entity_json_decode(span_of(json), ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
	MUST(entities_apply(world.service, ORIGIN_REST, world.table, &op, 1, ENTITIES_SET, NULL) ==
		ERR_OK);
	entity_fini(&e);
}

static void next_row(void)
{
	(void)snprintf(world.rk, sizeof(world.rk), "r%u", world.rows++);
	(void)snprintf(world.name, sizeof(world.name), "%s.json", world.rk);
}

static void begin(void)
{
	static struct store_ops ops;
	struct item it = { 0 };
	memset(&world, 0, sizeof(world));
	MUST(store_open_memory(&world.store) == ERR_OK);
	MUST(service_new(world.store, &world.service) == ERR_OK);
	uint64_t account;
	service_table(world.service, &account, &world.table);
	next_row();
	change(ENTITY_INSERT, "{}");
	MUST(store_child(world.store, NULL, world.table, CLASS_KEYED, SPAN_LIT("p"), WANT_ATTRS,
		     &it) == ERR_OK);
	world.partition = it.id;
	item_fini(&it);
	world.fs = fuse_kernel_begin(world.service);
	real = world.store->ops;
	ops = *real;
	ops.apply = apply;
	world.store->ops = &ops;
	full = false;
}

static void end(void)
{
	fuse_kernel_end(world.fs);
	service_free(world.service);
}

/* Returns a stage of the next row, or of its name; want: of a row that is there. */
static struct stage *stage(bool there, unsigned want)
{
	struct resolved_name t = { 0 };
	struct item item = { 0 };
	struct stage *s = NULL;
	next_row();
	if (there)
		change(ENTITY_INSERT, "{\"A\":1}");
	MUST(name_resolve(world.fs->store, nid_make(world.partition, 0), world.name, &t, NULL) ==
		ERR_OK);
	if (there)
		MUST(resolved_name_item(world.fs->store, &t, want, &item) == ERR_OK);
	MUST(stage_new(world.fs, &t, there ? &item : NULL, &s) == ERR_OK);
	if (!there)
		stage_created(s, &ATTRS_UNSET);
	stage_opened(world.fs, s, getuid(), false);
	return s;
}

/* ---- the document's table, by calls ---- */

#define DOCUMENT "{\"A\":1}"

static void read_it(struct stage *s)
{
	(void)stage_load(world.fs, s);
}

static void open_empty(struct stage *s)
{
	stage_opened(world.fs, s, getuid(), true);
}

/* White space is right behind every document that can still become one. */
static void write_space(struct stage *s)
{
	(void)stage_write(world.fs, s, s->buf.len, SPAN_LIT(" "));
}

static void write_wrong(struct stage *s)
{
	(void)stage_write(world.fs, s, s->buf.len, SPAN_LIT("}"));
}

static void write_too_far(struct stage *s)
{
	(void)stage_write(world.fs, s, LIMIT_DOCUMENT_BYTES, SPAN_LIT(" "));
}

static void empty(struct stage *s)
{
	(void)stage_truncate(world.fs, s, 0);
}

static void resize(struct stage *s)
{
	(void)stage_truncate(world.fs, s, s->buf.len + 1);
}

static void close_it(struct stage *s)
{
	(void)stage_flush(world.fs, s, true);
}

static void close_on_full_disk(struct stage *s)
{
	full = true;
	close_it(s);
	full = false;
}

static void close_after_other(struct stage *s)
{
	change(ENTITY_UPSERT, "{\"A\":2}");
	close_it(s);
}

static void set_match(struct stage *s)
{
	stage_set_match(s, MATCH_UNSET);
}

static const struct {
	enum stage_event event;
	void (*call)(struct stage *s);
} document_calls[] = {
	{ STAGE_READ, read_it },
	{ STAGE_OPEN_EMPTY, open_empty },
	{ STAGE_WRITE, write_space },
	{ STAGE_REFUSE, write_wrong },
	{ STAGE_SET_ASIDE, write_too_far },
	{ STAGE_EMPTY, empty },
	{ STAGE_RESIZE, resize },
	{ STAGE_FAIL, close_on_full_disk },
	{ STAGE_LOSE, close_after_other },
	{ STAGE_MATCH, set_match },
	{ STAGE_COMMIT, close_it },
};

/* A row's stage whose document has come to the state. */
static struct stage *stage_in(enum stage_document state)
{
	struct stage *s = stage(true, state == DOC_UNREAD ? WANT_ATTRS : WANT_BODY);
	if (state >= DOC_WRITING && state <= DOC_LOST)
		write_space(s);
	if (state == DOC_EMPTIED)
		empty(s);
	else if (state == DOC_FAILED)
		close_on_full_disk(s);
	else if (state == DOC_LOST)
		close_after_other(s);
	else if (state == DOC_REFUSED)
		write_wrong(s);
	else if (state == DOC_ASIDE)
		write_too_far(s);
	CHECK_EQ_INT(s->is.document, state);
	return s;
}

TEST(calls_move_the_document_as_the_table_says)
{
	begin();
	CHECK_EQ_INT(ARRAY_LEN(document_calls), ARRAY_LEN(document_lines));
	for (size_t i = 0; i < ARRAY_LEN(document_calls); i++)
		for (int now = DOC_NO + 1; now < DOC_COUNT_; now++) {
			struct stage *s = stage_in((enum stage_document)now);
			enum stage_document then = stage_document_after(
				(enum stage_document)now, document_calls[i].event);
			document_calls[i].call(s);
			if (then != DOC_NO && s->is.document != then)
				printf("# after %s in state %d\n", document_lines[i].name, now);
			if (then != DOC_NO)
				CHECK_EQ_INT(s->is.document, then);
			stage_close(world.fs, s);
			stage_free(world.fs, s);
		}
	end();
}

/* ---- the name's table, by calls ---- */

static void show(struct stage *s)
{
	(void)stage_create_name(world.fs, s);
}

static void show_on_full_disk(struct stage *s)
{
	full = true;
	show(s);
	full = false;
}

static void write_and_close(struct stage *s)
{
	stage_opened(world.fs, s, getuid(), true);
	(void)stage_write(world.fs, s, s->buf.len, SPAN_LIT(DOCUMENT));
	close_it(s);
}

static const struct {
	enum stage_event event;
	void (*call)(struct stage *s);
} name_calls[] = {
	{ STAGE_COMMIT, write_and_close },
	{ STAGE_SHOW, show },
	{ STAGE_SHOW_NOTHING, show_on_full_disk },
};

static struct stage *stage_of(enum stage_name state)
{
	struct stage *s = stage(state == NAME_ITEM, WANT_BODY);
	if (state == NAME_BARE)
		show_on_full_disk(s);
	CHECK_EQ_INT(s->is.name, state);
	return s;
}

TEST(calls_move_the_name_as_the_table_says)
{
	begin();
	CHECK_EQ_INT(ARRAY_LEN(name_calls), ARRAY_LEN(name_lines));
	for (size_t i = 0; i < ARRAY_LEN(name_calls); i++)
		for (int now = NAME_NO + 1; now < NAME_COUNT_; now++) {
			enum stage_name then =
				stage_name_after((enum stage_name)now, name_calls[i].event);
			if (then == NAME_NO)
				continue;
			struct stage *s = stage_of((enum stage_name)now);
			name_calls[i].call(s);
			if (s->is.name != then)
				printf("# after %s in state %d\n", name_lines[i].name, now);
			CHECK_EQ_INT(s->is.name, then);
			CHECK_EQ_INT(stage_item(s).id != 0, then == NAME_ITEM);
			stage_close(world.fs, s);
			stage_free(world.fs, s);
		}
	end();
}

TEST(a_new_name_that_is_shown_is_a_row_without_a_document)
{
	struct item it = { 0 };
	begin();
	struct stage *s = stage(false, 0);
	show(s);
	uint64_t id = stage_item(s).id;
	MUST(store_get(world.store, NULL, id, WANT_ATTRS, &it) == ERR_OK);
	CHECK(item_is_empty_row(&it) && it.parent == world.partition);
	item_fini(&it);
	write_and_close(s);
	CHECK_EQ_INT(stage_item(s).id, id);
	stage_close(world.fs, s);
	stage_free(world.fs, s);
	end();
}

TEST(a_new_name_that_is_shown_is_the_row_that_another_front_end_made)
{
	struct item it = { 0 };
	begin();
	struct stage *s = stage(false, 0);
	change(ENTITY_INSERT, "{\"A\":2}");
	show(s);
	MUST(store_child(world.store, NULL, world.partition, CLASS_KEYED, span_of(world.rk),
		     WANT_ATTRS, &it) == ERR_OK);
	CHECK_EQ_INT(stage_item(s).id, it.id);
	item_fini(&it);
	write_and_close(s);
	CHECK_EQ_INT(s->is.document, DOC_CLEAN);
	stage_close(world.fs, s);
	stage_free(world.fs, s);
	end();
}

RUN_TESTS(T(a_step_leads_where_the_table_says_or_stops_the_program), T(every_event_has_its_line),
	T(a_state_says_what_is_to_be_committed_and_what_is_final),
	T(calls_move_the_document_as_the_table_says), T(calls_move_the_name_as_the_table_says),
	T(a_new_name_that_is_shown_is_a_row_without_a_document),
	T(a_new_name_that_is_shown_is_the_row_that_another_front_end_made))
