/* SPDX-License-Identifier: MIT
 * What happens to a store of an older schema when it is opened for writing. */
#ifndef STORE_SQLITE_UPGRADE_H
#define STORE_SQLITE_UPGRADE_H

#include "store/sqlite/store.h"

/* With the writer's connection and counters in place, before anything is written.  A store whose
 * schema is older is first copied to PATH.vN, N: its version (a name that is taken by
 * something else gets a number behind it), whole and synced, then upgraded.  An empty file of that
 * name says that no copy is wanted.  ERR_NO_SPACE, with detail. */
enum err sql_upgrade(struct sql_store *st, struct err_detail *detail);

#endif
