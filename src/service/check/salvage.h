/* SPDX-License-Identifier: MIT
 * Recovers the readable rows of a table in a damaged store as NDJSON. */
#ifndef SERVICE_CHECK_SALVAGE_H
#define SERVICE_CHECK_SALVAGE_H

#include "base/buf.h"
#include "service/core/service.h"
#include "store/engines.h"

struct salvage {
	/* Takes a line of NDJSON.  Returns false to stop: ERR_CANCELLED. */
	bool (*row)(void *arg, struct span line);
	/* Takes a message that says what was left out, and why. */
	void (*lost)(void *arg, const char *what);
	void *arg;
	uint64_t rows, losses;
};

/* Writes all rows of the table, in order.  Leaves out damaged rows, and the rest of a partition
 * that cannot be listed.  ERR_CORRUPT and ERR_IO only if the table itself cannot be listed;
 * ERR_THROTTLED and ERR_GONE from the view (views.h). */
enum err service_salvage(struct service *s, uint64_t table_id, struct salvage *to);

/* Calls store_salvage() and checks documents and accounts.  The caller sets only lost, progress,
 * arg and take_doubtful of s. */
enum err service_salvage_store(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail);

#endif
