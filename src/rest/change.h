/* SPDX-License-Identifier: MIT
 * The change of one entity that a request asks for, by itself or as a part of a batch: read
 * from the request, applied by service/change/entities.h, answered. */
#ifndef REST_CHANGE_H
#define REST_CHANGE_H

#include "rest/context.h"
#include "service/change/entities.h"

#include <stdbool.h>

struct entity_change {
	struct entity_op op; /* pk and rk are set */
	struct entity entity;
	bool no_content; /* an insert with Prefer: return-no-content */
};

/* Reads keys, conditions and body from c (its route is an insert, PUT, MERGE, PATCH or
 * DELETE), and checks what does not depend on the store, access to the row included.
 * entity_change_fini() whatever the answer. */
enum err entity_change_read(struct request_context *c, struct entity_change *ret);
/* What the client is told once op was applied. */
enum err entity_change_respond(
	const struct request_context *c, const struct entity_change *change, struct response *r);
void entity_change_fini(struct entity_change *change);

/* The Prefer header of an insert or a table's creation: 0, or the Preference-Applied. */
const char *context_preference(const struct request_context *c);
bool context_wants_no_content(const struct request_context *c);
/* How this call's answers show rows of its table. */
struct odata_style context_style(const struct request_context *c);
void response_etag(struct response *r, int64_t version);
/* Cache-Control and its kin of answers to OData operations, with the body's type where
 * there is a body. */
void response_odata(const struct request_context *c, struct response *r, int status, bool body);

#endif
