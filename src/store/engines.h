/* SPDX-License-Identifier: MIT
 * How a store is made and opened: the engines by name. */
#ifndef STORE_ENGINES_H
#define STORE_ENGINES_H

#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <sys/types.h>

/* Makes an empty store at path (mode 0600).  ERR_NAME_EXISTS where anything is there
 * already: an existing file is never touched. */
enum err store_create(const char *path, struct err_detail *detail);

enum store_open_flags {
	STORE_OPEN_READ_ONLY = 1,
};

/* Opens the store at path and holds it: one process at a time.  ERR_BUSY with the holder's
 * pid in detail (and *ret_holder, if not NULL), ERR_NOT_FOUND, ERR_NOT_A_STORE,
 * ERR_STORE_TOO_NEW, ERR_ACCESS, ERR_READ_ONLY (a file that cannot be written, without
 * STORE_OPEN_READ_ONLY). */
enum err store_open(const char *path, unsigned flags, struct store **ret, pid_t *ret_holder,
	struct err_detail *detail);

/* The in-memory engine: the oracle of the tests.  Empty, gone at close. */
enum err store_open_memory(struct store **ret);

/* A layer over another engine (which it owns) that fails on demand: the k-th call from now
 * (1 is the next; 0: none) of the kinds in mask answers `error` instead. */
enum store_fault_mask {
	FAULT_READS = 1,
	FAULT_APPLY_BEFORE = 2,
	FAULT_APPLY_AFTER = 4
};
enum err store_open_fault(struct store *inner, struct store **ret);
void store_fault_arm(struct store *fault, unsigned mask, unsigned k, enum err error);

/* Lowers the limits of ordinary files (one, all together), which are LIMIT_FILE_BYTES and
 * LIMIT_FILES_BYTES at open.  Before the store is used; for tests.  The engine itself, not
 * a fault layer over it. */
void store_set_file_limits(struct store *s, uint64_t one, uint64_t all);

#endif
