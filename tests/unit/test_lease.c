/* SPDX-License-Identifier: MIT
 * Every lease operation and every use in every state, as the service's tables have them. */
#include "base/clock.h"
#include "base/compiler.h"
#include "check.h"
#include "model/lease.h"

#include <stdlib.h>

#define A "aaaaaaaa-0000-4000-8000-000000000001"
#define B "bbbbbbbb-0000-4000-8000-000000000002"
#define C "cccccccc-0000-4000-8000-000000000003"
#define NOW (1000 * TICKS_PER_SECOND)
#define IN(seconds_) (NOW + (seconds_)*TICKS_PER_SECOND)

#define STATES 5

/* One lease for each state, in its order; each but the first has the id A. */
static struct lease lease_in(enum lease_state s)
{
	const struct span a = SPAN_LIT(A);
	const struct lease leases[STATES] = { { .seconds = 0 }, { a, 30, IN(20), false },
		{ a, 30, IN(0), false }, { a, 30, IN(20), true }, { a, 30, IN(0), true } };
	return leases[s];
}

TEST(the_state_follows_from_the_time)
{
	for (int s = 0; s < STATES; s++) {
		struct lease l = lease_in((enum lease_state)s);
		CHECK_EQ_INT(lease_state(&l, NOW), s);
	}
	const struct lease fixed = lease_in(LEASE_LEASED), broken = lease_in(LEASE_BREAKING);
	CHECK_EQ_INT(lease_state(&fixed, IN(20) - 1), LEASE_LEASED);
	CHECK_EQ_INT(lease_state(&fixed, IN(20)), LEASE_EXPIRED);
	CHECK_EQ_INT(lease_state(&broken, IN(20) - 1), LEASE_BREAKING);
	CHECK_EQ_INT(lease_state(&broken, IN(20)), LEASE_BROKEN);
	CHECK_EQ_STR(lease_state_name(LEASE_AVAILABLE), "available");
	CHECK_EQ_STR(lease_state_name(LEASE_BROKEN), "broken");
}

/* What an operation makes of a lease in each state: a state and an id, or an error. */
struct outcome {
	enum err error;
	enum lease_state state;
	const char *id;
};
#define GIVES(state_, id_) \
	{ \
		ERR_OK, LEASE_##state_, id_ \
	}
#define FAILS(error_) \
	{ \
		ERR_LEASE_##error_, LEASE_AVAILABLE, "" \
	}

struct row {
	struct lease_request request;
	struct outcome want[STATES]; /* available, leased, expired, breaking, broken */
};

static const struct row rows[] = {
	{ { LEASE_ACQUIRE, SPAN_LIT(A), { 0 }, 15 },
		{ GIVES(LEASED, A), GIVES(LEASED, A), GIVES(LEASED, A), FAILS(BREAKING_ACQUIRE),
			GIVES(LEASED, A) } },
	{ { LEASE_ACQUIRE, SPAN_LIT(B), { 0 }, LEASE_INFINITE },
		{ GIVES(LEASED, B), FAILS(PRESENT), GIVES(LEASED, B), FAILS(PRESENT),
			GIVES(LEASED, B) } },
	{ { LEASE_RENEW, SPAN_LIT(A), { 0 }, 0 },
		{ FAILS(OTHER_ID), GIVES(LEASED, A), GIVES(LEASED, A), FAILS(BROKEN_RENEW),
			FAILS(BROKEN_RENEW) } },
	{ { LEASE_RENEW, SPAN_LIT(B), { 0 }, 0 },
		{ FAILS(OTHER_ID), FAILS(OTHER_ID), FAILS(OTHER_ID), FAILS(OTHER_ID),
			FAILS(OTHER_ID) } },
	{ { LEASE_CHANGE, SPAN_LIT(B), SPAN_LIT(A), 0 },
		{ FAILS(NONE), GIVES(LEASED, B), FAILS(NONE), FAILS(BREAKING_CHANGE),
			FAILS(NONE) } },
	{ { LEASE_CHANGE, SPAN_LIT(A), SPAN_LIT(B), 0 },
		{ FAILS(NONE), GIVES(LEASED, A), FAILS(NONE), FAILS(BREAKING_CHANGE),
			FAILS(NONE) } },
	{ { LEASE_CHANGE, SPAN_LIT(C), SPAN_LIT(B), 0 },
		{ FAILS(NONE), FAILS(OTHER_ID), FAILS(NONE), FAILS(OTHER_ID), FAILS(NONE) } },
	{ { LEASE_RELEASE, SPAN_LIT(A), { 0 }, 0 },
		{ FAILS(OTHER_ID), GIVES(AVAILABLE, ""), GIVES(AVAILABLE, ""), GIVES(AVAILABLE, ""),
			GIVES(AVAILABLE, "") } },
	{ { LEASE_RELEASE, SPAN_LIT(B), { 0 }, 0 },
		{ FAILS(OTHER_ID), FAILS(OTHER_ID), FAILS(OTHER_ID), FAILS(OTHER_ID),
			FAILS(OTHER_ID) } },
	{ { LEASE_BREAK, { 0 }, { 0 }, 0 },
		{ FAILS(NONE), GIVES(BROKEN, A), GIVES(BROKEN, A), GIVES(BROKEN, A),
			GIVES(BROKEN, A) } },
	{ { LEASE_BREAK, { 0 }, { 0 }, 10 },
		{ FAILS(NONE), GIVES(BREAKING, A), GIVES(BROKEN, A), GIVES(BREAKING, A),
			GIVES(BROKEN, A) } },
	{ { LEASE_BREAK, { 0 }, { 0 }, LEASE_BREAK_DEFAULT },
		{ FAILS(NONE), GIVES(BREAKING, A), GIVES(BROKEN, A), GIVES(BREAKING, A),
			GIVES(BROKEN, A) } },
};

TEST(every_operation_in_every_state)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int s = 0; s < STATES; s++) {
			const struct outcome *want = &rows[i].want[s];
			struct lease l = lease_in((enum lease_state)s), now;
			CHECK_ERR(lease_apply(&l, &rows[i].request, NOW, &now), want->error);
			if (want->error != ERR_OK)
				continue;
			CHECK_EQ_INT(lease_state(&now, NOW), want->state);
			CHECK(span_is(now.id, want->id));
		}
}

TEST(durations_and_periods)
{
	const struct span a = SPAN_LIT(A);
	struct lease_request r = { .action = LEASE_ACQUIRE, .id = a, .seconds = 15 };
	struct lease l = { 0 }, now;
	CHECK_ERR(lease_apply(&l, &r, NOW, &now), ERR_OK);
	CHECK_EQ_INT(now.until, IN(15));
	r.seconds = LEASE_INFINITE;
	CHECK_ERR(lease_apply(&now, &r, NOW, &l), ERR_OK); /* the holder takes it anew */
	CHECK_EQ_INT(l.until, INT64_MAX);
	CHECK_EQ_INT(lease_state(&l, INT64_MAX - 1), LEASE_LEASED);
	/* A lease without an end is broken at once, one with an end when it comes. */
	r = (struct lease_request){ .action = LEASE_BREAK, .seconds = LEASE_BREAK_DEFAULT };
	CHECK_ERR(lease_apply(&l, &r, NOW, &now), ERR_OK);
	CHECK_EQ_INT(now.until, NOW);
	l = lease_in(LEASE_LEASED);
	CHECK_ERR(lease_apply(&l, &r, NOW, &now), ERR_OK);
	CHECK_EQ_INT(now.until, IN(20));
	/* A break shortens what is left, and never prolongs it. */
	r.seconds = 10;
	CHECK_ERR(lease_apply(&l, &r, NOW, &now), ERR_OK);
	CHECK_EQ_INT(now.until, IN(10));
	r.seconds = 60;
	CHECK_ERR(lease_apply(&now, &r, NOW, &l), ERR_OK);
	CHECK_EQ_INT(l.until, IN(10));
	l = lease_in(LEASE_EXPIRED);
	r = (struct lease_request){ .action = LEASE_RENEW, .id = a };
	CHECK_ERR(lease_apply(&l, &r, NOW, &now), ERR_OK);
	CHECK_EQ_INT(now.until, IN(30));
}

TEST(every_use_in_every_state)
{
	/* For no id, A and B: in the states available, leased, expired, breaking, broken. */
	static const enum err reads[3][STATES] = {
		{ ERR_OK, ERR_OK, ERR_OK, ERR_OK, ERR_OK },
		{ ERR_LEASE_ABSENT, ERR_OK, ERR_LEASE_LOST, ERR_OK, ERR_LEASE_LOST },
		{ ERR_LEASE_ABSENT, ERR_LEASE_MISMATCH, ERR_LEASE_ABSENT, ERR_LEASE_MISMATCH,
			ERR_LEASE_ABSENT },
	};
	static const struct span ids[3] = { { NULL, 0 }, SPAN_LIT(A), SPAN_LIT(B) };
	for (int i = 0; i < 3; i++)
		for (int s = 0; s < STATES; s++) {
			struct lease l = lease_in((enum lease_state)s);
			bool locked = s == LEASE_LEASED || s == LEASE_BREAKING;
			CHECK_ERR(lease_check_read(&l, ids[i], NOW), reads[i][s]);
			CHECK_ERR(lease_check_write(&l, ids[i], NOW),
				i == 0 && locked ? ERR_LEASE_ID_MISSING : reads[i][s]);
			struct lease after = lease_after_write(&l, NOW);
			CHECK_EQ_INT(lease_state(&after, NOW), locked ? s : LEASE_AVAILABLE);
		}
}

TEST(a_lease_comes_back_from_its_text)
{
	for (int s = 1; s < STATES; s++) {
		struct buf text = BUF_INIT(200);
		struct lease l = lease_in((enum lease_state)s), back;
		lease_write(&l, &text);
		CHECK(lease_read(buf_span(&text), &back));
		CHECK(span_is(back.id, A) && back.seconds == 30);
		CHECK_EQ_INT(back.until, l.until);
		CHECK_EQ_INT(lease_state(&back, NOW), s);
		buf_fini(&text);
	}
	static const char *const wrong[] = { "", A, A " 30", A " 30 5", A " 30 5 2", A " 30 0 0",
		A " 61 5 0", A " -2 5 0", A " x 5 0", A " 30 5 0 0", " 30 5 0" };
	struct lease l;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK(!lease_read(span_of(wrong[i]), &l));
}

RUN_TESTS(T(the_state_follows_from_the_time), T(every_operation_in_every_state),
	T(durations_and_periods), T(every_use_in_every_state), T(a_lease_comes_back_from_its_text))
