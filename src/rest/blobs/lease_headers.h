/* SPDX-License-Identifier: MIT
 * Ids and states of leases in requests and answers. */
#ifndef REST_BLOBS_LEASE_HEADERS_H
#define REST_BLOBS_LEASE_HEADERS_H

#include "model/lease.h"
#include "rest/core/context.h"

/* Reads a header that is the id of a lease, a GUID in any of its usual forms; n 0 without the header.
 * ERR_HEADER_INVALID. */
enum err lease_id_read(struct request_context *c, const char *header, struct span *ret);
/* Makes a new id. */
enum err lease_id_make(struct request_context *c, struct span *ret);

/* Adds the state of a lease to a response, and to the properties of a listing. */
void lease_headers_add(const struct request_context *c, const struct lease *l, struct response *r);
void lease_xml_add(const struct lease *l, int64_t now, struct buf *out);

#endif
