/* SPDX-License-Identifier: MIT
 * How many items a store has: as directories say, and as the mean of the first partitions says. */
#include "check.h"
#include "service/check/estimate.h"
#include "store/engines.h"

#include <stdlib.h>

#define SETS 1000 /* partitions in a change set */
#define MUST(cond_) BUG_ON(!(cond_))

static uint64_t make(struct store *s, uint64_t parent, enum item_kind kind, enum item_class class,
	const char *key)
{
	struct change c = { .op = CHANGE_PUT,
		.kind = kind,
		.at = { .parent = parent, .class = class, .key = span_of(key) },
		.name = span_of(key),
		.attrs = ATTRS_UNSET,
		.version = store_version_floor(s) + 1 };
	MUST(store_apply(s, &c, 1, false, NULL) == ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

/* Makes partitions without rows. */
static void make_partitions(struct store *s, uint64_t table, unsigned from, unsigned to)
{
	static struct change all[SETS];
	static char keys[SETS][16];
	for (unsigned at = from; at < to;) {
		size_t n = 0;
		for (; n < SETS && at < to; n++, at++) {
			(void)snprintf(keys[n], sizeof(keys[n]), "%08u", at);
			all[n] = (struct change){ .op = CHANGE_PUT,
				.kind = ITEM_PARTITION,
				.at = { .parent = table,
					.class = CLASS_KEYED,
					.key = span_of(keys[n]) },
				.attrs = ATTRS_UNSET,
				.version = store_version_floor(s) + 1 };
		}
		MUST(store_apply(s, all, n, false, NULL) == ERR_OK);
		changes_fini(all, n);
	}
}

TEST(sizes_of_directories_are_added)
{
	struct store *s;
	struct estimate sum = { 0 };
	MUST(store_open_memory(&s) == ERR_OK);
	CHECK_ERR(estimate_store(s, NULL, &sum), ERR_OK);
	CHECK_EQ_INT(sum.items + sum.directories, 0);
	for (int i = 0; i < 2; i++) {
		uint64_t account = make(s, STORE_ROOT, ITEM_ACCOUNT, CLASS_KEYED, i ? "b" : "a");
		uint64_t table = make(s, account, ITEM_TABLE, CLASS_KEYED, "t");
		uint64_t partition = make(s, table, ITEM_PARTITION, CLASS_KEYED, "p");
		(void)make(s, table, ITEM_PARTITION, CLASS_KEYED, "q");
		(void)make(s, partition, ITEM_FILE, CLASS_NAMED, "x");
		(void)make(s, partition, ITEM_FILE, CLASS_NAMED, "y");
		uint64_t queue = make(s, account, ITEM_QUEUE, CLASS_QUEUE, "queue");
		(void)make(s, queue, ITEM_MESSAGE, CLASS_QUEUE, "message");
	}
	CHECK_ERR(estimate_store(s, NULL, &sum), ERR_OK);
	CHECK_EQ_INT(sum.items, 6);
	CHECK_EQ_INT(sum.directories, 8);
	CHECK_ERR(estimate_table(s, NULL, 999999, &sum), ERR_NOT_FOUND);
	store_close(s);
}

TEST(partitions_beyond_the_bound_count_as_the_mean)
{
	struct store *s;
	struct estimate sum = { 0 };
	MUST(store_open_memory(&s) == ERR_OK);
	uint64_t account = make(s, STORE_ROOT, ITEM_ACCOUNT, CLASS_KEYED, "a");
	uint64_t table = make(s, account, ITEM_TABLE, CLASS_KEYED, "t");
	uint64_t first = make(s, table, ITEM_PARTITION, CLASS_KEYED, "00000000");
	char name[16];
	for (unsigned i = 0; i < ESTIMATE_PARTITIONS / 1000; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		(void)make(s, first, ITEM_FILE, CLASS_NAMED, name);
	}
	make_partitions(s, table, 1, ESTIMATE_PARTITIONS);
	CHECK_ERR(estimate_table(s, NULL, table, &sum), ERR_OK);
	CHECK_EQ_INT(sum.directories, ESTIMATE_PARTITIONS);
	CHECK_EQ_INT(sum.items, ESTIMATE_PARTITIONS / 1000);
	make_partitions(s, table, ESTIMATE_PARTITIONS, 2 * ESTIMATE_PARTITIONS);
	sum = (struct estimate){ 0 };
	CHECK_ERR(estimate_table(s, NULL, table, &sum), ERR_OK);
	CHECK_EQ_INT(sum.directories, 2 * ESTIMATE_PARTITIONS);
	CHECK_EQ_INT(sum.items, 2 * ESTIMATE_PARTITIONS / 1000);
	store_close(s);
}

RUN_TESTS(T(sizes_of_directories_are_added), T(partitions_beyond_the_bound_count_as_the_mean))
