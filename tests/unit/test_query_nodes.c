/* SPDX-License-Identifier: MIT
 * The table of the nodes below .query. */
#include "check.h"
#include "fs/core/nid.h"
#include "fs/query/nodes.h"

#include <pthread.h>
#include <stdio.h>

static struct query_node *options(struct query_nodes *t, uint64_t table, const char *text)
{
	struct row_query query;
	BUG_ON(row_query_parse(span_of(text), &query, NULL) != ERR_OK);
	struct query_node *n = query_node_of_options(table, span_of(text), &query);
	BUG_ON(n == NULL);
	return query_nodes_enter(t, n);
}

static struct query_node *child(struct query_nodes *t, struct query_node *parent, uint64_t id,
	uint32_t generation, const char *key)
{
	const struct item it = { .id = id,
		.kind = parent->kind == QUERY_OPTIONS ? ITEM_PARTITION : ITEM_ROW,
		.generation = generation,
		.size = 7,
		.key = span_of(key) };
	struct query_node *n = query_node_of_item(t, parent, &it);
	BUG_ON(n == NULL);
	return query_nodes_enter(t, n);
}

TEST(the_same_thing_has_the_same_node_while_it_is_known)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = options(t, 2000, "Rating ge 4");
	CHECK(options(t, 2000, "Rating ge 4") == a);
	CHECK(options(t, 2001, "Rating ge 4") != a);
	CHECK(options(t, 2000, "Rating ge 5") != a);
	struct query_node *p = child(t, a, 3000, 0, "p");
	CHECK(child(t, a, 3000, 0, "p") == p);
	CHECK(child(t, a, 3000, 0, "q") != p);
	CHECK(child(t, a, 3001, 0, "p") != p);
	struct query_node *r = child(t, p, 4000, 1, "r");
	CHECK(child(t, p, 4000, 1, "r") == r);
	CHECK(child(t, p, 4000, 2, "r") != r);
	CHECK(child(t, p, 4000, 1, "s") != r);
	CHECK_EQ_INT(query_nodes_count(t), 9);
	CHECK(p->kind == QUERY_PARTITION && r->kind == QUERY_ROW);
	CHECK(query_node_options(r) == a && query_node_options(a) == a);
	CHECK_EQ_INT(r->table_id, 2000);
	CHECK_EQ_INT(r->size, 7);
	query_nodes_free(t);
}

TEST(a_node_is_found_by_its_number)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = options(t, 2000, "top=3");
	CHECK(nid_is_query(a->nid) && !nid_is_dir_control(a->nid));
	CHECK(query_nodes_get(t, a->nid) == a);
	CHECK(query_nodes_get(t, a->nid + 2) == NULL);
	CHECK_EQ_INT(a->query.top, 3);
	query_nodes_free(t);
}

TEST(a_node_goes_when_nobody_uses_it_and_takes_its_parents_with_it)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = options(t, 2000, "top=3");
	struct query_node *p = child(t, a, 3000, 0, "p");
	struct query_node *r = child(t, p, 4000, 1, "r");
	uint64_t nids[] = { a->nid, p->nid, r->nid };
	query_node_unref(t, a);
	query_node_unref(t, p);
	query_nodes_forget(t, nids[0], 1);
	query_nodes_forget(t, nids[1], 1);
	CHECK_EQ_INT(query_nodes_count(t), 3);
	query_nodes_forget(t, nids[2], 1);
	CHECK_EQ_INT(query_nodes_count(t), 3); /* the reference is left */
	query_node_unref(t, r);
	CHECK_EQ_INT(query_nodes_count(t), 0);
	for (size_t i = 0; i < 3; i++)
		CHECK(query_nodes_get(t, nids[i]) == NULL);
	query_nodes_forget(t, nids[0], 1); /* of nothing */
	query_nodes_free(t);
}

TEST(each_lookup_is_forgotten_by_itself)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = NULL;
	for (int i = 0; i < 5; i++) {
		a = options(t, 2000, "top=3");
		query_node_unref(t, a);
	}
	uint64_t nid = a->nid;
	query_nodes_forget(t, nid, 3);
	CHECK_EQ_INT(query_nodes_count(t), 1);
	query_nodes_forget(t, nid, 2);
	CHECK_EQ_INT(query_nodes_count(t), 0);
	query_nodes_free(t);
}

TEST(numbers_of_inodes_stay_and_differ)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = options(t, 2000, "top=3");
	struct query_node *p = child(t, a, 3000, 0, "p");
	struct query_node *r = child(t, p, 4000, 1, "r");
	uint64_t ino[] = { a->ino, p->ino, r->ino };
	CHECK_EQ_INT(query_ino(p, 4000), r->ino);
	CHECK_EQ_INT(query_ino(a, 3000), p->ino);
	CHECK((ino[0] & NID_VIRTUAL) == NID_VIRTUAL && (ino[2] & NID_VIRTUAL) == NID_VIRTUAL);
	CHECK(ino[0] != ino[1] && ino[1] != ino[2] && ino[0] != ino[2]);
	CHECK(options(t, 2001, "top=3")->ino != ino[0]);
	CHECK(child(t, options(t, 2000, "top=4"), 3000, 0, "p")->ino != ino[1]);
	CHECK_EQ_INT(child(t, p, 4000, 2, "r")->ino, ino[2]);
	query_nodes_free(t);
	t = query_nodes_new();
	a = options(t, 2000, "top=3");
	p = child(t, a, 3000, 0, "p");
	CHECK_EQ_INT(a->ino, ino[0]);
	CHECK_EQ_INT(p->ino, ino[1]);
	CHECK_EQ_INT(child(t, p, 4000, 1, "r")->ino, ino[2]);
	query_nodes_free(t);
}

TEST(thousands_come_and_go)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = options(t, 2000, "top=3");
	struct query_node *p = child(t, a, 3000, 0, "p");
	static uint64_t nids[10000];
	for (size_t i = 0; i < 10000; i++) {
		struct query_node *r = child(t, p, 10000 + i, 1, "r");
		nids[i] = r->nid;
		query_node_unref(t, r);
	}
	CHECK_EQ_INT(query_nodes_count(t), 10002);
	for (size_t i = 0; i < 10000; i += 2)
		query_nodes_forget(t, nids[i], 1);
	CHECK_EQ_INT(query_nodes_count(t), 5002);
	bool right = true;
	for (size_t i = 0; i < 10000; i++) {
		struct query_node *r = query_nodes_get(t, nids[i]);
		right = right && (i % 2 == 0 ? r == NULL : r != NULL && r->item.id == 10000 + i);
		query_node_unref(t, r);
	}
	CHECK(right);
	for (size_t i = 1; i < 10000; i += 2)
		query_nodes_forget(t, nids[i], 1);
	CHECK_EQ_INT(query_nodes_count(t), 2);
	query_nodes_free(t);
}

static void *look_up(void *arg)
{
	struct query_nodes *t = arg;
	for (int i = 0; i < 20000; i++) {
		struct query_node *a = options(t, 2000, i & 1 ? "top=3" : "top=4");
		struct query_node *p = child(t, a, (uint64_t)(3000 + i % 7), 0, "p");
		uint64_t of_a = a->nid, of_p = p->nid;
		query_node_unref(t, a);
		query_node_unref(t, p);
		query_nodes_forget(t, of_a, 1);
		query_nodes_forget(t, of_p, 1);
	}
	return NULL;
}

TEST(threads_share_it)
{
	struct query_nodes *t = query_nodes_new();
	pthread_t threads[4];
	for (size_t i = 0; i < 4; i++)
		BUG_ON(pthread_create(&threads[i], NULL, look_up, t) != 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ_INT(query_nodes_count(t), 0);
	query_nodes_free(t);
}

TEST(beyond_a_bound_the_oldest_are_named)
{
	struct query_nodes *t = query_nodes_new();
	struct query_node *a = options(t, 2000, "top=3"), *b = options(t, 2000, "top=4");
	CHECK(!query_nodes_wants_pruning(t, 1 << 20));
	CHECK(query_nodes_wants_pruning(t, 100));
	CHECK(!query_nodes_wants_pruning(t, 100)); /* somebody is at it */
	CHECK(query_nodes_oldest(t, 1 << 20) == NULL);
	CHECK(options(t, 2000, "top=3") == a);
	CHECK(query_nodes_oldest(t, 100) == b);
	CHECK(query_nodes_oldest(t, 100) == a);
	CHECK(query_nodes_oldest(t, 0) == NULL);
	CHECK(options(t, 2000, "top=4") == b);
	CHECK(query_nodes_oldest(t, 100) == b);
	query_nodes_pruned(t);
	CHECK(!query_nodes_wants_pruning(t, 100));
	query_nodes_free(t);
}

/* clang-format off */
RUN_TESTS(
	T(the_same_thing_has_the_same_node_while_it_is_known),
	T(a_node_is_found_by_its_number),
	T(a_node_goes_when_nobody_uses_it_and_takes_its_parents_with_it),
	T(each_lookup_is_forgotten_by_itself),
	T(numbers_of_inodes_stay_and_differ),
	T(thousands_come_and_go),
	T(threads_share_it),
	T(beyond_a_bound_the_oldest_are_named))
/* clang-format on */
