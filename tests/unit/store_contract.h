/* SPDX-License-Identifier: MIT
 * The conformance suite: what store/store.h promises, run against any engine. */
#ifndef UNIT_STORE_CONTRACT_H
#define UNIT_STORE_CONTRACT_H

#include "store/store.h"

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
};

unsigned contract_count(void);
const char *contract_name(unsigned i);
/* Number of failed checks. */
unsigned contract_run(unsigned i, const struct contract_engine *engine);

/* The same random change sets to this engine and to the in-memory one, everything
 * compared.  Number of differences found (it stops at the first few). */
unsigned contract_random(const struct contract_engine *engine, unsigned seed, unsigned sets);

#endif
