/* SPDX-License-Identifier: MIT
 * What BUG_ON does when its condition holds.  Apart from compiler.h because it is the one
 * thing there that is code, and from log.c because it never returns. */
#include "base/compiler.h"
#include "base/log.h"

#include <stdlib.h>

void bug_stop(const char *what, const char *file, int line)
{
	log_error("internal error: %s (%s:%d)", what, file, line);
	abort();
}
