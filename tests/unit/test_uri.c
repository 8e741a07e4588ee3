/* SPDX-License-Identifier: MIT */
#include "check.h"

TEST(placeholder)
{
	CHECK(true);
}

RUN_TESTS(T(placeholder))
