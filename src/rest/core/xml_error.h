/* SPDX-License-Identifier: MIT
 * Errors in the XML form that queues and blobs have, and numbers in parameters. */
#ifndef REST_CORE_XML_ERROR_H
#define REST_CORE_XML_ERROR_H

#include "rest/core/context.h"

/* Sets *ret to the number in a parameter, or to `otherwise` without it.  ERR_QUERY_VALUE if it is no
 * number; ERR_QUERY_RANGE, with the bounds in c->out_of_range. */
enum err param_number(struct request_context *c, const char *name, int64_t min, int64_t max,
	int64_t otherwise, int64_t *ret);

/* Replaces the response by an error (rest_service.h). */
void xml_error_write(const struct request_context *c, enum err e, struct response *r);

#endif
