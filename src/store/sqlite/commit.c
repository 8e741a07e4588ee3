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
 * commits before it durable; frames of an earlier round of the log were synced, copied and
 * synced again before the log was restarted, and a restarted log's header is synced by
 * SQLite itself. */
#include "store/sqlite/store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Of one commit: keeps the followers' waiting time and the log in bounds. */
#define GROUP_SETS 128
#define GROUP_CHANGES 4096

/* How long writers wait for readers where the log shall begin anew. */
#define LOG_WAIT_MS 1500

/* Kept free on the disk for what removes; and what a change may add besides its bytes. */
#define ROOM_RESERVED (1024 * 1024)
#define ROOM_PER_CHANGE 1024
#define ROOM_INSIDE (64 * 1024)
#define SQL_PAGE_BYTES 4096u

struct sql_set {
	struct change *changes;
	size_t n;
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

static void roll_back(struct sql_writer *w, const struct sql_counters *before)
{
	/* After some errors SQLite has rolled back already. */
	if (in_transaction(w))
		(void)sql_do(w->conn, SQL_ROLLBACK);
	sql_dirs_drop(w);
	w->now = *before;
}

/* ---- room on the disk ---- */

/* Copies the log into the store, so that it begins anew in the space that it has; not while
 * somebody has an older view open, which is waited for so long. */
static bool begin_log_anew(struct sql_writer *w, int wait_ms)
{
	sqlite3 *db = w->conn->db;
	(void)sqlite3_busy_timeout(db, wait_ms);
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	(void)sqlite3_busy_timeout(db, SQL_BUSY_TIMEOUT_MS);
	return rc == SQLITE_OK;
}

static bool has_room(const struct sql_store *st, uint64_t bytes)
{
	struct statvfs fs;
	if (fstatvfs(st->hold_fd, &fs) != 0)
		return true;
	uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
	return blocks * fs.f_frsize >= bytes;
}

uint64_t sql_log_bytes(const struct sql_store *st)
{
	struct stat log;
	return fstat(st->wal_fd, &log) == 0 ? (uint64_t)log.st_size : 0;
}

static uint64_t bytes_of_pages(struct sql_conn *c, const char *pragma)
{
	sqlite3_stmt *st;
	uint64_t pages = 0;
	if (sqlite3_prepare_v2(c->db, pragma, -1, &st, NULL) == SQLITE_OK) {
		if (sqlite3_step(st) == SQLITE_ROW)
			pages = (uint64_t)sqlite3_column_int64(st, 0);
		(void)sqlite3_finalize(st);
	}
	return pages * SQL_PAGE_BYTES;
}

/* Of free pages inside the store: what was removed before. */
static uint64_t free_inside(struct sql_conn *c)
{
	return bytes_of_pages(c, "PRAGMA freelist_count");
}

/* By which the store's file will grow when the log is copied into it. */
static uint64_t still_to_copy(const struct sql_store *st)
{
	struct stat file;
	uint64_t all = bytes_of_pages(st->writer.conn, "PRAGMA page_count");
	uint64_t there = fstat(st->hold_fd, &file) == 0 ? (uint64_t)file.st_size : 0;
	return all > there ? all - there : 0;
}

/* SQLite begins the log anew by itself where it finds a moment without readers.  Readers who
 * overlap leave none, so this makes one: nothing is written meanwhile, and queries give up
 * their views soon.  Views that are held on purpose are not waited for; one that stays all the
 * same is waited for ever more rarely. */
static void bound_log(struct sql_store *st)
{
	uint64_t n = sql_log_bytes(st), *tried = &st->writer.log_tried;
	if (n < SQL_LOG_BYTES || atomic_load(&st->held) > 0) {
		*tried = 0;
	} else if (n >= *tried + *tried / 2) {
		*tried = n;
		(void)begin_log_anew(&st->writer, LOG_WAIT_MS);
	}
}

/* What adds to the store is refused a little before the disk is full: removing takes some
 * space too, in the log and where the log is copied to, and must go on working.  Under a held
 * view both are refused while the log can still be copied: its end gives the space back. */
static enum err check_room(struct sql_store *st, const struct sql_set *set)
{
	uint64_t adds = 0;
	for (size_t i = 0; i < set->n; i++) {
		enum change_op op = set->changes[i].op;
		if (op == CHANGE_PUT || op == CHANGE_WRITE || set->changes[i].body.p != NULL)
			adds += ROOM_PER_CHANGE + 2 * set->changes[i].body.n;
	}
	bool held = atomic_load(&st->held) > 0;
	if ((adds == 0 && !held) || has_room(st, sql_log_bytes(st) + ROOM_RESERVED + adds))
		return ERR_OK;
	/* From its beginning the log overwrites itself, and free pages inside the store are as
	 * good as free space. */
	if (begin_log_anew(&st->writer, 0) &&
		free_inside(st->writer.conn) >= 2 * adds + ROOM_INSIDE)
		return ERR_OK;
	uint64_t kept = adds > 0 ? ROOM_RESERVED + adds : ROOM_RESERVED / 2;
	return has_room(st, still_to_copy(st) + kept) ? ERR_OK : ERR_NO_SPACE;
}

/* ---- the leader's transactions of one set ---- */

static enum err try_alone(struct sql_writer *w, struct sql_set *set, size_t *ret_op)
{
	struct sql_counters before = w->now;
	enum err e = sql_do(w->conn, SQL_BEGIN);
	if (e == ERR_OK)
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
	struct sql_writer *w = &st->writer;
	size_t op = 0;
	enum err e = check_room(st, set);
	if (e == ERR_OK)
		e = try_alone(w, set, &op);
	if (e == ERR_NO_SPACE && begin_log_anew(w, 0) && check_room(st, set) == ERR_OK) {
		changes_fini(set->changes, set->n);
		e = try_alone(w, set, &op);
	}
	blame(set, op, e);
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
		e = sql_do(w->conn, SQL_ROLLBACK_TO);
	}
	return e == ERR_OK ? sql_do(w->conn, SQL_RELEASE) : e;
}

/* All in one transaction; false: nothing was applied, and it may be only one's fault. */
static bool run_together(struct sql_store *st, struct sql_set *sets)
{
	struct sql_writer *w = &st->writer;
	struct sql_counters before = w->now;
	enum err e = ERR_OK;
	for (struct sql_set *s = sets; s && e == ERR_OK; s = s->next)
		e = check_room(st, s);
	if (e != ERR_OK)
		return false;
	e = sql_do(w->conn, SQL_BEGIN);
	for (struct sql_set *s = sets; s && e == ERR_OK; s = s->next)
		e = run_within(w, s);
	if (e == ERR_OK)
		e = sql_do(w->conn, SQL_COMMIT);
	if (e == ERR_OK)
		return true;
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

static void refuse_all(struct sql_set *sets)
{
	for (struct sql_set *s = sets; s; s = s->next) {
		blame(s, 0, ERR_IO);
		(void)err_set(s->detail, ERR_IO, "the store file was moved, removed or replaced");
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
		commits += s->result == ERR_OK;
	}
	return commits;
}

/* ---- the queue ---- */

static struct sql_set *take_group(struct sql_store *st)
{
	struct sql_set *first = st->head, *last = first;
	size_t sets = 1, changes = first->n;
	while (last->next && sets < GROUP_SETS && changes + last->next->n <= GROUP_CHANGES) {
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

/* With the lock held, which is given up meanwhile. */
static void lead(struct sql_store *st, const struct sql_set *own)
{
	struct sql_set *sets = take_group(st);
	st->led = true;
	pthread_mutex_unlock(&st->lock);
	uint64_t commits = run(st, sets);
	bound_log(st);
	int64_t high = highest(sets);
	pthread_mutex_lock(&st->lock);

	if (high > atomic_load(&st->version_high))
		atomic_store(&st->version_high, high);
	atomic_store(&st->file_bytes, st->writer.now.file_bytes);
	uint64_t applied = 0;
	for (const struct sql_set *s = sets; s; s = s->next) {
		applied += s->result == ERR_OK;
		st->changes += s->result == ERR_OK ? s->n : 0;
	}
	count_commits(st, commits, applied);
	st->led = false;
	for (struct sql_set *s = sets, *next; s; s = next) {
		next = s->next; /* s is gone once its thread sees done */
		s->commit = st->committed;
		s->done = true;
		if (s != own)
			pthread_cond_signal(&s->wake);
	}
	if (st->head && st->head != own)
		pthread_cond_signal(&st->head->wake);
}

static void enqueue(struct sql_store *st, struct sql_set *set)
{
	*st->tail = set;
	st->tail = &set->next;
	while (!set->done) {
		if (st->led)
			pthread_cond_wait(&set->wake, &st->lock);
		else
			lead(st, set);
	}
}

/* ---- durability ---- */

/* Until all commits up to this number are synced; whoever comes while a sync runs shares
 * the next one.  With the lock held. */
static enum err wait_synced(struct sql_store *st, uint64_t commit)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && st->synced < commit) {
		if (st->syncing) {
			pthread_cond_wait(&st->sync_done, &st->lock);
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
		pthread_mutex_unlock(&st->lock);
		if (fdatasync(st->wal_fd) != 0)
			e = err_from_errno(errno);
		pthread_mutex_lock(&st->lock);
		st->syncing = false;
		st->sync_failed = e != ERR_OK;
		st->syncs++;
		if (e == ERR_OK && up_to > st->synced)
			st->synced = up_to;
		pthread_cond_broadcast(&st->sync_done);
	}
	return e;
}

enum err sql_sync(struct store *s)
{
	struct sql_store *st = sql_of(s);
	if (st->read_only)
		return ERR_OK;
	pthread_mutex_lock(&st->lock);
	enum err e = wait_synced(st, st->committed);
	pthread_mutex_unlock(&st->lock);
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
	pthread_mutex_lock(&st->lock);
	enqueue(st, &set);
	if (durable && set.result == ERR_OK)
		synced = wait_synced(st, set.commit);
	pthread_mutex_unlock(&st->lock);
	pthread_cond_destroy(&set.wake);
	if (synced == ERR_OK)
		return set.result;
	changes_fini(changes, n);
	return err_set(reterr, ERR_OUTCOME_UNKNOWN, "committed, but the disk refused to sync: %s",
		err_text(synced));
}
