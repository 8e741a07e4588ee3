/* SPDX-License-Identifier: MIT
 * Where an item stands, in words: for the findings of a check, so of a store that may be damaged. */
#ifndef STORE_SQLITE_CHECK_PLACE_H
#define STORE_SQLITE_CHECK_PLACE_H

#include "store/sqlite/conn.h"

#define SQL_PLACE_MAX 512

/* "acct/Table/partition/row", as far as the way up can be read; "(in 4711)/x" where it cannot. */
void sql_place_text(struct sql_conn *c, uint64_t parent, enum item_class class, struct span key,
	char out[SQL_PLACE_MAX]);

#endif
