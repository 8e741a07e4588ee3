/* SPDX-License-Identifier: MIT
 * Metadata as headers x-ms-meta-NAME and as XML. */
#ifndef REST_CORE_METADATA_HEADERS_H
#define REST_CORE_METADATA_HEADERS_H

#include "rest/core/context.h"

/* Appends the metadata of the request.  The errors of metadata_add(). */
enum err metadata_from_headers(struct request_context *c, struct buf *ret);
void metadata_to_headers(struct span metadata, struct response *r);
void metadata_to_xml(struct span metadata, struct buf *out);

#endif
