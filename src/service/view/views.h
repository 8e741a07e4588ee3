/* SPDX-License-Identifier: MIT
 * Views that are held for long: snapshots, which have a name, and those of open streams,
 * which have none.  While one is held the log on disk cannot begin anew and only grows, so
 * each may be ended by force: when its lifetime is over, when the log has grown by more than
 * is allowed since it was opened (or by twice that over all, where views overlap), or when
 * the disk is full.  A use that has begun is finished first; the next one is told ERR_GONE.
 * They live as long as the service.  Safe for any number of threads. */
#ifndef SERVICE_VIEW_VIEWS_H
#define SERVICE_VIEW_VIEWS_H

#include "base/err.h"
#include "base/span.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define STREAMS_MAX 64        /* open at a time */
#define SNAPSHOTS_MAX 32      /* held at a time */
#define SNAPSHOT_NAME_MAX 255 /* bytes */
#define VIEW_NUMBER_MAX 0x3fffffu
#define VIEWS_LOG_BYTES ((uint64_t)4 << 30) /* unless views_set_bounds() was called */

struct views; /* of a service: service_views() */
struct view;

struct view_info {
	char name[SNAPSHOT_NAME_MAX + 1]; /* of a snapshot; of a stream: what it is of */
	uint32_t number;                  /* of a snapshot, from 1, never used again; else 0 */
	int64_t made;                     /* ticks */
	uint64_t left_s;                  /* seconds that it may still live; 0: no limit */
	uint64_t log_bytes;               /* by which the log on disk grew since it was opened */
};

/* ---- streams ---- */

/* A view of this moment, or of now where the engine has no views; what: said where views are listed and when it is ended (cut at
 * SNAPSHOT_NAME_MAX bytes).  The caller views_close()s.  ERR_THROTTLED: STREAMS_MAX are open,
 * and none was closed within 0.2 s; up to 4 callers at a time wait for that. */
enum err views_open(struct views *vs, struct span what, struct view **ret);
void views_close(struct view *v); /* NULL is fine; no use of it may be going on */
/* From here to view_end() it is not ended: keep it short.  ERR_GONE: it was. */
enum err view_begin(struct view *v, struct store_view **ret);
void view_end(struct view *v);

/* ---- snapshots ---- */

/* ERR_NAME_EXISTS; ERR_NAME_INVALID (empty, or a leading dot), ERR_NAME_TOO_LONG,
 * ERR_NAME_NOT_UTF8; ERR_NO_SPACE: SNAPSHOTS_MAX are held; ERR_NOT_SUPPORTED: the engine has no
 * views. */
enum err snapshot_make(
	struct views *vs, struct span name, struct view_info *ret, struct err_detail *detail);
/* Lets it go; uses that have begun are finished.  ERR_NOT_FOUND. */
enum err snapshot_drop(struct views *vs, struct span name);
/* ERR_NOT_FOUND. */
enum err snapshot_find(struct views *vs, struct span name, struct view_info *ret);
/* The next one behind this number (0: the first).  ERR_NOT_FOUND: there are no more. */
enum err snapshot_next(struct views *vs, uint32_t after, struct view_info *ret);
/* When one was last made, let go or ended; 0: never.  Ticks. */
int64_t snapshots_changed(struct views *vs);
/* ERR_GONE. */
enum err snapshot_get(struct views *vs, uint32_t number, struct view_info *ret);
/* From now on it lives for so many seconds; 0: without limit.  ERR_GONE. */
enum err snapshot_set_lifetime(struct views *vs, uint32_t number, uint64_t seconds);
/* view_begin() of the snapshot with this number; view_end(*ret_view) ends the use. */
enum err snapshot_begin(
	struct views *vs, uint32_t number, struct view **ret_view, struct store_view **ret);

/* ---- all of them ---- */

/* Copies up to max, oldest first; returns how many there are. */
size_t views_list(struct views *vs, struct view_info *out, size_t max);
/* log_max: the growth of the log that ends a view; lifetime_s: of snapshots made from now
 * on, 0: no limit. */
void views_set_bounds(struct views *vs, uint64_t log_max, uint64_t lifetime_s);
/* Told of each that was let go or ended, by the thread that did it; why: one line, NULL where
 * somebody let it go.  The thread holds VIEWS_ENDED, and may hold locks above it
 * (base/lock_ranks.h): it may have found the disk full at a commit.  There is one fn, which several threads may call at
 * once; NULL: nobody any more, and no call is running when this returns. */
typedef void (*view_ended_fn)(void *arg, const struct view_info *info, const char *why);
void views_on_end(struct views *vs, view_ended_fn fn, void *arg);
/* How many were let go or ended and are closed: to be asked for before what may find the disk
 * full. */
uint64_t views_room(struct views *vs);
/* The disk is full: ends the oldest one if the log grew since they are held, and waits for its
 * uses, 2 s at most.  True: try again; one was closed, for this call or for another thread's,
 * since views_room() answered `before`. */
bool views_make_room(struct views *vs, uint64_t before);

/* For the service. */
enum err views_new(struct store *store, struct views **ret);
/* Ends all; nobody uses one any more.  NULL is fine. */
void views_free(struct views *vs);

#endif
