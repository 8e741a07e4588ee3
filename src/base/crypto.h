/* SPDX-License-Identifier: MIT
 * The only user of OpenSSL, and the encodings that go with it. */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include "base/buf.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

void crypto_sha256(struct span s, uint8_t out[32]);
/* HMAC-SHA256 (RFC 2104); a key of any length. */
void crypto_hmac_sha256(struct span key, struct span text, uint8_t out[32]);
/* For Content-MD5 only. */
void crypto_md5(struct span s, uint8_t out[16]);
/* In a time that depends on n alone: for signatures. */
bool crypto_equal(const void *a, const void *b, size_t n);
/* Cryptographic random bytes, 256 at most; stops the program if the system has none. */
void crypto_random(void *out, size_t n);

/* RFC 4648 with padding. */
void base64_encode(struct span bytes, struct buf *out);
/* Strict: standard alphabet, right padding, no white space; false otherwise. */
bool base64_decode(struct span text, struct buf *out);
/* The same for what must be n bytes, no more and no fewer. */
bool base64_decode_exact(struct span text, void *out, size_t n);

#define BASE32_SHA256_LEN 52
/* RFC 4648 alphabet A-Z2-7 without padding; no NUL is written. */
void base32_sha256(const uint8_t digest[32], char out[BASE32_SHA256_LEN]);

#endif
