/* SPDX-License-Identifier: MIT
 * The mount option `hard`: a request waits until the service is back, or until its program is interrupted.
 * It holds no lock while it waits.  Private to cloudstore/. */
#ifndef CLOUDSTORE_OUTAGE_H
#define CLOUDSTORE_OUTAGE_H

#include "cloudstore/core.h"

struct outage { /* of one request; zeroed but for s */
	struct cloudstore *s;
	bool away;       /* set by the caller: the error says that the service did not answer */
	unsigned failed; /* tries */
	bool waits;      /* is one of the OUTAGE_WAITERS_MAX, from its first wait to its end */
};

/* Returns true if the error says that the service did not answer. */
bool outage_is(enum err e);
/* Returns true to try again, after a wait.  Else the request has ended, and *e is the error to report:
 * ERR_CANCELLED if the program was interrupted.  False at once without `hard`, for a thread that nobody can
 * interrupt, and while OUTAGE_WAITERS_MAX others wait. */
bool outage_retry(struct outage *p, enum err *e);

#endif
