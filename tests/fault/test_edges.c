/* SPDX-License-Identifier: MIT
 * Changes and reads at the edges of what the engine takes: values that are the largest or none,
 * sets that come back to what they changed, very many of a kind. */
#include "one_store.h"
#include "store/sqlite/store.h"

/* ---- sets that come back ---- */

TEST(what_a_set_wrote_it_may_write_again_whatever_came_between)
{
	struct change between[3] = {
		{ .op = CHANGE_ATTRS, .set_mask = ATTR_UID, .attrs = ATTRS_UNSET }, { 0 }, { 0 }
	};
	begin_with_rows();
	between[0].at = row_at("p", "a");
	between[0].attrs.uid = 5;
	for (int i = 0; i < 3; i++) {
		CHECK_ERR(apply(row("p", "c")), ERR_OK);
		CHECK_ERR(apply(row("p", "d")), ERR_OK);
		struct change c[3] = { row("p", "a"), between[0], row("p", "a") };
		if (i > 0)
			c[1] = move(row_at("p", "c"), row_at("p", "d"));
		if (i == 2)
			c[1].flags = CHANGE_EXCHANGE | CHANGE_WANT_OLD;
		c[0].version = c[1].version = c[2].version = ++version;
		CHECK_ERR(apply_set(c, 3), ERR_OK);
	}
	/* A set that did not write it may not. */
	struct change late = row("p", "a");
	late.version--;
	CHECK_ERR(apply(late), ERR_STALE_VERSION);
	end();
}

TEST(onto_itself_a_table_keeps_its_name_and_a_row_gets_its_document)
{
	struct item it = { 0 };
	begin_with_rows();
	CHECK_ERR(store_get(store, NULL, table, WANT_ATTRS, &it), ERR_OK);
	struct item_ref at = { .parent = it.parent, .key = SPAN_LIT("tab") };
	struct change c = move(at, at);
	c.name = SPAN_LIT("Tab");
	CHECK_ERR(apply(c), ERR_OK);
	item_fini(&it);
	c = move(row_at("p", "a"), row_at("p", "a"));
	c.body = SPAN_LIT("{\"A\":1}");
	CHECK_ERR(apply(c), ERR_OK);
	CHECK_ERR(store_child(store, NULL, partition, CLASS_KEYED, SPAN_LIT("a"), WANT_BODY, &it),
		ERR_OK);
	CHECK(span_is(it.body, "{\"A\":1}"));
	item_fini(&it);
	end();
}

/* ---- the largest, and none ---- */

TEST(a_row_too_large_for_a_file_stays_a_row)
{
	static char body[100];
	begin_with_rows();
	store_set_file_limits(store, 50, 1000);
	struct span text = span_make(body, sizeof(body));
	CHECK_ERR(apply(put(ITEM_ROW, row_at("p", "back"), text)), ERR_OK);
	struct change c = removal(row_at("p", "back"), CHANGE_TO_FILE | CHANGE_KEEP_DIR);
	c.to = named(STORE_TRASH, "t");
	CHECK_ERR(apply(c), ERR_FILE_TOO_LARGE);
	c = move(row_at("p", "back"), named(partition, "back"));
	c.to_kind = ITEM_FILE;
	CHECK_ERR(apply(c), ERR_FILE_TOO_LARGE);
	end();
}

TEST(nothing_is_put_below_nothing)
{
	begin_with_rows();
	CHECK_ERR(apply(put(ITEM_ROW, (struct item_ref){ .key = SPAN_LIT("x") }, SPAN_LIT("{}"))),
		ERR_NOT_FOUND);
	CHECK_ERR(apply(put(ITEM_FILE, named(STORE_TRASH, "f"), SPAN_LIT(""))), ERR_OK);
	end();
}

TEST(the_last_version_is_reserved_like_any)
{
	begin_with_rows();
	struct change c = row("p", "a");
	c.version = INT64_MAX - 5;
	CHECK_ERR(apply(c), ERR_OK);
	open_again();
	CHECK(store_version_floor(store) == INT64_MAX - 5);
	end();
}

static enum err write_at(uint64_t id, uint64_t offset, size_t n)
{
	static char bytes[20000];
	struct change c = { .op = CHANGE_WRITE, .at = { .id = id }, .version = ++version };
	c.offset = offset;
	c.body = span_make(bytes, n);
	return apply(c);
}

static enum err resize(uint64_t id, uint64_t size)
{
	struct change c = { .op = CHANGE_RESIZE, .at = { .id = id }, .version = ++version };
	c.offset = size;
	return apply(c);
}

/* Zeros behind its end are kept nowhere. */
TEST(a_small_file_may_be_longer_than_its_bytes)
{
	struct item it = { 0 };
	begin_with_rows();
	uint64_t f = make(ITEM_FILE, named(partition, "f"));
	CHECK_ERR(write_at(f, 0, 10), ERR_OK);
	CHECK_ERR(resize(f, 100), ERR_OK);
	CHECK_ERR(resize(f, 50), ERR_OK);
	CHECK_ERR(resize(f, 10000), ERR_OK);
	CHECK_ERR(resize(f, 5000), ERR_OK);
	CHECK_ERR(resize(f, 5), ERR_OK);
	CHECK_ERR(store_get(store, NULL, f, WANT_ATTRS, &it), ERR_OK);
	CHECK_EQ_INT(it.size, 5);
	item_fini(&it);
	end();
}

TEST(an_empty_row_becomes_a_file_that_grows)
{
	begin_with_rows();
	CHECK_ERR(apply(put(ITEM_ROW, row_at("p", "e"), SPAN_LIT(""))), ERR_OK);
	struct change c = move(row_at("p", "e"), named(partition, "e"));
	c.to_kind = ITEM_FILE;
	CHECK_ERR(store_apply(store, &c, 1, false, NULL), ERR_OK);
	uint64_t f = c.now.id;
	changes_fini(&c, 1);
	CHECK_ERR(write_at(f, 0, 20000), ERR_OK);
	end();
}

TEST(owner_group_and_mode_are_kept_each_without_the_others)
{
	begin_with_rows();
	for (int i = 0; i < 3; i++) {
		struct item it = { 0 };
		struct change c = row("p", "o");
		c.attrs.uid = i == 0 ? 5 : OWNER_UNSET;
		c.attrs.gid = i == 1 ? 6 : OWNER_UNSET;
		c.attrs.mtime_ns = i == 2 ? 7 : TIME_UNSET;
		CHECK_ERR(apply(c), ERR_OK);
		CHECK_ERR(store_child(store, NULL, partition, CLASS_KEYED, SPAN_LIT("o"),
				  WANT_ATTRS, &it),
			ERR_OK);
		CHECK(it.attrs.uid == c.attrs.uid && it.attrs.gid == c.attrs.gid &&
			it.attrs.mtime_ns == c.attrs.mtime_ns);
		item_fini(&it);
		CHECK_ERR(apply(removal(row_at("p", "o"), 0)), ERR_OK);
	}
	end();
}

/* ---- reading ---- */

struct seen {
	size_t n, most;
};

static bool see(void *arg, const struct item *it)
{
	struct seen *s = arg;
	(void)it;
	return ++s->n < s->most;
}

static size_t list(struct span after, bool inclusive, unsigned want, size_t most)
{
	struct seen s = { .most = most };
	CHECK_ERR(store_list(store, NULL, partition, CLASS_KEYED, after, inclusive, want, see, &s),
		ERR_OK);
	return s.n;
}

TEST(a_listing_goes_on_from_where_it_was_and_ends_when_told)
{
	static struct change c[1200];
	static char keys[1200][8];
	const struct span none = { NULL, 0 };
	begin_with_rows();
	for (size_t i = 0; i < 1200; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "c%05zu", i);
		c[i] = row("p", keys[i]);
	}
	CHECK_ERR(apply_set(c, 1200), ERR_OK);
	CHECK_EQ_INT(list(none, false, WANT_ATTRS, 5000), 1202);
	CHECK_EQ_INT(list(none, false, WANT_KEYS, 5000), 1202);
	CHECK_EQ_INT(list(SPAN_LIT("b"), true, WANT_KEYS, 5000), 1201);
	CHECK_EQ_INT(list(SPAN_LIT("b"), false, WANT_KEYS, 5000), 1200);
	CHECK_EQ_INT(list(none, false, WANT_ATTRS, 10), 10);
	CHECK_EQ_INT(list(none, false, WANT_ATTRS, 1024), 1024);
	end();
}

TEST(reads_of_what_is_no_file_or_behind_any_end)
{
	char bytes[100];
	size_t n = 1;
	struct item it = { 0 };
	struct store_view *v;
	begin_with_rows();
	uint64_t f = make(ITEM_FILE, named(partition, "f"));
	CHECK_ERR(write_at(f, 0, 10), ERR_OK);
	CHECK_ERR(store_file_read(store, NULL, f, INT64_MAX - 5, bytes, 100, &n), ERR_OK);
	CHECK_EQ_INT(n, 0);
	n = 1;
	CHECK_ERR(store_file_read(store, NULL, f, UINT64_MAX, bytes, 100, &n), ERR_OK);
	CHECK_EQ_INT(n, 0);
	CHECK_ERR(store_child(store, NULL, partition, CLASS_KEYED, SPAN_LIT("a"), 0, &it), ERR_OK);
	CHECK_ERR(store_file_read(store, NULL, it.id, 0, bytes, 100, &n), ERR_INVALID_INPUT);
	item_fini(&it);
	CHECK_ERR(store_file_read(store, NULL, partition, 0, bytes, 100, &n), ERR_IS_A_DIRECTORY);
	CHECK_ERR(store_view_open(store, &v), ERR_OK);
	CHECK_ERR(store_get(store, v, 0, WANT_ATTRS, &it), ERR_NOT_FOUND);
	store_view_close(store, v);
	end();
}

/* ---- many ---- */

/* More directories than are kept in memory, more ids than are reserved at once. */
TEST(rows_of_thousands_of_partitions_are_counted)
{
	enum {
		SETS = 22,
		EACH = 100
	};
	static struct change c[EACH];
	static char keys[EACH][16];
	struct item it = { 0 };
	begin();
	for (int set = 0; set < SETS; set++) {
		for (int i = 0; i < EACH; i++) {
			(void)snprintf(keys[i], sizeof(keys[i]), "%d", set * EACH + i);
			c[i] = row(keys[i], "r");
		}
		CHECK_ERR(store_apply(store, c, EACH, false, NULL), ERR_OK);
		changes_fini(c, EACH);
	}
	CHECK(sql_of(store)->writer.ndirs < SETS * EACH);
	CHECK_ERR(store_get(store, NULL, table, WANT_ATTRS, &it), ERR_OK);
	CHECK_EQ_INT(it.size, SETS * EACH + 1);
	item_fini(&it);
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	end();
}

TEST(readers_at_once_have_a_connection_each)
{
	struct store_view *views[20];
	struct item it = { 0 };
	begin();
	for (size_t i = 0; i < ARRAY_LEN(views); i++)
		CHECK_ERR(store_view_open(store, &views[i]), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(views); i++) {
		CHECK_ERR(store_get(store, views[i], table, WANT_ATTRS, &it), ERR_OK);
		item_fini(&it);
		store_view_close(store, views[i]);
	}
	CHECK(sql_of(store)->readers.nidle < ARRAY_LEN(views));
	end();
}

/* clang-format off */
RUN_TESTS(
	T(what_a_set_wrote_it_may_write_again_whatever_came_between),
	T(onto_itself_a_table_keeps_its_name_and_a_row_gets_its_document),
	T(a_row_too_large_for_a_file_stays_a_row),
	T(nothing_is_put_below_nothing),
	T(the_last_version_is_reserved_like_any),
	T(a_small_file_may_be_longer_than_its_bytes),
	T(an_empty_row_becomes_a_file_that_grows),
	T(owner_group_and_mode_are_kept_each_without_the_others),
	T(a_listing_goes_on_from_where_it_was_and_ends_when_told),
	T(reads_of_what_is_no_file_or_behind_any_end),
	T(rows_of_thousands_of_partitions_are_counted),
	T(readers_at_once_have_a_connection_each))
/* clang-format on */
