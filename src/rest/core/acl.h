/* SPDX-License-Identifier: MIT
 * The bodies of Get and Set ACL: stored access policies. */
#ifndef REST_CORE_ACL_H
#define REST_CORE_ACL_H

#include "rest/core/context.h"

/* Parses the body of the request, and appends the text to store; nothing for no policies. */
enum err acl_read(struct request_context *c, struct buf *out);
/* Answers with a stored text.  It is parsed first: older versions of rowfs stored times as they were
 * sent. */
enum err acl_write(const struct request_context *c, struct span stored, struct response *r);

#endif
