/* SPDX-License-Identifier: MIT
 * SHA-256 and random bytes from OpenSSL, base64 and base32 by hand: OpenSSL's own base64
 * forgives white space and wrong padding, which account keys and Edm.Binary must not. */
#include "base/crypto.h"

#include "base/compiler.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <limits.h>

void crypto_sha256(struct span s, uint8_t out[32])
{
	BUG_ON(EVP_Digest(s.n > 0 ? s.p : "", s.n, out, NULL, EVP_sha256(), NULL) != 1);
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
