/* SPDX-License-Identifier: MIT
 * The table of held views: for views.c, which keeps it, and views_force.c, which watches it. */
#ifndef SERVICE_VIEW_VIEWS_TABLE_H
#define SERVICE_VIEW_VIEWS_TABLE_H

#include "base/lock.h"
#include "service/view/views.h"

#include <pthread.h>
#include <time.h>

#define VIEWS_US_PER_SECOND UINT64_C(1000000)

struct view {
	struct views *views;
	struct store_view *store_view; /* NULL: the engine has no views, or it is closed */
	struct view_info info;         /* left_s, log_bytes: when asked */
	uint64_t ends_us;              /* monotonic; 0: no limit */
	uint64_t log_before;           /* bytes of the log when it was opened */
	unsigned uses;
	bool closed; /* or being closed */
	bool ended;
	bool let_go;  /* by views_end(): its closing counts */
	bool streams; /* its opener will close it */
	struct view *next;
};

struct views {
	struct store *store;
	struct mutex lock; /* guards what follows, and the members of all views */
	pthread_cond_t wake, closed, stream_closed;
	struct view *first, **last; /* oldest first */
	uint32_t numbers;           /* the last one given out */
	int64_t changed;            /* when the names did; ticks */
	uint64_t log_max, lifetime_s;
	unsigned streams;  /* in the list, or about to be */
	unsigned waiting;  /* for one of them to be closed */
	uint64_t log_base; /* bytes of the log when it was last at rest */
	uint64_t room;     /* how many were let go and are closed */
	unsigned closing;  /* that were let go and are not */
	bool watching, stopping;
	pthread_t watcher;

	struct mutex room_lock; /* one at a time makes room; taken before `lock` */

	struct rwlock ended_lock; /* read: a call is running */
	view_ended_fn on_end;     /* guarded by ended_lock */
	void *on_end_arg;
};

static inline struct timespec views_timespec(uint64_t mono_us)
{
	return (struct timespec){ .tv_sec = (time_t)(mono_us / VIEWS_US_PER_SECOND),
		.tv_nsec = (long)(mono_us % VIEWS_US_PER_SECOND) * 1000 };
}

/* Bytes of the log on disk; with no lock held. */
uint64_t views_log(struct views *vs);
static inline uint64_t views_growth(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Takes it out, closes it unless it is in use, and tells; why as in view_ended_fn.  With the
 * lock held, which is given up. */
void views_end(struct view *v, uint64_t log, const char *why);
/* The thread that watches; arg: struct views. */
void *views_watch(void *arg);

#endif
