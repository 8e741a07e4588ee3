/* SPDX-License-Identifier: MIT
 * From request to answer: no socket, no HTTP library; what tests and fuzzers call. */
#ifndef REST_HANDLE_H
#define REST_HANDLE_H

#include "rest/request.h"
#include "rest/response.h"
#include "service/core/service.h"

/* So that the socket's operations are there to be read in service/core/metrics.h. */
void rest_name_operations(struct service *service);

/* Always makes the response (response_init() is called here: what it held before is lost);
 * an error is an answer too.  By any number of threads at once. */
void rest_handle(struct service *service, const struct request *request, struct response *ret);

/* What the head alone decides, before memory is given to a body: the body of the request is
 * not looked at.  ERR_OK: rest_handle() would take its target and credential, now; *ret is
 * empty.  Else the error, and *ret is the answer that rest_handle() would give.  Like it,
 * makes the response; takes a bounded moment. */
enum err rest_admit(struct service *service, const struct request *request, struct response *ret);

/* Whether answering takes a bounded moment: a point read, an OPTIONS; else it may wait for
 * a commit or scan. */
bool rest_is_quick(const struct request *request);

/* An answer for what never became a request: HTTP errors that the server finds by itself
 * (body too large, bad length).  service: counts it; NULL: it was counted already. */
void rest_refuse(
	struct service *service, const struct request *request, enum err e, struct response *ret);

#endif
