/* SPDX-License-Identifier: MIT
 * Table and PartitionKey of partitions by their ids, remembered: what opens a row by its id
 * would ask the store for its partition each time.  256 partitions at most, each with its
 * key.  By any number of threads. */
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
struct partition_keys *partition_keys_new(struct store *store); /* NULL: no memory */
void partition_keys_free(struct partition_keys *k);

/* ERR_NOT_FOUND: no item, or no partition. */
enum err partition_keys_get(struct partition_keys *k, uint64_t id, struct partition_key *ret);
/* A directory was moved: nothing is known any more. */
void partition_keys_forget(struct partition_keys *k);

#endif
