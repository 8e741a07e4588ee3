/* SPDX-License-Identifier: MIT
 * The table of long-lived views: views.c maintains it, views_force.c ends views. */
#ifndef SERVICE_VIEW_VIEWS_TABLE_H
#define SERVICE_VIEW_VIEWS_TABLE_H

#include "base/lock.h"
#include "service/view/views.h"

#include <pthread.h>
#include <time.h>

#define VIEWS_US_PER_SECOND UINT64_C(1000000)

struct view {
	struct views *views;
	struct store_view *store_view; /* NULL: closed, or the engine has no views */
	struct view_info info;         /* left_s and log_bytes are computed when asked */
	uint64_t ends_us;              /* monotonic; 0: no limit */
	uint64_t log_before;           /* bytes of the log at the opening */
	unsigned uses;
	bool closed; /* or being closed */
	bool ended;
	bool let_go;  /* ended by views_end(): its closing counts as room */
	bool streams; /* its opener will close it */
	struct view *next;
};

struct views {
	struct store *store;
	struct mutex lock; /* guards the members below, and those of all views */
	pthread_cond_t wake, closed, stream_closed;
	struct view *first, **last; /* oldest first */
	uint32_t numbers;           /* the last number in use */
	int64_t changed;            /* of the names, in ticks */
	uint64_t log_max, lifetime_s;
	unsigned streams;  /* in the list, or being opened */
	unsigned waiting;  /* threads that wait for a stream to be closed */
	uint64_t log_base; /* bytes of the log when no view held it back */
	uint64_t room;     /* views that were ended and closed */
	unsigned closing;  /* views that were ended and are not closed */
	bool watching, stopping;
	pthread_t watcher;

	struct mutex room_lock; /* one thread at a time makes room; taken before `lock` */

	struct rwlock ended_lock; /* for reading: a call is running */
	view_ended_fn on_end;     /* guarded by ended_lock */
	void *on_end_arg;
};

static inline struct timespec views_timespec(uint64_t mono_us)
{
	return (struct timespec){ .tv_sec = (time_t)(mono_us / VIEWS_US_PER_SECOND),
		.tv_nsec = (long)(mono_us % VIEWS_US_PER_SECOND) * 1000 };
}

/* Returns the bytes of the log on disk.  Calls the store, so the caller does not hold VIEWS. */
uint64_t views_log(struct views *vs);
static inline uint64_t views_growth(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* The caller of these holds the lock.  `log` is what views_log() returned before. */
struct view_info views_info_of(const struct view *v, uint64_t log);
/* Makes room for another stream. */
void views_give_place(struct views *vs);
void views_take_out(struct view *v);
/* Releases the lock, then closes and frees what is no longer used. */
void views_unlock_and_close(struct view *v);
/* Ends a view: removes it from the list, closes it unless it is in use, and reports it.  why as in
 * view_ended_fn.  Releases the lock. */
void views_end(struct view *v, uint64_t log, const char *why);
/* The watching thread; arg is struct views. */
void *views_watch(void *arg);

#endif
