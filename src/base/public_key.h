/* SPDX-License-Identifier: MIT
 * Public keys, and the signatures that their private keys made: RS256 and ES256 of RFC 7518. */
#ifndef BASE_PUBLIC_KEY_H
#define BASE_PUBLIC_KEY_H

#include "base/err.h"
#include "base/span.h"

/* Bits of an RSA key. */
#define PUBLIC_KEY_RSA_MIN 2048
#define PUBLIC_KEY_RSA_MAX 8192

struct public_key;

/* Makes an RSA key from its modulus and its exponent, both big-endian.  ERR_INVALID_INPUT for
 * another length than the bits above, or for an exponent that is even or below 3; ERR_NO_MEMORY.
 * The caller frees *ret. */
enum err public_key_rsa(struct span modulus, struct span exponent, struct public_key **ret);
/* Makes a key of the curve P-256 from the coordinates of its point, 32 bytes each.
 * ERR_INVALID_INPUT if the point is not on the curve; ERR_NO_MEMORY.  The caller frees *ret. */
enum err public_key_p256(struct span x, struct span y, struct public_key **ret);
/* NULL is allowed. */
void public_key_free(struct public_key *k);

/* Returns ERR_OK if the private key of k signed the text: an RSA key with PKCS #1 v1.5, a key of
 * P-256 with ECDSA and the signature as two numbers of 32 bytes; SHA-256 with both.  Else
 * ERR_AUTH_FAILED, or ERR_NO_MEMORY.  Several threads may use one key. */
enum err public_key_verify(const struct public_key *k, struct span text, struct span signature);

#endif
