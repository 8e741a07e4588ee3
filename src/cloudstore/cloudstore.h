/* SPDX-License-Identifier: MIT
 * Opens an account of the Table service as a store.  Each read asks the service unless the response is
 * younger than cache_ms.  What the service answered is kept in a local store, the shadow, which gives
 * ids and sizes. */
#ifndef CLOUDSTORE_CLOUDSTORE_H
#define CLOUDSTORE_CLOUDSTORE_H

#include "cloud/client.h"
#include "store/store.h"

struct cloudstore_options {
	unsigned cache_ms; /* how old a response of the service may be; 0: it is always asked */
	unsigned rps;      /* requests a second at most; 0: no bound */
	bool hard;         /* a request waits until the service is back (cloudstore/outage.h) */
	struct client_options client; /* its traffic is the engine's, which store_info() shows */
};

/* Opens the account at the endpoint.  Sends nothing.  Owns the shadow on ERR_OK; it must hold the
 * account, and nobody else may change it.  Copies the endpoint and the options, but borrows ca_file.
 * Requests end early where base/interrupted.h says so, but a change that is under way does not.
 * Its abilities are STORE_SHARED, STORE_MOVES_IN_STEPS and STORE_FINDS.  ERR_ACCOUNT_NOT_FOUND: the shadow is another
 * account's.  ERR_NO_MEMORY, errors of client_new(). */
enum err cloudstore_open(struct store *shadow, const struct endpoint *at,
	const struct cloudstore_options *o, struct store **ret, struct err_detail *why);

#endif
