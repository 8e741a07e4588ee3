/* SPDX-License-Identifier: MIT
 * All that a store holds, as text, to be compared with what it held before: the listing of each
 * directory with all documents and file contents. */
#ifndef FUZZ_STORE_DUMP_H
#define FUZZ_STORE_DUMP_H

#include "base/buf.h"
#include "store/store.h"

#define STORE_DUMP_DIRS 32

struct store_dump {
	struct {
		uint64_t id;
		enum err e; /* why its listing is not all of it */
		struct buf text;
	} dirs[STORE_DUMP_DIRS];
	size_t n;
};

/* Everything, of one moment.  ERR_OK, or why something could not be read. */
enum err store_dump(struct store *s, struct store_dump *ret);
void store_dump_fini(struct store_dump *d);
/* Whether each directory that was read without an error is as it was in that state. */
bool store_dump_agrees(const struct store_dump *got, const struct store_dump *state);

#endif
