/* SPDX-License-Identifier: MIT
 * Rows that are read before they are asked for, what is kept of recent ones, and what the kernel
 * is not given again: without a mount. */
#include "base/clock.h"
#include "check.h"
#include "fs/cache/ahead.h"
#include "fs/cache/content.h"
#include "fs/cache/pages.h"
#include "fs/core/nid.h"
#include "store/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))
#define ROWS 200
#define LARGE ((size_t)STORE_SMALL_BODY + 1)

struct world {
	struct fs fs;
	uint64_t partition;
	int64_t version;
	char path[40]; /* empty: in memory */
};

static uint64_t put(
	struct world *w, uint64_t parent, enum item_kind kind, struct span key, struct span body)
{
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = parent, .class = CLASS_KEYED, .key = key },
		.kind = kind,
		.version = ++w->version,
		.attrs = ATTRS_UNSET,
		.body = body };
	if (kind == ITEM_TABLE)
		c.name = key;
	MUST(store_apply(w->fs.store, &c, 1, false, NULL) == ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

static void put_row(struct world *w, int i, size_t size)
{
	char key[16], *body = malloc(size);
	MUST(body != NULL);
	memset(body, 'x', size);
	int n = snprintf(key, sizeof(key), "row%03d", i);
	(void)put(w, w->partition, ITEM_ROW, span_make(key, (size_t)n), span_make(body, size));
	free(body);
}

static void open_sqlite(struct world *w)
{
	(void)snprintf(w->path, sizeof(w->path), "/tmp/rowfs-ahead-XXXXXX");
	int fd = mkstemp(w->path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w->path) == 0);
	MUST(store_create(w->path, NULL) == ERR_OK);
	MUST(store_open(w->path, 0, &w->fs.store, NULL, NULL) == ERR_OK);
}

static void world_init(struct world *w, bool sqlite)
{
	*w = (struct world){ .version = clock_ticks() };
	if (sqlite)
		open_sqlite(w);
	else
		MUST(store_open_memory(&w->fs.store) == ERR_OK);
	w->fs.contents = contents_new((size_t)4 << 20, 1000);
	w->fs.ahead = ahead_new();
	MUST(w->fs.contents != NULL && w->fs.ahead != NULL);
	uint64_t account = put(w, STORE_ROOT, ITEM_ACCOUNT, SPAN_LIT("acct"), SPAN_LIT("{}"));
	uint64_t table = put(w, account, ITEM_TABLE, SPAN_LIT("t"), SPAN_LIT("{}"));
	w->partition = put(w, table, ITEM_PARTITION, SPAN_LIT("p"), (struct span){ NULL, 0 });
	for (int i = 0; i < ROWS; i++)
		put_row(w, i, 100);
}

static void world_fini(struct world *w)
{
	ahead_free(w->fs.ahead);
	contents_free(w->fs.contents);
	store_close(w->fs.store);
	if (w->path[0] != 0)
		(void)unlink(w->path);
}

static struct item row(struct world *w, int i, unsigned want)
{
	char key[16];
	struct item it = { 0 };
	int n = snprintf(key, sizeof(key), "row%03d", i);
	MUST(store_child(w->fs.store, NULL, w->partition, CLASS_KEYED, span_make(key, (size_t)n),
		     want, &it) == ERR_OK);
	return it;
}

/* Reads the row as an open does.  Whether its document was there. */
static bool read_row(struct world *w, int i)
{
	struct item it = row(w, i, WANT_BODY);
	const struct content *content = contents_pin(w->fs.contents, nid_of(&it));
	bool there = content != NULL;
	contents_unpin(w->fs.contents, content);
	ahead_read(&w->fs, &it);
	item_fini(&it);
	return there;
}

static int found_of(struct world *w, int from, int to)
{
	int found = 0;
	for (int i = from; i < to; i++)
		found += read_row(w, i);
	return found;
}

TEST(rows_that_follow_a_sequence_are_there)
{
	struct world w;
	world_init(&w, false);
	CHECK_EQ_INT(found_of(&w, 0, 6), 0);
	CHECK_EQ_INT(found_of(&w, 6, ROWS), ROWS - 6);
	world_fini(&w);
}

TEST(rows_in_no_order_are_not_followed)
{
	struct world w;
	struct contents_info info;
	world_init(&w, false);
	for (int i = 0; i < 400; i++)
		(void)read_row(&w, i * 123 % ROWS);
	contents_info(w.fs.contents, &info);
	CHECK_EQ_INT(info.count, 0);
	world_fini(&w);
}

static void check_large_rows(bool sqlite)
{
	struct world w;
	world_init(&w, sqlite);
	for (int i = 40; i < 44; i++)
		put_row(&w, i, LARGE);
	put_row(&w, 100, (size_t)1 << 20);
	CHECK_EQ_INT(found_of(&w, 0, 40), 34);
	CHECK_EQ_INT(found_of(&w, 40, 44), 0);
	CHECK_EQ_INT(found_of(&w, 44, ROWS), ROWS - 44 - 1);
	struct item small = row(&w, 39, WANT_SMALL_BODY), large = row(&w, 40, WANT_SMALL_BODY);
	CHECK_EQ_INT(small.body.n, 100);
	CHECK(large.body.p == NULL && large.size == LARGE);
	item_fini(&small);
	item_fini(&large);
	world_fini(&w);
}

TEST(a_large_row_is_passed_over)
{
	check_large_rows(false);
	check_large_rows(true);
}

TEST(who_leaves_most_rows_out_is_not_read_ahead_for)
{
	struct world w;
	struct contents_info info;
	world_init(&w, false);
	for (int i = 0; i < 6; i++)
		(void)read_row(&w, i);
	for (int i = 40; i < ROWS; i += 40)
		CHECK(!read_row(&w, i));
	contents_info(w.fs.contents, &info);
	CHECK_EQ_INT(info.count, 8);
	world_fini(&w);
}

TEST(documents_come_with_names_while_what_is_looked_up_is_opened)
{
	struct ahead *a = ahead_new();
	CHECK(!ahead_expects_open(a));
	ahead_opened(a);
	for (int i = 0; i < 100; i++) {
		CHECK(ahead_expects_open(a));
		ahead_opened(a);
	}
	int looked = 0;
	while (looked < 100 && ahead_expects_open(a))
		looked++;
	CHECK(looked >= 10 && looked <= 20);
	CHECK(!ahead_expects_open(a));
	ahead_free(a);
}

/* ---- recent contents ---- */

static const struct content *keep(struct contents *b, uint64_t id, bool pinned)
{
	struct item it = { .id = id, .kind = ITEM_ROW, .generation = 1, .body = SPAN_LIT("{}") };
	const struct content *content = NULL;
	if (pinned)
		CHECK_ERR(contents_put(b, &it, &content), ERR_OK);
	else
		contents_add(b, &it);
	return content;
}

static bool has(struct contents *b, uint64_t id)
{
	const struct content *content = contents_pin(b, nid_make(id, 1));
	contents_unpin(b, content);
	return content != NULL;
}

TEST(what_is_open_or_was_found_again_outlives_what_was_not)
{
	struct contents *b = contents_new((size_t)1 << 20, 100);
	struct contents_info info;
	const struct content *open = keep(b, 1000, true);
	for (uint64_t id = 1001; id < 1100; id++)
		keep(b, id, false);
	CHECK(has(b, 1001));
	for (uint64_t id = 2000; id < 2050; id++)
		keep(b, id, false);
	contents_info(b, &info);
	CHECK_EQ_INT(info.count, 100);
	CHECK_EQ_INT(info.pinned, 1);
	CHECK(has(b, 1000));
	CHECK(has(b, 1001));
	CHECK(!has(b, 1002));
	CHECK(has(b, 2049));
	contents_unpin(b, open);
	for (uint64_t id = 3000; id < 3300; id++)
		keep(b, id, false);
	CHECK(!has(b, 1000));
	contents_info(b, &info);
	CHECK_EQ_INT(info.count, 100);
	CHECK_EQ_INT(info.pinned, 0);
	contents_free(b);
}

/* More open files than may be kept: all of them stay, and what else comes goes. */
TEST(what_is_open_stays_beyond_the_bounds)
{
	struct contents *b = contents_new((size_t)1 << 20, 10);
	const struct content *open[30];
	struct contents_info info;
	for (uint64_t i = 0; i < 30; i++)
		open[i] = keep(b, 1000 + i, true);
	keep(b, 2000, false);
	CHECK(!has(b, 2000));
	for (uint64_t i = 0; i < 30; i++)
		CHECK(has(b, 1000 + i));
	contents_drop(b, nid_make(1003, 1));
	CHECK(!has(b, 1003));
	for (uint64_t i = 0; i < 30; i++)
		contents_unpin(b, open[i]);
	contents_info(b, &info);
	CHECK_EQ_INT(info.pinned, 0);
	CHECK(info.count <= 10);
	contents_free(b);
}

/* The kernel is not there: it would be an error to give it anything. */
TEST(what_the_kernel_has_or_is_too_large_is_not_given)
{
	struct fs fs = { .contents = contents_new((size_t)1 << 20, 10) };
	const struct content *content = keep(fs.contents, 1000, true);
	CHECK(!content_is_given(content));
	content_set_given(content, true);
	CHECK(!pages_give(&fs, content));
	pages_gone(content);
	CHECK(!content_is_given(content));
	struct item large = { .id = 1001, .kind = ITEM_ROW, .body = { "", (size_t)1 << 20 } };
	const struct content *other = NULL;
	CHECK_ERR(contents_put(fs.contents, &large, &other), ERR_OK);
	CHECK(!pages_give(&fs, other));
	contents_unpin(fs.contents, content);
	contents_unpin(fs.contents, other);
	contents_free(fs.contents);
}

RUN_TESTS(T(rows_that_follow_a_sequence_are_there), T(rows_in_no_order_are_not_followed),
	T(a_large_row_is_passed_over), T(who_leaves_most_rows_out_is_not_read_ahead_for),
	T(documents_come_with_names_while_what_is_looked_up_is_opened),
	T(what_is_open_or_was_found_again_outlives_what_was_not),
	T(what_is_open_stays_beyond_the_bounds),
	T(what_the_kernel_has_or_is_too_large_is_not_given))
