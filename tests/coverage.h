/* SPDX-License-Identifier: MIT
 * tests/coverage includes this first in every source: _exit(2) writes gcov's counters, which it
 * would drop.  Only a process that is killed by a signal still loses what it counted. */
#ifndef TESTS_COVERAGE_H
#define TESTS_COVERAGE_H
void __gcov_dump(void);
_Noreturn void _exit(int code);

_Noreturn static inline void counted_exit(int code)
{
	__gcov_dump();
	_exit(code);
}
#define _exit counted_exit
#endif
