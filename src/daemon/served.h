/* SPDX-License-Identifier: MIT
 * What a process that serves a store tells the commands that run in it. */
#ifndef DAEMON_SERVED_H
#define DAEMON_SERVED_H

#include "daemon/mount_options.h"

/* "localhost" can be two. */
#define SERVED_ENDPOINTS_MAX (2 * REST_ENDPOINTS_MAX)

struct served {
	const struct mount_options *mounted; /* NULL: it serves no mount */
	/* What rest_endpoint() says of each socket; "" behind the last. */
	char endpoints[SERVED_ENDPOINTS_MAX + 1][160];
};

#endif
