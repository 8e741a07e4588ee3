/* SPDX-License-Identifier: MIT
 * The conformance suite: what store/store.h promises, run against any engine. */
#ifndef UNIT_STORE_CONTRACT_H
#define UNIT_STORE_CONTRACT_H

#include "store/store.h"

/* Parts of the contract that an engine over a service of tables lacks, beside enum store_ability. */
enum contract_part {
	CONTRACT_KINDS = 1 << 16, /* other kinds than tables, partitions, rows and ordinary files;
					 bodies of accounts and tables */
	CONTRACT_SUBTREES = 1 << 17,  /* CHANGE_RECURSIVE */
	CONTRACT_EXCHANGES = 1 << 18, /* CHANGE_EXCHANGE; rows that become files */
	CONTRACT_TWICE = 1 << 19,     /* sets that change a row twice, or remove one in the midst */
	CONTRACT_KEYS = 1 << 20,     /* keys that the service refuses, such as control characters */
	CONTRACT_VERSIONS = 1 << 21, /* the caller's versions: the engine chooses others */
	CONTRACT_EMPTY = 1 << 22,    /* an empty directory has the size 0 */
	CONTRACT_PARTS = 0x7f << 16,
};

/* How the suite gets at an engine. */
struct contract_engine {
	const char *name;
	struct store *(*open)(void); /* a new, empty store; NULL: cannot */
	/* Closes and opens the same store again; NULL where that loses it. */
	struct store *(*reopen)(struct store *s);
	/* store_set_file_limits() on the engine inside. */
	void (*limits)(struct store *s, uint64_t one, uint64_t all);
	/* Another handle on the same store, as another process would have one; NULL where one
	 * process has the store for itself. */
	struct store *(*again)(struct store *s);
	unsigned lacks;      /* enum contract_part */
	const char *account; /* the only one, which a new store has; NULL: the suite makes one */
};

unsigned contract_count(void);
const char *contract_name(unsigned i);
/* Number of failed checks. */
unsigned contract_run(unsigned i, const struct contract_engine *engine);

/* The same random change sets to this engine and to the in-memory one, everything
 * compared.  Number of differences found (it stops at the first few). */
unsigned contract_random(const struct contract_engine *engine, unsigned seed, unsigned sets);

#endif
