/* SPDX-License-Identifier: MIT
 * Verifies a whole store: the engine's own checks; and that every entity decodes and keeps the
 * limits, and that every key has one file name that leads back to it. */
#ifndef SERVICE_CHECK_VERIFY_H
#define SERVICE_CHECK_VERIFY_H

#include "service/core/service.h"

/* files: all ordinary files, also in folders, in .rowfs/rejected and in .rowfs/trash.  messages: also
 * expired ones. */
struct verify_counts {
	uint64_t accounts, tables, partitions, rows, files, queues, messages, containers, blobs,
		findings;
};

enum verify_phase {
	VERIFY_PAGES, /* the engine reads its file, about twice; done and total are pages */
	VERIFY_PLACES, /* the engine compares its items, several times; each time counts as an item */
	VERIFY_ITEMS, /* each item is read */
};
/* Told a phase after the other; an engine may leave out the first two.  total: an estimate; 0: nobody knows. */
typedef void (*verify_progress_fn)(
	void *arg, enum verify_phase phase, uint64_t done, uint64_t total);

/* Calls fn for each finding.  ERR_CORRUPT if there was any.  Uses the memory of a few items. */
enum err service_verify(struct service *s, store_check_fn fn, verify_progress_fn progress,
	void *arg, struct verify_counts *counts);

#endif
