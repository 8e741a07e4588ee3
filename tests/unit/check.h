/* SPDX-License-Identifier: MIT
 * The unit tests' framework: a test is a function whose name states what is expected, a
 * program runs a list of them and prints TAP.  A failed check prints where and what, and
 * the test goes on, so that one run shows all that is wrong.
 *
 *	TEST(the_empty_key_is_legal)
 *	{
 *		CHECK_ERR(key_check(SPAN_LIT(""), "RowKey", NULL), ERR_OK);
 *	}
 *
 *	RUN_TESTS(T(the_empty_key_is_legal))
 */
#ifndef UNIT_CHECK_H
#define UNIT_CHECK_H

#include "base/err.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct check_test {
	const char *name;
	void (*run)(void);
};

static unsigned check_failures; /* of the running test */

static inline void check_fail(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s\n", file, line, what);
	check_failures++;
}

static inline void check_int(
	const char *file, int line, const char *what, intmax_t got, intmax_t want)
{
	if (got == want)
		return;
	printf("# %s:%d: %s is %jd, not %jd\n", file, line, what, got, want);
	check_failures++;
}

static inline void check_str(
	const char *file, int line, const char *what, const char *got, const char *want)
{
	if (got != NULL && want != NULL && strcmp(got, want) == 0)
		return;
	printf("# %s:%d: %s is \"%s\", not \"%s\"\n", file, line, what, got == NULL ? "NULL" : got,
		want == NULL ? "NULL" : want);
	check_failures++;
}

static inline void check_err(
	const char *file, int line, const char *what, enum err got, enum err want)
{
	if (got == want)
		return;
	printf("# %s:%d: %s gives %s, not %s\n", file, line, what, err_symbol(got),
		err_symbol(want));
	check_failures++;
}

#define TEST(name_) static void test_##name_(void)

#define CHECK(cond_) \
	do { \
		if (!(cond_)) \
			check_fail(__FILE__, __LINE__, #cond_); \
	} while (0)
/* What a test cannot go on without. */
#define REQUIRE(cond_) \
	do { \
		if (!(cond_)) { \
			check_fail(__FILE__, __LINE__, #cond_); \
			return; \
		} \
	} while (0)
#define CHECK_EQ_INT(got_, want_) \
	check_int(__FILE__, __LINE__, #got_, (intmax_t)(got_), (intmax_t)(want_))
#define CHECK_EQ_STR(got_, want_) check_str(__FILE__, __LINE__, #got_, (got_), (want_))
#define CHECK_ERR(expr_, want_) check_err(__FILE__, __LINE__, #expr_, (expr_), (want_))

static inline int check_main(const struct check_test *tests, size_t n)
{
	unsigned failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		check_failures = 0;
		tests[i].run();
		printf("%s %zu - %s\n", check_failures == 0 ? "ok" : "not ok", i + 1,
			tests[i].name);
		failed += check_failures != 0;
	}
	return failed == 0 ? 0 : 1;
}

/* At the end of a file: RUN_TESTS(T(first), T(second)) is its main(). */
/* clang-format off */
#define T(name_) { #name_, test_##name_ }
/* clang-format on */
#define RUN_TESTS(...) \
	int main(void) \
	{ \
		static const struct check_test tests[] = { __VA_ARGS__ }; \
		return check_main(tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif
