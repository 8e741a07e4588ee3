/* SPDX-License-Identifier: MIT
 * Cross-origin requests (protocol section 2.17).  Properties may be NULL: no rules. */
#ifndef REST_CORS_H
#define REST_CORS_H

#include "base/err.h"
#include "model/service_properties.h"
#include "rest/request.h"
#include "rest/response.h"

/* OPTIONS: what the first rule for the origin and the method allows.  Credentials do not
 * matter.  ERR_CORS_HEADER without Origin or Access-Control-Request-Method,
 * ERR_CORS_FAILED where no rule allows it. */
enum err cors_preflight(
	const struct service_properties *p, const struct request *request, struct response *r);
/* Any other request, when its answer, be it an error, has all its other headers: those that
 * tell the browser who may read it.  The method that counts is the one on the wire, not
 * X-HTTP-Method. */
void cors_decorate(
	const struct service_properties *p, const struct request *request, struct response *r);

#endif
