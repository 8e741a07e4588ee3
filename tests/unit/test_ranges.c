/* SPDX-License-Identifier: MIT
 * Locked byte ranges against a naive model: an array with each owner's lock of each byte. */
#include "check.h"
#include "fs/tree/ranges.h"

#include <stdlib.h>

#define BYTES 24
#define OWNERS 4
#define STEPS 200000

struct model {
	enum range_type of[OWNERS][BYTES];
	size_t via[OWNERS][BYTES]; /* by which open file */
};

static uint64_t state = 1;

static uint64_t below(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

/* The last byte of the model stands for all that follow. */
static uint64_t last_of(uint64_t byte)
{
	return byte == BYTES - 1 ? RANGE_END : byte;
}

static bool model_forbids(const struct model *m, const struct range *w, uint64_t end)
{
	for (size_t o = 0; o < OWNERS; o++)
		for (uint64_t b = w->begin; o + 1 != w->owner && b <= end; b++)
			if ((m->of[o][b] == RANGE_EXCLUSIVE && w->type != RANGE_FREE) ||
				(m->of[o][b] == RANGE_SHARED && w->type == RANGE_EXCLUSIVE))
				return true;
	return false;
}

/* How many runs of one type and one open file the owner has. */
static size_t model_ranges(const struct model *m, size_t owner)
{
	size_t n = 0;
	for (size_t b = 0; b < BYTES; b++)
		n += m->of[owner][b] != RANGE_FREE &&
			(b == 0 || m->of[owner][b] != m->of[owner][b - 1] ||
				m->via[owner][b] != m->via[owner][b - 1]);
	return n;
}

struct world {
	struct ranges set;
	struct range *via[2];
	struct range_user users[2];
	size_t all;
	struct model model;
};

static bool is_like(const struct world *w)
{
	struct model got = { 0 };
	size_t n[OWNERS] = { 0 };
	for (const struct range *r = w->set.first; r != NULL; r = r->next) {
		n[r->owner - 1]++;
		for (uint64_t b = r->begin; b < BYTES && b <= r->last; b++) {
			if (got.of[r->owner - 1][b] != RANGE_FREE)
				return false;
			got.of[r->owner - 1][b] = r->type;
			got.via[r->owner - 1][b] = r->via == &w->via[1];
		}
	}
	for (size_t o = 0; o < OWNERS; o++)
		if (n[o] != model_ranges(&w->model, o))
			return false;
	return memcmp(&got, &w->model, sizeof(got)) == 0;
}

static size_t count(const struct ranges *s)
{
	size_t n = 0;
	for (const struct range *r = s->first; r != NULL; r = r->next)
		n++;
	return n;
}

static size_t count_via(const struct range *r)
{
	size_t n = 0;
	for (; r != NULL; r = r->via_next)
		n++;
	return n;
}

static bool step(struct world *w)
{
	uint64_t a = below(BYTES), b = below(BYTES), end = a < b ? b : a;
	size_t via = below(2);
	struct range wanted = { .via = &w->via[via],
		.owner = 1 + below(OWNERS),
		.user = &w->users[below(2)],
		.begin = a < b ? a : b,
		.last = last_of(end),
		.type = (enum range_type)below(3) };
	size_t before = count(&w->set);
	bool forbidden = model_forbids(&w->model, &wanted, end);
	if ((ranges_conflict(&w->set, &wanted) != NULL) != forbidden)
		return false;
	if (forbidden)
		return true;
	int growth = ranges_growth(&w->set, &wanted);
	if (!ranges_set(&w->set, &wanted))
		return false;
	for (uint64_t i = wanted.begin; i <= end; i++) {
		w->model.of[wanted.owner - 1][i] = wanted.type;
		w->model.via[wanted.owner - 1][i] = wanted.type != RANGE_FREE ? via : 0;
	}
	size_t after = count(&w->set);
	return (int)after - (int)before == growth && w->all == after &&
		w->users[0].n + w->users[1].n == after &&
		count_via(w->via[0]) + count_via(w->via[1]) == after && is_like(w);
}

TEST(ranges_are_what_an_array_of_bytes_is)
{
	struct world w = { 0 };
	w.users[0].all = w.users[1].all = &w.all;
	for (size_t i = 0; i < STEPS; i++)
		if (!step(&w)) {
			CHECK_EQ_INT(i, STEPS);
			break;
		}
	while (w.via[0] != NULL)
		range_drop(w.via[0]);
	while (w.via[1] != NULL)
		range_drop(w.via[1]);
	CHECK(w.set.first == NULL);
	CHECK_EQ_INT(w.all, 0);
}

TEST(the_range_that_forbids_and_begins_first_is_told)
{
	struct ranges s = { 0 };
	struct range *via = NULL;
	const struct range a = {
		.via = &via, .owner = 1, .begin = 50, .last = RANGE_END, .type = RANGE_SHARED
	};
	const struct range b = {
		.via = &via, .owner = 2, .begin = 10, .last = 60, .type = RANGE_SHARED
	};
	const struct range wanted = { .owner = 3, .last = RANGE_END, .type = RANGE_EXCLUSIVE };
	REQUIRE(ranges_set(&s, &b) && ranges_set(&s, &a));
	const struct range *found = ranges_conflict(&s, &wanted);
	REQUIRE(found != NULL);
	CHECK_EQ_INT(found->owner, 2);
	while (via != NULL)
		range_drop(via);
	CHECK(s.first == NULL);
}

RUN_TESTS(
	T(ranges_are_what_an_array_of_bytes_is), T(the_range_that_forbids_and_begins_first_is_told))
