/* SPDX-License-Identifier: MIT
 * When a burst is over: bytes by the round, as the watchdog reports them. */
#include "check.h"
#include "rest/http/burst.h"

#include <stddef.h>

#define MIB(n_) ((size_t)(n_) << 20)
#define ENOUGH 100 /* rounds */

/* In how many of so many rounds of this load the burst was over. */
static unsigned rounds(struct burst *t, size_t bytes, unsigned n)
{
	unsigned out = 0;
	while (n-- > 0)
		out += burst_is_over(t, bytes);
	return out;
}

TEST(a_burst_ends_once)
{
	struct burst t = { 0 };
	CHECK_EQ_INT(rounds(&t, MIB(1), ENOUGH), 0);
	CHECK_EQ_INT(rounds(&t, MIB(64), ENOUGH), 0);
	CHECK_EQ_INT(rounds(&t, MIB(1), ENOUGH), 1);
	CHECK_EQ_INT(rounds(&t, 0, ENOUGH), 0);
	CHECK_EQ_INT(rounds(&t, MIB(64), 1), 0);
	CHECK_EQ_INT(rounds(&t, 0, ENOUGH), 1);
}

TEST(a_load_that_comes_again_and_again_is_no_end)
{
	struct burst t = { 0 };
	for (int i = 0; i < ENOUGH; i++) {
		CHECK_EQ_INT(rounds(&t, MIB(64), 1), 0);
		CHECK_EQ_INT(rounds(&t, 0, 10), 0);
	}
}

TEST(a_little_is_no_burst)
{
	struct burst t = { 0 };
	CHECK_EQ_INT(rounds(&t, MIB(3), 1), 0);
	CHECK_EQ_INT(rounds(&t, 0, ENOUGH), 0);
}

RUN_TESTS(T(a_burst_ends_once), T(a_load_that_comes_again_and_again_is_no_end),
	T(a_little_is_no_burst))
