/* SPDX-License-Identifier: MIT
 * What the tables know of a request besides its context: the resource, the format of the response,
 * and the rows that its SAS permits. */
#ifndef REST_TABLES_TABLE_REQUEST_H
#define REST_TABLES_TABLE_REQUEST_H

#include "query/key_ranges.h"
#include "rest/core/rest_service.h"
#include "rest/tables/format.h"

struct table_request {
	struct resource resource;
	const struct format *format; /* of the response */
	enum odata_level level;
	const struct format *body_format; /* of the request's body */
	enum err format_error;            /* of the negotiation, reported later */
	struct err_detail format_detail;
	bool has_limit;
	struct key_ranges limit; /* of a table SAS with spk .. erk */
};

/* Returns the tables' part of a context. */
static inline struct table_request *table_request(const struct request_context *c)
{
	return c->own;
}

/* Sets *ret_id to the id of the URL's table.  ERR_TABLE_NOT_FOUND. */
enum err context_table(struct request_context *c, uint64_t *ret_id);
/* Sets format and level of the response.  Errors of format_negotiate(). */
enum err table_request_negotiate(struct request_context *c);
/* Reads the ranges of keys of a table SAS.  table_request_end() frees them. */
enum err table_request_limit(struct table_request *t, const struct sas *s);
/* Returns ERR_OK if the credential allows access to this row, given by UTF-8 keys.
 * ERR_NOT_PERMITTED outside of the SAS's ranges. */
enum err table_request_allows_row(const struct table_request *t, struct span pk, struct span rk);

/* Parts of the description (rest_service.h). */
enum err table_request_read_path(struct request_context *c, struct span path);
/* The newest version, or the oldest one for a client that names ATOM. */
int table_request_version(const struct request_context *c);
void table_request_begin(struct request_context *c);
enum err table_request_read_method(struct request_context *c);
/* ERR_NOT_SUPPORTED for OData options such as $orderby.  ERR_INVALID_INPUT for other names with a
 * '$'.  Reports the error of the negotiation, and reads the ranges of the SAS. */
enum err table_request_check(struct request_context *c);
void table_request_end(struct request_context *c);

#endif
