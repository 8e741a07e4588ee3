/* SPDX-License-Identifier: MIT
 * Cross-origin requests (protocol section 2.17).  The properties may be NULL: no rules. */
#ifndef REST_CORE_CORS_H
#define REST_CORE_CORS_H

#include "base/err.h"
#include "model/service_properties.h"
#include "rest/core/request.h"
#include "rest/core/response.h"

/* Answers OPTIONS by the first rule for the origin and the method.  No credential is needed.
 * ERR_CORS_HEADER without Origin or Access-Control-Request-Method; ERR_CORS_FAILED if no rule
 * allows the request. */
enum err cors_preflight(
	const struct service_properties *p, const struct request *request, struct response *r);
/* Adds the headers that tell a browser who may read the response.  Call it for other requests,
 * after all other headers, for errors too.  The method on the wire counts, not X-HTTP-Method. */
void cors_decorate(
	const struct service_properties *p, const struct request *request, struct response *r);

#endif
