/* SPDX-License-Identifier: MIT
 * Reading connections at rest, to borrow and to give back. */
#ifndef STORE_SQLITE_POOL_H
#define STORE_SQLITE_POOL_H

#include "store/sqlite/conn.h"

#include <pthread.h>

struct sql_pool {
	char *path;
	enum sql_mode mode;
	pthread_mutex_t lock;  /* guards what follows */
	struct sql_conn *idle; /* used last is first: its pages are warm */
	unsigned nidle;
};

enum err sql_pool_init(struct sql_pool *p, const char *path, enum sql_mode mode);
void sql_pool_fini(struct sql_pool *p); /* nothing is borrowed any more */
/* Opens another one where none is at rest. */
enum err sql_pool_borrow(struct sql_pool *p, struct sql_conn **ret);
void sql_pool_return(struct sql_pool *p, struct sql_conn *c);

#endif
