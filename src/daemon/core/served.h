/* SPDX-License-Identifier: MIT
 * The facts about a serving process that its commands need. */
#ifndef DAEMON_CORE_SERVED_H
#define DAEMON_CORE_SERVED_H

#include "rest/rest.h"

struct mount_options;

/* "localhost" can be two. */
#define SERVED_ENDPOINTS_MAX (2 * REST_ENDPOINTS_MAX)

struct served {
	const struct mount_options *mounted; /* NULL: it serves no mount */
	/* The text of rest_endpoint() for each socket; "" behind the last. */
	char endpoints[SERVED_ENDPOINTS_MAX + 1][REST_ENDPOINT_TEXT];
};

#endif
