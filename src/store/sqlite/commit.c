/* SPDX-License-Identifier: MIT
 * Group commit.  A thread that has a change set puts it into the queue; if nobody leads,
 * it leads: takes what is queued, applies each set under its own savepoint, commits once
 * for all, and tells the others.  There is no writer thread, since handing over to one
 * costs more than the commit.
 *
 *   a set in the queue   done == false; belongs to the leader once it was taken
 *   done                 its result is there; its thread may go on
 *
 * Durable: SQLite runs with synchronous=NORMAL, which writes the log in order and syncs it
 * only before a checkpoint copies from it.  One fdatasync() of the log therefore makes all
 * commits before it durable.  Frames of an earlier round of the log were synced, copied and synced
 * again before the log was restarted.  SQLite itself syncs the header of a restarted log. */
#include "base/clock.h"
#include "base/lock.h"
#include "store/sqlite/compact.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Of one commit: keeps the followers' waiting time and the log in bounds. */
#define GROUP_SETS 128
#define GROUP_CHANGES 4096

/* Of one slice that is reclaimed: so many items and bytes, and not for longer. */
#define SLICE_ITEMS_MIN 8
#define SLICE_BYTES ((uint64_t)4 << 20)
#define SLICE_US 5000

struct sql_set {
	struct change *changes;
	size_t n; /* 0: it only asks for room */
	uint64_t room;
	bool probes;                           /* with n 0: whether the disk takes a commit */
	struct sql_slice *reclaims;            /* with n 0: reclaims so much */
	const struct sql_compaction *compacts; /* with n 0; NULL */
	int64_t feed_now;                      /* with n 0: keeps the feed on from this time; 0 */
	struct err_detail *detail;
	enum err result;
	uint64_t commit; /* its number, when done */
	bool done;
	pthread_cond_t wake;
	struct sql_set *next;
};

static void blame(struct sql_set *set, size_t op, enum err e)
{
	set->result = e;
	if (e == ERR_OK)
		return;
	changes_fini(set->changes, set->n);
	if (set->detail) {
		memset(set->detail, 0, sizeof(*set->detail));
		set->detail->op = op;
	}
}

/* ---- the leader's transactions ---- */

static bool in_transaction(struct sql_writer *w)
{
	return !sqlite3_get_autocommit(w->conn->db);
}

/* A rollback that lacked memory is made up for first. */
static enum err begin(struct sql_writer *w)
{
	enum err e = in_transaction(w) ? sql_do(w->conn, SQL_ROLLBACK) : ERR_OK;
	return e == ERR_OK ? sql_do(w->conn, SQL_BEGIN) : e;
}

static void roll_back(struct sql_writer *w, const struct sql_counters *before)
{
	/* After some errors SQLite has rolled back already. */
	if (in_transaction(w))
		(void)sql_do(w->conn, SQL_ROLLBACK);
	sql_dirs_drop(w);
	w->now = *before;
}

static void want_add(struct sql_want *w, const struct sql_set *set)
{
	w->adds += set->room;
	w->reserved = w->reserved && set->n > 0;
	for (size_t i = 0; i < set->n; i++)
		sql_want_add(w, &set->changes[i]);
}

/* ---- the leader's transactions of one set ---- */

static enum err reclaim(struct sql_writer *w, struct sql_slice *slice, bool *ret_all)
{
	slice->done = 0;
	slice->until_us = clock_mono_us() + SLICE_US;
	enum err e = sql_reclaim(w, slice, ret_all);
	return e == ERR_OK ? sql_finish(w) : e;
}

/* Has a transaction of its own. */
static bool stands_alone(const struct sql_set *set)
{
	return set->reclaims != NULL || set->feed_now != 0 || set->compacts != NULL;
}

static enum err try_alone(struct sql_writer *w, struct sql_set *set, size_t *ret_op, bool *ret_all)
{
	struct sql_counters before = w->now;
	if (set->n == 0 && !set->probes && !stands_alone(set))
		return ERR_OK;
	enum err e = begin(w);
	if (e == ERR_OK && set->reclaims)
		e = reclaim(w, set->reclaims, ret_all);
	else if (e == ERR_OK && set->feed_now != 0)
		e = sql_feed_keep(w, set->feed_now, set->feed_now + w->feed_ticks);
	else if (e == ERR_OK && set->n == 0)
		e = sql_meta_put(w->conn, "version_high", w->now.version_reserved);
	else if (e == ERR_OK)
		e = sql_apply_set(w, set->changes, set->n, ret_op);
	if (e == ERR_OK)
		e = sql_do(w->conn, SQL_COMMIT);
	if (e != ERR_OK)
		roll_back(w, &before);
	return e;
}

/* One set in its own transaction. */
static void run_alone(struct sql_store *st, struct sql_set *set)
{
	if (set->compacts != NULL) {
		set->result = sql_compact_now(st, set->compacts, set->detail);
		return;
	}
	struct sql_writer *w = &st->writer;
	size_t op = 0;
	bool all = false; /* was reclaimed */
	struct sql_want want = { .reserved = true };
	want_add(&want, set);
	enum err e = sql_check_room(st, &want);
	if (e == ERR_OK)
		e = try_alone(w, set, &op, &all);
	if (e == ERR_NO_SPACE && sql_log_begin_anew(w, 0) && sql_check_room(st, &want) == ERR_OK) {
		changes_fini(set->changes, set->n);
		e = try_alone(w, set, &op, &all);
	}
	if (e == ERR_OK && all)
		sql_all_reclaimed(w);
	if (set->n > 0 || set->probes)
		atomic_store(&st->disk_refused, e == ERR_IO || e == ERR_READ_ONLY);
	blame(set, op, e);
	if (e == ERR_NO_SPACE)
		sql_tell_room(st, set->detail);
}

/* Whether pages of this transaction are in the log already; perhaps of an earlier one. */
static bool has_spilled(struct sql_writer *w)
{
	int n = 0, highest = 0;
	(void)sqlite3_db_status(
		w->conn->db, SQLITE_DBSTATUS_CACHE_SPILL, &n, &highest, /* reset */ 1);
	return n > 0;
}

/* One of several, inside the shared transaction.  Not ERR_OK: the transaction is lost. */
static enum err run_within(struct sql_writer *w, struct sql_set *set)
{
	struct sql_counters before = w->now;
	size_t op = 0;
	enum err e = sql_do(w->conn, SQL_SAVEPOINT);
	if (e != ERR_OK)
		return e;
	e = sql_apply_set(w, set->changes, set->n, &op);
	if (sql_error_is_ours(e) || !in_transaction(w)) {
		changes_fini(set->changes, set->n);
		return e != ERR_OK ? e : ERR_IO;
	}
	blame(set, op, e);
	if (e != ERR_OK) {
		sql_dirs_drop(w);
		w->now = before;
		/* SQLite 3.40 forgets to take back which of the log's checksums are to be written
		 * anew at the commit, and writes some of them as zeros: after a kill the log ends
		 * there. */
		e = has_spilled(w) ? ERR_BUSY : sql_do(w->conn, SQL_ROLLBACK_TO);
	}
	return e == ERR_OK ? sql_do(w->conn, SQL_RELEASE) : e;
}

/* All in one transaction; false: nothing was applied, and it may be only one's fault. */
static bool run_together(struct sql_store *st, struct sql_set *sets)
{
	struct sql_writer *w = &st->writer;
	struct sql_counters before = w->now;
	struct sql_want want = { .reserved = true };
	for (const struct sql_set *s = sets; s; s = s->next)
		want_add(&want, s);
	if (sql_check_room(st, &want) != ERR_OK)
		return false;
	enum err e = begin(w);
	for (struct sql_set *s = sets; s && e == ERR_OK; s = s->next)
		e = run_within(w, s);
	if (e == ERR_OK)
		e = sql_do(w->conn, SQL_COMMIT);
	if (e == ERR_OK) {
		atomic_store(&st->disk_refused, false);
		return true;
	}
	roll_back(w, &before);
	for (struct sql_set *s = sets; s; s = s->next)
		changes_fini(s->changes, s->n);
	return false;
}

/* Somebody put another file in the place of the store: what is written now would be lost. */
static bool is_replaced(const struct sql_store *st)
{
	struct stat held, there;
	return fstat(st->hold_fd, &held) == 0 &&
		(stat(st->path, &there) != 0 || there.st_dev != held.st_dev ||
			there.st_ino != held.st_ino);
}

static enum err tell_replaced(struct err_detail *detail)
{
	return err_set(detail, ERR_IO, "the store file was moved, removed or replaced");
}

static void refuse_all(struct sql_set *sets)
{
	for (struct sql_set *s = sets; s; s = s->next) {
		blame(s, 0, ERR_IO);
		(void)tell_replaced(s->detail);
	}
}

/* Returns the number of commits made. */
static uint64_t run(struct sql_store *st, struct sql_set *sets)
{
	if (is_replaced(st)) {
		refuse_all(sets);
		return 0;
	}
	if (sets->next && run_together(st, sets))
		return 1;
	uint64_t commits = 0;
	for (struct sql_set *s = sets; s; s = s->next) {
		run_alone(st, s);
		commits += s->result == ERR_OK && s->n > 0;
	}
	return commits;
}

/* ---- the queue ---- */

static struct sql_set *take_group(struct sql_store *st)
{
	struct sql_set *first = st->head, *last = first;
	size_t sets = 1, changes = first->n;
	while (last->next && !stands_alone(first) && !stands_alone(last->next) &&
		sets < GROUP_SETS && changes + last->next->n <= GROUP_CHANGES) {
		last = last->next;
		sets++;
		changes += last->n;
	}
	st->head = last->next;
	if (!st->head)
		st->tail = &st->head;
	last->next = NULL;
	return first;
}

static int64_t highest(const struct sql_set *sets)
{
	int64_t high = 0;
	for (const struct sql_set *s = sets; s; s = s->next) {
		for (size_t i = 0; i < s->n && s->result == ERR_OK; i++) {
			const struct change *c = &s->changes[i];
			if (c->op != CHANGE_ATTRS && c->version > high)
				high = c->version;
		}
	}
	return high;
}

/* n change sets were committed, all by one commit or each by one of its own. */
static void count_commits(struct sql_store *st, uint64_t commits, uint64_t n)
{
	uint64_t shared = commits == 1 ? n : 1;
	size_t i = 0;
	while (i < STORE_COMMIT_SIZES - 1 && shared >> (i + 1) != 0)
		i++;
	st->commits += commits;
	st->committed += commits;
	st->change_sets += n;
	if (n > 0)
		st->commit_sizes[i] += commits;
}

/* Releases the lock meanwhile. */
static void lead(struct sql_store *st, const struct sql_set *own)
{
	lock_assert_held(&st->lock);
	struct sql_set *sets = take_group(st);
	st->led = true;
	mutex_unlock(&st->lock);
	/* Not after the commit: readers see it, and those who were told what it replaced wait. */
	sql_pool_changing(&st->readers);
	sql_log_bound(st);
	uint64_t commits = run(st, sets);
	sql_pool_changed(&st->readers);
	int64_t high = highest(sets);
	mutex_lock(&st->lock);

	if (high > atomic_load(&st->version_high))
		atomic_store(&st->version_high, high);
	atomic_store(&st->file_bytes, st->writer.now.file_bytes);
	atomic_store(&st->feed_until, st->writer.now.feed.until);
	atomic_store(&st->piece_bytes, st->writer.now.piece_bytes);
	uint64_t applied = 0;
	for (const struct sql_set *s = sets; s; s = s->next) {
		applied += s->result == ERR_OK && s->n > 0;
		st->changes += s->result == ERR_OK ? s->n : 0;
	}
	count_commits(st, commits, applied);
	atomic_store(&st->warm_reads, SQL_WARM_READS);
	st->led = false;
	for (struct sql_set *s = sets, *next; s; s = next) {
		next = s->next; /* s is gone once its thread sees done */
		s->commit = st->committed;
		s->done = true;
		if (s != own)
			pthread_cond_signal(&s->wake);
	}
	sql_reclaimer_wake(st);
	if (st->head && st->head != own)
		pthread_cond_signal(&st->head->wake);
}

static void enqueue(struct sql_store *st, struct sql_set *set)
{
	lock_assert_held(&st->lock);
	*st->tail = set;
	st->tail = &set->next;
	while (!set->done) {
		if (st->led)
			cond_wait(&set->wake, &st->lock);
		else
			lead(st, set);
	}
}

/* ---- reclaiming ---- */

enum err sql_reclaim_slice(struct sql_store *st, size_t *ret_done)
{
	lock_assert_held(&st->lock);
	struct sql_slice slice;
	enum err e = ERR_NO_SPACE;
	size_t items = st->slice_items;
	while (e == ERR_NO_SPACE && items >= SLICE_ITEMS_MIN) {
		slice = (struct sql_slice){ .items = items, .bytes = SLICE_BYTES };
		struct sql_set set = { .reclaims = &slice, .wake = PTHREAD_COND_INITIALIZER };
		enqueue(st, &set);
		pthread_cond_destroy(&set.wake);
		e = set.result;
		/* A smaller one needs less of a full disk. */
		items = e == ERR_NO_SPACE ? items / 4 : 2 * items;
	}
	st->slice_items = items < SLICE_ITEMS_MIN ? SLICE_ITEMS_MIN
		: items > SQL_SLICE_ITEMS         ? SQL_SLICE_ITEMS
						  : items;
	st->slices += e == ERR_OK;
	*ret_done = e == ERR_OK ? slice.done : 0;
	return e;
}

/* A set that is refused for lack of space waits while reclaiming gives some. */
static void enqueue_patiently(struct sql_store *st, struct sql_set *set)
{
	size_t done;
	enqueue(st, set);
	while ((set->result == ERR_NO_SPACE || set->result == ERR_QUOTA ||
		       set->result == ERR_BLOB_SPACE) &&
		sql_has_to_reclaim(st) && sql_reclaim_slice(st, &done) == ERR_OK && done > 0) {
		set->done = false;
		set->next = NULL;
		enqueue(st, set);
	}
}

/* ---- durability ---- */

/* Until all commits up to this number are synced; a thread that comes while a sync runs shares
 * the next one.  Releases the lock meanwhile. */
static enum err wait_synced(struct sql_store *st, uint64_t commit)
{
	lock_assert_held(&st->lock);
	enum err e = ERR_OK;
	while (e == ERR_OK && st->synced < commit) {
		if (st->syncing) {
			cond_wait(&st->sync_done, &st->lock);
			continue;
		}
		/* The system forgets a failed write once it has told of it: a sync that
		 * succeeds afterwards would promise what it cannot know. */
		if (st->sync_failed) {
			e = ERR_IO;
			break;
		}
		uint64_t up_to = st->committed;
		st->syncing = true;
		mutex_unlock(&st->lock);
		may_block(BLOCK_SURE);
		if (TEMP_FAILURE_RETRY(fdatasync(st->wal_fd)) != 0)
			e = err_from_errno(errno);
		mutex_lock(&st->lock);
		st->syncing = false;
		st->sync_failed = e != ERR_OK;
		st->syncs++;
		if (e == ERR_OK)
			st->synced = up_to;
		pthread_cond_broadcast(&st->sync_done);
	}
	return e;
}

/* A file system that made itself read-only may not say so, but refuses even no bytes. */
static bool is_on_read_only_disk(const struct sql_store *st)
{
	struct statvfs fs;
	if (fstatvfs(st->hold_fd, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
		return true;
	return pwrite(st->wal_fd, "", 0, 0) < 0 && errno == EROFS;
}

/* A commit may be of several changes, so this asks for a little more than one takes. */
enum err sql_room(struct store *s, uint64_t bytes, struct err_detail *reterr)
{
	struct sql_store *st = sql_of(s);
	struct sql_want want = { .adds = 4 * SQL_ROOM_PER_CHANGE + 2 * bytes };
	if (st->read_only)
		return ERR_OK;
	if (is_replaced(st))
		return tell_replaced(reterr);
	if (is_on_read_only_disk(st))
		return err_set(reterr, ERR_READ_ONLY, "the disk of the store is read-only");
	bool refused = atomic_load(&st->disk_refused);
	if (!refused && sql_has_room_beside_log(st, &want))
		return ERR_OK;
	struct sql_set set = {
		.room = want.adds,
		.probes = refused,
		.detail = reterr,
		.wake = PTHREAD_COND_INITIALIZER,
	};
	mutex_lock(&st->lock);
	enqueue_patiently(st, &set);
	mutex_unlock(&st->lock);
	pthread_cond_destroy(&set.wake);
	return set.result;
}

enum err sql_feed_keep_on(struct store *s, int64_t now, struct err_detail *reterr)
{
	struct sql_store *st = sql_of(s);
	if (st->read_only)
		return ERR_READ_ONLY;
	if (atomic_load(&st->feed_until) - now > st->writer.feed_ticks - st->writer.feed_ticks / 24)
		return ERR_OK;
	struct sql_set set = {
		.feed_now = now,
		.detail = reterr,
		.wake = PTHREAD_COND_INITIALIZER,
	};
	mutex_lock(&st->lock);
	enqueue_patiently(st, &set);
	mutex_unlock(&st->lock);
	pthread_cond_destroy(&set.wake);
	return set.result;
}

/* What is still to be reclaimed gives no free page yet. */
enum err sql_compact(struct store *s, store_copy_fn fn, void *arg, struct err_detail *reterr)
{
	struct sql_store *st = sql_of(s);
	const struct sql_compaction order = { fn, arg };
	struct sql_set set = {
		.compacts = &order,
		.detail = reterr,
		.wake = PTHREAD_COND_INITIALIZER,
	};
	size_t done = 1;
	if (st->read_only)
		return ERR_READ_ONLY;
	mutex_lock(&st->lock);
	while (sql_has_to_reclaim(st) && done > 0 && sql_reclaim_slice(st, &done) == ERR_OK)
		;
	enqueue(st, &set);
	mutex_unlock(&st->lock);
	pthread_cond_destroy(&set.wake);
	return set.result;
}

void sql_log_shrink(struct sql_store *st)
{
	struct sql_set set = { .wake = PTHREAD_COND_INITIALIZER };
	atomic_store(&st->log_shrinks, true);
	mutex_lock(&st->lock);
	enqueue(st, &set);
	mutex_unlock(&st->lock);
	pthread_cond_destroy(&set.wake);
}

enum err sql_sync(struct store *s)
{
	struct sql_store *st = sql_of(s);
	if (st->read_only)
		return ERR_OK;
	mutex_lock(&st->lock);
	enum err e = wait_synced(st, st->committed);
	mutex_unlock(&st->lock);
	return e;
}

enum err sql_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	struct sql_store *st = sql_of(s);
	if (st->read_only)
		return ERR_READ_ONLY;
	if (n == 0)
		return ERR_OK;
	struct sql_set set = {
		.changes = changes,
		.n = n,
		.detail = reterr,
		.wake = PTHREAD_COND_INITIALIZER,
	};
	enum err synced = ERR_OK;
	mutex_lock(&st->lock);
	enqueue_patiently(st, &set);
	if (durable && set.result == ERR_OK)
		synced = wait_synced(st, set.commit);
	mutex_unlock(&st->lock);
	pthread_cond_destroy(&set.wake);
	if (synced == ERR_OK)
		return set.result;
	changes_fini(changes, n);
	return err_set(reterr, ERR_OUTCOME_UNKNOWN, "committed, but the disk refused to sync: %s",
		err_text(synced));
}
