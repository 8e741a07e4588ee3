/* SPDX-License-Identifier: MIT
 * A directory for one temporary store, in TMPDIR or in /var/tmp, and the files of such a store. */
#ifndef DAEMON_CORE_SCRATCH_H
#define DAEMON_CORE_SCRATCH_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>

struct scratch {
	char directory[PATH_MAX], path[PATH_MAX + 8]; /* path: of the store, which is not made */
};

/* purpose: a part of the directory's name.  scratch_remove() either way. */
enum err scratch_make(struct scratch *s, const char *purpose, struct err_detail *why);
/* Removes the store, which is closed, and the directory. */
void scratch_remove(struct scratch *s);

/* Whether a closed store's log is left beside it with something in it: then the store is not whole
 * without it. */
bool store_file_has_log(const char *path);
/* Removes a closed store with what may be left beside it. */
void store_file_remove(const char *path);

#endif
