/* SPDX-License-Identifier: MIT */
#include "service/stats/memory.h"

#include "service/core/lookup_cache.h"
#include "service/core/partition_keys.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t resident_bytes(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (f != NULL && fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (f != NULL)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void memory_figures(struct service *service, struct memory_figures *ret)
{
	struct store_info info;
	store_info(service_store(service), &info);
	*ret = (struct memory_figures){
		.process = resident_bytes(),
		.caches = {
			[MEMORY_CACHE_PAGES] = info.cached_bytes,
			[MEMORY_CACHE_ROWS] = atomic_load(service_row_cache_bytes(service)),
			[MEMORY_CACHE_NAMES] = lookup_cache_bytes(service_lookup_cache(service)),
			[MEMORY_CACHE_PARTITION_KEYS] =
				partition_keys_bytes(service_partition_keys(service)),
		},
	};
}

const char *memory_cache_name(enum memory_cache cache)
{
	static const char *const names[MEMORY_CACHES_] = {
		[MEMORY_CACHE_PAGES] = "pages",
		[MEMORY_CACHE_ROWS] = "rows",
		[MEMORY_CACHE_NAMES] = "names",
		[MEMORY_CACHE_PARTITION_KEYS] = "partition_keys",
	};
	return names[cache];
}

void memory_add(struct json_build *b, const struct memory_figures *memory)
{
	json_open_object(b, "memory");
	json_add_count(b, "bytes", memory->process);
	json_open_object(b, "caches");
	for (enum memory_cache i = 0; i < MEMORY_CACHES_; i++)
		json_add_count(b, memory_cache_name(i), memory->caches[i]);
	json_close(b);
	json_close(b);
}
