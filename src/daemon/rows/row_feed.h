/* SPDX-License-Identifier: MIT
 * The changes of a table or a partition as lines (service/feed/feed.h), of a store or of a rowfs elsewhere.
 * One thread at a time. */
#ifndef DAEMON_ROWS_ROW_FEED_H
#define DAEMON_ROWS_ROW_FEED_H

#include "daemon/core/command.h"
#include "service/feed/feed.h"

struct row_feed {
	char position[FEED_POSITION_MAX]; /* behind which read() goes on */
	uint64_t passed;                  /* changes of others since the last line */
	/* As feed_read(). */
	enum err (*read)(
		struct row_feed *f, struct buf *out, bool *ret_more, struct err_detail *why);
	/* Returns when there may be something new since the last read, or after a moment. */
	void (*wait)(struct row_feed *f);
	void (*close)(struct row_feed *f);
};

struct row_feed_options {
	enum feed_start start;
	struct span position; /* for FEED_START_POSITION */
	bool with_rows;
};

/* Opens the changes of ACCOUNT/TABLE or ACCOUNT/TABLE/PARTITION; the partition need not be there.  Free
 * *ret with its close().  Errors as of feed_open() and of finding the path. */
enum err row_feed_open(struct cmd_env *env, const char *path, const struct row_feed_options *o,
	struct row_feed **ret, struct err_detail *why);

/* ---- the two ---- */

enum err store_feed_open(struct cmd_env *env, const char *path, const struct row_feed_options *o,
	struct row_feed **ret, struct err_detail *why);
/* ERR_NOT_SUPPORTED: the service there has no such operation. */
enum err cloud_feed_open(struct cmd_env *env, const char *path, const struct row_feed_options *o,
	struct row_feed **ret, struct err_detail *why);

#endif
