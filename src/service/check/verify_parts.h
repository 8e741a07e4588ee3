/* SPDX-License-Identifier: MIT
 * The parts of a check (service/check/verify.h).  The engine checks itself; these check every item
 * against the rules of the model.  All work on one struct verify, by one thread.  A function
 * returns an error if the store cannot be read on.  A wrong item is a finding, not an error. */
#ifndef SERVICE_CHECK_VERIFY_PARTS_H
#define SERVICE_CHECK_VERIFY_PARTS_H

#include "codec/entity_json.h"
#include "service/check/estimate.h"
#include "service/check/verify.h"
#include "service/core/row_line.h"
#include "service/core/saved_sizes.h"

struct verify {
	struct service *service;
	struct store *store;
	struct store_view *view;
	store_check_fn fn;
	verify_progress_fn progress;
	void *arg;
	struct verify_counts *counts;
	bool stopped;
	bool no_memory; /* memory is out; `stopped` is set too */
	bool exact;     /* the engine counts children exactly */

	/* The current path, for findings. */
	struct span account, table, partition;
	enum item_kind dir; /* the kind of the directory being listed */
	uint64_t children;  /* of that directory */
	uint64_t done;
	struct estimate expected;
	struct entity entity;

	/* Sizes of streams that the last clean close left, and what the walk counts. */
	struct saved_size kept[SAVED_SIZES_MAX];
	size_t nkept;
	uint64_t table_bytes, partition_bytes;
	bool countable; /* false where a row cannot be counted */
	struct row_line line;
};

/* ---- findings ---- */

/* Returns whether the check goes on. */
bool verify_find(struct verify *v, const char *finding);
/* Returns `lacks`.  A lack of memory is no finding about the store, and ends the check. */
bool verify_lacks_memory(struct verify *v, bool lacks);
/* Returns how many bytes of a name a finding shows. */
int verify_shown(struct span s);
/* Reports a finding about the item `name` at the current path. */
void PRINTF_LIKE(3, 4) verify_report(struct verify *v, struct span name, const char *fmt, ...);
/* Counts an item, for the progress. */
void verify_tell_done(struct verify *v);
/* Compares the directory's count of children with v->children. */
void verify_count(struct verify *v, const struct item *dir, struct span name);
/* Reports what cannot be read (ERR_CORRUPT becomes ERR_OK), so that the check continues. */
enum err verify_tolerate(struct verify *v, struct span name, enum err e);

/* ---- rows ---- */

/* Checks the rows, files and folders of a partition. */
enum err verify_partition(struct verify *v, const struct item *it);

/* ---- sizes of streams ---- */

/* Reads the sizes of the moment of v->view. */
void verify_sizes_begin(struct verify *v);
/* Adds the row's line, of which v->entity may be decoded, to the current table and partition. */
void verify_sizes_add(struct verify *v, const struct item *it, struct span key);
/* Compares the bytes that were counted of the table or partition. */
void verify_size(struct verify *v, uint64_t dir_id, uint64_t bytes, struct span name);

/* ---- ordinary files and folders ---- */

/* Checks the flags of any directory. */
void verify_dir_flags(struct verify *v, const struct item *dir, struct span name);
/* Checks the files and folders of a directory of this kind, without what is in the folders.  Adds them to
 * v->children. */
enum err verify_files(struct verify *v, uint64_t dir, enum item_kind kind);
/* Checks all folders below top, at any depth.  It asks the store for the way up, so it needs no stack. */
enum err verify_folders(struct verify *v, uint64_t top);

/* ---- queues and containers ---- */

/* Each checks what an account has, and adds it to *children. */
enum err verify_queues(struct verify *v, uint64_t account, uint64_t *children);
enum err verify_containers(struct verify *v, uint64_t account, uint64_t *children);

#endif
