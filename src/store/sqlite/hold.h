/* SPDX-License-Identifier: MIT
 * One process at a time holds a store, by flock(2) on the store file itself: it goes with
 * the process, however it ends. */
#ifndef STORE_SQLITE_HOLD_H
#define STORE_SQLITE_HOLD_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* Opens and locks.  *ret_fd must stay open until SQLite has closed the file: closing any
 * descriptor of it would drop SQLite's own locks.  Errors as store_open(). */
enum err sql_hold(const char *path, bool read_only, int *ret_fd, pid_t *ret_holder,
	struct err_detail *detail);

#endif
