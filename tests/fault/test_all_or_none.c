/* SPDX-License-Identifier: MIT
 * Change sets of several steps, each of which fails once: all of it is done, or nothing. */
#include "one_store.h"
#include "store/sqlite/store.h"

#include <errno.h>

/* Each of its calls of a kind fails in turn, and then none; as often as it was refused it was not
 * done.  Returns how often that was. */
static unsigned refusals(enum err (*run)(void), unsigned kind, int error)
{
	unsigned n = 0, refused = 0;
	enum err e;
	do {
		open_again();
		calls_strike(CALLS_FAIL, kind, true, ++n, error);
		e = run();
		(void)calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY);
		CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
		refused += e == ERR_NO_MEMORY;
	} while (e != ERR_OK && n < 2000);
	CHECK_ERR(e, ERR_OK);
	return refused;
}

/* ---- statements that fail ---- */

static void with_each_statement(enum err (*run)(void), unsigned at_least)
{
	CHECK(refusals(run, CALLS_STATEMENT, SQLITE_NOMEM) >= at_least);
}

static enum err remove_last(void)
{
	return apply(removal(row_at("new", "r"), 0));
}

static uint64_t last;

/* By its number nothing of the way to it is known. */
static enum err remove_last_by_id(void)
{
	return apply(removal((struct item_ref){ .id = last }, 0));
}

TEST(a_partition_goes_with_its_last_row_or_both_stay)
{
	unsigned n = 0;
	enum err e;
	begin_with_rows();
	CHECK_ERR(apply(row("new", "r")), ERR_OK);
	with_each_statement(remove_last, 5);
	CHECK_ERR(remove_last(), ERR_NOT_FOUND);
	last = make(ITEM_ROW, row_at("new", "r"));
	with_each_statement(remove_last_by_id, 5);
	last = make(ITEM_ROW, row_at("new", "r"));
	do {
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, ++n, ENOMEM);
		e = remove_last_by_id();
		(void)calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY);
	} while (e != ERR_OK && n < 500);
	CHECK_ERR(e, ERR_OK);
	end();
}

static enum err put_in_new_partition(void)
{
	sql_of(store)->writer.now.id_reserved = sql_of(store)->writer.next_id;
	return apply(row("new", "r"));
}

TEST(a_partition_is_made_with_its_first_row_or_neither)
{
	begin_with_rows();
	with_each_statement(put_in_new_partition, 5);
	end();
}

static struct item_ref trashed(const char *name)
{
	return named(STORE_TRASH, name);
}

static enum err to_trash(void)
{
	struct change c = removal(row_at("p", "back"), CHANGE_TO_FILE | CHANGE_KEEP_DIR);
	c.to = trashed("t");
	return apply(c);
}

/* What came back out of the trash has the id of a file in it already. */
TEST(a_row_goes_into_the_trash_a_second_time)
{
	static char body[6000];
	begin_with_rows();
	for (int large = 0; large < 2; large++) {
		struct span text = span_make(body, large ? sizeof(body) : 10);
		CHECK_ERR(apply(put(ITEM_ROW, row_at("p", "back"), text)), ERR_OK);
		CHECK_ERR(to_trash(), ERR_OK);
		struct change c = move(trashed("t"), row_at("p", "back"));
		c.to_kind = ITEM_ROW;
		c.body = text;
		CHECK_ERR(apply(c), ERR_OK);
		with_each_statement(to_trash, 5);
		CHECK_ERR(apply(removal(trashed("t"), 0)), ERR_OK);
	}
	end();
}

static enum err set_and_remove_tree(void)
{
	struct change c[2] = { row("p", "fresh"),
		removal(named(partition, "tree"), CHANGE_RECURSIVE) };
	return apply_set(c, 2);
}

static enum err set_and_attrs(void)
{
	struct change c[2] = { row("p", "new"),
		{ .op = CHANGE_ATTRS, .at = { .id = partition }, .set_mask = ATTR_MODE } };
	c[1].attrs = (struct attrs)ATTRS_UNSET;
	c[1].attrs.mode = MODE_SET(0700);
	return apply_set(c, 2);
}

TEST(what_a_set_counted_is_written_before_the_directory_is_changed)
{
	begin_with_rows();
	uint64_t tree = make(ITEM_FOLDER, named(partition, "tree"));
	(void)make(ITEM_FILE, named(tree, "f"));
	with_each_statement(set_and_remove_tree, 5);
	with_each_statement(set_and_attrs, 5);
	end();
}

/* As the file's own rules are broken by damage. */
TEST(a_new_row_that_the_file_refuses_is_no_row_that_is_there)
{
	begin_with_rows();
	CHECK_ERR(apply(row("p", "c")), ERR_OK); /* so that the next one is expected new */
	struct sql_conn *c = sql_of(store)->writer.conn;
	CHECK_ERR(sql_exec(c,
			  "CREATE TEMP TRIGGER t BEFORE INSERT ON item BEGIN"
			  " SELECT RAISE(ABORT,'no'); END"),
		ERR_OK);
	CHECK_ERR(apply(row("p", "d")), ERR_CORRUPT);
	CHECK_ERR(sql_exec(c, "DROP TRIGGER t"), ERR_OK);
	CHECK_ERR(apply(row("p", "d")), ERR_OK);
	end();
}

/* ---- memory ---- */

static uint64_t deepest;

/* Directories in directories, each with a file. */
static void make_tree(void)
{
	uint64_t dir = make(ITEM_FOLDER, named(table, "tree"));
	for (int i = 0; i < 5; i++) {
		CHECK_ERR(apply(put(ITEM_FILE, named(dir, "file"), SPAN_LIT(""))), ERR_OK);
		dir = make(ITEM_FOLDER, named(dir, "sub"));
	}
	deepest = dir;
}

static enum err remove_tree(void)
{
	return apply(removal(named(table, "tree"), CHANGE_RECURSIVE));
}

/* Below it the way up is looked at. */
static enum err move_into_tree(void)
{
	return apply(move(named(table, "moved"), named(deepest, "moved")));
}

static enum err put_where_ids_run_out(void)
{
	sql_of(store)->writer.now.id_reserved = sql_of(store)->writer.next_id;
	return put_row("id");
}

TEST(without_memory_a_tree_stays_whole)
{
	begin();
	make_tree();
	(void)make(ITEM_FOLDER, named(table, "moved"));
	CHECK(refusals(move_into_tree, CALLS_MEMORY, ENOMEM) > 5);
	CHECK_ERR(move_into_tree(), ERR_NOT_FOUND);
	CHECK(refusals(remove_tree, CALLS_MEMORY, ENOMEM) > 5);
	CHECK_ERR(remove_tree(), ERR_NOT_FOUND);
	end();
}

TEST(without_memory_no_id_is_given_twice)
{
	begin();
	CHECK(refusals(put_where_ids_run_out, CALLS_MEMORY, ENOMEM) > 2);
	CHECK(has_row("id"));
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_partition_goes_with_its_last_row_or_both_stay),
	T(a_partition_is_made_with_its_first_row_or_neither),
	T(a_row_goes_into_the_trash_a_second_time),
	T(what_a_set_counted_is_written_before_the_directory_is_changed),
	T(a_new_row_that_the_file_refuses_is_no_row_that_is_there),
	T(without_memory_a_tree_stays_whole),
	T(without_memory_no_id_is_given_twice))
/* clang-format on */
