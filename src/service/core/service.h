/* SPDX-License-Identifier: MIT
 * The service: what accounts, tables, entities and files mean.  Both doors, the commands
 * and the tests change the store through this floor and nowhere else; reading an item as
 * it is may go straight to store/store.h.  Safe for any number of threads. */
#ifndef SERVICE_CORE_SERVICE_H
#define SERVICE_CORE_SERVICE_H

#include "base/err.h"
#include "service/core/events.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct service;
struct heat;
struct known;
struct metrics;
struct partition_keys;
struct views;

/* Owns the store from now on, also on failure. */
enum err service_new(struct store *store, struct service **ret);
void service_free(struct service *s); /* closes the store; NULL is fine */
struct store *service_store(struct service *s);
/* Whether the engine has all of these (enum store_ability).  Where it has not, its answer, mostly
 * ERR_CROSS_DEVICE, goes to the caller; ask only where there is another way to do it. */
bool service_can(const struct service *s, unsigned abilities);
struct heat *service_heat(struct service *s);       /* of the partitions */
struct metrics *service_metrics(struct service *s); /* of the doors */
struct partition_keys *service_partition_keys(struct service *s);
struct known *service_known(struct service *s);
struct views *service_views(struct service *s); /* snapshots, and those of streams */

/* While it is read-only, changes of every door but the mount are ERR_READ_ONLY: there the
 * kernel refuses them, and what it let in before that is still committed.  Returns when the
 * changes that had begun have ended, and files that were open for writing are closed. */
void service_set_read_only(struct service *s, bool read_only);
bool service_is_read_only(struct service *s);
/* Whether a change set is under way that readers of the store may see and of which the subscriber
 * has not kept what it keeps (events.h).  False: it has, of all that anybody has seen.  Any thread. */
bool service_is_changing(const struct service *s);
/* Waits until that is done of all that the caller has seen: no longer than the commits that are
 * under way take, and for none that begins later.  Any thread but one inside a subscriber's call. */
void service_wait_kept(struct service *s);
/* From now on every change is durable before it is acknowledged. */
void service_set_sync(struct service *s);

/* A version later than every one given out before, also when the clock stood still or
 * went back. */
int64_t service_next_version(struct service *s);

/* The one way to the store for every change: gives the changes versions (each later than
 * the one before it), applies them, takes a later version and tries again on
 * ERR_STALE_VERSION (on ERR_NO_SPACE where a snapshot gives way), and tells the subscribers
 * before it returns.  The caller changes_fini()s. */
enum err service_apply(struct service *s, enum origin origin, struct change *changes, size_t n,
	bool durable, struct err_detail *reterr);

/* As store_room(); held views give way as they do in service_apply(). */
enum err service_room(struct service *s, uint64_t bytes, struct err_detail *reterr);

/* Around service_apply(), for the set_watch of events.h. */
uint64_t service_set_begins(struct service *s, const struct change *changes, size_t n);
void service_set_ended(struct service *s, uint64_t token);

#endif
