/* SPDX-License-Identifier: MIT
 * Verifies a whole store: what the engine can know, and that every entity decodes, keeps
 * the limits, and that every key has one name that leads back to it. */
#ifndef SERVICE_CHECK_VERIFY_H
#define SERVICE_CHECK_VERIFY_H

#include "service/core/service.h"

/* files: the ordinary ones, in dot directories of any depth too, and those that a mount shows
 * in .rowfs/rejected and .rowfs/trash. */
struct verify_counts {
	uint64_t accounts, tables, partitions, rows, files, findings;
};

/* fn is called for each finding.  ERR_CORRUPT if there was any.  Memory: a few items. */
enum err service_verify(struct service *s, store_check_fn fn, store_progress_fn progress, void *arg,
	struct verify_counts *counts);

#endif
