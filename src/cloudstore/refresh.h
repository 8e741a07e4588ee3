/* SPDX-License-Identifier: MIT
 * Makes parts of the shadow as the service has them, unless the service confirmed them lately.  Private
 * to cloudstore/.  Each function takes the lock of the directory and may send requests.  Errors: those
 * of client_send() without ERR_OUTCOME_UNKNOWN, which is ERR_IO for a read, and those of the shadow.  A
 * log line has the reason.  With the mount option `hard` they wait instead (outage.h). */
#ifndef CLOUDSTORE_REFRESH_H
#define CLOUDSTORE_REFRESH_H

#include "cloudstore/core.h"

/* The part of a directory that one request tells of. */
struct refreshed {
	struct buf to; /* the last key; the caller frees it */
	bool end;      /* the part goes on to the end of the directory instead */
	bool away;     /* after an error: the service did not answer */
};

/* All tables of the account. */
enum err refresh_tables(struct cloudstore *s);
/* Children of a table or a partition from `from` on, as many as one response has.  `dir` is an item of
 * the shadow. */
enum err refresh_listing(
	struct cloudstore *s, const struct item *dir, struct span from, struct refreshed *ret);
/* One child of a table or a partition, there or not. */
enum err refresh_child(struct cloudstore *s, const struct item *dir, struct span key);

#endif
