/* SPDX-License-Identifier: MIT
 * A view is in the list until it ends: its stream closes it, a user removes it by name, or it is
 * ended by force.  The engine's view is closed at the last use; the struct lives until its stream
 * closes it. */
#include "service/view/views.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/text.h"
#include "service/view/views_table.h"

#include <pthread.h>
#include <stdlib.h>

/* close(2) returns before the kernel sends the release.  So a program that opens the next
 * stream at once may find the old one still counted.  Only few threads may wait: releases need
 * threads too. */
#define STREAM_WAIT_US 200000
#define STREAM_WAITERS_MAX 4

/* The thread starts with the first view: a process that forked earlier would lose it. */
static enum err start_watching(struct views *vs)
{
	if (!vs->watching && pthread_create(&vs->watcher, NULL, views_watch, vs) != 0)
		return ERR_NO_MEMORY;
	vs->watching = true;
	return ERR_OK;
}

static struct view *find_named(struct views *vs, struct span name)
{
	lock_assert_held(&vs->lock);
	for (struct view *v = vs->first; v != NULL; v = v->next)
		if (v->info.number != 0 && span_is(name, v->info.name))
			return v;
	return NULL;
}

static struct view *find_number(struct views *vs, uint32_t number)
{
	lock_assert_held(&vs->lock);
	for (struct view *v = vs->first; v != NULL; v = v->next)
		if (v->info.number == number)
			return v;
	return NULL;
}

static enum err take_number(struct views *vs, struct view *v, struct err_detail *detail)
{
	size_t n = 0;
	for (const struct view *other = vs->first; other != NULL; other = other->next)
		n += other->info.number != 0;
	if (find_named(vs, span_of(v->info.name)) != NULL)
		return ERR_NAME_EXISTS;
	if (n >= SNAPSHOTS_MAX)
		return err_set(detail, ERR_NO_SPACE,
			"%d snapshots are held, which is the most: rmdir one first", SNAPSHOTS_MAX);
	if (vs->numbers == VIEW_NUMBER_MAX)
		return err_set(detail, ERR_NO_SPACE,
			"no more snapshots can be made until the store is mounted anew");
	v->info.number = ++vs->numbers;
	vs->changed = v->info.made;
	if (vs->lifetime_s != 0)
		v->ends_us = clock_mono_us() + vs->lifetime_s * VIEWS_US_PER_SECOND;
	return ERR_OK;
}

/* Takes a slot for a stream and waits a little for one.  Returns false if there is none. */
static bool take_place(struct views *vs)
{
	mutex_lock(&vs->lock);
	if (vs->streams >= STREAMS_MAX && vs->waiting < STREAM_WAITERS_MAX) {
		struct timespec until = views_timespec(clock_mono_us() + STREAM_WAIT_US);
		int rc = 0;
		vs->waiting++;
		while (vs->streams >= STREAMS_MAX && rc == 0)
			rc = cond_wait_until(&vs->stream_closed, &vs->lock, &until);
		vs->waiting--;
	}
	bool taken = vs->streams < STREAMS_MAX;
	vs->streams += taken;
	mutex_unlock(&vs->lock);
	return taken;
}

static enum err append(struct views *vs, struct view *v, bool log_rests, struct err_detail *detail)
{
	lock_assert_held(&vs->lock);
	enum err e = start_watching(vs);
	if (e == ERR_OK && !v->streams)
		e = take_number(vs, v, detail);
	if (e != ERR_OK)
		return e;
	/* A log that has not restarted since the last views still counts for them. */
	if (vs->first == NULL && (log_rests || v->log_before < vs->log_base))
		vs->log_base = v->log_before;
	*vs->last = v;
	vs->last = &v->next;
	pthread_cond_signal(&vs->wake);
	return ERR_OK;
}

static enum err open_view(struct views *vs, struct span name, bool streams, struct view **ret,
	struct view_info *ret_info, struct err_detail *detail)
{
	struct view *v = calloc(1, sizeof(*v));
	if (v == NULL)
		return ERR_NO_MEMORY;
	v->views = vs;
	v->streams = streams;
	name.n = name.n < SNAPSHOT_NAME_MAX ? name.n : SNAPSHOT_NAME_MAX;
	memcpy(v->info.name, name.p, utf8_valid_prefix(name));
	struct store_info store;
	store_info(vs->store, &store);
	v->log_before = store.log_bytes;
	enum err e = store_view_hold(vs->store, &v->store_view);
	/* Without the engine's views, a stream reads the current state, and a snapshot is
	 * impossible. */
	if (e == ERR_OK && !streams && v->store_view == NULL)
		e = ERR_NOT_SUPPORTED;
	if (e != ERR_OK) {
		free(v);
		return e;
	}
	v->info.made = clock_ticks();
	mutex_lock(&vs->lock);
	e = append(vs, v, store.log_bytes <= store.log_rest, detail);
	if (e == ERR_OK && ret_info != NULL)
		*ret_info = views_info_of(v, v->log_before);
	mutex_unlock(&vs->lock);
	if (e != ERR_OK) {
		store_view_close(vs->store, v->store_view);
		free(v);
		return e;
	}
	*ret = v;
	return ERR_OK;
}

/* ---- streams ---- */

enum err views_open(struct views *vs, struct span what, struct view **ret)
{
	if (!take_place(vs))
		return ERR_THROTTLED;
	enum err e = open_view(vs, what, true, ret, NULL, NULL);
	if (e != ERR_OK) {
		mutex_lock(&vs->lock);
		views_give_place(vs);
		mutex_unlock(&vs->lock);
	}
	return e;
}

void views_close(struct view *v)
{
	if (v == NULL)
		return;
	mutex_lock(&v->views->lock);
	if (!v->ended)
		views_take_out(v);
	v->streams = false;
	views_unlock_and_close(v);
}

enum err view_begin(struct view *v, struct store_view **ret)
{
	mutex_lock(&v->views->lock);
	enum err e = v->ended ? ERR_GONE : ERR_OK;
	if (e == ERR_OK) {
		v->uses++;
		*ret = v->store_view;
	}
	mutex_unlock(&v->views->lock);
	return e;
}

void view_end(struct view *v)
{
	mutex_lock(&v->views->lock);
	v->uses--;
	views_unlock_and_close(v);
}

/* ---- snapshots ---- */

static enum err check_name(struct span name, struct err_detail *detail)
{
	if (name.n == 0 || name.p[0] == '.')
		return err_set(
			detail, ERR_NAME_INVALID, "a snapshot's name must not begin with a dot");
	if (name.n > SNAPSHOT_NAME_MAX)
		return ERR_NAME_TOO_LONG;
	return utf8_valid(name) ? ERR_OK : ERR_NAME_NOT_UTF8;
}

enum err snapshot_make(
	struct views *vs, struct span name, struct view_info *ret, struct err_detail *detail)
{
	struct view *v;
	enum err e = check_name(name, detail);
	return e == ERR_OK ? open_view(vs, name, false, &v, ret, detail) : e;
}

enum err snapshot_drop(struct views *vs, struct span name)
{
	mutex_lock(&vs->lock);
	struct view *v = find_named(vs, name);
	if (v == NULL) {
		mutex_unlock(&vs->lock);
		return ERR_NOT_FOUND;
	}
	views_end(v, 0, NULL);
	return ERR_OK;
}

/* Releases the lock.  none: the result if v is NULL. */
static enum err tell(
	struct views *vs, const struct view *v, uint64_t log, enum err none, struct view_info *ret)
{
	lock_assert_held(&vs->lock);
	if (v != NULL)
		*ret = views_info_of(v, log);
	mutex_unlock(&vs->lock);
	return v != NULL ? ERR_OK : none;
}

enum err snapshot_find(struct views *vs, struct span name, struct view_info *ret)
{
	uint64_t log = views_log(vs);
	mutex_lock(&vs->lock);
	return tell(vs, find_named(vs, name), log, ERR_NOT_FOUND, ret);
}

enum err snapshot_next(struct views *vs, uint32_t after, struct view_info *ret)
{
	uint64_t log = views_log(vs);
	const struct view *next = NULL;
	mutex_lock(&vs->lock);
	for (const struct view *v = vs->first; v != NULL; v = v->next)
		if (v->info.number > after && (next == NULL || v->info.number < next->info.number))
			next = v;
	return tell(vs, next, log, ERR_NOT_FOUND, ret);
}

int64_t snapshots_changed(struct views *vs)
{
	mutex_lock(&vs->lock);
	int64_t changed = vs->changed;
	mutex_unlock(&vs->lock);
	return changed;
}

enum err snapshot_get(struct views *vs, uint32_t number, struct view_info *ret)
{
	uint64_t log = views_log(vs);
	mutex_lock(&vs->lock);
	return tell(vs, find_number(vs, number), log, ERR_GONE, ret);
}

enum err snapshot_set_lifetime(struct views *vs, uint32_t number, uint64_t seconds)
{
	uint64_t now = clock_mono_us();
	if (seconds > (UINT64_MAX - now) / VIEWS_US_PER_SECOND)
		return ERR_OUT_OF_RANGE;
	mutex_lock(&vs->lock);
	struct view *v = find_number(vs, number);
	if (v != NULL)
		v->ends_us = seconds == 0 ? 0 : now + seconds * VIEWS_US_PER_SECOND;
	mutex_unlock(&vs->lock);
	return v != NULL ? ERR_OK : ERR_GONE;
}

enum err snapshot_begin(
	struct views *vs, uint32_t number, struct view **ret_view, struct store_view **ret)
{
	mutex_lock(&vs->lock);
	struct view *v = find_number(vs, number);
	if (v != NULL) {
		v->uses++;
		*ret_view = v;
		*ret = v->store_view;
	}
	mutex_unlock(&vs->lock);
	return v != NULL ? ERR_OK : ERR_GONE;
}

/* ---- all of them ---- */

size_t views_list(struct views *vs, struct view_info *out, size_t max)
{
	size_t n = 0;
	uint64_t log = views_log(vs);
	mutex_lock(&vs->lock);
	for (const struct view *v = vs->first; v != NULL; v = v->next, n++)
		if (n < max)
			out[n] = views_info_of(v, log);
	mutex_unlock(&vs->lock);
	return n;
}

void views_set_bounds(struct views *vs, uint64_t log_max, uint64_t lifetime_s)
{
	mutex_lock(&vs->lock);
	vs->log_max = log_max;
	vs->lifetime_s = lifetime_s;
	mutex_unlock(&vs->lock);
}

void views_on_end(struct views *vs, view_ended_fn fn, void *arg)
{
	rwlock_wrlock(&vs->ended_lock);
	vs->on_end = fn;
	vs->on_end_arg = arg;
	rwlock_unlock(&vs->ended_lock);
}

enum err views_new(struct store *store, struct views **ret)
{
	struct views *vs = calloc(1, sizeof(*vs));
	if (vs == NULL)
		return ERR_NO_MEMORY;
	vs->store = store;
	vs->last = &vs->first;
	vs->log_max = VIEWS_LOG_BYTES;
	vs->log_base = UINT64_MAX;
	mutex_init(&vs->lock, RANK_VIEWS);
	mutex_init(&vs->room_lock, RANK_VIEWS_ROOM);
	rwlock_init(&vs->ended_lock, RANK_VIEWS_ENDED);
	pthread_cond_init(&vs->wake, NULL);
	pthread_cond_init(&vs->closed, NULL);
	pthread_cond_init(&vs->stream_closed, NULL);
	*ret = vs;
	return ERR_OK;
}

void views_free(struct views *vs)
{
	if (vs == NULL)
		return;
	mutex_lock(&vs->lock);
	vs->stopping = true;
	pthread_cond_signal(&vs->wake);
	mutex_unlock(&vs->lock);
	if (vs->watching)
		pthread_join(vs->watcher, NULL);
	while (vs->first != NULL) {
		struct view *v = vs->first;
		BUG_ON(v->uses > 0 || v->streams);
		mutex_lock(&vs->lock);
		views_take_out(v);
		views_unlock_and_close(v);
	}
	mutex_destroy(&vs->lock);
	pthread_cond_destroy(&vs->wake);
	pthread_cond_destroy(&vs->closed);
	pthread_cond_destroy(&vs->stream_closed);
	mutex_destroy(&vs->room_lock);
	rwlock_destroy(&vs->ended_lock);
	free(vs);
}
