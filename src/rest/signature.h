/* SPDX-License-Identifier: MIT
 * HMAC-SHA256 signatures, which both kinds of credential use. */
#ifndef REST_SIGNATURE_H
#define REST_SIGNATURE_H

#include "base/err.h"
#include "base/span.h"
#include "service/core/accounts.h"

#include <stdbool.h>
#include <stdint.h>

#define SIGNATURE_BYTES 32

/* False if it is not base64 of as many bytes as a signature has. */
bool signature_parse(struct span text, uint8_t out[SIGNATURE_BYTES]);
/* Whether either key of the account signed the text. */
bool signature_matches(const struct account_keys *keys, struct span text,
	const uint8_t signature[SIGNATURE_BYTES]);
/* ERR_AUTH_FAILED with what should have been signed, as far as there is room: it holds
 * nothing but what the client sent, and is what a developer needs to find the mistake. */
enum err signature_mismatch(struct span string_to_sign, struct err_detail *detail);

#endif
