/* SPDX-License-Identifier: MIT
 * Short names for compiler attributes, and BUG_ON(). */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#define PRINTF_LIKE(fmt_, args_) __attribute__((format(printf, fmt_, args_)))
#define NORETURN __attribute__((noreturn))

/* Makes the compiler warn when a caller ignores an enum err.  "(void)f()" ignores it on purpose.
 * Only clang supports the attribute on an enum. */
#if defined(__clang__)
#define MUST_CHECK __attribute__((warn_unused_result))
#else
#define MUST_CHECK
#endif

#define ARRAY_LEN(a_) (sizeof(a_) / sizeof((a_)[0]))

/* Aborts the program when an invariant is broken, in release builds too: wrong data must not reach
 * the store.  Input from users must never trigger it. */
#define BUG_ON(cond_) \
	do { \
		if (__builtin_expect(!!(cond_), 0)) \
			bug_stop(#cond_, __FILE__, __LINE__); \
	} while (0)

NORETURN void bug_stop(const char *what, const char *file, int line);

#endif
