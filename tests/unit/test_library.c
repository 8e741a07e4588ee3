/* SPDX-License-Identifier: MIT
 * base/library.h. */
#include "base/library.h"
#include "check.h"

#include <string.h>

struct table {
	__typeof__(strlen) *length;
	__typeof__(strnlen) *other;
};

static const struct library_function functions[] = {
	{ "strlen", offsetof(struct table, length) },
	{ "no_such_function", offsetof(struct table, other) },
};

TEST(functions_of_a_library_are_found)
{
	struct library l = { 0 };
	struct table t = { 0 };
	struct err_detail detail = { 0 };

	library_load(&l, "libc.so.6", "libc6", functions, 1, &t);
	CHECK_EQ_INT(library_result(&l, &detail), ERR_OK);
	CHECK_EQ_INT(t.length("four"), 4);
	CHECK_EQ_STR(detail.text, "");
}

TEST(a_missing_library_and_its_package_are_named)
{
	struct library l = { 0 };
	struct table t = { 0 };
	struct err_detail detail = { 0 };

	library_load(&l, "libmissing.so.7", "libmissing7", functions, 1, &t);
	CHECK_EQ_INT(library_result(&l, &detail), ERR_NOT_SUPPORTED);
	CHECK(strstr(detail.text, "libmissing.so.7: ") != NULL);
	CHECK(strstr(detail.text, "install the package libmissing7") != NULL);
	CHECK_EQ_INT(library_result(&l, NULL), ERR_NOT_SUPPORTED);
	CHECK(t.length == NULL);
}

TEST(a_missing_function_is_named)
{
	struct library l = { 0 };
	struct table t = { 0 };
	struct err_detail detail = { 0 };

	library_load(&l, "libc.so.6", "libc6", functions, 2, &t);
	CHECK_EQ_INT(library_result(&l, &detail), ERR_NOT_SUPPORTED);
	CHECK_EQ_STR(detail.text,
		"libc.so.6 has no function no_such_function; install a newer package libc6");
}

RUN_TESTS(T(functions_of_a_library_are_found), T(a_missing_library_and_its_package_are_named),
	T(a_missing_function_is_named))
