/* SPDX-License-Identifier: MIT
 * Interprets a request of the Table service for one entity (protocol sections 2.0, 2.6 to 2.9).
 * The REST server and $batch bodies in files share it. */
#ifndef SERVICE_CHANGE_ENTITY_REQUEST_H
#define SERVICE_CHANGE_ENTITY_REQUEST_H

#include "service/change/entities.h"

/* Sets *ret to the effective method.  X-HTTP-Method replaces POST, for clients behind simple
 * proxies.  tunnelled: the first such header, p NULL without one; count: how many there are.
 * ERR_XMETHOD_COUNT, ERR_XMETHOD_VERB, ERR_XMETHOD_VALUE. */
enum err entity_request_method(
	struct span method, struct span tunnelled, size_t count, struct span *ret);

struct entity_request {
	struct span method;   /* the effective one: PUT, MERGE, PATCH or DELETE */
	struct span if_match; /* the first one; p NULL: none */
	size_t if_match_count;
	bool if_none_match;
};

/* Sets the kind and the precondition of op.  A PUT or MERGE with If-Match is an update, without it
 * an upsert.  ERR_INVALID_INPUT; ERR_HEADER_MISSING for a DELETE without If-Match. */
enum err entity_request_read(
	const struct entity_request *r, struct entity_op *op, struct err_detail *detail);

/* Checks that keys in the body of an update equal those of the URL, which op has. */
enum err entity_request_check_keys(
	const struct entity_op *op, const struct entity *body, struct err_detail *detail);

/* Checks the keys of op, and the size of the entity with them.  The decoder has checked the
 * rest. */
enum err entity_op_check(const struct entity_op *op, struct err_detail *detail);

#endif
