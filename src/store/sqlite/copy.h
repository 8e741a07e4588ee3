/* SPDX-License-Identifier: MIT
 * A copy of the whole store: page by page, of one moment, while writers go on. */
#ifndef STORE_SQLITE_COPY_H
#define STORE_SQLITE_COPY_H

#include "store/sqlite/conn.h"
#include "store/store.h"

/* As store_copy(), of what the connection sees: of the moment of its read transaction, which it
 * must be in. */
enum err sql_copy_from(struct sql_conn *from, int fd, store_copy_fn fn, void *arg);
/* The op of this name. */
enum err sql_copy(struct store *s, struct store_view *v, int fd, store_copy_fn fn, void *arg);

#endif
