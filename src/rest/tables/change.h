/* SPDX-License-Identifier: MIT
 * The change of one entity by a request, alone or in a batch: parse the request, then write the
 * response.  service/change/entities.h applies the change in between. */
#ifndef REST_TABLES_CHANGE_H
#define REST_TABLES_CHANGE_H

#include "rest/tables/table_request.h"
#include "service/change/entities.h"

#include <stdbool.h>

struct entity_change {
	struct entity_op op; /* pk and rk are set */
	struct entity entity;
	bool no_content; /* an insert with Prefer: return-no-content */
};

/* Reads keys, preconditions and body of an insert, PUT, MERGE, PATCH or DELETE.  Checks everything
 * that does not depend on the store, and the access to the row.  Call entity_change_fini() also
 * after an error. */
enum err entity_change_read(struct request_context *c, struct entity_change *ret);
/* Writes the response after op was applied. */
enum err entity_change_respond(
	const struct request_context *c, const struct entity_change *change, struct response *r);
/* Frees the entity. */
void entity_change_fini(struct entity_change *change);

/* Returns the value for Preference-Applied, from the Prefer header of an insert or of a table's
 * creation; or NULL. */
const char *context_preference(const struct request_context *c);
/* Returns true for Prefer: return-no-content. */
bool context_wants_no_content(const struct request_context *c);
/* Returns how responses show rows of the URL's table. */
struct odata_style context_style(const struct request_context *c);
/* Adds the ETag of a version. */
void response_etag(struct response *r, int64_t version);
/* Adds the headers of every OData response: Cache-Control and X-Content-Type-Options, and
 * Content-Type if there is a body. */
void response_odata(const struct request_context *c, struct response *r, int status, bool body);

#endif
