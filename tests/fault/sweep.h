/* SPDX-License-Identifier: MIT
 * Every call fails once: an operation on a fresh copy of one small store, with its n-th call of
 * the system or its n-th allocation failing, n from 1 until none is left to fail.  After each:
 * the answer is of a kind that the fault can have, the store holds what it held before or what
 * the operation makes of it and nothing between, the same operation works when the fault is
 * over, the store is clean, and again so after it was closed and opened.  test_every_call.c has
 * the command; what is swept stands in sweep_*.c. */
#ifndef FAULT_SWEEP_H
#define FAULT_SWEEP_H

#include "base/buf.h"
#include "service/core/service.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

/* What an operation works on.  Ids are those of the store that sweep_begin() makes. */
struct world {
	char path[128];
	struct store *store;     /* open, but for SWEEP_OPENS */
	struct service *service; /* owns the store, for SWEEP_SERVICE */
	struct err_detail detail;
	const char *wrong; /* what run() read is not what is there: why */
	unsigned number;   /* of the case */
	void *own;         /* of prepare() and run(); tidy() frees it */
	struct buf out;    /* SWEEP_TEXT: what run() made; a limit of 1 MiB */
};

enum sweep_flags {
	SWEEP_OPENS = 1,     /* run() opens w->store, which may fail */
	SWEEP_CREATES = 2,   /* run() makes the file at w->path, where nothing is */
	SWEEP_CLOSES = 4,    /* run() closes w->store */
	SWEEP_SERVICE = 8,   /* through w->service */
	SWEEP_TEXT = 16,     /* no store: only memory fails; w->out is compared */
	SWEEP_IN_PARTS = 32, /* may stop half-way, by its contract: whole parts are there */
	SWEEP_ONCE = 64,     /* answers otherwise when it is done twice */
	SWEEP_LARGE = 128,   /* so many calls that the short form takes samples only */
};

struct sweep_case {
	const char *name;
	unsigned flags;
	void (*prepare)(struct world *w); /* without faults; may be NULL */
	enum err (*run)(struct world *w);
	void (*tidy)(struct world *w); /* without faults, before the store is closed; may be NULL */
	/* Replaces `out` by the state that is compared; NULL: the whole store. */
	void (*dump)(struct world *w, struct buf *out);
	unsigned number; /* tells cases with the same functions apart */
};

/* The small store: an account acc with a table Tab and in it a partition p with rows a (small), b
 * (large) and keys; files f (small) and g (in pieces), a folder .d with a file, a partition q with
 * 40 rows.  Versions up to SWEEP_VERSION. */
#define SWEEP_VERSION 1000
struct sweep_ids {
	uint64_t account, table, p, q, a, b, f, g, folder, inner;
};
extern struct sweep_ids ids;

extern const struct sweep_case sweep_reads[], sweep_changes[], sweep_opens[], sweep_service[],
	sweep_queues[], sweep_blobs[], sweep_texts[]; /* each ends with a name that is NULL */

/* Makes the small store in a new folder below `folder`. */
void sweep_begin(const char *folder);
void sweep_end(void);

struct sweep_options {
	bool all;      /* every n, or as many as `most` of the large ones */
	unsigned most; /* calls of one case that fail in turn; beyond, samples */
	unsigned seed; /* of the samples */
	unsigned part; /* of so many `parts` this one: every parts-th case; from 1 on */
	unsigned parts;
	const char *only; /* a part of the name of a case, or NULL */
	bool loud;        /* says each one */
};
struct sweep_counts {
	uint64_t seen; /* cases of any part */
	uint64_t cases, points, failures;
};
void sweep_run(const struct sweep_case *cases, const struct sweep_options *options,
	struct sweep_counts *counts);

/* ---- for cases ---- */

/* Ends the program: the test itself is wrong, or the store without faults. */
void sweep_must(enum err e, const char *what);
#define MUST_DO(expr_) sweep_must((expr_), #expr_)
/* Remembers that what was read is wrong. */
#define EXPECT(w_, cond_) \
	do { \
		if (!(cond_)) \
			(w_)->wrong = #cond_; \
	} while (0)
/* One change, its results dropped. */
enum err sweep_apply(struct world *w, struct change c, bool durable);

#endif
