/* SPDX-License-Identifier: MIT
 * Reading connections at rest, to borrow and to give back.  A connection rests inside its read
 * transaction for as long as the store stays as it is: while nothing is written, reading takes
 * no locks.  All writers are in this process and say when they begin. */
#ifndef STORE_SQLITE_POOL_H
#define STORE_SQLITE_POOL_H

#include "base/lock.h"
#include "store/sqlite/conn.h"

struct sql_pool {
	char *path;
	enum sql_mode mode;
	struct mutex lock;     /* guards what follows */
	struct sql_conn *idle; /* used last is first: its pages are warm */
	unsigned nidle;
	uint64_t moment;   /* goes up when the store begins to change, and when it has changed */
	unsigned changing; /* how many are at it */
	struct sql_removals removals;
	_Atomic uint64_t
		page_bytes; /* that its connections keep in memory, as of their last return */
};

enum err sql_pool_init(struct sql_pool *p, const char *path, enum sql_mode mode);
void sql_pool_fini(struct sql_pool *p); /* nothing is borrowed any more */
/* Inside a read transaction, which sees all that was committed before the call.  Opens
 * another connection where none is at rest. */
enum err sql_pool_borrow(struct sql_pool *p, struct sql_conn **ret);
/* result: of what was done with it; after an error it rests outside of a transaction. */
void sql_pool_return(struct sql_pool *p, struct sql_conn *c, enum err result);

/* Closes all but a few of those at rest, and frees the pages that these keep. */
void sql_pool_give_back(struct sql_pool *p);

/* Before the store or its log is written: those at rest end their transactions, and none rests
 * inside one until it is over. */
void sql_pool_changing(struct sql_pool *p);
void sql_pool_changed(struct sql_pool *p);

#endif
