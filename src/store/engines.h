/* SPDX-License-Identifier: MIT
 * How a store is made and opened: the engines by name. */
#ifndef STORE_ENGINES_H
#define STORE_ENGINES_H

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <sys/types.h>

/* Whether `path` is no file but a place in a cluster: rados:POOL/NAME. */
bool store_is_remote(const char *path);

/* A digest that tells a store in a cluster from every other one, also from one of the same name in
 * another cluster.  Reads the cluster's configuration, and asks the cluster nothing. */
void store_remote_digest(const char *path, uint8_t ret[32]);

/* Makes an empty store at path (a file has mode 0600).  ERR_NAME_EXISTS where anything is there
 * already: an existing file is never touched. */
enum err store_create(const char *path, struct err_detail *detail);

enum store_open_flags {
	STORE_OPEN_READ_ONLY = 1,
};

/* Opens the store at path and holds it: one process at a time.  ERR_BUSY with the holder's
 * pid in detail (and *ret_holder, if not NULL), ERR_NOT_FOUND, ERR_NOT_A_STORE,
 * ERR_STORE_TOO_NEW, ERR_ACCESS, ERR_READ_ONLY (a file that cannot be written, without
 * STORE_OPEN_READ_ONLY). */
enum err store_open(const char *path, unsigned flags, struct store **ret, pid_t *ret_holder,
	struct err_detail *detail);

/* A loss.  Spans have p NULL where that is not known, or does not
 * apply: a partition as a whole has no row. */
struct store_loss {
	struct span account, table;
	struct span pk, rk; /* as they are, not in order form */
	const char *place;  /* of what is no row, in words; NULL */
	const char *why;
};

/* Questions of a salvage to its caller, and its results. */
struct store_salvage {
	/* Whether this row or message, with its body, can be kept; *flags: its marks (enum
	 * item_flags). */
	bool (*row)(void *arg, const struct item *row, uint32_t *flags);
	/* Whether this body of an account can be kept; else ERR_CORRUPT.  Without a body: fills
	 * `fresh` with a new one. */
	enum err (*account)(void *arg, struct span body, struct buf *fresh);
	void (*lost)(void *arg, const struct store_loss *loss);
	bool (*progress)(void *arg, uint64_t done, uint64_t total); /* pages; false: stop */
	void *arg;
	bool take_doubtful; /* rows of which it cannot be known whether they are current */

	uint64_t pages, lost_pages; /* of the damaged file */
	uint64_t broken;   /* records whose beginning is lost: not even their keys are known */
	uint64_t doubtful; /* documents that were left out, or taken, as doubtful */
	uint64_t rows, losses;
};

/* Reads the damaged store at `from` page by page, without the engine, and makes a store at `to` of
 * every item whose pages are sound.  `from` is only read, and held meanwhile.  The promises
 * stand in docs/reliability.md.  ERR_BUSY, ERR_NOT_FOUND, ERR_ACCESS; ERR_NOT_A_STORE: no page of
 * it is a store's; ERR_NAME_EXISTS and what else makes no store at `to`; ERR_CANCELLED.  After an
 * error nothing is left at `to`. */
enum err store_salvage(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail);

/* The in-memory engine: the oracle of the tests.  Empty, gone at close. */
enum err store_open_memory(struct store **ret);
#define STORE_ABILITIES_MEMORY \
	(STORE_CAN_VIEW | STORE_CAN_MOVE_DIRS | STORE_CAN_SPAN | STORE_COUNTS_EXACT)
/* The same with some of its abilities only, as an engine over a network would have them. */
enum err store_open_memory_with(unsigned abilities, struct store **ret);
/* Another handle on the same in-memory store, with the same abilities: a change through
 * one is external to the other.  The store is gone when both are closed. */
enum err store_open_memory_again(struct store *s, struct store **ret);

/* A layer over another engine (which it owns) that fails on demand: the k-th call from now
 * (1 is the next; 0: none) of the kinds in mask answers `error` instead. */
enum store_fault_mask {
	FAULT_READS = 1,
	FAULT_APPLY_BEFORE = 2,
	FAULT_APPLY_AFTER = 4,
	FAULT_STAYS = 8 /* every call from then on */
};
enum err store_open_fault(struct store *inner, struct store **ret);
void store_fault_arm(struct store *fault, unsigned mask, unsigned k, enum err error);

/* Lowers the limits of ordinary files (one, all together), which are LIMIT_FILE_BYTES and
 * LIMIT_FILES_BYTES at open.  Before the store is used; for tests.  The engine itself, not
 * a fault layer over it. */
void store_set_file_limits(struct store *s, uint64_t one, uint64_t all);
/* Lowers how many lines of the feed are kept, and for how long, where the engine has one; for tests. */
void store_set_feed_limits(struct store *s, uint64_t lines, int64_t ticks);
/* Limits the sum of the pieces of blobs: a larger one is refused with ERR_BLOB_SPACE.  Before the store is
 * used; the engine itself.  Returns false if the engine does not count them. */
bool store_set_piece_limit(struct store *s, uint64_t all);
/* Lowers the limit of rows in a partition, where the engine has one; for tests. */
void store_set_row_limit(struct store *s, uint64_t limit);

#endif
