/* SPDX-License-Identifier: MIT
 * The context of a request: what handle.c finds out before it runs the operation. */
#ifndef REST_CORE_CONTEXT_H
#define REST_CORE_CONTEXT_H

#include "base/arena.h"
#include "rest/core/access.h"
#include "rest/core/request.h"
#include "rest/core/request_url.h"
#include "rest/core/response.h"
#include "rest/tables/format.h"
#include "service/core/accounts.h"

#include <stdint.h>

struct request_context {
	struct service *service;
	const struct request *request;
	struct span method; /* after X-HTTP-Method */
	struct request_url url;
	struct account_secrets secrets; /* handle.c frees and wipes it */
	struct access access;
	int version;      /* such as 20190202 (model/versions.h) */
	unsigned seconds; /* from `timeout`; 0: not given */
	bool in_batch;
	const struct format *format; /* of the response */
	enum odata_level level;
	const struct format *body_format; /* of the request's body */
	char request_id[37];
	struct arena *arena;      /* owns everything that lives as long as the request */
	struct err_detail detail; /* of the operation's error */
};

/* Sets *ret_id to the id of the URL's table.  ERR_TABLE_NOT_FOUND. */
enum err context_table(struct request_context *c, uint64_t *ret_id);
/* Sets *ret to the value of a query parameter.  Returns false if it is absent. */
bool context_param(const struct request_context *c, const char *name, struct span *ret);

/* Sets the version from the header, or from the parameters of a SAS.  Without either it is the
 * newest one, or the oldest one for a client that names ATOM: clients without versions did so.  The
 * same default applies with ERR_HEADER_INVALID, for an unknown version. */
enum err context_read_version(struct request_context *c);
/* Sets the method, after X-HTTP-Method. */
enum err context_read_method(struct request_context *c);
/* Sets the format and level of the response. */
enum err context_negotiate(struct request_context *c);

/* Reads `timeout` and checks the other options.  ERR_NOT_SUPPORTED for OData options such as
 * $orderby.  ERR_INVALID_INPUT for other names with a '$'. */
enum err context_options(struct request_context *c);

#endif
