/* SPDX-License-Identifier: MIT
 * A row moves to another partition or table.  The service has no request for that, so it is two: the row is
 * put in its new place, then deleted in the old one.  Private to cloudstore/. */
#ifndef CLOUDSTORE_CROSSING_H
#define CLOUDSTORE_CROSSING_H

#include "cloudstore/core.h"

/* Moves the row as the CHANGE_MOVE says, which is the only change of its set.  The row gets another id.  The put
 * depends on what the shadow has in the new place, the deletion on the row that was copied.  If
 * somebody has changed the row meanwhile, or the credential may not delete it, the put is undone.
 *
 * After a crash, and after ERR_OUTCOME_UNKNOWN, the row may be in both places; it is never in none.
 * Holds no lock; takes that of one partition after the other.  Other errors as of store_apply(). */
enum err cloudstore_cross(
	struct cloudstore *s, struct change *c, bool durable, struct err_detail *why);

#endif
