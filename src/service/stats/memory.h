/* SPDX-License-Identifier: MIT
 * The memory of the process, and of that each cache.  The kernel's own caches of a mount are not the
 * process's. */
#ifndef SERVICE_STATS_MEMORY_H
#define SERVICE_STATS_MEMORY_H

#include "codec/json_build.h"
#include "service/core/service.h"

enum memory_cache {
	MEMORY_CACHE_PAGES,          /* of the store's file */
	MEMORY_CACHE_ROWS,           /* of the mount */
	MEMORY_CACHE_NAMES,          /* accounts, tables and partitions that REST looked up */
	MEMORY_CACHE_PARTITION_KEYS, /* by the ids of partitions */
	MEMORY_CACHES_
};

struct memory_figures {
	uint64_t process;                /* resident bytes; 0: not known */
	uint64_t caches[MEMORY_CACHES_]; /* bytes; 0 of a cache that the process does not have */
};

/* Reads the figures.  Any thread may call it. */
void memory_figures(struct service *service, struct memory_figures *ret);
/* Returns the name of a cache in figures, such as "partition_keys". */
const char *memory_cache_name(enum memory_cache cache);
/* Adds the object "memory": "bytes" of the process, and in "caches" those of each cache. */
void memory_add(struct json_build *b, const struct memory_figures *memory);

#endif
