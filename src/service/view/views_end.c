/* SPDX-License-Identifier: MIT
 * The end of a view.  views.c opens views and views_force.c ends them by force; both call down
 * here. */
#include "base/clock.h"
#include "base/lock.h"
#include "service/view/views.h"
#include "service/view/views_table.h"

#include <stdlib.h>

uint64_t views_log(struct views *vs)
{
	struct store_info info;
	store_info(vs->store, &info);
	return info.log_bytes;
}

struct view_info views_info_of(const struct view *v, uint64_t log)
{
	lock_assert_held(&v->views->lock);
	struct view_info info = v->info;
	uint64_t now = clock_mono_us();
	info.log_bytes = views_growth(log, v->log_before);
	if (v->ends_us != 0)
		info.left_s = v->ends_us > now
			? (v->ends_us - now + VIEWS_US_PER_SECOND - 1) / VIEWS_US_PER_SECOND
			: 1;
	return info;
}

void views_unlock_and_close(struct view *v)
{
	lock_assert_held(&v->views->lock);
	struct views *vs = v->views;
	struct store_view *unused = NULL;
	bool closes = v->ended && v->uses == 0 && !v->closed;
	if (closes) {
		unused = v->store_view;
		v->store_view = NULL;
		v->closed = true;
	}
	bool counts = closes && v->let_go;
	if (v->ended && v->uses == 0 && !v->streams)
		free(v);
	mutex_unlock(&vs->lock);
	store_view_close(vs->store, unused);
	if (!counts)
		return;
	mutex_lock(&vs->lock);
	vs->closing--;
	vs->room++;
	pthread_cond_broadcast(&vs->closed);
	mutex_unlock(&vs->lock);
}

void views_give_place(struct views *vs)
{
	lock_assert_held(&vs->lock);
	vs->streams--;
	pthread_cond_signal(&vs->stream_closed);
}

void views_take_out(struct view *v)
{
	lock_assert_held(&v->views->lock);
	struct view **at = &v->views->first;
	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	if (v->views->last == &v->next)
		v->views->last = at;
	v->ended = true;
	if (v->info.number != 0)
		v->views->changed = clock_ticks();
	else
		views_give_place(v->views);
}

void views_end(struct view *v, uint64_t log, const char *why)
{
	struct views *vs = v->views;
	struct view_info info = views_info_of(v, log);
	views_take_out(v);
	v->let_go = true;
	vs->closing++;
	views_unlock_and_close(v);
	rwlock_rdlock(&vs->ended_lock);
	if (vs->on_end != NULL)
		vs->on_end(vs->on_end_arg, &info, why);
	rwlock_unlock(&vs->ended_lock);
}
