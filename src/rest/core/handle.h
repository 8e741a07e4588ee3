/* SPDX-License-Identifier: MIT
 * From a request to a response, without sockets and HTTP library.  Tests and fuzzers call this. */
#ifndef REST_CORE_HANDLE_H
#define REST_CORE_HANDLE_H

#include "rest/core/request.h"
#include "rest/core/response.h"
#include "service/core/service.h"

struct rest_service;

/* Registers the names of the service's operations with the metrics. */
void rest_name_operations(const struct rest_service *rest, struct service *service);

/* Handles a request and initializes the response; an error is a response too.  Any number of
 * threads may call it. */
void rest_handle(const struct rest_service *rest, struct service *service,
	const struct request *request, struct response *ret);

/* Checks what the head alone decides, before memory is spent on a body.  It ignores the body.
 * ERR_OK: rest_handle() would accept the URL and the credential now; *ret is empty.  Else *ret is
 * the response that rest_handle() would give.  Lowers *limit, the most bytes of the body, if the service
 * takes the body in parts.  Takes a bounded time. */
enum err rest_admit(const struct rest_service *rest, struct service *service,
	const struct request *request, uint64_t *limit, struct response *ret);

/* Makes the response for an error that the HTTP server finds, such as a body that is too large.
 * service counts it; NULL: it was counted already. */
void rest_refuse(const struct rest_service *rest, struct service *service,
	const struct request *request, enum err e, struct response *ret);

#endif
