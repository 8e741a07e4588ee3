/* SPDX-License-Identifier: MIT
 * The messages of a queue as NDJSON, out of a queue and into one.  Times and dequeue counts stay; ids
 * and pop receipts are new. */
#ifndef SERVICE_TRANSFER_MESSAGE_TRANSFER_H
#define SERVICE_TRANSFER_MESSAGE_TRANSFER_H

#include "service/transfer/importer.h"

/* Takes whole lines.  Return false to stop: ERR_CANCELLED. */
typedef bool (*messages_fn)(void *arg, struct span lines, uint64_t messages);

/* Exports all messages that have not expired, as of one view, in the order in which they become
 * visible.  The errors of views_open() and view_begin(). */
enum err messages_export(struct service *s, uint64_t queue_id, messages_fn fn, void *arg);

/* Imports all of `in`, and makes it durable.  Of the options stop_at_error, on_error, on_progress and
 * arg count.  A message in the same state that is there already is refused.  Errors as those of
 * import_stream(), ERR_QUEUE_NOT_FOUND, and ERR_OUTCOME_UNKNOWN if all are there but not durable. */
enum err messages_import(struct service *s, enum origin origin, uint64_t queue_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail);

#endif
