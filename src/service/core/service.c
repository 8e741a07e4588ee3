/* SPDX-License-Identifier: MIT */
#include "service/core/service.h"

#include "base/clock.h"
#include "base/lock.h"
#include "service/core/change_signal.h"
#include "service/core/claims.h"
#include "service/core/faults.h"
#include "service/core/heat.h"
#include "service/core/lookup_cache.h"
#include "service/core/metrics.h"
#include "service/core/partition_keys.h"
#include "service/view/views.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* A change set that others overtake: so often it is tried again, first without a pause. */
#define STALE_TRIES 40
#define STALE_TRIES_AT_ONCE 8

/* A clock that goes back further was set. */
#define CLOCK_SET_BACK (10 * TICKS_PER_SECOND)

struct service {
	struct store *store;
	unsigned abilities;
	_Atomic int64_t last_version, last_now;
	struct change_signal change_signal;
	struct claims *claims;
	struct faults *faults;
	struct heat *heat;
	struct metrics *metrics;
	struct partition_keys *partition_keys;
	struct lookup_cache *lookup_cache;
	struct views *views;
	_Atomic uint64_t row_cache_bytes;
	struct trash *_Atomic trash;
	atomic_bool read_only, sync;
	struct rwlock
		front_ends_lock; /* for reading: a front end other than the mount makes a change */

	struct mutex collections_lock;

	/* for reading: a call is running; for writing: the subscriber changes */
	struct rwlock events_lock;
	event_fn on_event; /* guarded by events_lock */
	void *event_arg;
	const struct set_watch *set_watch; /* guarded by events_lock; may be NULL */
	_Atomic bool watched;

	/* Change sets that may be visible, and whose before-images are not retained yet. */
	struct mutex sets_lock;
	pthread_cond_t retained;
	struct set_under_way *first, *last; /* in the order of their start; guarded by sets_lock */
	uint64_t begun;                     /* guarded by sets_lock */
	atomic_uint changing;               /* their number; changed under sets_lock */
};

/* On the stack of the thread that applies the change set. */
struct set_under_way {
	struct set_under_way *previous, *next;
	uint64_t number;
};

static void raise_version(struct service *s, int64_t seen)
{
	int64_t last = atomic_load(&s->last_version);
	while (last < seen && !atomic_compare_exchange_weak(&s->last_version, &last, seen))
		;
}

static void on_external(void *arg, const struct change *changes, size_t n);

enum err service_new(struct store *store, struct service **ret)
{
	struct service *s = calloc(1, sizeof(*s));
	if (s == NULL) {
		store_close(store);
		return ERR_NO_MEMORY;
	}
	struct store_info info;
	store_info(store, &info);
	s->store = store;
	s->abilities = info.abilities;
	atomic_init(&s->last_version, store_version_floor(store));
	rwlock_init(&s->events_lock, RANK_EVENTS);
	rwlock_init(&s->front_ends_lock, RANK_FRONT_ENDS);
	mutex_init(&s->collections_lock, RANK_COLLECTIONS);
	mutex_init(&s->sets_lock, RANK_SETS_UNDER_WAY);
	change_signal_init(&s->change_signal);
	pthread_cond_init(&s->retained, NULL);
	s->claims = claims_new();
	s->faults = faults_new();
	s->heat = heat_new();
	s->metrics = metrics_new();
	s->partition_keys = partition_keys_new(store);
	s->lookup_cache = lookup_cache_new();
	if (s->claims == NULL || s->faults == NULL || s->heat == NULL || s->metrics == NULL ||
		s->partition_keys == NULL || s->lookup_cache == NULL ||
		views_new(store, &s->views) != ERR_OK) {
		service_free(s);
		return ERR_NO_MEMORY;
	}
	if (service_can(s, STORE_SHARED))
		lookup_cache_changing(s->lookup_cache); /* for ever: it stays empty */
	store_listen(store, on_external, s);
	*ret = s;
	return ERR_OK;
}

void service_free(struct service *s)
{
	if (s == NULL)
		return;
	store_listen(s->store, NULL, NULL);
	views_free(s->views);
	store_close(s->store);
	claims_free(s->claims);
	faults_free(s->faults);
	heat_free(s->heat);
	metrics_free(s->metrics);
	partition_keys_free(s->partition_keys);
	lookup_cache_free(s->lookup_cache);
	rwlock_destroy(&s->events_lock);
	rwlock_destroy(&s->front_ends_lock);
	mutex_destroy(&s->collections_lock);
	mutex_destroy(&s->sets_lock);
	change_signal_fini(&s->change_signal);
	pthread_cond_destroy(&s->retained);
	free(s);
}

struct store *service_store(struct service *s)
{
	return s->store;
}

bool service_can(const struct service *s, unsigned abilities)
{
	return (s->abilities & abilities) == abilities;
}

struct change_signal *service_change_signal(struct service *s)
{
	return &s->change_signal;
}

struct claims *service_claims(struct service *s)
{
	return s->claims;
}

struct faults *service_faults(struct service *s)
{
	return s->faults;
}

struct heat *service_heat(struct service *s)
{
	return s->heat;
}

struct metrics *service_metrics(struct service *s)
{
	return s->metrics;
}

struct lookup_cache *service_lookup_cache(struct service *s)
{
	return s->lookup_cache;
}

struct trash *service_trash(struct service *s)
{
	return atomic_load(&s->trash);
}

void service_set_trash(struct service *s, struct trash *trash)
{
	atomic_store(&s->trash, trash);
}

_Atomic uint64_t *service_row_cache_bytes(struct service *s)
{
	return &s->row_cache_bytes;
}

struct views *service_views(struct service *s)
{
	return s->views;
}

struct partition_keys *service_partition_keys(struct service *s)
{
	return s->partition_keys;
}

void service_set_read_only(struct service *s, bool read_only)
{
	/* A write that the kernel admitted can arrive as another front end's change, as from a
	 * control file. */
	rwlock_rdlock(&s->events_lock);
	if (read_only && s->set_watch != NULL)
		s->set_watch->drain(s->event_arg);
	rwlock_unlock(&s->events_lock);
	atomic_store(&s->read_only, read_only);
	if (!read_only)
		return;
	/* From here on new holders keep this lock only briefly. */
	rwlock_wrlock(&s->front_ends_lock);
	rwlock_unlock(&s->front_ends_lock);
}

bool service_is_changing(const struct service *s)
{
	return atomic_load(&s->changing) != 0;
}

static void set_begins(struct service *s, struct set_under_way *u)
{
	mutex_lock(&s->sets_lock);
	*u = (struct set_under_way){ .previous = s->last, .number = ++s->begun };
	*(s->last != NULL ? &s->last->next : &s->first) = u;
	s->last = u;
	atomic_fetch_add(&s->changing, 1);
	mutex_unlock(&s->sets_lock);
}

static void set_retained(struct service *s, struct set_under_way *u)
{
	mutex_lock(&s->sets_lock);
	*(u->previous != NULL ? &u->previous->next : &s->first) = u->next;
	*(u->next != NULL ? &u->next->previous : &s->last) = u->previous;
	atomic_fetch_sub(&s->changing, 1);
	pthread_cond_broadcast(&s->retained);
	mutex_unlock(&s->sets_lock);
}

void service_wait_retained(struct service *s)
{
	if (!service_is_changing(s))
		return;
	mutex_lock(&s->sets_lock);
	const uint64_t last = s->begun;
	while (s->first != NULL && s->first->number <= last) {
		/* Check again every second: glibc before 2.41 can lose a wake-up (bug 25847). */
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		(void)cond_wait_until(&s->retained, &s->sets_lock, &until);
	}
	mutex_unlock(&s->sets_lock);
}

bool service_is_read_only(struct service *s)
{
	return atomic_load(&s->read_only);
}

void service_set_sync(struct service *s)
{
	atomic_store(&s->sync, true);
}

/* Returns the first of n consecutive versions. */
static int64_t take_versions(struct service *s, size_t n)
{
	int64_t now = clock_ticks();
	int64_t last = atomic_load(&s->last_version);
	int64_t first;
	do
		first = now > last ? now : last + 1;
	while (!atomic_compare_exchange_weak(&s->last_version, &last, first + (int64_t)n - 1));
	return first;
}

int64_t service_next_version(struct service *s)
{
	return take_versions(s, 1);
}

int64_t service_now(struct service *s)
{
	int64_t now = clock_ticks(), last = atomic_load(&s->last_now);
	while ((last < now || last - now > CLOCK_SET_BACK) &&
		!atomic_compare_exchange_weak(&s->last_now, &last, now))
		;
	return now > last || last - now > CLOCK_SET_BACK ? now : last;
}

void service_subscribe(struct service *s, event_fn fn, void *arg)
{
	rwlock_wrlock(&s->events_lock);
	s->on_event = fn;
	s->event_arg = arg;
	s->set_watch = NULL;
	atomic_store(&s->watched, fn != NULL);
	rwlock_unlock(&s->events_lock);
}

void service_unsubscribe(struct service *s)
{
	service_subscribe(s, NULL, NULL);
}

void service_watch_sets(struct service *s, const struct set_watch *watch)
{
	rwlock_wrlock(&s->events_lock);
	s->set_watch = watch;
	rwlock_unlock(&s->events_lock);
}

uint64_t service_set_begins(struct service *s, const struct change *changes, size_t n)
{
	uint64_t token = 0;
	rwlock_rdlock(&s->events_lock);
	if (s->set_watch != NULL)
		token = s->set_watch->begins(s->event_arg, changes, n);
	rwlock_unlock(&s->events_lock);
	return token;
}

void service_set_ended(struct service *s, uint64_t token)
{
	rwlock_rdlock(&s->events_lock);
	if (s->set_watch != NULL && token != 0)
		s->set_watch->ended(s->event_arg, token);
	rwlock_unlock(&s->events_lock);
}

static void retain(struct service *s, const struct change *changes, size_t n)
{
	rwlock_rdlock(&s->events_lock);
	if (s->set_watch != NULL)
		s->set_watch->retain(s->event_arg, changes, n);
	rwlock_unlock(&s->events_lock);
}

static void publish(struct service *s, enum origin origin, const struct change *changes, size_t n)
{
	rwlock_rdlock(&s->events_lock);
	if (s->on_event != NULL)
		s->on_event(s->event_arg, origin, changes, n);
	rwlock_unlock(&s->events_lock);
}

static bool moves_directories(const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (changes[i].op == CHANGE_MOVE && changes[i].at.class != CLASS_QUEUE &&
			changes[i].at.class != CLASS_BLOB && changes[i].to_kind != ITEM_ROW &&
			changes[i].to_kind != ITEM_FILE)
			return true;
	return false;
}

/* Drops what the service remembers, then tells the subscriber, as after a change of its own. */
static void on_external(void *arg, const struct change *changes, size_t n)
{
	struct service *s = arg;
	for (size_t i = 0; i < n; i++)
		raise_version(s, changes[i].version);
	if (lookup_cache_is_touched(changes, n)) {
		lookup_cache_changing(s->lookup_cache);
		lookup_cache_changed(s->lookup_cache);
	}
	if (moves_directories(changes, n))
		partition_keys_forget(s->partition_keys);
	publish(s, ORIGIN_EXTERNAL, changes, n);
}

void service_lock_collections(struct service *s)
{
	mutex_lock(&s->collections_lock);
}

void service_unlock_collections(struct service *s)
{
	mutex_unlock(&s->collections_lock);
}

enum err service_room(struct service *s, uint64_t bytes, struct err_detail *reterr)
{
	enum err e;
	uint64_t room;
	do {
		room = views_room(s->views);
		e = store_room(s->store, bytes, reterr);
	} while (e == ERR_NO_SPACE && views_make_room(s->views, room));
	return e;
}

/* Another writer was faster.  Its clock may be ahead of ours, so its version counts; after some
 * tries at once there is a pause, since many may be at it.  False: it was tried often enough. */
static bool may_retry(struct service *s, unsigned tries)
{
	if (tries == STALE_TRIES)
		return false;
	raise_version(s, store_version_floor(s->store));
	if (tries > STALE_TRIES_AT_ONCE) {
		unsigned doubled = tries - STALE_TRIES_AT_ONCE;
		uint64_t us = UINT64_C(1000) << (doubled < 6 ? doubled : 6);
		us = us / 2 + clock_mono_us() % us; /* not all at the same moment */
		struct timespec pause = { .tv_nsec = (long)us * 1000 };
		may_block(BLOCK_SURE);
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return true;
}

static enum err apply(struct service *s, enum origin origin, struct change *changes, size_t n,
	bool durable, struct err_detail *reterr)
{
	durable = durable || atomic_load(&s->sync);
	struct set_under_way under_way;
	set_begins(s, &under_way);
	bool watched = atomic_load(&s->watched);
	bool moves = moves_directories(changes, n);
	bool touched = lookup_cache_is_touched(changes, n);
	enum err e;
	uint64_t room;
	unsigned stale = 0;
	if (touched)
		lookup_cache_changing(s->lookup_cache);
	do {
		room = views_room(s->views);
		int64_t version = take_versions(s, n);
		for (size_t i = 0; i < n; i++) {
			changes[i].version = version + (int64_t)i;
			if (watched)
				changes[i].flags |= CHANGE_WANT_OLD;
		}
		/* Readers see the change from here on.  Their caches must be invalidated at once,
		 * before the sync. */
		e = store_apply(s->store, changes, n, durable && !watched, reterr);
	} while ((e == ERR_STALE_VERSION && may_retry(s, ++stale)) ||
		(e == ERR_NO_SPACE && views_make_room(s->views, room)));
	if (e == ERR_STALE_VERSION)
		e = err_set(reterr, ERR_THROTTLED, "other writers were faster every time");
	/* With an unknown outcome the change may still happen, so the cache stays off. */
	if (touched && e != ERR_OUTCOME_UNKNOWN)
		lookup_cache_changed(s->lookup_cache);
	if (moves)
		partition_keys_forget(s->partition_keys);
	if (e == ERR_OK && watched)
		retain(s, changes, n);
	set_retained(s, &under_way);
	change_signal_raise(&s->change_signal);
	if (e == ERR_OK && watched)
		publish(s, origin, changes, n);
	if (e != ERR_OK || !watched || !durable)
		return e;
	enum err synced = store_sync(s->store);
	return synced == ERR_OK
		? ERR_OK
		: err_set(reterr, ERR_OUTCOME_UNKNOWN,
			  "committed, but the disk refused to sync: %s", err_text(synced));
}

enum err service_apply(struct service *s, enum origin origin, struct change *changes, size_t n,
	bool durable, struct err_detail *reterr)
{
	if (origin == ORIGIN_MOUNT)
		return apply(s, origin, changes, n, durable, reterr);
	/* Check before the lock too, so that new threads do not delay service_set_read_only(). */
	bool refused = service_is_read_only(s);
	enum err e = ERR_OK;
	if (!refused) {
		rwlock_rdlock(&s->front_ends_lock);
		refused = service_is_read_only(s);
		if (!refused)
			e = apply(s, origin, changes, n, durable, reterr);
		rwlock_unlock(&s->front_ends_lock);
	}
	return refused ? err_set(reterr, ERR_READ_ONLY, "the mount was made read-only") : e;
}
