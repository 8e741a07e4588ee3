/* SPDX-License-Identifier: MIT
 * A cache of table and PartitionKey by the id of a partition.  Opening a row by its id needs both.
 * It has up to 256 partitions; any number of threads may use it. */
#ifndef SERVICE_CORE_PARTITION_KEYS_H
#define SERVICE_CORE_PARTITION_KEYS_H

#include "model/limits.h"
#include "store/store.h"

struct partition_key {
	uint64_t table;
	size_t pk_n;
	char pk[LIMIT_KEY_BYTES]; /* UTF-8 */
};

struct partition_keys;
struct partition_keys *partition_keys_new(struct store *store); /* NULL when memory is out */
void partition_keys_free(struct partition_keys *k);

/* Sets *ret.  ERR_NOT_FOUND if there is no item, or if it is not a partition. */
enum err partition_keys_get(struct partition_keys *k, uint64_t id, struct partition_key *ret);
/* Returns the bytes that the cache takes in memory. */
size_t partition_keys_bytes(struct partition_keys *k);
/* Clears the cache.  Call it after a directory was moved. */
void partition_keys_forget(struct partition_keys *k);

#endif
