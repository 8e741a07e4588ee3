/* SPDX-License-Identifier: MIT
 * Ends long-lived views by force: after their lifetime, for the log, and on a full disk.  One
 * thread checks them; without any it sleeps. */
#include "base/clock.h"
#include "base/lock.h"
#include "service/view/views.h"
#include "service/view/views_table.h"

#include <inttypes.h>
#include <stdio.h>

#define WATCH_US 100000
/* How long a writer waits on a full disk until the uses of an ended view have finished. */
#define ROOM_WAIT_US 2000000
/* If the log grew by less, ending a view gains nothing on a full disk. */
#define ROOM_WORTH_BYTES ((uint64_t)128 << 10)
#define WHY_MAX 160

/* Returns the first view that must end, and why; or NULL. */
static struct view *overdue(struct views *vs, uint64_t log, char why[WHY_MAX])
{
	lock_assert_held(&vs->lock);
	uint64_t now = clock_mono_us();
	for (struct view *v = vs->first; v != NULL; v = v->next) {
		uint64_t grown = views_growth(log, v->log_before);
		if (v->ends_us != 0 && now >= v->ends_us) {
			(void)snprintf(why, WHY_MAX, "its lifetime is over");
			return v;
		}
		if (grown > vs->log_max) {
			(void)snprintf(why, WHY_MAX,
				"the log on disk grew by %" PRIu64
				" bytes since it was opened; at most %" PRIu64 " are allowed",
				grown, vs->log_max);
			return v;
		}
	}
	uint64_t grown = views_growth(log, vs->log_base);
	if (vs->first == NULL || views_growth(log, vs->first->log_before) == 0 ||
		grown / 2 <= vs->log_max)
		return NULL;
	(void)snprintf(why, WHY_MAX,
		"the log on disk grew by %" PRIu64 " bytes because of views that overlap; at most "
		"%" PRIu64 " are allowed for one",
		grown, vs->log_max);
	return vs->first;
}

void *views_watch(void *arg)
{
	struct views *vs = arg;
	char why[WHY_MAX];
	struct timespec until;
	mutex_lock(&vs->lock);
	while (!vs->stopping) {
		if (vs->first == NULL) {
			cond_wait(&vs->wake, &vs->lock);
			continue;
		}
		mutex_unlock(&vs->lock);
		uint64_t log = views_log(vs);
		mutex_lock(&vs->lock);
		struct view *v = overdue(vs, log, why);
		if (v != NULL) {
			views_end(v, log, why);
			mutex_lock(&vs->lock);
		} else if (!vs->stopping) {
			until = views_timespec(clock_mono_us() + WATCH_US);
			(void)cond_wait_until(&vs->wake, &vs->lock, &until);
		}
	}
	mutex_unlock(&vs->lock);
	return NULL;
}

uint64_t views_room(struct views *vs)
{
	mutex_lock(&vs->lock);
	uint64_t room = vs->room;
	mutex_unlock(&vs->lock);
	return room;
}

bool views_make_room(struct views *vs, uint64_t before)
{
	mutex_lock(&vs->room_lock);
	uint64_t log = views_log(vs);
	mutex_lock(&vs->lock);
	if (vs->room == before && vs->closing == 0 && vs->first != NULL &&
		views_growth(log, vs->log_base) >= ROOM_WORTH_BYTES) {
		views_end(vs->first, log, "the disk is full");
		mutex_lock(&vs->lock);
	}
	struct timespec until = views_timespec(clock_mono_us() + ROOM_WAIT_US);
	int rc = 0;
	while (vs->room == before && vs->closing > 0 && rc == 0)
		rc = cond_wait_until(&vs->closed, &vs->lock, &until);
	bool made = vs->room != before;
	mutex_unlock(&vs->lock);
	mutex_unlock(&vs->room_lock);
	return made;
}
