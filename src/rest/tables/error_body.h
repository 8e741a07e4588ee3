/* SPDX-License-Identifier: MIT
 * Error responses (protocol section 8). */
#ifndef REST_TABLES_ERROR_BODY_H
#define REST_TABLES_ERROR_BODY_H

#include "rest/core/context.h"
#include "rest/tables/format.h"

struct error_facts {
	enum err e;
	const struct err_detail *detail; /* may be NULL */
	const char *request_id;
	bool indexed; /* in a change set: the message begins with detail->op */
	bool xml;     /* the operation's bodies are XML, whatever was negotiated */
	const struct format *format;
	enum odata_level level;
};

/* Replaces the response by the error: status, headers and body. */
void response_error(struct response *r, const struct error_facts *f);
/* Does the same for a whole request, as a part of the description (rest_service.h). */
void table_write_error(const struct request_context *c, enum err e, struct response *r);

#endif
