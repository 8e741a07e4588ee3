/* SPDX-License-Identifier: MIT
 * Runs rowfs itself in a child process. */
#ifndef DAEMON_CORE_SELF_H
#define DAEMON_CORE_SELF_H

#include "base/compiler.h"

#include <stddef.h>
#include <sys/types.h>

/* Becomes rowfs with these arguments, which a NULL ends, and with no signal blocked. */
NORETURN void self_exec(const char *const *argv);
/* Runs it, and returns its exit code; 128 and the number of a signal that ended it.  ret: the
 * beginning of its output, with a NUL; NULL: its output goes where ours goes. */
int self_run(const char *const *argv, char *ret, size_t n);
/* Starts it with these descriptors as its standard input and output; -1: /dev/null.  All others that it
 * must not have are close-on-exec.  Returns its id; -1 with errno. */
pid_t self_start(const char *const *argv, int in, int out);
/* Waits for the end of a child.  Returns as self_run(). */
int self_wait(pid_t child);

#endif
