/* SPDX-License-Identifier: MIT
 * Whether the disk has room for a change set.  What adds is refused a little before the disk is
 * full: removing takes space too, in the log and where the log is copied to, and must go on
 * working.  The log's file keeps the largest size that it had, so it is cut where room is short. */
#include "base/clock.h"
#include "store/sqlite/store.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Kept free for what removes: so much, but on a small disk a share of it.  The last part of it
 * nothing else may use. */
#define RESERVE ((uint64_t)1 << 20)
#define RESERVE_SHARE 8
#define LAST_SHARE 8

/* What a change may add besides its bytes. */
#define INSIDE (64 * 1024)
#define FOR_MOVES (64 * 1024)
#define SQL_PAGE_BYTES 4096u
/* So much free space is taken for granted for so long. */
#define PLENTY ((uint64_t)512 << 20)
#define PLENTY_US 20000

struct disk {
	uint64_t bytes, free, reserve;
};

/* Free without end where nobody knows. */
static struct disk look(struct sql_store *st)
{
	struct statvfs fs;
	if (fstatvfs(st->hold_fd, &fs) != 0)
		return (struct disk){ .free = UINT64_MAX };
	struct disk d = {
		.bytes = fs.f_blocks * fs.f_frsize,
		.free = (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize,
	};
	d.reserve = d.bytes / RESERVE_SHARE < RESERVE ? d.bytes / RESERVE_SHARE : RESERVE;
	if (d.free >= sql_log_bytes(st) + PLENTY)
		atomic_store(&st->roomy_until_us, clock_mono_us() + PLENTY_US);
	return d;
}

/* What is to be free for a set and after it. */
static uint64_t to_be_free(const struct disk *d, const struct sql_want *w)
{
	if (w->adds == 0)
		return d->reserve / 2;
	return w->adds + (w->reserved ? d->reserve / LAST_SHARE : d->reserve);
}

/* Besides the log, which is copied into the store's file.  Where there was plenty a moment ago
 * nothing is asked: should somebody else have filled the disk since, SQLite finds out. */
bool sql_has_room_beside_log(struct sql_store *st, const struct sql_want *w)
{
	if (w->adds < PLENTY / 2 && clock_mono_us() < atomic_load(&st->roomy_until_us))
		return true;
	struct disk d = look(st);
	return d.free >= sql_log_bytes(st) + to_be_free(&d, w);
}

uint64_t sql_free_inside(struct sql_conn *c)
{
	return sql_pragma(c, "PRAGMA freelist_count") * SQL_PAGE_BYTES;
}

/* By which the store's file will grow when the log is copied into it. */
static uint64_t still_to_copy(const struct sql_store *st)
{
	struct stat file;
	uint64_t all = sql_pragma(st->writer.conn, "PRAGMA page_count") * SQL_PAGE_BYTES;
	uint64_t there = fstat(st->hold_fd, &file) == 0 ? (uint64_t)file.st_size : 0;
	return all > there ? all - there : 0;
}

void sql_want_add(struct sql_want *w, const struct change *c)
{
	bool file = c->op == CHANGE_DELETE && (c->flags & CHANGE_TO_FILE) != 0;
	bool adds = c->op == CHANGE_PUT || c->op == CHANGE_WRITE || file || c->body.p != NULL;
	/* A document that changes its place leaves as much behind. */
	bool freed = (c->flags & CHANGE_FREED) || (c->op == CHANGE_MOVE && c->body.n <= FOR_MOVES);
	uint64_t bytes = file ? c->offset : c->body.n;
	if (adds && !freed)
		w->adds += SQL_ROOM_PER_CHANGE + 2 * bytes;
	w->reserved = w->reserved && (c->flags & CHANGE_RESERVED) != 0;
}

enum err sql_check_room(struct sql_store *st, const struct sql_want *w)
{
	if (sql_has_room_beside_log(st, w))
		return ERR_OK;
	bool removes = w->adds == 0 && atomic_load(&st->held) == 0;
	if (removes && sql_log_bytes(st) <= SQL_LOG_KEPT)
		return ERR_OK;
	/* Free pages inside the store are as good as free space once the log is copied. */
	uint64_t inside = sql_log_cut(st, 0) ? sql_free_inside(st->writer.conn) : 0;
	/* Under a held view what removes is refused, too, while the log can still be copied: the
	 * view's end gives the space back. */
	if (removes)
		return ERR_OK;
	struct disk d = look(st);
	uint64_t kept = to_be_free(&d, w);
	if (inside >= kept || inside >= 2 * w->adds + INSIDE)
		return ERR_OK;
	return d.free >= still_to_copy(st) + kept - inside ? ERR_OK : ERR_NO_SPACE;
}

void sql_tell_room(struct sql_store *st, struct err_detail *detail)
{
	struct disk d = look(st);
	if (d.free < d.bytes)
		(void)err_set(detail, ERR_NO_SPACE,
			"No space is left for the store: %" PRIu64 " of %" PRIu64
			" bytes of its disk are free; %" PRIu64
			" are kept so that rows can still be removed.",
			d.free, d.bytes, d.reserve);
}
