/* SPDX-License-Identifier: MIT
 * Continuation tokens: the key of the next row, in characters that are safe in headers and URLs.
 * The form is "1!LEN!TEXT".  TEXT is the base64 of the UTF-8 key with '-' for '=', '_' for '+' and
 * '.' for '/'.  LEN is its length (protocol section 6.5). */
#ifndef QUERY_PAGE_TOKEN_H
#define QUERY_PAGE_TOKEN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

/* Appends the token of a key, given in UTF-8. */
void page_token_encode(struct span key, struct buf *out);
/* Appends the key to out.  An empty token is the empty key.  ERR_INVALID_INPUT for any other text
 * that page_token_encode() does not write; ERR_NO_MEMORY. */
enum err page_token_decode(struct span token, struct buf *out, struct err_detail *detail);

#endif
