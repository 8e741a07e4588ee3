/* SPDX-License-Identifier: MIT
 * Makes keys, sets of public keys and signed tokens for tests, by OpenSSL. */
#ifndef UNIT_JWT_MAKER_H
#define UNIT_JWT_MAKER_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/crypto.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <stdlib.h>
#include <string.h>

/* Appends base64url without padding. */
static inline void jwt_encode(struct span bytes, struct buf *out)
{
	struct buf text = BUF_INIT(1 << 20);
	base64_encode(bytes, &text);
	for (size_t i = 0; i < text.len && text.data[i] != '='; i++)
		buf_add_char(out,
			text.data[i] == '+'           ? '-'
				: text.data[i] == '/' ? '_'
						      : text.data[i]);
	buf_fini(&text);
}

static inline void jwt_add_number(
	EVP_PKEY *key, const char *param, int bytes, const char *name, struct buf *out)
{
	unsigned char text[1024];
	BIGNUM *n = NULL;
	BUG_ON(EVP_PKEY_get_bn_param(key, param, &n) != 1);
	int len = bytes != 0 ? BN_bn2binpad(n, text, bytes) : BN_bn2bin(n, text);
	buf_addf(out, ",\"%s\":\"", name);
	jwt_encode(span_make(text, (size_t)len), out);
	buf_add_str(out, "\"");
	BN_free(n);
}

/* Appends the public key as an object; more: its other members, such as ",\"use\":\"sig\"". */
static inline void jwt_add_key(EVP_PKEY *key, const char *kid, const char *more, struct buf *out)
{
	bool rsa = EVP_PKEY_is_a(key, "RSA") == 1;
	buf_addf(out, "{\"kty\":\"%s\",\"kid\":\"%s\"%s", rsa ? "RSA" : "EC", kid, more);
	if (rsa) {
		jwt_add_number(key, OSSL_PKEY_PARAM_RSA_N, 0, "n", out);
		jwt_add_number(key, OSSL_PKEY_PARAM_RSA_E, 0, "e", out);
	} else {
		buf_add_str(out, ",\"crv\":\"P-256\"");
		jwt_add_number(key, OSSL_PKEY_PARAM_EC_PUB_X, 32, "x", out);
		jwt_add_number(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32, "y", out);
	}
	buf_add_str(out, "}");
}

static inline void jwt_add_unsigned(const char *header, const char *claims, struct buf *out)
{
	jwt_encode(span_of(header), out);
	buf_add_char(out, '.');
	jwt_encode(span_of(claims), out);
	buf_add_char(out, '.');
}

/* Rewrites OpenSSL's signature as two numbers of 32 bytes. */
static inline size_t jwt_flat(unsigned char *signature, size_t n)
{
	const unsigned char *at = signature;
	ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long)n);
	BUG_ON(sig == NULL);
	BUG_ON(BN_bn2binpad(ECDSA_SIG_get0_r(sig), signature, 32) != 32 ||
		BN_bn2binpad(ECDSA_SIG_get0_s(sig), signature + 32, 32) != 32);
	ECDSA_SIG_free(sig);
	return 64;
}

/* Appends the token. */
static inline void jwt_sign(EVP_PKEY *key, const char *header, const char *claims, struct buf *out)
{
	unsigned char signature[1024];
	size_t n = sizeof(signature);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	jwt_add_unsigned(header, claims, out);
	BUG_ON(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) != 1 ||
		EVP_DigestSign(ctx, signature, &n, (unsigned char *)out->data, out->len - 1) != 1);
	EVP_MD_CTX_free(ctx);
	if (EVP_PKEY_is_a(key, "EC") == 1)
		n = jwt_flat(signature, n);
	jwt_encode(span_make(signature, n), out);
}

#endif
