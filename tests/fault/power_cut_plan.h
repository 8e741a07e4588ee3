/* SPDX-License-Identifier: MIT
 * What the writers do, and what a store shows of it.  Each writer makes change sets 1, 2, 3, … one
 * after the other in a partition of its own; what each holds follows from the seed, so that from
 * what is in a store one can say up to which set of each writer it goes, and that nothing of a
 * later one, of a refused one or of half a set is in it.
 *
 * Marks in a record, T being a writer and S the number of a set:
 *   writer T KIND SEED SETS   there will be such a writer
 *   made                      the store is made
 *   ask T S                   the set is asked for
 *   seen T S, durable T S     it is acknowledged; also over a cut of power
 *   sync T, synced T          a sync of all that was acknowledged before begins; is acknowledged
 *   copy NAME, copied         a copy of the store is made beside it; is there for good */
#ifndef FAULT_POWER_CUT_PLAN_H
#define FAULT_POWER_CUT_PLAN_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITERS 9
#define SLOTS 10     /* rows, files and a message of a writer */
#define QUEUE "jobs" /* of the account: holds the messages */
#define SETS_MAX 4000

/* MIXED: rows, files and messages put, removed, moved, several a set.  Of other processes, whose documents
 * say "N": the set.  ONE: set s writes row s % 8.  ALL: each set writes the rows 0 to 7.  WITH: it
 * also puts a message, whose text is the number of the set, into the writer's queue.  QUEUES: each set is
 * an operation on a queue or on one of its messages (power_cut_queue.c).  BLOBS: each set is an operation
 * on blobs (blob_cycle.h). */
enum writer_kind {
	NOBODY = 0,
	MIXED = 'm',
	ONE = 'o',
	ALL = 'a',
	WITH = 'w',
	QUEUES = 'q',
	BLOBS = 'b'
};

struct slot {
	uint32_t set; /* that wrote it; 0: it is not there */
	uint32_t n;   /* bytes, of MIXED */
	bool moved; /* it stands in the writer's other partition; a message: under its other key */
};
struct plan {
	enum writer_kind kind;
	unsigned writer, sets;
	uint64_t seed;
	struct slot (*after)[SLOTS]; /* after so many sets */
};
/* large: some sets are of some hundred kilobytes. */
#define SEED_LARGE 1 /* the lowest bit of a seed */
void plan_make(
	struct plan *p, enum writer_kind kind, unsigned writer, uint64_t seed, unsigned sets);
void plan_free(struct plan *p);

bool slot_is_file(const struct plan *p, unsigned slot);
bool slot_is_message(const struct plan *p, unsigned slot);
void slot_name(const struct plan *p, unsigned slot, char out[16]);
/* The key of the writer's message. */
void message_name(const struct plan *p, bool moved, char out[16]);
void partition_name(const struct plan *p, bool moved, char out[16]);
/* The bytes of a slot that this set wrote.  malloc()ed. */
char *slot_bytes(const struct plan *p, unsigned slot, const struct slot *is);

/* Sets *ret_set to the set of a writer of QUEUES after which the account's queues are as in the store.
 * Returns false if there is none; then ret_seen tells what is there. */
bool queues_set_of(struct store *s, const struct plan *p, uint64_t account, uint32_t *ret_set,
	char *ret_seen, size_t room);

/* What is in a store. */
struct truth {
	bool absent;     /* there is no store */
	char wrong[400]; /* "": it is whole and clean */
	uint32_t sets[WRITERS];
};
/* Opens the store as a server does.  again: then writes to it, closes it, and looks again. */
void truth_of(const char *path, const struct plan plans[WRITERS], bool again, struct truth *ret);

/* Makes and changes a store in this folder, recorded there; returns the record's name.  malloc()ed.
 * name: of the kind of work; NULL at the end of the list. */
struct work {
	const char *name;
	unsigned writers, rounds, sets; /* of each writer in each round */
	int cache;                      /* of the writing connection, as PRAGMA cache_size */
	bool large, views;
	bool brief; /* part of the short form */
	bool blobs; /* of BLOBS, through the service; else of MIXED */
};
extern const struct work works[];
char *work_record(const struct work *w, const char *folder, uint64_t seed);

#define ACCOUNT "acc"
#define TABLE "tab"

#endif
