/* SPDX-License-Identifier: MIT
 * Compiler attributes under short names.  Floor 0: knows nothing of tables. */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#define PRINTF_LIKE(fmt_, args_) __attribute__((format(printf, fmt_, args_)))
#define NORETURN __attribute__((noreturn))

/* Runs fn_(&variable) when the variable goes out of scope. */
#define CLEANUP(fn_) __attribute__((cleanup(fn_)))

/* On an enum: every function that returns it must have its result looked at;
 * "(void)f()" is the deliberate drop. */
#if defined(__clang__)
#define MUST_CHECK __attribute__((warn_unused_result))
#else
#define MUST_CHECK
#endif

#define ARRAY_LEN(a_) (sizeof(a_) / sizeof((a_)[0]))

/* Stops the program, in release builds too: a storage daemon had better stop
 * than go on with a broken invariant.  Never for anything a user can cause. */
#define BUG_ON(cond_) \
	do { \
		if (__builtin_expect(!!(cond_), 0)) \
			bug_stop(#cond_, __FILE__, __LINE__); \
	} while (0)

NORETURN void bug_stop(const char *what, const char *file, int line);

#endif
