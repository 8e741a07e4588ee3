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

/* Calls fn for each finding.  ERR_CORRUPT if there was any.  Uses the memory of a few items. */
enum err service_verify(struct service *s, store_check_fn fn, store_progress_fn progress, void *arg,
	struct verify_counts *counts);

#endif
