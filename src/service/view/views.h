/* SPDX-License-Identifier: MIT
 * Long-lived views: snapshots, which have a name, and the views of streams.  While one is open, the
 * log on disk cannot restart and only grows.  So a view may be ended by force:
 *
 * - after its lifetime,
 * - if the log has grown by more than a limit since the view was opened, or by twice that in all
 *   for views that overlap,
 * - on a full disk.
 *
 * A use in progress finishes first; the next one gets ERR_GONE.  Views live as long as the service.
 * Any number of threads may use them. */
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
#define VIEWS_LOG_BYTES ((uint64_t)4 << 30) /* the default of views_set_bounds() */

struct views; /* of a service: service_views() */
struct view;

struct view_info {
	char name[SNAPSHOT_NAME_MAX + 1]; /* of a snapshot; for a stream a description */
	uint32_t number;                  /* of a snapshot, from 1 on, never used again; else 0 */
	int64_t made;                     /* ticks */
	uint64_t left_s;                  /* seconds of remaining lifetime; 0: no limit */
	uint64_t log_bytes;               /* by which the log on disk has grown since the opening */
};

/* ---- streams ---- */

/* Opens a view of the current state.  If the engine has no views, its uses read what is there at
 * that time.  what describes it in lists and messages, and is cut at
 * SNAPSHOT_NAME_MAX bytes.  The caller must call views_close().  ERR_THROTTLED: STREAMS_MAX are
 * open and none was closed within 0.2 s.  Up to 4 callers wait for that at a time. */
enum err views_open(struct views *vs, struct span what, struct view **ret);
void views_close(struct view *v); /* accepts NULL; no use may be in progress */
/* Begins a use, during which the view is not ended: keep it short.  ERR_GONE if it was ended. */
enum err view_begin(struct view *v, struct store_view **ret);
/* Ends a use.  The last use of an ended view closes it. */
void view_end(struct view *v);

/* ---- snapshots ---- */

/* Makes a snapshot.  ERR_NAME_EXISTS; ERR_NAME_INVALID (empty, or a leading dot),
 * ERR_NAME_TOO_LONG, ERR_NAME_NOT_UTF8; ERR_NO_SPACE: SNAPSHOTS_MAX are held; ERR_NOT_SUPPORTED:
 * the engine has no views. */
enum err snapshot_make(
	struct views *vs, struct span name, struct view_info *ret, struct err_detail *detail);
/* Removes a snapshot; uses in progress finish.  ERR_NOT_FOUND. */
enum err snapshot_drop(struct views *vs, struct span name);
/* Finds a snapshot by name.  ERR_NOT_FOUND. */
enum err snapshot_find(struct views *vs, struct span name, struct view_info *ret);
/* Returns the snapshot with the next higher number; after 0: the first one.  ERR_NOT_FOUND behind
 * the last one. */
enum err snapshot_next(struct views *vs, uint32_t after, struct view_info *ret);
/* Returns the time at which a snapshot was last made, removed or ended, in ticks; 0: never. */
int64_t snapshots_changed(struct views *vs);
/* Finds a snapshot by number.  ERR_GONE. */
enum err snapshot_get(struct views *vs, uint32_t number, struct view_info *ret);
/* Sets the remaining lifetime in seconds; 0: no limit.  ERR_GONE, ERR_OUT_OF_RANGE. */
enum err snapshot_set_lifetime(struct views *vs, uint32_t number, uint64_t seconds);
/* Does what view_begin() does, for the snapshot with this number.  view_end(*ret_view) ends the
 * use. */
enum err snapshot_begin(
	struct views *vs, uint32_t number, struct view **ret_view, struct store_view **ret);

/* ---- all of them ---- */

/* Copies up to max, oldest first.  Returns how many there are. */
size_t views_list(struct views *vs, struct view_info *out, size_t max);
/* log_max: the growth of the log that ends a view, in bytes.  lifetime_s: of snapshots that are
 * made later; 0: no limit. */
void views_set_bounds(struct views *vs, uint64_t log_max, uint64_t lifetime_s);
/* Called for each view that was removed or ended, by the thread that did it.  That thread holds
 * VIEWS_ENDED, and may hold locks above it (base/lock_ranks.h), since a commit ends views on a full
 * disk.  why: one line; NULL for a removal.  Several threads may call it at once.  With fn NULL, views_on_end()
 * returns when no call is running. */
typedef void (*view_ended_fn)(void *arg, const struct view_info *info, const char *why);
void views_on_end(struct views *vs, view_ended_fn fn, void *arg);
/* Returns how many views were ended and closed so far.  Call it before an operation that may find
 * the disk full. */
uint64_t views_room(struct views *vs);
/* On a full disk: ends the oldest view, if the log has grown since the views were opened, and waits
 * up to 2 s for its uses.  Returns true if the caller should try again: a view was closed since
 * views_room() returned `before`, for this or another thread. */
bool views_make_room(struct views *vs, uint64_t before);

/* For the service. */
enum err views_new(struct store *store, struct views **ret);
/* Ends all views; none may be in use.  Accepts NULL. */
void views_free(struct views *vs);

#endif
