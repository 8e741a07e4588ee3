/* SPDX-License-Identifier: MIT
 * What a request of the Table service says about the change of one entity (protocol sections
 * 2.0, 2.6 to 2.9): one place for the REST socket and for $batch bodies in files. */
#ifndef SERVICE_CHANGE_ENTITY_REQUEST_H
#define SERVICE_CHANGE_ENTITY_REQUEST_H

#include "service/change/entities.h"

/* The method that counts: X-HTTP-Method tunnels one through POST, for clients behind proxies
 * that know little.  tunnelled: the first header of that name, p NULL if there is none; count:
 * how many there are.  ERR_XMETHOD_COUNT, ERR_XMETHOD_VERB, ERR_XMETHOD_VALUE. */
enum err entity_request_method(
	struct span method, struct span tunnelled, size_t count, struct span *ret);

struct entity_request {
	struct span method;   /* that counts: PUT, MERGE, PATCH or DELETE */
	struct span if_match; /* the first of them; p NULL: none */
	size_t if_match_count;
	bool if_none_match;
};

/* Sets op's kind and condition.  Whether a PUT or MERGE is an update or an upsert is decided
 * by If-Match alone.  ERR_INVALID_INPUT; ERR_HEADER_MISSING for a DELETE without. */
enum err entity_request_read(
	const struct entity_request *r, struct entity_op *op, struct err_detail *detail);

/* Keys in the body of an update may only repeat those of the URL, which op has. */
enum err entity_request_check_keys(
	const struct entity_op *op, const struct entity *body, struct err_detail *detail);

/* The keys of op, and the size that its entity has with them; all else was checked when the
 * entity was decoded. */
enum err entity_op_check(const struct entity_op *op, struct err_detail *detail);

#endif
