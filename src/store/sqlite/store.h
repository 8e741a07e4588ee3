/* SPDX-License-Identifier: MIT
 * The open store of the SQLite engine, shared by engine.c, commit.c and check.c. */
#ifndef STORE_SQLITE_STORE_H
#define STORE_SQLITE_STORE_H

#include "store/sqlite/pool.h"
#include "store/sqlite/writer.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* A log beyond this is brought back. */
#define SQL_LOG_BYTES ((uint64_t)96 << 20)

struct sql_set;

struct sql_store {
	struct store base;
	char *path;
	int hold_fd; /* closed last (hold.h) */
	int wal_fd;  /* -1 where read-only */
	bool read_only;
	struct sql_pool readers;
	struct sql_writer writer; /* the leader's alone; conn is NULL where read-only */
	_Atomic int64_t version_high;
	_Atomic uint64_t file_bytes;
	atomic_uint held;          /* views that may stay open for long */
	_Atomic uint64_t held_log; /* bytes of the log when the first of them was opened */

	pthread_mutex_t lock;         /* guards what follows */
	struct sql_set *head, **tail; /* change sets that wait */
	bool led;                     /* somebody is committing */
	uint64_t committed, synced;   /* commit numbers */
	bool syncing, sync_failed;    /* failed: until the store is opened anew */
	pthread_cond_t sync_done;
	uint64_t commits, change_sets, changes, syncs; /* these for info() */
	uint64_t commit_sizes[STORE_COMMIT_SIZES];
};

static inline struct sql_store *sql_of(struct store *s)
{
	return (struct sql_store *)s;
}

/* commit.c: the ops of these names. */
enum err sql_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr);
enum err sql_sync(struct store *s);
/* Of the log on disk; 0: there is none. */
uint64_t sql_log_bytes(const struct sql_store *st);

/* The connection of a view, for one thread. */
struct sql_conn *sql_view_conn(struct store_view *v);

/* check.c */
enum err sql_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg);

#endif
