/* SPDX-License-Identifier: MIT
 * A message as a line of NDJSON (docs/formats.md). */
#ifndef SERVICE_TRANSFER_MESSAGE_LINE_H
#define SERVICE_TRANSFER_MESSAGE_LINE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "service/queue/message_name.h"

/* More than a message of the longest text needs, whatever is escaped. */
#define MESSAGE_LINE_LIMIT ((size_t)1 << 20)

/* Appends the line with its line feed.  item: the id of the message's item. */
void message_line_write(
	const struct message_key *key, uint64_t item, struct span text, struct buf *out);

/* Reads a line without its line feed.  *key has the values of a new message; members of the line
 * replace them.  The text is copied into the arena.
 *
 * ERR_INVALID_INPUT, ERR_VALUE_INVALID, ERR_MESSAGE_TOO_LARGE, with detail->column if it is known.
 * ERR_NO_MEMORY. */
enum err message_line_read(struct span line, struct arena *arena, struct message_key *key,
	struct span *ret_text, struct err_detail *detail);

#endif
