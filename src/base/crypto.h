/* SPDX-License-Identifier: MIT
 * Digests, HMAC, random bytes, base64 and base32.  Public keys are in public_key.h. */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* SHA-256 of s. */
void crypto_sha256(struct span s, uint8_t out[32]);
/* HMAC-SHA256 (RFC 2104).  The key may have any length. */
void crypto_hmac_sha256(struct span key, struct span text, uint8_t out[32]);
/* MD5.  Use it for Content-MD5 only. */
void crypto_md5(struct span s, uint8_t out[16]);
/* The same over several parts. */
struct crypto_md5 {
	uint64_t state[16];
};
void crypto_md5_begin(struct crypto_md5 *m);
void crypto_md5_add(struct crypto_md5 *m, struct span s);
void crypto_md5_end(struct crypto_md5 *m, uint8_t out[16]);
/* Compares n bytes in a time that depends only on n.  Use it for signatures. */
bool crypto_equal(const void *a, const void *b, size_t n);
/* Fills out with n cryptographic random bytes, 256 at most.  Aborts if the kernel has none. */
void crypto_random(void *out, size_t n);

/* Appends the base64 text with padding (RFC 4648). */
void base64_encode(struct span bytes, struct buf *out);
/* Appends the decoded bytes.  Returns false for white space, wrong padding and other alphabets.
 * Also false if out has no room. */
bool base64_decode(struct span text, struct buf *out);
/* Decodes as base64_decode().  Returns false unless the text encodes exactly n bytes. */
bool base64_decode_exact(struct span text, void *out, size_t n);

/* Appends the bytes of base64url text, which has no padding (RFC 7515).  Returns false as
 * base64_decode(). */
bool base64url_decode(struct span text, struct buf *out);

#define BASE32_SHA256_LEN 52
/* Writes the base32 text (RFC 4648, A-Z2-7) without padding and without a NUL. */
void base32_sha256(const uint8_t digest[32], char out[BASE32_SHA256_LEN]);

#endif
