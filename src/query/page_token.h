/* SPDX-License-Identifier: MIT
 * Continuation tokens: the name of the next row to read, in characters that survive
 * headers and URLs.  "1!LEN!TEXT" with TEXT the base64 of the UTF-8 key, '=' as '-', and
 * '+' '/' as '_' '.'; LEN its length (protocol section 6.5). */
#ifndef QUERY_PAGE_TOKEN_H
#define QUERY_PAGE_TOKEN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

void page_token_encode(struct span key, struct buf *out);
/* The key into out.  ERR_INVALID_INPUT for whatever page_token_encode() did not write.  An
 * empty token is the empty key. */
enum err page_token_decode(struct span token, struct buf *out, struct err_detail *detail);

#endif
