/* SPDX-License-Identifier: MIT
 * Group commit.  A thread that has a change set puts it into the queue; if nobody leads,
 * it leads: takes what is queued, applies each set under its own savepoint, commits once
 * for all, and tells the others.  There is no writer thread, since handing over to one
 * costs more than the commit.
 *
 * A set that must be durable then waits for a sync of the log.  A thread with such a set syncs for all
 * that were committed before, while another one may lead the next commit.  The others sleep once, until
 * their sets have ended (enum set_state).
 *
 * Durable: SQLite runs with synchronous=NORMAL, which writes the log in order and syncs it
 * only before a checkpoint copies from it.  One fdatasync() of the log therefore makes all
 * commits before it durable.  Frames of an earlier round of the log were synced, copied and synced
 * again before the log was restarted.  SQLite itself syncs the header of a restarted log. */
#include "base/clock.h"
#include "base/lock.h"
#include "store/sqlite/compact.h"
#include "store/sqlite/set.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Of one commit: keeps the followers' waiting time and the log in bounds. */
#define GROUP_SETS 128
#define GROUP_CHANGES 4096

/* Of one slice that is reclaimed: so many items and bytes. */
#define SLICE_ITEMS_MIN 8
#define SLICE_BYTES ((uint64_t)4 << 20)

/* ---- the queue ---- */

static struct sql_set *take_group(struct sql_store *st)
{
	struct sql_set *first = st->head, *last = first;
	size_t sets = 1, changes = first->n;
	while (last->next && !sql_set_stands_alone(first) && !sql_set_stands_alone(last->next) &&
		sets < GROUP_SETS && changes + last->next->n <= GROUP_CHANGES) {
		last = last->next;
		sets++;
		changes += last->n;
	}
	st->head = last->next;
	if (!st->head)
		st->tail = &st->head;
	last->next = NULL;
	for (struct sql_set *s = first; s; s = s->next)
		s->state = SET_TAKEN;
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

/* Sets that ended, in a list.  The own set of the thread is not told. */
static void end_set(struct sql_set *set, struct sql_set ***end, const struct sql_set *own)
{
	set->next = NULL;
	if (set == own) {
		set->state = SET_ENDED;
		return;
	}
	set->state = SET_TAKEN;
	**end = set;
	*end = &set->next;
}

/* Releases the lock meanwhile.  A set is gone once its thread was told. */
static void tell_ended(struct sql_store *st, struct sql_set *ended)
{
	if (!ended)
		return;
	mutex_unlock(&st->lock);
	for (struct sql_set *next; ended; ended = next) {
		next = ended->next;
		wake_tell(&ended->wake, WAKE_ENDED);
	}
	mutex_lock(&st->lock);
}

static void count_sets(struct sql_store *st, uint64_t commits, const struct sql_set *sets)
{
	uint64_t applied = 0;
	for (const struct sql_set *s = sets; s; s = s->next) {
		applied += s->result == ERR_OK && s->n > 0;
		st->changes += s->result == ERR_OK ? s->n : 0;
	}
	count_commits(st, commits, applied);
}

static void add_unsynced(struct sql_store *st, struct sql_set *set)
{
	set->commit = st->committed;
	set->state = SET_UNSYNCED;
	set->next = NULL;
	*st->unsynced_tail = set;
	st->unsynced_tail = &set->next;
}

/* Releases the lock meanwhile. */
static void lead(struct sql_store *st, const struct sql_set *own)
{
	lock_assert_held(&st->lock);
	struct sql_set *sets = take_group(st), *ended = NULL, **end = &ended;
	st->led = true;
	mutex_unlock(&st->lock);
	/* Not after the commit: readers see it, and those who were told what it replaced wait. */
	sql_pool_changing(&st->readers);
	sql_log_bound(st);
	uint64_t commits = sql_sets_run(st, sets);
	sql_pool_changed(&st->readers);
	int64_t high = highest(sets);
	mutex_lock(&st->lock);

	if (high > atomic_load(&st->version_high))
		atomic_store(&st->version_high, high);
	atomic_store(&st->file_bytes, st->writer.now.file_bytes);
	atomic_store(&st->piece_bytes, st->writer.now.piece_bytes);
	atomic_store(&st->feed_until, st->writer.now.feed.until);
	count_sets(st, commits, sets);
	atomic_store(&st->warm_reads, SQL_WARM_READS);
	st->led = false;
	for (struct sql_set *s = sets, *next; s; s = next) {
		next = s->next;
		if (s->durable && s->result == ERR_OK)
			add_unsynced(st, s);
		else
			end_set(s, &end, own);
	}
	sql_reclaimer_wake(st);
	if (st->head && st->head != own)
		wake_tell(&st->head->wake, WAKE_LOOK);
	if (st->unsynced && !st->syncing && own->state != SET_UNSYNCED)
		wake_tell(&st->unsynced->wake, WAKE_LOOK);
	tell_ended(st, ended);
}

/* Syncs for all that were committed before; a set that is committed meanwhile waits for the next
 * sync.  Releases the lock meanwhile. */
static void sync_log(struct sql_store *st, const struct sql_set *own)
{
	lock_assert_held(&st->lock);
	struct sql_set *ended = NULL, **end = &ended;
	uint64_t up_to = st->committed;
	/* The system forgets a failed write once it has told of it: a sync that succeeds afterwards
	 * would promise what it cannot know. */
	enum err e = st->sync_failed ? ERR_IO : ERR_OK;
	if (e == ERR_OK) {
		st->syncing = true;
		mutex_unlock(&st->lock);
		may_block(BLOCK_SURE);
		if (TEMP_FAILURE_RETRY(fdatasync(st->wal_fd)) != 0)
			e = err_from_errno(errno);
		mutex_lock(&st->lock);
		st->syncing = false;
		st->syncs++;
	}
	if (e == ERR_OK)
		st->synced = up_to;
	st->sync_failed = e != ERR_OK;
	while (st->unsynced && (e != ERR_OK || st->unsynced->commit <= up_to)) {
		struct sql_set *set = st->unsynced;
		st->unsynced = set->next;
		set->synced = e;
		end_set(set, &end, own);
	}
	if (st->unsynced)
		wake_tell(&st->unsynced->wake, WAKE_LOOK);
	else
		st->unsynced_tail = &st->unsynced;
	tell_ended(st, ended);
}

/* Until the set has ended.  The set is in a list, and the lock held; it is released. */
static void see_through(struct sql_store *st, struct sql_set *set)
{
	lock_assert_held(&st->lock);
	while (set->state != SET_ENDED) {
		if (set->state == SET_QUEUED && !st->led) {
			lead(st, set);
		} else if (set->state == SET_UNSYNCED && !st->syncing) {
			sync_log(st, set);
		} else {
			mutex_unlock(&st->lock);
			if (wake_wait(&set->wake) == WAKE_ENDED)
				return;
			mutex_lock(&st->lock);
		}
	}
	mutex_unlock(&st->lock);
}

/* Commits the set, and syncs it where it is to be durable. */
static void execute(struct sql_store *st, struct sql_set *set)
{
	mutex_lock(&st->lock);
	set->state = SET_QUEUED;
	set->next = NULL;
	atomic_store(&set->wake.word, 0);
	*st->tail = set;
	st->tail = &set->next;
	see_through(st, set);
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
		struct sql_set set = { .reclaims = &slice };
		mutex_unlock(&st->lock);
		execute(st, &set);
		mutex_lock(&st->lock);
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

/* ---- shrinking ---- */

enum err sql_shrink_step(struct sql_store *st)
{
	lock_assert_held(&st->lock);
	struct sql_set set = { .shrinks = true };
	mutex_unlock(&st->lock);
	execute(st, &set);
	mutex_lock(&st->lock);
	return set.result;
}

static bool lacks_space(enum err e)
{
	return e == ERR_NO_SPACE || e == ERR_QUOTA || e == ERR_BLOB_SPACE;
}

/* A set that is refused for lack of space waits while reclaiming gives some. */
static void execute_patiently(struct sql_store *st, struct sql_set *set)
{
	enum err e = ERR_OK;
	execute(st, set);
	while (e == ERR_OK && lacks_space(set->result) && sql_has_to_reclaim(st)) {
		size_t done;
		mutex_lock(&st->lock);
		e = sql_reclaim_slice(st, &done);
		mutex_unlock(&st->lock);
		if (e == ERR_OK && done == 0)
			return;
		if (e == ERR_OK)
			execute(st, set);
	}
}

/* ---- the ops ---- */

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
	if (sql_is_replaced(st))
		return sql_tell_replaced(reterr);
	if (is_on_read_only_disk(st))
		return err_set(reterr, ERR_READ_ONLY, "the disk of the store is read-only");
	bool refused = atomic_load(&st->disk_refused);
	if (!refused && sql_has_room_beside_log(st, &want))
		return ERR_OK;
	struct sql_set set = {
		.room = want.adds,
		.probes = refused,
		.detail = reterr,
	};
	execute_patiently(st, &set);
	return set.result;
}

enum err sql_feed_keep_on(struct store *s, int64_t now, struct err_detail *reterr)
{
	struct sql_store *st = sql_of(s);
	if (st->read_only)
		return ERR_READ_ONLY;
	/* Versions stay ahead where the clock was set back. */
	int64_t high = atomic_load(&st->version_high);
	if (now < high)
		now = high;
	if (atomic_load(&st->feed_until) - now > st->writer.feed_ticks - st->writer.feed_ticks / 24)
		return ERR_OK;
	struct sql_set set = {
		.feed_now = now,
		.detail = reterr,
	};
	execute_patiently(st, &set);
	return set.result;
}

/* Removed items give free pages only once they are reclaimed. */
enum err sql_compact(struct store *s, store_copy_fn fn, void *arg, struct err_detail *reterr)
{
	struct sql_store *st = sql_of(s);
	const struct sql_compaction order = { fn, arg };
	struct sql_set set = { .compacts = &order, .detail = reterr };
	size_t done = 1;
	if (st->read_only)
		return ERR_READ_ONLY;
	mutex_lock(&st->lock);
	while (sql_has_to_reclaim(st) && done > 0 && sql_reclaim_slice(st, &done) == ERR_OK)
		;
	mutex_unlock(&st->lock);
	execute(st, &set);
	return set.result;
}

void sql_log_shrink(struct sql_store *st)
{
	struct sql_set set = { 0 };
	atomic_store(&st->log_shrinks, true);
	execute(st, &set);
}

enum err sql_sync(struct store *s)
{
	struct sql_store *st = sql_of(s);
	if (st->read_only)
		return ERR_OK;
	struct sql_set set = { 0 };
	mutex_lock(&st->lock);
	if (st->synced >= st->committed) {
		mutex_unlock(&st->lock);
		return ERR_OK;
	}
	add_unsynced(st, &set);
	see_through(st, &set);
	return set.synced;
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
		.durable = durable,
		.detail = reterr,
	};
	execute_patiently(st, &set);
	if (set.synced == ERR_OK)
		return set.result;
	changes_fini(changes, n);
	return err_set(reterr, ERR_OUTCOME_UNKNOWN, "committed, but the disk refused to sync: %s",
		err_text(set.synced));
}
