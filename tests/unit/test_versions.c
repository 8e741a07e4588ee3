/* SPDX-License-Identifier: MIT
 * model/versions.h. */
#include "base/compiler.h"
#include "check.h"
#include "model/versions.h"

TEST(a_version_is_a_date)
{
	static const char *const bad[] = { "", "2019", "2019-2-2", "2019-02-02 ", " 2019-02-02",
		"2019/02/02", "20190202", "2019-13-01", "2019-02-30", "2019-00-01", "2019-01-00",
		"0000-01-01", "2019-02-0x", "-019-02-02", "2019-02-02T00:00Z" };

	CHECK_EQ_INT(version_parse(SPAN_LIT("2019-02-02")), 20190202);
	CHECK_EQ_INT(version_parse(SPAN_LIT("2012-02-12")), 20120212);
	CHECK_EQ_INT(version_parse(SPAN_LIT("9999-12-31")), 99991231);
	CHECK_EQ_INT(version_parse(SPAN_LIT("2016-02-29")), 20160229);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (version_parse(span_of(bad[i])) != 0)
			check_fail(__FILE__, __LINE__, bad[i]);
	CHECK_EQ_INT(version_parse(span_make(NULL, 0)), 0);
}

TEST(a_rule_holds_from_its_first_version_on)
{
	CHECK(!version_has(20110817, VERSION_UPSERT));
	CHECK(version_has(20110818, VERSION_UPSERT));
	CHECK(version_has(VERSION_NEWEST, VERSION_UPSERT));
	CHECK(version_has(99991231, VERSION_UPSERT));
	CHECK(!version_has(0, VERSION_KNOWN));
	CHECK(!version_has(VERSION_OLDEST - 1, VERSION_KNOWN));
	CHECK(version_has(VERSION_OLDEST, VERSION_KNOWN));
}

TEST(a_rule_may_end)
{
	CHECK(!version_has(VERSION_OLDEST - 1, VERSION_ATOM));
	CHECK(version_has(VERSION_OLDEST, VERSION_ATOM));
	CHECK(version_has(20151210, VERSION_ATOM));
	CHECK(!version_has(20151211, VERSION_ATOM));
	CHECK(!version_has(VERSION_NEWEST, VERSION_ATOM));
}

RUN_TESTS(T(a_version_is_a_date), T(a_rule_holds_from_its_first_version_on), T(a_rule_may_end))
