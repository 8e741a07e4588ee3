/* SPDX-License-Identifier: MIT
 * The leader's transactions: all sets of a group in one, each under a savepoint of its own; or each in
 * its own. */
#include "store/sqlite/set.h"

#include "base/clock.h"
#include "store/sqlite/compact.h"
#include "store/sqlite/feed.h"
#include "store/sqlite/shrink.h"

#include <string.h>
#include <sys/stat.h>

/* Of one slice that is reclaimed: it takes no longer. */
#define SLICE_US 5000

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

bool sql_set_stands_alone(const struct sql_set *set)
{
	return set->reclaims != NULL || set->feed_now != 0 || set->compacts != NULL || set->shrinks;
}

static enum err try_alone(struct sql_writer *w, struct sql_set *set, size_t *ret_op, bool *ret_all)
{
	struct sql_counters before = w->now;
	if (set->n == 0 && !set->probes && !sql_set_stands_alone(set))
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
	if (set->shrinks) {
		set->result = sql_shrink_now(st);
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
	if (e == ERR_OK && all) {
		sql_all_reclaimed(w);
		sql_shrink_look(st);
	}
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

bool sql_is_replaced(const struct sql_store *st)
{
	struct stat held, there;
	return fstat(st->hold_fd, &held) == 0 &&
		(stat(st->path, &there) != 0 || there.st_dev != held.st_dev ||
			there.st_ino != held.st_ino);
}

enum err sql_tell_replaced(struct err_detail *detail)
{
	return err_set(detail, ERR_IO, "the store file was moved, removed or replaced");
}

static void refuse_all(struct sql_set *sets)
{
	for (struct sql_set *s = sets; s; s = s->next) {
		blame(s, 0, ERR_IO);
		(void)sql_tell_replaced(s->detail);
	}
}

static uint64_t run_each(struct sql_store *st, struct sql_set *sets)
{
	uint64_t commits = 0;
	for (struct sql_set *s = sets; s; s = s->next) {
		run_alone(st, s);
		commits += s->result == ERR_OK && s->n > 0;
	}
	return commits;
}

uint64_t sql_sets_run(struct sql_store *st, struct sql_set *sets)
{
	if (sql_is_replaced(st)) {
		refuse_all(sets);
		return 0;
	}
	bool together = sets->next && run_together(st, sets);
	uint64_t commits = together ? 1 : run_each(st, sets);
	sql_shrink_look_again(st);
	sql_conn_count_pages(st->writer.conn, &st->page_bytes);
	return commits;
}
