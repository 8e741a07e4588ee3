/* SPDX-License-Identifier: MIT
 * One change set at work: what apply.c loads and plans, and commit.c writes. */
#ifndef STORE_RADOS_WORK_H
#define STORE_RADOS_WORK_H

#include "store/plan.h"
#include "store/rados/core.h"
#include "store/rados/stripes.h"

struct seal { /* the token of a directory's object when this set first read it */
	uint64_t dir;
	char token[TOKEN_LEN + 1], last[LAST_LEN + 1];
	int64_t above; /* what is made in it has a later version */
};

struct big { /* a body that is an object of its own */
	uint64_t id;
	char token[TOKEN_LEN + 1];
};

struct children { /* of one directory and class */
	uint64_t parent;
	enum item_class class;
	struct rio_value *v; /* sorted by key: class letter and key */
	size_t n;
	struct buf keys; /* holds them */
};

struct dir_edit { /* what happens to one directory's object */
	uint64_t dir;
	struct rio_edit edit;
	bool removes; /* a child, or its name */
};

struct work {
	struct plan plan;
	struct rstore *s;
	struct state *base; /* what was loaded, as it was */
	struct seal *seals;
	size_t nseals, cap_seals;
	struct big *bigs;
	size_t nbigs, cap_bigs;
	struct children looked; /* those that are not in the base are not there */
	struct stripes stripes;

	struct dir_edit *edits;
	size_t nedits, cap_edits;
	struct rio_batch batch;
	struct names made, litter;
	uint64_t *left; /* removed directories */
	size_t nleft, cap_left;
	uint64_t dead;         /* the one of them whose end is the commit; 0: none */
	unsigned writer;       /* number of the lock that the set holds */
	uint64_t files_before; /* plan.file_bytes at the start */
};

/* Writes what the plan changed.  ERR_BUSY: another set was faster, and nothing was changed.
 * ERR_STALE_VERSION; ERR_OUTCOME_UNKNOWN. */
enum err work_commit(struct work *w, size_t n);
/* What the set removed goes, when nobody finds it any more. */
void work_clean_up(struct work *w);

#endif
