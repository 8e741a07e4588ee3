/* SPDX-License-Identifier: MIT
 * The services that the sockets serve, and which of them a request is for. */
#ifndef REST_HTTP_SERVICES_H
#define REST_HTTP_SERVICES_H

#include "rest/core/rest_service.h"

/* Returns the i-th service, or NULL behind the last.  The first one is the default of a socket. */
const struct rest_service *services_at(size_t i);
/* Splits "queue=ADDRESS" and sets *ret to its service: the default one without such a prefix, that
 * of the admin socket for "admin=", that of the page for "page=", NULL for an unknown one.  Returns the address. */
const char *services_split(const char *endpoint, const struct rest_service **ret);
/* Returns the service that the second label of the host names, as in acct.queue.localhost; else
 * `other`, and always on the admin socket; NULL for a label of storage services that rowfs lacks, such as acct.file.localhost.  The host is that of an absolute target, else that of the Host header. */
const struct rest_service *services_of_host(
	const struct request *q, const struct rest_service *other);

#endif
