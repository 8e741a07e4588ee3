/* SPDX-License-Identifier: MIT
 * The public keys of an issuer of tokens, as a JSON Web Key Set (RFC 7517). */
#ifndef CODEC_JWK_SET_H
#define CODEC_JWK_SET_H

#include "base/err.h"
#include "base/span.h"
#include "codec/jwt.h"

#include <stddef.h>

#define JWK_SET_LIMIT ((size_t)1 << 20) /* bytes of the file */
#define JWK_SET_DEPTH 8
#define JWK_SET_KEYS 100

struct jwk_set;

/* Parses the text of a key set.  Keys for another use than signatures, and of other kinds than RSA
 * and P-256, are left out.  ERR_INVALID_INPUT with the reason: no key set, more than JWK_SET_KEYS
 * keys, a damaged key, or none that can check a token; ERR_NO_MEMORY.  The caller frees *ret. */
enum err jwk_set_read(struct span text, struct jwk_set **ret, struct err_detail *detail);
/* Returns the whole file, for its other members (json_read.h). */
const struct json_t *jwk_set_file(const struct jwk_set *s);
/* NULL is allowed. */
void jwk_set_free(struct jwk_set *s);

/* Checks the token's signature with the key that its `kid` names; a token without `kid` needs a set
 * of one key.  The key decides the algorithm, RS256 or ES256, and the token's `alg` must say the
 * same.  Sets *ret_issuer to the issuer that the file names for this key, as it stands there; p is
 * NULL for none. ERR_AUTH_FAILED with the reason; ERR_NO_MEMORY. */
enum err jwk_set_verify(const struct jwk_set *s, const struct jwt *t, struct span *ret_issuer,
	struct err_detail *detail);

#endif
