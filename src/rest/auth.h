/* SPDX-License-Identifier: MIT
 * What access.c shares with the two kinds of credential; for these files alone. */
#ifndef REST_AUTH_H
#define REST_AUTH_H

#include "base/err.h"
#include "base/span.h"
#include "rest/access.h"
#include "service/core/accounts.h"
#include "service/sas/sas.h"

#include <stdbool.h>
#include <stdint.h>

#define AUTH_SIGNATURE_BYTES 32

/* The value of an Authorization header.  ret is filled on ERR_OK. */
enum err auth_shared_key(const struct access_facts *f, struct span header, struct access *ret,
	struct err_detail *detail);
/* The SAS parameters of the query.  ret is zeroed before, access_fini() in any case. */
enum err auth_sas(const struct access_facts *f, const struct sas *s, struct access *ret,
	struct err_detail *detail);

/* False if it is not base64 of as many bytes as a signature has. */
bool auth_signature(struct span text, uint8_t out[AUTH_SIGNATURE_BYTES]);
/* Whether either key of the account signed the text. */
bool auth_signed(const struct account_keys *keys, struct span text,
	const uint8_t signature[AUTH_SIGNATURE_BYTES]);
/* ERR_AUTH_FAILED with what should have been signed, as far as there is room: it holds
 * nothing but what the client sent, and is what a developer needs to find the mistake. */
enum err auth_mismatch(struct span string_to_sign, struct err_detail *detail);

#endif
