/* SPDX-License-Identifier: MIT
 * Which lookups of threads are speculative. */
#include "base/lock.h"
#include "check.h"
#include "fs/core/nid.h"
#include "fs/write/speculation.h"
#include "fs/write/stages.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 1024 /* as in speculation.c */

TEST(a_speculation_takes_two_opens_in_a_row)
{
	struct speculation *h = speculation_new();
	CHECK(!speculation_is_due(h, 7));
	speculation_overwrote(h, 7);
	CHECK(!speculation_is_due(h, 7));
	speculation_overwrote(h, 7);
	CHECK(speculation_is_due(h, 7));
	speculation_stop(h, 7);
	CHECK(!speculation_is_due(h, 7));
	speculation_overwrote(h, 7);
	CHECK(!speculation_is_due(h, 7));
	speculation_stop(h, 7);
	speculation_overwrote(h, 7);
	CHECK(!speculation_is_due(h, 7));
	speculation_free(h);
}

TEST(threads_of_one_slot_do_not_speculate_for_each_other)
{
	struct speculation *h = speculation_new();
	for (int i = 0; i < 5; i++)
		speculation_overwrote(h, 7);
	CHECK(!speculation_is_due(h, 7 + SLOTS));
	speculation_stop(h, 7 + SLOTS);
	CHECK(speculation_is_due(h, 7));
	speculation_overwrote(h, 7 + SLOTS);
	CHECK(!speculation_is_due(h, 7));
	CHECK(!speculation_is_due(h, 7 + SLOTS));
	speculation_free(h);
}

TEST(a_speculation_is_told_once_and_survives_until_the_thread_opens)
{
	struct speculation *h = speculation_new();
	for (int i = 0; i < 2; i++)
		speculation_overwrote(h, 7);
	CHECK(!speculation_take(h, 7));
	for (int i = 0; i < 2; i++)
		speculation_overwrote(h, 7);
	CHECK(speculation_is_due(h, 7));
	speculation_stop(h, 7);
	CHECK(speculation_take(h, 7));
	CHECK(!speculation_take(h, 7));
	for (int i = 0; i < 2; i++)
		speculation_overwrote(h, 7);
	CHECK(speculation_is_due(h, 7));
	speculation_overwrote(h, 7 + SLOTS);
	CHECK(speculation_take(h, 7));
	for (int i = 0; i < 2; i++)
		speculation_overwrote(h, 7);
	CHECK(speculation_is_due(h, 7));
	speculation_overwrote(h, 7);
	CHECK(!speculation_take(h, 7));
	speculation_free(h);
}

static struct fs mount;

/* The node of a stage of row 50, r.json in directory 40, that came and went. */
static uint64_t node_for(struct stages *t, pid_t tid)
{
	struct stage *s = calloc(1, sizeof(*s));
	CHECK(s != NULL && mutex_init(&s->lock, RANK_STAGE) == 0);
	s->dir_id = 40;
	s->is.name = NAME_ITEM;
	s->base.id = 50;
	memcpy(s->name, "r.json", sizeof("r.json"));
	stages_add(t, s, tid);
	uint64_t nid = s->nid;
	CHECK(stages_get(t, nid) == s);
	stages_unref(&mount, t, s);
	stages_unref(&mount, t, s);
	CHECK(stages_get(t, nid) == NULL);
	return nid;
}

TEST(a_node_comes_again_only_for_a_thread_after_which_nobody_looked)
{
	struct stages *t = stages_new();
	uint64_t nid = node_for(t, 7);
	CHECK(nid_is_staged_row(nid) && nid_id(nid) == 50);
	CHECK(node_for(t, 7) == nid);
	CHECK(node_for(t, 8) != nid);
	stages_expose(&mount, t, 40, "other.json");
	CHECK(node_for(t, 7) == nid);
	stages_expose(&mount, t, 40, "r.json");
	CHECK(node_for(t, 7) != nid);
	nid = node_for(t, 7);
	stages_expose(&mount, t, 40, NULL);
	CHECK(node_for(t, 7) != nid);
	nid = node_for(t, 7);
	stages_held(t);
	CHECK(node_for(t, 7) != nid);
	CHECK(!nid_is_staged_row(node_for(t, 0)) && node_for(t, 0) != node_for(t, 0));
	stages_free(&mount, t);
}

/* clang-format off */
RUN_TESTS(
	T(a_node_comes_again_only_for_a_thread_after_which_nobody_looked),
	T(a_speculation_takes_two_opens_in_a_row),
	T(threads_of_one_slot_do_not_speculate_for_each_other),
	T(a_speculation_is_told_once_and_survives_until_the_thread_opens))
/* clang-format on */
