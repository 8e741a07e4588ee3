/* SPDX-License-Identifier: MIT
 * The change of a row as the requests that the service understands, with the condition that the caller
 * gave.  Private to cloudstore/. */
#ifndef CLOUDSTORE_SENDING_H
#define CLOUDSTORE_SENDING_H

#include "cloud/change.h"
#include "cloudstore/core.h"
#include "cloudstore/place.h"
#include "model/etag.h"
#include "model/limits.h"

#define SENDING_MAX 2 /* requests for one change */

/* One of several tries to send a set (outage.h). */
struct attempt {
	bool away;  /* the service did not answer */
	bool again; /* an earlier one may have been done */
};

/* One change of a row, on its way to the service. */
struct sending {
	struct cloudstore *s;
	struct change *c;             /* a copy: becomes what the shadow does */
	struct attempt *attempt;      /* at the whole set */
	size_t index;                 /* of the change in its set */
	struct cloudstore_place at;   /* of the row */
	struct cloudstore_place from; /* MOVE of a row: where it was */
	struct item source;           /* MOVE of a row: the row itself, with its document */
	struct item table;
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES], if_match[ETAG_MAX];
	char from_rk[LIMIT_KEY_BYTES], from_match[ETAG_MAX];
	struct entity entity;
	/* A moved row is put under its new key, and deleted under the old one. */
	struct cloud_change changes[SENDING_MAX];
	size_t n;
	struct err_detail *why;
};

/* Returns whether the item is a row that the service has. */
bool sending_is_row(const struct item *it);
/* Makes the requests of a change.  The caller has set s, c, why and at.  Call sending_fini() also after an
 * error.  ERR_CONDITION_NOT_MET, ERR_GONE: the shadow knows already that the condition fails.
 * ERR_NOT_SUPPORTED: the service's ETags cannot be conditions.  Errors of entity_json_decode() and of the
 * shadow. */
enum err sending_prepare(struct sending *w);
void sending_fini(struct sending *w);

#endif
