/* SPDX-License-Identifier: MIT
 * The service: what accounts, tables, entities and files mean.  The front ends and the tests change
 * the store only through this layer.  They may read items directly with store/store.h.  Any number
 * of threads may use it. */
#ifndef SERVICE_CORE_SERVICE_H
#define SERVICE_CORE_SERVICE_H

#include "base/err.h"
#include "service/core/events.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct service;
struct change_signal;
struct claims;
struct faults;
struct heat;
struct lookup_cache;
struct metrics;
struct partition_keys;
struct trash;
struct views;

/* Takes ownership of the store, also on failure. */
enum err service_new(struct store *store, struct service **ret);
void service_free(struct service *s); /* closes the store; accepts NULL */
struct store *service_store(struct service *s);
/* Returns true if the engine has all of these abilities (enum store_ability).  Ask only if there is
 * another way to do the operation.  Otherwise call the engine: the caller gets its error, usually
 * ERR_CROSS_DEVICE. */
bool service_can(const struct service *s, unsigned abilities);
/* Is raised after each change set. */
struct change_signal *service_change_signal(struct service *s);
struct claims *service_claims(struct service *s);   /* messages that are being taken */
struct faults *service_faults(struct service *s);   /* on order, of the REST socket */
struct heat *service_heat(struct service *s);       /* of the partitions */
struct metrics *service_metrics(struct service *s); /* of the front ends */
struct partition_keys *service_partition_keys(struct service *s);
struct lookup_cache *service_lookup_cache(struct service *s);
/* The bytes of the mount's cache of rows, which the mount sets; 0 without one. */
_Atomic uint64_t *service_row_cache_bytes(struct service *s);
struct views *service_views(struct service *s); /* snapshots and the views of streams */
/* The trash (service/tree/trash.h), which registers itself while it is there; NULL: there is none. */
struct trash *service_trash(struct service *s);
void service_set_trash(struct service *s, struct trash *trash);

/* While the service is read-only, changes of all front ends but the mount are ERR_READ_ONLY.  In
 * the mount the kernel refuses new ones, and rowfs still commits those that the kernel admitted
 * before.  Returns when the changes that had begun have ended, and files that were open for writing
 * are closed. */
void service_set_read_only(struct service *s, bool read_only);
bool service_is_read_only(struct service *s);
/* Returns true if readers may see a change set whose before-images the subscriber has not retained
 * yet (events.h).  False: all that anybody has seen is retained.  Any thread. */
bool service_is_changing(const struct service *s);
/* Waits until the before-images of all change sets that the caller may have seen are retained.  It
 * waits for commits in progress only, not for later ones.  Any thread except one inside a
 * subscriber's call. */
void service_wait_retained(struct service *s);
/* From now on every change is durable before it is acknowledged. */
void service_set_sync(struct service *s);

/* Returns a version later than all earlier ones, even if the clock stood still or went back. */
int64_t service_next_version(struct service *s);
/* Returns the time of the wall clock.  Where that went back a little, it returns the latest time that
 * it returned before.  It follows a clock that was set back by more than ten seconds, since time
 * would stand still for as long. */
int64_t service_now(struct service *s);

/* Applies a change set; every change takes this way.  Gives the changes versions, each later than
 * the one before.  On ERR_STALE_VERSION repeats with versions later than the one that the store has
 * seen, and on ERR_NO_SPACE if a long-lived view could be ended.  ERR_THROTTLED: other writers were
 * faster 40 times, for about two seconds.  Calls the subscriber before it returns.  The caller
 * must call changes_fini(). */
enum err service_apply(struct service *s, enum origin origin, struct change *changes, size_t n,
	bool durable, struct err_detail *reterr);

/* Between these two calls no other thread of this process changes or deletes a queue or container
 * itself (collections.h).  Messages and blobs in it change all the same. */
void service_lock_collections(struct service *s);
void service_unlock_collections(struct service *s);

/* Calls store_room(), and ends long-lived views as service_apply() does. */
enum err service_room(struct service *s, uint64_t bytes, struct err_detail *reterr);

/* Call these around service_apply() of several rows, for set_watch in events.h. */
uint64_t service_set_begins(struct service *s, const struct change *changes, size_t n);
void service_set_ended(struct service *s, uint64_t token);

#endif
