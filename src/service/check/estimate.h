/* SPDX-License-Identifier: MIT
 * How many items a store or a table has, before they are read: for the time left of a command.  The
 * sizes of directories tell; their contents are not read. */
#ifndef SERVICE_CHECK_ESTIMATE_H
#define SERVICE_CHECK_ESTIMATE_H

#include "store/store.h"

/* Of each table the sizes of so many partitions are read.  The others count as the mean of these. */
#define ESTIMATE_PARTITIONS 10000

struct estimate {
	uint64_t items;       /* rows, messages, blobs, and ordinary files beside rows */
	uint64_t directories; /* tables, partitions, queues and containers */
};

/* Adds what stands in the table with this id.  ERR_NOT_FOUND; errors of a read. */
enum err estimate_table(
	struct store *s, struct store_view *v, uint64_t table, struct estimate *sum);
/* Adds what stands in all accounts.  Errors of a read. */
enum err estimate_store(struct store *s, struct store_view *v, struct estimate *sum);

#endif
