/* SPDX-License-Identifier: MIT
 * JSON Web Tokens in the compact form (RFC 7519): three parts of base64url with dots between. */
#ifndef CODEC_JWT_H
#define CODEC_JWT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#define JWT_LIMIT ((size_t)16 << 10) /* bytes of a token */
#define JWT_DEPTH 8                  /* levels of its objects and arrays */

struct json_t;

struct jwt {
	struct json_t *header, *claims; /* json_read.h; owned */
	struct span signed_text;        /* borrowed from the token */
	struct buf signature;           /* its bytes; may be empty */
};

/* Reads the form of a token, and checks neither its signature nor its claims.  ERR_INVALID_INPUT
 * with the reason: it is too long or too deep, it has not three parts, a part is not base64url,
 * header or claims are no object, or the header has critical extensions (`crit`).  ERR_NO_MEMORY.
 * Call jwt_fini() after ERR_OK. */
enum err jwt_read(struct span token, struct jwt *ret, struct err_detail *detail);
void jwt_fini(struct jwt *t);

#endif
