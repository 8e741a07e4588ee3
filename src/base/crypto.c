/* SPDX-License-Identifier: MIT
 * Digests and random bytes from OpenSSL, base64 and base32 by hand: OpenSSL's own base64
 * forgives white space and wrong padding, which account keys and Edm.Binary must not.
 * The digests are fetched once: EVP_sha256() would look its implementation up at every
 * use, under locks that all threads share.  HMAC is made of two digests here, because
 * OpenSSL's own looks the digest up for every key. */
#include "base/crypto.h"

#include "base/compiler.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <limits.h>
#include <pthread.h>
#include <string.h>

#define SHA256_BLOCK 64
#define SHA256_BYTES 32
#define MD5_BYTES 16

/* Fetched once, never freed: read by all threads. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256, *md5;

static void fetch(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	BUG_ON(sha256 == NULL);
	md5 = EVP_MD_fetch(NULL, "MD5", NULL); /* none under FIPS rules */
}

static void fetched(void)
{
	BUG_ON(pthread_once(&once, fetch) != 0);
}

void crypto_sha256(struct span s, uint8_t out[32])
{
	fetched();
	BUG_ON(EVP_Digest(s.n > 0 ? s.p : "", s.n, out, NULL, sha256, NULL) != 1);
}

bool crypto_md5(struct span s, uint8_t out[16])
{
	memset(out, 0, MD5_BYTES);
	fetched();
	return md5 != NULL && EVP_Digest(s.n > 0 ? s.p : "", s.n, out, NULL, md5, NULL) == 1;
}

/* SHA-256 of the key, masked, and the text. */
static void digest_keyed(EVP_MD_CTX *ctx, const unsigned char key[SHA256_BLOCK], unsigned char mask,
	struct span text, uint8_t out[SHA256_BYTES])
{
	unsigned char block[SHA256_BLOCK];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = key[i] ^ mask;
	BUG_ON(EVP_DigestInit_ex2(ctx, sha256, NULL) != 1 ||
		EVP_DigestUpdate(ctx, block, sizeof(block)) != 1 ||
		EVP_DigestUpdate(ctx, text.n > 0 ? text.p : "", text.n) != 1 ||
		EVP_DigestFinal_ex(ctx, out, NULL) != 1);
	OPENSSL_cleanse(block, sizeof(block));
}

void crypto_hmac_sha256(struct span key, struct span text, uint8_t out[32])
{
	unsigned char padded[SHA256_BLOCK] = { 0 };
	uint8_t inner[SHA256_BYTES];

	fetched();
	if (key.n > sizeof(padded))
		crypto_sha256(key, padded);
	else if (key.n > 0)
		memcpy(padded, key.p, key.n);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	BUG_ON(ctx == NULL);
	digest_keyed(ctx, padded, 0x36, text, inner);
	digest_keyed(ctx, padded, 0x5c, span_make(inner, sizeof(inner)), out);
	EVP_MD_CTX_free(ctx);
	OPENSSL_cleanse(padded, sizeof(padded));
	OPENSSL_cleanse(inner, sizeof(inner));
}

bool crypto_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

void crypto_random(void *out, size_t n)
{
	BUG_ON(n > INT_MAX || RAND_bytes(out, (int)n) != 1);
}

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* n is 1 to 3 bytes. */
static void put_quad(const unsigned char *p, size_t n, char out[4])
{
	uint32_t v = (uint32_t)p[0] << 16;

	if (n > 1)
		v |= (uint32_t)p[1] << 8;
	if (n > 2)
		v |= p[2];
	out[0] = base64_digits[v >> 18];
	out[1] = base64_digits[v >> 12 & 63];
	out[2] = n > 1 ? base64_digits[v >> 6 & 63] : '=';
	out[3] = n > 2 ? base64_digits[v & 63] : '=';
}

void base64_encode(struct span bytes, struct buf *out)
{
	const unsigned char *p = (const unsigned char *)bytes.p;

	for (size_t i = 0; i < bytes.n; i += 3) {
		char quad[4];
		put_quad(p + i, bytes.n - i < 3 ? bytes.n - i : 3, quad);
		buf_add(out, quad, sizeof(quad));
	}
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* How many of the last quad's four characters are padding: 0 to 2. */
static size_t padding(struct span text)
{
	if (text.n == 0 || text.p[text.n - 1] != '=')
		return 0;
	return text.p[text.n - 2] == '=' ? 2 : 1;
}

/* The first `digits` (2 to 4) characters as bytes; bits that no byte takes must be 0. */
static bool take_quad(const char *p, size_t digits, struct buf *out)
{
	uint32_t v = 0;
	unsigned char bytes[3];

	for (size_t i = 0; i < 4; i++) {
		int d = i < digits ? base64_value(p[i]) : 0;
		if (d < 0)
			return false;
		v = v << 6 | (uint32_t)d;
	}
	if ((v & (0xffffffu >> 8 * (digits - 1))) != 0)
		return false;
	bytes[0] = (unsigned char)(v >> 16);
	bytes[1] = (unsigned char)(v >> 8);
	bytes[2] = (unsigned char)v;
	buf_add(out, bytes, digits - 1);
	return true;
}

bool base64_decode(struct span text, struct buf *out)
{
	size_t pad = text.n % 4 == 0 ? padding(text) : 3;

	if (pad == 3)
		return false;
	for (size_t i = 0; i < text.n; i += 4) {
		size_t digits = i + 4 == text.n ? 4 - pad : 4;
		if (!take_quad(text.p + i, digits, out))
			return false;
	}
	return buf_ok(out);
}

void base32_sha256(const uint8_t digest[32], char out[BASE32_SHA256_LEN])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	unsigned bits = 0, have = 0;
	size_t next = 0;

	for (size_t i = 0; i < BASE32_SHA256_LEN; i++) {
		if (have < 5) {
			bits = bits << 8 | (next < 32 ? digest[next] : 0u);
			next++;
			have += 8;
		}
		have -= 5;
		out[i] = digits[bits >> have & 31];
	}
}
