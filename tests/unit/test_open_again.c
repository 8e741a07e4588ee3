/* SPDX-License-Identifier: MIT
 * What open(2) relies on where the kernel walks a path once more: recent contents by node, and
 * pending retries of threads.  What fstat(2) is told between a commit and its reply. */
#include "check.h"
#include "fs/cache/content.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/tree/attr.h"
#include "fs/write/retries.h"

#define THREAD 4711
#define DIRECTORY UINT64_C(2000)

static struct item row(uint32_t generation)
{
	return (struct item){ .id = 3000,
		.parent = DIRECTORY,
		.kind = ITEM_ROW,
		.class = CLASS_KEYED,
		.generation = generation,
		.key = SPAN_LIT("r"),
		.body = SPAN_LIT("{}") };
}

static const struct content *put(struct contents *b, uint32_t generation)
{
	struct item it = row(generation);
	const struct content *ret = NULL;
	CHECK_ERR(contents_put(b, &it, &ret), ERR_OK);
	return ret;
}

TEST(what_was_put_is_found_by_its_node)
{
	struct contents *b = contents_new(1 << 20, 100);
	const struct content *one = put(b, 1);
	CHECK(contents_pin(b, nid_make(3000, 1)) == one);
	CHECK(contents_pin(b, nid_make(3000, 2)) == NULL);
	contents_unpin(b, one);
	contents_unpin(b, one);
	contents_free(b);
}

TEST(a_dropped_node_is_found_again_once_somebody_puts_it)
{
	struct contents *b = contents_new(1 << 20, 100);
	contents_unpin(b, put(b, 1));
	contents_drop(b, nid_make(3000, 1));
	CHECK(contents_pin(b, nid_make(3000, 1)) == NULL);
	const struct content *again = put(b, 1);
	CHECK(contents_pin(b, nid_make(3000, 1)) == again);
	contents_unpin(b, again);
	contents_unpin(b, again);
	contents_free(b);
}

/* Only who looked the name up before it was replaced still gets it. */
static void check_retired(struct contents *b)
{
	uint64_t nid = nid_make(3000, 1);
	CHECK(contents_pin(b, nid) == NULL);
	const struct content *found = contents_pin_old(b, nid);
	CHECK(found != NULL && found->nid == nid);
	contents_unpin(b, found);
}

TEST(a_retired_node_is_not_found_though_a_late_reader_puts_it)
{
	struct contents *b = contents_new(1 << 20, 100);
	const struct content *held = put(b, 1);
	contents_retire(b, nid_make(3000, 1));
	check_retired(b);
	contents_unpin(b, put(b, 1));
	check_retired(b);
	const struct content *now = put(b, 2);
	CHECK(contents_pin(b, nid_make(3000, 2)) == now);
	contents_unpin(b, now);
	contents_unpin(b, now);
	contents_unpin(b, held);
	struct contents_info info;
	contents_info(b, &info);
	CHECK_EQ_INT(info.pinned, 0);
	contents_free(b);
}

/* Somebody was told to look again before the change that replaced it brought it here. */
TEST(a_node_may_be_retired_before_it_comes)
{
	struct contents *b = contents_new(1 << 20, 100);
	contents_retire(b, nid_make(3000, 1));
	CHECK(contents_pin_old(b, nid_make(3000, 1)) == NULL);
	contents_unpin(b, put(b, 1));
	check_retired(b);
	contents_free(b);
}

/* A reader put it before somebody set its attributes and a third replaced it. */
TEST(a_replaced_row_is_kept_with_its_last_attributes)
{
	struct contents *b = contents_new(1 << 20, 100);
	const uint64_t nid = nid_make(3000, 1);
	struct item first = row(1), last = row(1);
	first.attrs.ctime_ns = 1;
	last.attrs.ctime_ns = 2;
	struct item same = last;
	const struct content *held = NULL, *kept = NULL, *again = NULL;
	CHECK_ERR(contents_put(b, &first, &held), ERR_OK);
	CHECK_ERR(contents_retain_old(b, &last, &kept), ERR_OK);
	CHECK_ERR(contents_retain_old(b, &same, &again), ERR_OK);
	CHECK(kept == again);
	contents_unpin(b, kept);
	contents_unpin(b, again);
	check_retired(b);
	const struct content *found = contents_pin_old(b, nid), *looked = contents_look(b, nid);
	CHECK_EQ_INT(found->item.attrs.ctime_ns, 2);
	CHECK(looked == found);
	contents_unpin(b, found);
	contents_unpin(b, looked);
	CHECK_EQ_INT(held->item.attrs.ctime_ns, 1);
	contents_unpin(b, held);
	struct contents_info info;
	contents_info(b, &info);
	CHECK_EQ_INT(info.pinned, 0);
	CHECK_EQ_INT(info.count, 1);
	contents_free(b);
}

TEST(a_large_row_that_is_open_leaves_room_for_what_is_replaced)
{
	static const char large[10000];
	struct contents *b = contents_new(sizeof(large) / 2, 100);
	struct item it = row(1);
	it.body = span_make(large, sizeof(large));
	const struct content *held = NULL;
	struct contents_info info;
	CHECK_ERR(contents_put(b, &it, &held), ERR_OK);
	contents_unpin(b, put(b, 2));
	const struct content *found = contents_pin_old(b, nid_make(3000, 2));
	CHECK(found != NULL);
	contents_unpin(b, found);
	contents_unpin(b, held);
	contents_info(b, &info);
	CHECK(info.bytes <= sizeof(large) / 2);
	CHECK_EQ_INT(info.pinned, 0);
	contents_free(b);
}

static enum retry_state refuse(struct retries *n, const struct item *it, bool write)
{
	return retries_refuse(NULL, n, THREAD, nid_of(it), it, write ? RETRY_WRITE : RETRY_READ);
}

TEST(the_second_try_of_a_thread_is_known)
{
	struct retries *n = retries_new();
	struct item one = row(1), two = row(2);
	struct stage *given = NULL;
	CHECK_EQ_INT(refuse(n, &one, true), RETRY_NONE);
	CHECK(retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given));
	CHECK(!retries_wants_stage(NULL, n, THREAD + 1, DIRECTORY, SPAN_LIT("r.json"), &given));
	CHECK_EQ_INT(refuse(n, &two, true), RETRY_SECOND);
	retries_clear(NULL, n, THREAD);
	CHECK_EQ_INT(refuse(n, &two, true), RETRY_NONE);
	retries_free(NULL, n);
}

/* A link in /proc/self/fd leads to the node itself. */
TEST(a_second_try_without_a_look_up_is_told_from_one_by_name)
{
	struct retries *n = retries_new();
	struct item one = row(1), two = row(2);
	struct stage *given = NULL;
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_LINK);
	retries_clear(NULL, n, THREAD);
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	CHECK(!retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given));
	CHECK_EQ_INT(refuse(n, &two, false), RETRY_SECOND);
	retries_free(NULL, n);
}

TEST(a_second_try_meets_the_node_or_the_name_that_was_looked_up)
{
	struct retries *n = retries_new();
	struct item one = row(1), other = row(2);
	struct stage *given = NULL;
	other.id = 4000;
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("s.json"), &given);
	/* The look-up found neither this node nor its name. */
	CHECK_EQ_INT(refuse(n, &other, false), RETRY_NONE);
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("s.json"), &given);
	retries_found(n, THREAD, DIRECTORY, SPAN_LIT("s.json"), nid_of(&one));
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_SECOND);
	retries_clear(NULL, n, THREAD);
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given);
	CHECK_EQ_INT(refuse(n, &other, false), RETRY_SECOND);
	retries_free(NULL, n);
}

TEST(a_walk_that_found_nothing_is_over)
{
	struct retries *n = retries_new();
	struct item one = row(1);
	struct stage *given = NULL;
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given);
	retries_missed(n, THREAD, DIRECTORY, SPAN_LIT("r.json"));
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	/* The kernel looks twice; the second look may find it. */
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given);
	retries_missed(n, THREAD, DIRECTORY, SPAN_LIT("r.json"));
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given);
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_SECOND);
	/* Another name says nothing. */
	retries_missed(n, THREAD, DIRECTORY, SPAN_LIT("s.json"));
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_SECOND);
	retries_free(NULL, n);
}

/* An open that ended in an error leaves its retry: what the thread does later is no second try. */
TEST(a_walk_that_ended_in_an_error_is_not_gone_on_with)
{
	struct retries *n = retries_new();
	struct item one = row(1), two = row(2);
	struct stage *given = NULL;
	CHECK_EQ_INT(refuse(n, &one, true), RETRY_NONE);
	(void)retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given);
	retries_missed(n, THREAD, DIRECTORY, SPAN_LIT("r.json"));
	CHECK(!retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("s.json"), &given));
	CHECK(!retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given));
	CHECK_EQ_INT(refuse(n, &two, true), RETRY_NONE);
	retries_clear(NULL, n, THREAD);
	/* A reader was refused, a writer comes. */
	CHECK_EQ_INT(refuse(n, &one, false), RETRY_NONE);
	CHECK_EQ_INT(refuse(n, &one, true), RETRY_NONE);
	CHECK_EQ_INT(refuse(n, &one, true), RETRY_LINK);
	retries_free(NULL, n);
}

TEST(a_walk_that_was_given_a_stage_does_not_end_at_another_node)
{
	struct fs fs = { .stages = stages_new() };
	struct retries *n = retries_new();
	struct item one = row(1), base = row(1);
	struct resolved_name at = { .dir = { .id = DIRECTORY }, .name = SPAN_LIT("r.json") };
	struct stage *s = NULL, *given = NULL;
	base.body = (struct span){ 0 };
	CHECK_EQ_INT(refuse(n, &one, true), RETRY_NONE);
	CHECK(retries_wants_stage(&fs, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given));
	CHECK_ERR(stage_new(&fs, &at, &base, &s), ERR_OK);
	stages_add(fs.stages, s, 0);
	retries_set_stage(&fs, n, THREAD, s);
	CHECK(retries_expects(n, THREAD, s));
	CHECK_EQ_INT(retries_refuse(&fs, n, THREAD, nid_of(&one), &one, RETRY_WRITE), RETRY_NONE);
	CHECK_EQ_INT(retries_refuse(&fs, n, THREAD, nid_of(&one), &one, RETRY_WRITE), RETRY_LINK);
	retries_free(&fs, n);
	stages_free(&fs, fs.stages);
}

/* It was renamed between the look-up and the open. */
TEST(the_walk_tells_the_name)
{
	struct retries *n = retries_new();
	struct item one = row(1);
	struct stage *given = NULL;
	CHECK_EQ_INT(refuse(n, &one, true), RETRY_NONE);
	CHECK(retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("s.json"), &given));
	CHECK(!retries_wants_stage(NULL, n, THREAD, DIRECTORY, SPAN_LIT("r.json"), &given));
	retries_free(NULL, n);
}

/* The commit is seen before the kernel has its reply; a read ends where it ended before. */
TEST(a_file_has_the_size_before_until_its_write_is_answered)
{
	struct fs fs = { .resizing = idset_new() };
	struct item committed = { .id = 3000, .kind = ITEM_FILE, .size = 141 };
	struct item other = { .id = 3001, .kind = ITEM_FILE, .size = 5 };
	CHECK(!attr_is_resizing(&fs, &committed));
	for (uint64_t before = 0; before < 101; before += 100) {
		committed.size = 141;
		attr_resize_begins(&fs, 3000, before);
		CHECK(!attr_is_resizing(&fs, &other));
		CHECK(attr_is_resizing(&fs, &committed));
		CHECK_EQ_INT(committed.size, before);
		attr_resize_ends(&fs, 3000, before);
		committed.size = 141;
		CHECK(!attr_is_resizing(&fs, &committed));
		CHECK_EQ_INT(committed.size, 141);
	}
	CHECK_EQ_INT(other.size, 5);
	idset_free(fs.resizing);
}

RUN_TESTS(T(what_was_put_is_found_by_its_node),
	T(a_dropped_node_is_found_again_once_somebody_puts_it),
	T(a_retired_node_is_not_found_though_a_late_reader_puts_it),
	T(a_node_may_be_retired_before_it_comes),
	T(a_replaced_row_is_kept_with_its_last_attributes),
	T(a_large_row_that_is_open_leaves_room_for_what_is_replaced),
	T(a_second_try_without_a_look_up_is_told_from_one_by_name),
	T(a_second_try_meets_the_node_or_the_name_that_was_looked_up),
	T(the_second_try_of_a_thread_is_known), T(a_walk_that_found_nothing_is_over),
	T(a_walk_that_ended_in_an_error_is_not_gone_on_with),
	T(a_walk_that_was_given_a_stage_does_not_end_at_another_node), T(the_walk_tells_the_name),
	T(a_file_has_the_size_before_until_its_write_is_answered))
