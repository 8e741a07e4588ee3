/* SPDX-License-Identifier: MIT
 * Connections whose answer a rule of faults sends later.  They are suspended and occupy no thread.
 * The watchdog's rounds resume them, so they wait up to WATCHDOG_ROUND_MS longer. */
#ifndef REST_HTTP_DELAYED_H
#define REST_HTTP_DELAYED_H

#include "base/lock.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;

struct delayed {
	struct mutex lock;
	struct connection *first;
};

void delayed_init(struct delayed *d);
/* Call it when no connection is left. */
void delayed_fini(struct delayed *d);
/* Takes a suspended connection until its response.wait_ms are over. */
void delayed_add(struct delayed *d, struct connection *c);
/* Resumes the connections whose time is over, or all of them. */
void delayed_resume(struct delayed *d, bool all);

#endif
