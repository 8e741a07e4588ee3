/* SPDX-License-Identifier: MIT
 * model/value.h. */
#include "check.h"
#include "model/value.h"

#include <stdlib.h>

TEST(every_type_has_a_name_that_finds_it)
{
	for (int i = 0; i < EDM_COUNT_; i++) {
		enum edm_type t = EDM_COUNT_;
		CHECK(edm_from_name(span_of(edm_name((enum edm_type)i)), &t));
		CHECK_EQ_INT(t, i);
	}
	CHECK_EQ_STR(edm_name(EDM_DATETIME), "Edm.DateTime");
}

TEST(other_names_are_no_type)
{
	static const char *const bad[] = { "", "Edm.", "Edm.Null", "Edm.string", "String",
		"Edm.Int16", "Edm.Int321", "Edm.Int3" };
	enum edm_type t;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!edm_from_name(span_of(bad[i]), &t));
}

static bool same_double(double x, double y)
{
	struct value a = { .type = EDM_DOUBLE, .dbl = x }, b = { .type = EDM_DOUBLE, .dbl = y };

	return value_same(&a, &b);
}

TEST(doubles_are_the_same_as_stored)
{
	double nan = strtod("nan", NULL);

	CHECK(same_double(nan, -nan));
	CHECK(!same_double(nan, 1.0));
	CHECK(!same_double(0.0, -0.0));
	CHECK(same_double(-0.0, -0.0));
	CHECK(same_double(1.5, 1.5));
	CHECK(!same_double(1.5, 1.25));
}

TEST(values_of_two_types_are_never_the_same)
{
	struct value a = { .type = EDM_INT32, .int32 = 1 }, b = { .type = EDM_INT64, .int64 = 1 };
	struct value s = { .type = EDM_STRING, .bytes = SPAN_LIT("x") };
	struct value n = { .type = EDM_BINARY, .bytes = SPAN_LIT("x") };

	CHECK(!value_same(&a, &b));
	CHECK(!value_same(&s, &n));
	CHECK(value_same(&s, &s));
	s.bytes = SPAN_LIT("y");
	n.type = EDM_STRING;
	CHECK(!value_same(&s, &n));
}

TEST(guids_differ_in_any_byte)
{
	for (size_t i = 0; i < 16; i++) {
		struct value a = { .type = EDM_GUID }, b = { .type = EDM_GUID };
		CHECK(value_same(&a, &b));
		b.guid[i] = 1;
		CHECK(!value_same(&a, &b));
	}
}

RUN_TESTS(T(every_type_has_a_name_that_finds_it), T(other_names_are_no_type),
	T(doubles_are_the_same_as_stored), T(values_of_two_types_are_never_the_same),
	T(guids_differ_in_any_byte))
