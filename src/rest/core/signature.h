/* SPDX-License-Identifier: MIT
 * HMAC-SHA256 signatures, for both kinds of credential. */
#ifndef REST_CORE_SIGNATURE_H
#define REST_CORE_SIGNATURE_H

#include "base/err.h"
#include "base/span.h"
#include "service/core/accounts.h"

#include <stdbool.h>
#include <stdint.h>

#define SIGNATURE_BYTES 32

/* Decodes a signature.  Returns false unless text is base64 of SIGNATURE_BYTES bytes. */
bool signature_parse(struct span text, uint8_t out[SIGNATURE_BYTES]);
/* Returns true if either key of the account signed the text. */
bool signature_matches(const struct account_keys *keys, struct span text,
	const uint8_t signature[SIGNATURE_BYTES]);
/* Returns ERR_AUTH_FAILED with the string to sign in the detail, as far as it fits.  It contains
 * only what the client sent, and developers need it to find their error. */
enum err signature_mismatch(
	const char *service, struct span string_to_sign, struct err_detail *detail);

#endif
