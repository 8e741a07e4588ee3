/* SPDX-License-Identifier: MIT
 * The SQL function skip(key, version, flags, body): asks the caller of a scan about a row before SQLite
 * makes its other columns. */
#ifndef STORE_SQLITE_SKIP_H
#define STORE_SQLITE_SKIP_H

#include "store/sqlite/conn.h"

/* Makes skip() known to a new connection.  It calls c->skip with c->skip_arg, and counts in c->skipped the
 * rows to skip.  Without c->skip, and after SQL_LIST_MAX such rows, it is false. */
enum err sql_skip_register(struct sql_conn *c);

#endif
