/* SPDX-License-Identifier: MIT
 * Public keys by OpenSSL's EVP interface, which allocates memory.  No failure leaves anything in
 * OpenSSL's queue of errors, which would grow. */
#include "base/public_key.h"

#include "base/compiler.h"

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <stdlib.h>
#include <string.h>

#define COORDINATE_BYTES 32
#define EXPONENT_BYTES_MAX 8
#define DER_MAX 80 /* bytes of an ECDSA signature of P-256 */

struct public_key {
	EVP_PKEY *evp;
	bool curve; /* P-256; else RSA */
};

/* ---- making ---- */

/* Empties OpenSSL's queue of errors. */
static bool memory_was_out(void)
{
	bool out = false;
	for (unsigned long e; (e = ERR_get_error()) != 0;)
		out = out || ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE;
	return out;
}

static enum err make(EVP_PKEY_CTX *ctx, OSSL_PARAM *params, bool curve, struct public_key **ret)
{
	struct public_key *k = calloc(1, sizeof(*k));
	if (k == NULL || ctx == NULL || params == NULL) {
		free(k);
		return ERR_NO_MEMORY;
	}
	k->curve = curve;
	bool ok = EVP_PKEY_fromdata_init(ctx) == 1 &&
		EVP_PKEY_fromdata(ctx, &k->evp, EVP_PKEY_PUBLIC_KEY, params) == 1;
	if (!ok) {
		public_key_free(k);
		return memory_was_out() ? ERR_NO_MEMORY : ERR_INVALID_INPUT;
	}
	*ret = k;
	return ERR_OK;
}

static bool valid_rsa(const BIGNUM *n, const BIGNUM *e)
{
	int bits = BN_num_bits(n);
	return bits >= PUBLIC_KEY_RSA_MIN && bits <= PUBLIC_KEY_RSA_MAX && BN_is_odd(n) &&
		BN_is_odd(e) && !BN_is_one(e);
}

enum err public_key_rsa(struct span modulus, struct span exponent, struct public_key **ret)
{
	if (modulus.n > PUBLIC_KEY_RSA_MAX / 8 || exponent.n > EXPONENT_BYTES_MAX)
		return ERR_INVALID_INPUT;
	BIGNUM *n = BN_bin2bn((const unsigned char *)modulus.p, (int)modulus.n, NULL);
	BIGNUM *e = BN_bin2bn((const unsigned char *)exponent.p, (int)exponent.n, NULL);
	OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
	enum err code = n == NULL || e == NULL || b == NULL ? ERR_NO_MEMORY
		: valid_rsa(n, e)                           ? ERR_OK
							    : ERR_INVALID_INPUT;
	if (code == ERR_OK &&
		(OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, n) != 1 ||
			OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, e) != 1))
		code = ERR_NO_MEMORY;
	if (code == ERR_OK) {
		OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(b);
		EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
		code = make(ctx, params, false, ret);
		EVP_PKEY_CTX_free(ctx);
		OSSL_PARAM_free(params);
	}
	OSSL_PARAM_BLD_free(b);
	BN_free(n);
	BN_free(e);
	ERR_clear_error();
	return code;
}

enum err public_key_p256(struct span x, struct span y, struct public_key **ret)
{
	char group[] = "prime256v1";
	unsigned char point[1 + 2 * COORDINATE_BYTES] = { 4 }; /* uncompressed */
	/* RFC 7518 wants all bytes; some issuers leave zeros in front out. */
	if (x.n == 0 || x.n > COORDINATE_BYTES || y.n == 0 || y.n > COORDINATE_BYTES)
		return ERR_INVALID_INPUT;
	memcpy(point + 1 + COORDINATE_BYTES - x.n, x.p, x.n);
	memcpy(point + 1 + 2 * COORDINATE_BYTES - y.n, y.p, y.n);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
		OSSL_PARAM_construct_end(),
	};
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	enum err e = make(ctx, params, true, ret);
	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return e;
}

void public_key_free(struct public_key *k)
{
	if (k == NULL)
		return;
	EVP_PKEY_free(k->evp);
	free(k);
}

/* ---- checking ---- */

/* Writes the two numbers in the form that OpenSSL reads.  Returns the length, 0 on an error. */
static size_t to_der(struct span signature, unsigned char out[DER_MAX])
{
	const unsigned char *p = (const unsigned char *)signature.p;
	if (signature.n != 2 * (size_t)COORDINATE_BYTES)
		return 0;
	ECDSA_SIG *sig = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(p, COORDINATE_BYTES, NULL);
	BIGNUM *s = BN_bin2bn(p + COORDINATE_BYTES, COORDINATE_BYTES, NULL);
	int n = -1;
	if (sig != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(sig, r, s) == 1) {
		r = s = NULL; /* sig owns them */
		n = i2d_ECDSA_SIG(sig, NULL);
		if (n > 0 && n <= DER_MAX)
			n = i2d_ECDSA_SIG(sig, &out);
		else
			n = -1;
	}
	BN_free(r);
	BN_free(s);
	ECDSA_SIG_free(sig);
	return n > 0 ? (size_t)n : 0;
}

enum err public_key_verify(const struct public_key *k, struct span text, struct span signature)
{
	unsigned char der[DER_MAX];
	struct span sig = k->curve ? span_make(der, to_der(signature, der)) : signature;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx != NULL && sig.n > 0 &&
		EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, k->evp) == 1 &&
		EVP_DigestVerify(ctx, (const unsigned char *)sig.p, sig.n,
			(const unsigned char *)text.p, text.n) == 1;
	enum err e = ok                           ? ERR_OK
		: ctx == NULL || memory_was_out() ? ERR_NO_MEMORY
						  : ERR_AUTH_FAILED;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return e;
}
