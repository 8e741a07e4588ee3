/* SPDX-License-Identifier: MIT
 * Every lock of src/, in the one order in which a thread may take them.  A thread may take a
 * lock only if every lock that it holds stands above it in this list.  So it never holds two
 * locks of one rank.  Builds with -Dlock_checks=true stop where a thread does otherwise
 * (base/lock.h).
 *
 * STORE_CALL is no lock.  It marks where a call of store/store.h stands in the order:
 *  - A lock above it may be held while the store is called, so its holder may wait for the disk.
 *  - Locks of the engines come below it.
 *  - All locks below those guard memory only: their holder calls neither the store nor the
 *    service, and waits for nothing but a condition of that very lock. */
#ifndef BASE_LOCK_RANKS_H
#define BASE_LOCK_RANKS_H

/* clang-format off */
/* X(rank, file, what it guards) */
#define LOCK_RANKS(X) \
	/* One thing each: only a request for the same thing waits. */ \
	X(LISTING, "fs/tree/listing.c", "one open directory: its marks, one reply at a time") \
	X(QUERY_TOP, "fs/query/nodes.h", "the bounds of one query with top, while they are looked for") \
	X(STAGE, "fs/write/stage.h", "one staged write, also while it is committed") \
	X(BLOB_STAGE, "fs/blob/stage_parts.h", "one staged write of a blob, also while it is committed") \
	X(BLOB_NAMES, "fs/blob/stages.c", "the mount puts, removes or renames a blob: one at a time") \
	/* Around a change set: service/core/service.h, events.h. */ \
	X(COLLECTIONS, "service/core/service.c", "one queue or container is changed or deleted at a time") \
	X(FRONT_ENDS, "service/core/service.c", "rwlock: read for a change by a front end but the mount") \
	X(VIEWS_ROOM, "service/view/views_table.h", "who ends held views because the disk is full: one at a time") \
	X(VIEWS_ENDED, "service/view/views_table.h", "rwlock: the callback for ended views; read while it runs") \
	X(STORE_HANDLES, "store/mem/engine.c", "rwlock: the handles on an in-memory store; read while a change is told to the others") \
	X(EVENTS, "service/core/service.c", "rwlock: the subscriber to events; read while it is called") \
	X(CLOUD_TABLE, "cloudstore/core.h", "rwlock: read for one row, also while the service elsewhere answers; write for a listing of partitions or tables") \
	X(CLOUD_PARTITION, "cloudstore/core.h", "one read or change of a partition at a time, also while the service elsewhere answers") \
	\
	X(STORE_CALL, "store/store.h", "no lock: a call of the store") \
	\
	/* Engines. */ \
	X(CLOUD_CLIENTS, "cloudstore/clients.h", "connections at rest to a service elsewhere") \
	X(CLOUD_FOUND, "cloudstore/found.c", "the rows that the service elsewhere found lately") \
	X(CLOUD_CONFIRMED, "cloudstore/confirmed.c", "what the service elsewhere confirmed lately") \
	X(STORE_FAULT, "store/fault.c", "which call of the engine fails next; tests only") \
	X(STORE_MEM, "store/mem/engine.c", "the current state of the in-memory store") \
	X(RADOS_SETS, "store/rados/core.h", "change sets beside a check") \
	X(RADOS_WRITER, "store/rados/core.h", "sets of one directory, also while the cluster answers") \
	X(RADOS_IDS, "store/rados/core.h", "which ids are given next, also while the cluster answers") \
	X(RADOS, "store/rados/core.h", "what the engine remembers, the counters") \
	X(STORE_VIEW, "store/sqlite/engine.c", "the connection of one view") \
	X(STORE, "store/sqlite/store.h", "the queue of commits, the counters; no I/O but a warm read") \
	X(STORE_POOL, "store/sqlite/pool.h", "reading connections at rest") \
	/* Tables of the service. */ \
	X(VIEWS, "service/view/views_table.h", "the table of held views and the members of each") \
	X(SETS_UNDER_WAY, "service/core/service.c", "change sets whose before-images are not retained yet") \
	X(CHANGE_SIGNAL, "service/core/change_signal.h", "who waits for the next change set") \
	X(PARTITION_KEYS, "service/core/partition_keys.c", "keys of partitions by id") \
	X(LOOKUP_CACHE, "service/core/lookup_cache.c", "accounts, tables and partitions that REST remembers") \
	X(CLAIMS, "service/core/claims.c", "messages that are being taken") \
	X(HEAT, "service/core/heat.c", "one set of counted partitions") \
	X(FAULTS, "service/core/faults.c", "the rules of faults on order") \
	X(TRASH, "service/tree/trash.c", "how much is in the trash") \
	/* Tables of the mount. */ \
	X(RETRIES, "fs/write/retries.c", "opens that were refused and will be tried again") \
	X(STAGES, "fs/write/stages.c", "stages by name and by node, and their references") \
	X(HANDLES, "fs/tree/handle.c", "the list of open handles") \
	X(LOCKS, "fs/tree/lock_table.h", "all locks of flock(2) and fcntl(2), and who waits for them") \
	X(CONTENTS, "fs/cache/content.c", "contents of rows by node, and their pins") \
	X(AHEAD, "fs/cache/ahead.c", "which directories are being read in order") \
	X(NOTIFIER, "fs/cache/notify.c", "the queue of notifications to the kernel") \
	X(QUERY_NODES, "fs/query/nodes.c", "nodes of queries by number, and their references") \
	X(TOLD, "fs/tree/told.c", "streams that are kept for the open after a stat(2)") \
	X(STREAM_SIZES, "fs/cache/stream_sizes.c", "sizes of streams that were counted") \
	X(QUEUE_NAMES, "fs/queue/names.c", "names that users chose for messages") \
	X(BLOB_STAGES, "fs/blob/stages.c", "staged writes of blobs by number, and their names") \
	X(BLOB_DIRS, "fs/blob/dirs.c", "directories without blobs") \
	X(BLOB_NODES, "fs/blob/nodes.c", "nodes of blobs by number, and their references") \
	X(TURNS, "fs/tree/handle.h", "whose turn it is at one virtual file or directory") \
	X(WAITERS, "fs/core/waiters.c", "requests that wait for an event or a time") \
	X(SYNCS, "fs/requests/syncs.c", "requests that wait for the next sync") \
	X(REASONS, "fs/refused/reason.c", "the last reasons of refusals") \
	X(UNSAVED, "fs/refused/unsaved.c", "refused bytes that the store did not take") \
	X(BATCH_RESULTS, "fs/virtual/batch_results.c", "the last results of .batch") \
	X(IDSET, "fs/core/idset.h", "rwlock: one set of counted ids") \
	X(NID, "fs/core/nid.c", "numbers for nodes of rows with millions of versions") \
	/* The socket and the program. */ \
	X(TOKEN_KEYS, "rest/tokens/key_file.h", "rwlock: the keys of tokens; written while their file is read again") \
	X(DELAYED, "rest/http/delayed.c", "the connections whose answer comes later") \
	X(WATCHDOG, "rest/http/watchdog.c", "the list of connections, and that their descriptors are open") \
	X(CONTROL, "daemon/control/server.c", "how many commands are served") \
	X(SIGNALS, "daemon/core/signals.c", "which thread is woken by which signal") \
	/* The ground: may be taken under every other lock. */ \
	X(WORKERS, "base/workers.c", "a queue of jobs") \
	X(LINES, "base/line_writer.c", "lines that wait for their file") \
	X(LOG, "base/log.c", "how many warnings may still be written")
/* clang-format on */

enum lock_rank {
	RANK_NONE, /* of a lock that was never initialized */
#define X(rank_, file_, guards_) RANK_##rank_,
	LOCK_RANKS(X)
#undef X
	LOCK_RANKS_
};

#endif
