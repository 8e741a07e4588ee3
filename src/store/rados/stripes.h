/* SPDX-License-Identifier: MIT
 * Contents of ordinary files, in stripes: each is an object that never changes.  A change set that
 * writes into a file makes new ones, and its operation on the directory names them. */
#ifndef STORE_RADOS_STRIPES_H
#define STORE_RADOS_STRIPES_H

#include "store/rados/core.h"

struct stripe {
	uint64_t id, nr;
	char token[TOKEN_LEN + 1]; /* before the set; empty: none */
	bool gone;
	char *data; /* STRIPE_BYTES; NULL: as it was */
	size_t n;   /* of them that are not zeros behind the end */
};

/* Those that one change set looks at. */
struct stripes {
	struct stripe *v;
	size_t n, cap;
};

/* Names of objects. */
struct names {
	char (*v)[RIO_NAME_MAX];
	size_t n, cap;
};

enum err names_add(struct names *n, const char *name);

/* The file `id` in `dir` has `size` bytes from now on: the first `was` ones of before, zeros, and
 * `bytes` at the offset.  `fresh`: nothing of before counts. */
enum err stripes_write(struct rstore *s, struct stripes *st, uint64_t dir, uint64_t id, bool fresh,
	uint64_t was, uint64_t size, uint64_t offset, struct span bytes);
/* Starts to write those of the file, adds their names to `made`, those that they replace to
 * `litter`, and what the directory has to say to `edit`. */
enum err stripes_save(struct rstore *s, struct stripes *st, uint64_t id, struct rio_edit *edit,
	struct rio_batch *b, struct names *made, struct names *litter);
/* Removes all stripes of the file that the directory names. */
enum err stripes_drop(
	struct rstore *s, uint64_t dir, uint64_t id, struct rio_edit *edit, struct names *litter);
void stripes_fini(struct stripes *st);

#endif
