/* SPDX-License-Identifier: MIT
 * One request in the hands of an operation: everything that was found out about it. */
#ifndef REST_CONTEXT_H
#define REST_CONTEXT_H

#include "base/arena.h"
#include "rest/access.h"
#include "rest/format.h"
#include "rest/request.h"
#include "rest/request_url.h"
#include "rest/response.h"
#include "service/core/accounts.h"

#include <stdint.h>

struct request_context {
	struct service *service;
	const struct request *request;
	struct span method; /* the effective one: after X-HTTP-Method */
	struct request_url url;
	struct account_secrets secrets; /* wiped by handle.c */
	struct access access;
	int version;      /* 20190202 (model/versions.h) */
	unsigned seconds; /* what `timeout` allows; 0: nothing was said */
	bool in_batch;
	const struct format *format; /* of the answer */
	enum odata_level level;
	const struct format *body_format; /* of the request's body */
	char request_id[37];
	struct arena *arena;      /* everything that lives as long as the request */
	struct err_detail detail; /* of the error that an operation returns */
};

/* The id of the table that the target names: ERR_TABLE_NOT_FOUND. */
enum err context_table(struct request_context *c, uint64_t *ret_id);
/* A query parameter; false if it is not there. */
bool context_param(const struct request_context *c, const char *name, struct span *ret);

/* The version of the header, else of the parameters of a SAS.  Without any it is today's, but
 * the oldest for who names ATOM, as clients did before there were versions; so it is also with
 * ERR_HEADER_INVALID, for one that is none. */
enum err context_read_version(struct request_context *c);
/* The method that counts (X-HTTP-Method). */
enum err context_read_method(struct request_context *c);
/* The answer's format and level. */
enum err context_negotiate(struct request_context *c);

/* The options that every operation shares: `timeout`, and no option that is none: $orderby and
 * its kin are ERR_NOT_SUPPORTED, another name with a dollar ERR_INVALID_INPUT. */
enum err context_options(struct request_context *c);

#endif
