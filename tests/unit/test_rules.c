/* SPDX-License-Identifier: MIT
 * What every engine asks rules.h, also of values that only a damaged store or a caller's mistake
 * has. */
#include "check.h"
#include "store/engines.h"
#include "store/rules.h"

#define NO_KIND ((enum item_kind)99)

TEST(a_kind_that_there_is_not_holds_nothing_and_has_a_name)
{
	CHECK_ERR(rules_exists(NO_KIND), ERR_NAME_EXISTS);
	CHECK_ERR(rules_exists(ITEM_FOLDER), ERR_NAME_EXISTS);
	CHECK_ERR(rules_exists(ITEM_ROW), ERR_ENTITY_EXISTS);
	CHECK(!item_may_hold(NO_KIND, ITEM_ROW));
	CHECK(!item_may_hold(ITEM_ROW, ITEM_FILE));
}

static bool fits(uint64_t id, enum item_kind dir, enum item_kind kind, enum item_class class)
{
	const struct item parent = { .id = id, .kind = dir }, child = { .kind = kind };
	return rules_fits(&parent, &child, class);
}

TEST(a_file_is_of_one_class_and_so_is_a_row)
{
	CHECK(!fits(5000, ITEM_PARTITION, ITEM_FILE, CLASS_KEYED));
	CHECK(fits(5000, ITEM_PARTITION, ITEM_FILE, CLASS_NAMED));
	CHECK(fits(5000, ITEM_PARTITION, ITEM_ROW, CLASS_KEYED));
	CHECK(!fits(5000, ITEM_PARTITION, ITEM_ROW, CLASS_NAMED));
	CHECK(!fits(5000, ITEM_PARTITION, ITEM_FILE, (enum item_class)7));
}

TEST(files_and_folders_stand_by_name_in_every_directory)
{
	static const enum item_kind dirs[] = { ITEM_FOLDER, ITEM_ACCOUNT, ITEM_TABLE,
		ITEM_PARTITION };
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		CHECK(fits(5000, dirs[i], ITEM_FILE, CLASS_NAMED));
		CHECK(fits(5000, dirs[i], ITEM_FOLDER, CLASS_NAMED));
		CHECK(!fits(5000, dirs[i], ITEM_FOLDER, CLASS_KEYED));
		CHECK(!fits(5000, dirs[i], ITEM_FILE, CLASS_KEYED));
		CHECK(!fits(5000, dirs[i], ITEM_ACCOUNT, CLASS_KEYED));
	}
	CHECK(fits(STORE_ROOT, ITEM_FOLDER, ITEM_ACCOUNT, CLASS_KEYED));
	CHECK(fits(STORE_ROOT, ITEM_FOLDER, ITEM_FILE, CLASS_NAMED));
}

TEST(a_row_without_a_document_is_nothing_to_who_asks_for_a_row)
{
	const struct item empty = { .id = 5000, .kind = ITEM_ROW, .version = 7 };
	struct change c = { .op = CHANGE_PUT, .kind = ITEM_ROW, .cond = COND_ABSENT };
	CHECK_ERR(rules_cond(&c, &empty), ERR_OK);
	CHECK(!rules_put_replaces(&c, &empty));
	c.body = SPAN_LIT("{}");
	CHECK(rules_put_replaces(&c, &empty));
	c.cond = COND_PRESENT;
	CHECK_ERR(rules_cond(&c, &empty), ERR_NOT_FOUND);
	c.cond = COND_ID;
	c.cond_version = 5000;
	CHECK_ERR(rules_cond(&c, &empty), ERR_OK);
	c.cond = COND_VERSION;
	CHECK_ERR(rules_cond(&c, &empty), ERR_CONDITION_NOT_MET);
}

TEST(queues_stand_in_accounts_and_messages_in_queues_and_in_their_own_class)
{
	CHECK(fits(5000, ITEM_ACCOUNT, ITEM_QUEUE, CLASS_QUEUE));
	CHECK(fits(5000, ITEM_QUEUE, ITEM_MESSAGE, CLASS_QUEUE));
	CHECK(fits(5000, ITEM_ACCOUNT, ITEM_CONTAINER, CLASS_BLOB));
	CHECK(fits(5000, ITEM_CONTAINER, ITEM_BLOB, CLASS_BLOB));
	CHECK(fits(STORE_ORPHANS, ITEM_FOLDER, ITEM_EXTENT, CLASS_BLOB));
	CHECK(!fits(STORE_TRASH, ITEM_FOLDER, ITEM_EXTENT, CLASS_BLOB));
	CHECK(!fits(5000, ITEM_ACCOUNT, ITEM_CONTAINER, CLASS_QUEUE));
	CHECK(!fits(5000, ITEM_ACCOUNT, ITEM_QUEUE, CLASS_KEYED));
	CHECK(!fits(5000, ITEM_QUEUE, ITEM_MESSAGE, CLASS_KEYED));
	CHECK(!fits(5000, ITEM_ACCOUNT, ITEM_TABLE, CLASS_QUEUE));
	CHECK(!fits(5000, ITEM_ACCOUNT, ITEM_FILE, CLASS_QUEUE));
	CHECK(!fits(5000, ITEM_ACCOUNT, ITEM_MESSAGE, CLASS_QUEUE));
	CHECK(!fits(5000, ITEM_TABLE, ITEM_QUEUE, CLASS_QUEUE));
	CHECK(!fits(5000, ITEM_QUEUE, ITEM_FILE, CLASS_NAMED));
	CHECK(!fits(5000, ITEM_QUEUE, ITEM_QUEUE, CLASS_QUEUE));
}

TEST(small_bodies_are_those_of_rows)
{
	struct item it = { .kind = ITEM_ROW, .size = STORE_SMALL_BODY };
	CHECK(rules_wants_body(WANT_SMALL_BODY, &it));
	it.size++;
	CHECK(!rules_wants_body(WANT_SMALL_BODY, &it));
	it = (struct item){ .kind = ITEM_FILE };
	CHECK(!rules_wants_body(WANT_SMALL_BODY, &it));
}

TEST(a_condition_that_there_is_not_holds)
{
	const struct change c = { .cond = (enum change_cond)99 };
	CHECK_ERR(rules_cond(&c, NULL), ERR_OK);
}

TEST(what_is_given_replaces_and_the_rest_stays)
{
	const struct attrs old = { .mode = MODE_SET(0640), .uid = 1, .gid = 2 };
	struct attrs given = ATTRS_UNSET;
	given.gid = 7;
	struct attrs a = rules_attrs_replaced(&old, &given);
	CHECK(a.mode == old.mode && a.uid == 1 && a.gid == 7);
	given = ATTRS_UNSET;
	given.uid = 7;
	a = rules_attrs_replaced(&old, &given);
	CHECK(a.mode == old.mode && a.uid == 7 && a.gid == 2);
}

TEST(a_file_over_the_limit_may_be_overwritten_and_cut)
{
	const struct item it = { .kind = ITEM_FILE, .size = 100 };
	struct change c = { .op = CHANGE_RESIZE, .offset = 60 };
	uint64_t size = 0;
	CHECK_ERR(rules_new_size(&c, &it, 50, &size), ERR_OK);
	CHECK_EQ_INT(size, 60);
	c.offset = 101;
	CHECK_ERR(rules_new_size(&c, &it, 50, &size), ERR_FILE_TOO_LARGE);
}

TEST(an_engine_that_copies_nothing_says_so)
{
	struct store *s;
	struct store_view *v;
	CHECK_ERR(store_open_memory(&s), ERR_OK);
	CHECK_ERR(store_view_open(s, &v), ERR_OK);
	CHECK_ERR(store_copy(s, v, -1, NULL, NULL), ERR_NOT_SUPPORTED);
	store_view_close(s, v);
	store_close(s);
}

/* clang-format off */
RUN_TESTS(
	T(a_kind_that_there_is_not_holds_nothing_and_has_a_name),
	T(a_file_is_of_one_class_and_so_is_a_row),
	T(files_and_folders_stand_by_name_in_every_directory),
	T(queues_stand_in_accounts_and_messages_in_queues_and_in_their_own_class),
	T(a_row_without_a_document_is_nothing_to_who_asks_for_a_row),
	T(small_bodies_are_those_of_rows),
	T(a_condition_that_there_is_not_holds),
	T(what_is_given_replaces_and_the_rest_stays),
	T(a_file_over_the_limit_may_be_overwritten_and_cut),
	T(an_engine_that_copies_nothing_says_so))
/* clang-format on */
