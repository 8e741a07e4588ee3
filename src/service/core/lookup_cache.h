/* SPDX-License-Identifier: MIT
 * A cache for the first lookups of every request: the secrets of accounts, and the ids of tables
 * and partitions.  Any number of threads may use it.
 *
 * It never returns older data than the store.  A change that could make an entry wrong clears the
 * cache before and after it, and data read in between is not cached.
 *
 * A partition can stay in the cache after it was removed.  Ids are never used again, so nothing is
 * found in it, and the caller then asks the store. */
#ifndef SERVICE_CORE_LOOKUP_CACHE_H
#define SERVICE_CORE_LOOKUP_CACHE_H

#include "base/span.h"
#include "service/core/account_secrets.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lookup_cache;

struct lookup_cache *lookup_cache_new(void);
void lookup_cache_free(struct lookup_cache *k);
/* Returns the bytes that the cache takes in memory.  Most of it is there from the start. */
size_t lookup_cache_bytes(struct lookup_cache *k);

/* Returns true if these changes can make an entry wrong.  Then call lookup_cache_changing() before they
 * are applied, and lookup_cache_changed() afterwards, also if they failed. */
bool lookup_cache_is_touched(const struct change *changes, size_t n);
void lookup_cache_changing(struct lookup_cache *k);
void lookup_cache_changed(struct lookup_cache *k);

/* Returns true and sets *ret if the account is cached; the caller frees it with
 * account_secrets_fini().  Else sets *ret_moment, which lookup_cache_account_is() needs. */
bool lookup_cache_account(struct lookup_cache *k, struct span name, struct account_secrets *ret,
	uint64_t *ret_moment);
/* Adds an account that was read since lookup_cache_account() set `moment`. */
void lookup_cache_account_is(
	struct lookup_cache *k, struct span name, const struct account_secrets *a, uint64_t moment);
/* Do the same for the id of a child, by the key of its item: a table of an account, or a partition
 * of a table. */
bool lookup_cache_child(struct lookup_cache *k, uint64_t parent, struct span key, uint64_t *ret_id,
	uint64_t *ret_moment);
void lookup_cache_child_is(
	struct lookup_cache *k, uint64_t parent, struct span key, uint64_t id, uint64_t moment);

#endif
