/* SPDX-License-Identifier: MIT
 * The mount option `hard`: a request waits until the service is back, or until its program is interrupted.
 * It holds no lock while it waits.  Private to cloudstore/. */
#ifndef CLOUDSTORE_PATIENCE_H
#define CLOUDSTORE_PATIENCE_H

#include "cloudstore/core.h"

struct patience { /* of one request; zeroed but for s */
	struct cloudstore *s;
	bool away;       /* set by the caller: the error says that the service did not answer */
	unsigned failed; /* tries */
	bool waits;      /* is one of the PATIENT_MAX, from its first wait to its end */
};

/* Returns true if the error says that the service did not answer. */
bool patience_is_away(enum err e);
/* Returns true to try again, after a wait.  Else the request has ended, and *e is the error to report:
 * ERR_CANCELLED if the program was interrupted.  False at once without `hard`, for a thread that nobody can
 * interrupt, and while PATIENT_MAX others wait. */
bool patience_again(struct patience *p, enum err *e);

#endif
