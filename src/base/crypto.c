/* SPDX-License-Identifier: MIT
 * Digests and random bytes; base64 and base32.
 *
 * - This file encodes base64 itself: OpenSSL's decoder accepts white space and wrong padding, which
 *   account keys and Edm.Binary must not have.
 * - It uses OpenSSL's low-level digests, whose state is on the stack.  The EVP interface allocates
 *   memory for each digest, so a signature check could fail when memory is out.
 * - It builds HMAC from two digests for the same reason.
 * - Random bytes come from the kernel: OpenSSL's generator allocates memory in each thread. */
#define OPENSSL_SUPPRESS_DEPRECATED /* the low-level digests */
#include "base/crypto.h"

#include "base/compiler.h"

#include <openssl/crypto.h>
#include <openssl/md5.h>
#include <openssl/sha.h>

#include <string.h>
#include <sys/random.h>

#define SHA256_BLOCK 64
#define SHA256_BYTES 32

/* Cannot fail: ctx is local and needs no memory. */
static void digest(struct span head, struct span text, uint8_t out[SHA256_BYTES])
{
	SHA256_CTX ctx;

	BUG_ON(SHA256_Init(&ctx) != 1 || SHA256_Update(&ctx, head.p, head.n) != 1 ||
		SHA256_Update(&ctx, text.p, text.n) != 1 || SHA256_Final(out, &ctx) != 1);
	OPENSSL_cleanse(&ctx, sizeof(ctx));
}

void crypto_sha256(struct span s, uint8_t out[32])
{
	digest((struct span){ 0 }, s, out);
}

void crypto_md5(struct span s, uint8_t out[16])
{
	MD5_CTX ctx;

	BUG_ON(MD5_Init(&ctx) != 1 || MD5_Update(&ctx, s.p, s.n) != 1 || MD5_Final(out, &ctx) != 1);
}

_Static_assert(sizeof(MD5_CTX) <= sizeof(struct crypto_md5), "OpenSSL's state fits into ours");

static MD5_CTX *md5_of(struct crypto_md5 *m)
{
	return (MD5_CTX *)(void *)m->state;
}

void crypto_md5_begin(struct crypto_md5 *m)
{
	BUG_ON(MD5_Init(md5_of(m)) != 1);
}

void crypto_md5_add(struct crypto_md5 *m, struct span s)
{
	BUG_ON(MD5_Update(md5_of(m), s.p, s.n) != 1);
}

void crypto_md5_end(struct crypto_md5 *m, uint8_t out[16])
{
	BUG_ON(MD5_Final(out, md5_of(m)) != 1);
}

/* Hashes the key, each byte XORed with mask, and the text. */
static void digest_keyed(const unsigned char key[SHA256_BLOCK], unsigned char mask,
	struct span text, uint8_t out[SHA256_BYTES])
{
	unsigned char block[SHA256_BLOCK];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = key[i] ^ mask;
	digest(span_make(block, sizeof(block)), text, out);
	explicit_bzero(block, sizeof(block));
}

void crypto_hmac_sha256(struct span key, struct span text, uint8_t out[32])
{
	unsigned char padded[SHA256_BLOCK] = { 0 };
	uint8_t inner[SHA256_BYTES];

	if (key.n > sizeof(padded))
		crypto_sha256(key, padded);
	else if (key.n > 0)
		memcpy(padded, key.p, key.n);
	digest_keyed(padded, 0x36, text, inner);
	digest_keyed(padded, 0x5c, span_make(inner, sizeof(inner)), out);
	explicit_bzero(padded, sizeof(padded));
	explicit_bzero(inner, sizeof(inner));
}

bool crypto_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

void crypto_random(void *out, size_t n)
{
	/* The kernel returns up to 256 bytes at once and is not interrupted. */
	BUG_ON(n > 256 || getrandom(out, n, 0) != (ssize_t)n);
}

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Encodes n bytes, 1 to 3. */
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

/* Returns -1 for a character outside the alphabet.  A table is faster here than branches, which the
 * CPU could not predict. */
static int base64_value(char c)
{
	/* Values of the characters from ' ' on, 16 a line. */
	/* clang-format off */
	static const signed char values[] = {
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, -1, -1, 63,
		52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
		-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
		15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1,
		-1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
		41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
	};
	/* clang-format on */
	size_t at = (size_t)(unsigned char)c - ' ';

	return at < sizeof(values) ? values[at] : -1;
}

/* Returns how many padding characters end the text: 0 to 2. */
static size_t padding(struct span text)
{
	if (text.n == 0 || text.p[text.n - 1] != '=')
		return 0;
	return text.p[text.n - 2] == '=' ? 2 : 1;
}

/* Decodes the first `digits` characters, 2 to 4.  Unused bits must be 0. */
static bool take_quad(const char *p, size_t digits, char *out)
{
	uint32_t v = 0;
	int any = 0;

	for (size_t i = 0; i < digits; i++) {
		int d = base64_value(p[i]);
		any |= d;
		v = v << 6 | (uint32_t)d;
	}
	v <<= 6 * (4 - digits);
	if (any < 0 || (v & (0xffffffu >> 8 * (digits - 1))) != 0)
		return false;
	for (size_t i = 0; i + 1 < digits; i++)
		out[i] = (char)(v >> (16 - 8 * i));
	return true;
}

/* Writes as many bytes as decoded_size() returned. */
static bool decode(struct span text, char *out)
{
	size_t pad = padding(text);

	for (size_t i = 0; i < text.n; i += 4, out += 3)
		if (!take_quad(text.p + i, i + 4 == text.n ? 4 - pad : 4, out))
			return false;
	return true;
}

/* Returns false if no base64 text has this length. */
static bool decoded_size(struct span text, size_t *ret)
{
	*ret = text.n / 4 * 3 - (text.n % 4 == 0 ? padding(text) : 0);
	return text.n % 4 == 0;
}

bool base64_decode(struct span text, struct buf *out)
{
	size_t n;

	if (!decoded_size(text, &n) || !buf_reserve(out, n))
		return false;
	if (n == 0)
		return true;
	bool ok = decode(text, out->data + out->len);
	out->len += ok ? n : 0;
	out->data[out->len] = '\0';
	return ok;
}

bool base64_decode_exact(struct span text, void *out, size_t n)
{
	size_t size;

	return decoded_size(text, &size) && size == n && decode(text, out);
}

/* Writes up to four characters of base64url as base64 with padding. */
static size_t to_base64(struct span text, char quad[4])
{
	size_t n = text.n < 4 ? text.n : 4;

	for (size_t i = 0; i < 4; i++) {
		char c = i < n ? text.p[i] : '=';
		/* Characters of the other alphabet become ones of neither. */
		quad[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c == '+' || c == '/' ? ' ' : c);
	}
	return n;
}

bool base64url_decode(struct span text, struct buf *out)
{
	size_t n = text.n / 4 * 3 + (text.n % 4 > 1 ? text.n % 4 - 1 : 0);

	if (text.n % 4 == 1 || !buf_reserve(out, n))
		return false;
	for (size_t i = 0, at = out->len; i < text.n; i += 4, at += 3) {
		char quad[4];
		size_t digits = to_base64(span_make(text.p + i, text.n - i), quad);
		if (!take_quad(quad, digits, out->data + at))
			return false;
	}
	out->len += n;
	out->data[out->len] = '\0';
	return true;
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
