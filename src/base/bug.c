/* SPDX-License-Identifier: MIT
 * The function behind BUG_ON().  It logs and aborts. */
#include "base/compiler.h"
#include "base/log.h"

#include <stdlib.h>

void bug_stop(const char *what, const char *file, int line)
{
	log_error("internal error: %s (%s:%d)", what, file, line);
	abort();
}
