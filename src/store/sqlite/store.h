/* SPDX-License-Identifier: MIT
 * The open store of the SQLite engine, shared by engine.c, open.c, commit.c and check.c. */
#ifndef STORE_SQLITE_STORE_H
#define STORE_SQLITE_STORE_H

#include "base/lock.h"
#include "store/sqlite/pool.h"
#include "store/sqlite/writer.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* A log beyond this is brought back. */
#define SQL_LOG_BYTES ((uint64_t)96 << 20)

/* Space that a log keeps where it is cut, for commits that remove. */
#define SQL_LOG_KEPT ((uint64_t)128 << 10)

/* As many items at most are reclaimed by one commit. */
#define SQL_SLICE_ITEMS 1024

/* After a commit (engine.c). */
#define SQL_WARM_READS 16

/* Freed pages are often taken again soon; and a command that opens a store shrinks none. */
#define SQL_SHRINK_AFTER_US 1000000

struct sql_set;

struct sql_store {
	struct store base;
	char *path;
	int hold_fd;       /* closed last (hold.h) */
	int wal_fd;        /* -1 where read-only */
	int upgraded_from; /* the schema at open, before this opening upgraded it; 0 */
	char *kept_copy;   /* of before (upgrade.h); NULL */
	bool read_only;
	bool has_index; /* of the log, made by reading; it goes when the store is closed */
	struct sql_pool readers;
	struct sql_writer writer; /* the leader's alone; conn is NULL where read-only */
	_Atomic int64_t version_high;
	_Atomic uint64_t file_bytes, piece_bytes;
	_Atomic uint64_t page_bytes;     /* that the writer's connection keeps in memory */
	_Atomic int64_t feed_until;      /* as in struct sql_feed_state */
	atomic_uint held;                /* views that may stay open for long */
	_Atomic uint64_t roomy_until_us; /* until then the disk has plenty of room */
	atomic_int log_frames;           /* since it began anew */
	_Atomic uint64_t held_log;       /* bytes of the log when the first of them was opened */
	atomic_bool log_shrinks;         /* the next leader gives its space back */
	atomic_int shrink;               /* enum sql_shrink (shrink.h) */
	atomic_bool disk_refused;        /* the last commit: the next room() tries one */

	struct mutex lock;                         /* guards what follows */
	struct sql_set *head, **tail;              /* change sets that wait */
	struct sql_set *unsynced, **unsynced_tail; /* committed ones, in order of their commits */
	bool led;                                  /* somebody is committing */
	_Atomic unsigned warm_reads; /* that the writer's connection may still serve (engine.c) */
	uint64_t committed, synced;  /* commit numbers */
	bool syncing, sync_failed;   /* failed: until the store is opened anew */
	size_t slice_items;          /* of the next slice that is reclaimed */
	struct buf note;             /* for the next opening, as note.c writes it */
	struct {
		pthread_t thread;
		pthread_cond_t wake;
		bool started, stop;
		bool idle;                /* it waits until somebody wakes it */
		uint64_t shrink_after_us; /* it waits so long before the first step */
		uint64_t shrink_at;       /* clock_mono_us() of the next step; 0: none is near */
		uint64_t error_us;        /* the next failure waits so long */
		/* Commits one slice: sql_reclaim_slice().  A pointer, since every commit wakes the
		 * thread. */
		enum err (*slice)(struct sql_store *st, size_t *ret_done);
		enum err (*step)(struct sql_store *st); /* sql_shrink_step(), in the same way */
	} reclaimer;
	uint64_t commits, change_sets, changes, syncs, slices; /* these for info() */
	uint64_t commit_sizes[STORE_COMMIT_SIZES];
};

static inline struct sql_store *sql_of(struct store *s)
{
	return (struct sql_store *)s;
}

/* commit.c: the ops of these names. */
enum err sql_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr);
enum err sql_room(struct store *s, uint64_t bytes, struct err_detail *reterr);
enum err sql_sync(struct store *s);
enum err sql_compact(struct store *s, store_copy_fn fn, void *arg, struct err_detail *reterr);
enum err sql_feed_keep_on(struct store *s, int64_t now, struct err_detail *reterr);

/* One commit reclaims a slice of what was removed; *ret_done: how many steps that was.  With the
 * lock held, which is given up meanwhile. */
enum err sql_reclaim_slice(struct sql_store *st, size_t *ret_done);
/* A step that shrinks the store (shrink.h), in its turn among the change sets.  With the lock held,
 * which is given up meanwhile. */
enum err sql_shrink_step(struct sql_store *st);
static inline bool sql_has_to_reclaim(const struct sql_store *st)
{
	const struct sql_removals *r = &st->readers.removals;
	return atomic_load(&r->begun) != atomic_load(&r->ended);
}

/* ---- room.c ---- */

/* What a change may add besides its bytes. */
#define SQL_ROOM_PER_CHANGE 1024

/* What change sets want of the disk. */
struct sql_want {
	uint64_t adds; /* bytes */
	bool reserved; /* all changes are CHANGE_RESERVED */
};
void sql_want_add(struct sql_want *w, const struct change *c);
/* Whether there is room even if the log is copied.  For any thread. */
bool sql_has_room_beside_log(struct sql_store *st, const struct sql_want *w);
/* ERR_NO_SPACE.  The leader's, between transactions: copies and cuts the log where room is
 * short. */
enum err sql_check_room(struct sql_store *st, const struct sql_want *w);
/* Bytes of free pages inside the store: what was removed before. */
uint64_t sql_free_inside(struct sql_conn *c);
/* Why there is none, for the user. */
void sql_tell_room(struct sql_store *st, struct err_detail *detail);

/* ---- reclaimer.c ---- */

/* Where there is something to reclaim the thread goes on with it.  With the lock held. */
void sql_reclaimer_wake(struct sql_store *st);
/* Returns when it has ended: after the slice that it is at.  The rest waits for the next open. */
void sql_reclaimer_stop(struct sql_store *st);

/* ---- open.c ---- */

/* Of a store that is held (hold.h), whose header was looked at: read_only says how.  Sets
 * has_index, wal_fd, readers, writer and the counters; upgrades an older schema.
 * Whatever it comes to, sql_close_files() follows.  ERR_BUSY: another process has the log.
 * ERR_READ_ONLY: a log is to be replayed first; errors of SQLite and of sql_upgrade(). */
enum err sql_open_files(struct sql_store *st, struct err_detail *detail);
/* Of whatever an open has come to.  Who could write leaves no log behind. */
void sql_close_files(struct sql_store *st);

/* ---- note.c ---- */

/* The ops of these names. */
void sql_note_put(struct store *s, int64_t version, struct span note);
enum err sql_note_get(struct store *s, struct buf *ret);
/* Writes the note in the transaction of a clean close, if it is true. */
enum err sql_note_write(struct sql_store *st);

/* ---- log.c ---- */

/* Of the log on disk; 0: there is none. */
uint64_t sql_log_bytes(const struct sql_store *st);
/* From now on the writer's commits send the log to the disk and copy it into the store in time. */
void sql_log_watch(struct sql_store *st);
/* Copies the log into the store, so that it begins anew in the space that it has; not while
 * somebody has an older view open, which is waited for so long. */
bool sql_log_begin_anew(struct sql_writer *w, int wait_ms);
/* The same, and gives the log's space back but for a little, which what removes needs.  It
 * waits so long for those who read the log. */
bool sql_log_cut(struct sql_store *st, int wait_ms);
/* SQLite begins the log anew by itself where it finds a moment without readers.  Readers who
 * overlap leave none, so this makes one: nothing is written meanwhile, and queries give up
 * their views soon.  Views that are held on purpose are not waited for; one that stays all the
 * same is waited for ever more rarely. */
void sql_log_bound(struct sql_store *st);
/* Whether it is worth a copy beside the writers, so that none of them will wait for one. */
bool sql_log_is_long(const struct sql_store *st);
/* Copies the log into the store beside the writers, by another connection, outside of a
 * transaction. */
void sql_log_copy(struct sql_store *st, sqlite3 *db);
/* Gives the space of the log back, unless somebody is reading: in its turn among the change sets,
 * for nobody but a leader makes the log begin anew. */
void sql_log_shrink(struct sql_store *st);

/* A connection that stays inside one read transaction. */
struct store_view {
	struct sql_conn *conn;
	bool held;
	struct mutex lock; /* a connection serves one thread at a time */
};
/* The connection of a view, for one thread. */
static inline struct sql_conn *sql_view_conn(struct store_view *v)
{
	return v->conn;
}

/* check.c */
enum err sql_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg);

#endif
