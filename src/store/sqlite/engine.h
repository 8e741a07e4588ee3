/* SPDX-License-Identifier: MIT
 * The SQLite engine, for store/engines.c (whose header has the contract). */
#ifndef STORE_SQLITE_ENGINE_H
#define STORE_SQLITE_ENGINE_H

#include "store/engines.h"
#include "store/store.h"

#include <sys/types.h>

enum err sql_store_create(const char *path, struct err_detail *detail);
enum err sql_store_open(const char *path, unsigned flags, struct store **ret, pid_t *ret_holder,
	struct err_detail *detail);
enum err sql_store_salvage(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail);
/* False: s is not a SQLite store. */
bool sql_store_set_file_limits(struct store *s, uint64_t one, uint64_t all);
bool sql_store_set_feed_limits(struct store *s, uint64_t lines, int64_t ticks);
/* The same for store_set_piece_limit(). */
bool sql_store_set_piece_limit(struct store *s, uint64_t all);

#endif
