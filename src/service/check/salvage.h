/* SPDX-License-Identifier: MIT
 * What can still be read of a table in a damaged store, row by row, as NDJSON. */
#ifndef SERVICE_CHECK_SALVAGE_H
#define SERVICE_CHECK_SALVAGE_H

#include "base/buf.h"
#include "service/core/service.h"
#include "store/engines.h"

struct salvage {
	/* A line of NDJSON.  False: stop, ERR_CANCELLED. */
	bool (*row)(void *arg, struct span line);
	/* What is left out, and why: a line for people. */
	void (*lost)(void *arg, const char *what);
	void *arg;
	uint64_t rows, losses;
};

/* All rows of the table as of now, in their order, but for what cannot be read: a row that is
 * damaged is left out, and of a partition that cannot be listed what stands behind the damage.
 * ERR_CORRUPT, ERR_IO only where the table itself cannot be listed; ERR_THROTTLED, ERR_GONE: of
 * the view (views.h). */
enum err service_salvage(struct service *s, uint64_t table_id, struct salvage *to);

/* store_salvage(), with documents and accounts judged here: of s only lost, progress, arg and
 * take_doubtful need to be set. */
enum err service_salvage_store(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail);

#endif
