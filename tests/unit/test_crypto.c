/* SPDX-License-Identifier: MIT
 * base/crypto.h, against published vectors (FIPS 180-4, RFC 4648). */
#include "base/crypto.h"
#include "check.h"

static void hex(const uint8_t *p, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", p[i]);
}

TEST(sha256_gives_the_published_digests)
{
	uint8_t d[32];
	char text[65];

	crypto_sha256(SPAN_LIT("abc"), d);
	hex(d, 32, text);
	CHECK_EQ_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	crypto_sha256(span_make(NULL, 0), d);
	hex(d, 32, text);
	CHECK_EQ_STR(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(base64_matches_the_rfc_both_ways)
{
	static const char *const rows[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = BUF_INIT(100), back = BUF_INIT(100);
		base64_encode(span_of(rows[i][0]), &b);
		CHECK(span_is(buf_span(&b), rows[i][1]));
		CHECK(base64_decode(span_of(rows[i][1]), &back));
		CHECK(span_is(buf_span(&back), rows[i][0]));
		buf_fini(&b);
		buf_fini(&back);
	}
}

TEST(base64_of_every_byte_comes_back)
{
	unsigned char bytes[256];
	struct buf b = BUF_INIT(1000), back = BUF_INIT(1000);

	for (size_t i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	base64_encode(span_make(bytes, 256), &b);
	CHECK(base64_decode(buf_span(&b), &back));
	CHECK(span_eq(buf_span(&back), span_make(bytes, 256)));
	buf_fini(&b);
	buf_fini(&back);
}

TEST(other_spellings_of_base64_are_refused)
{
	static const char *const bad[] = { "Z", "Zg", "Zg=", "Zg===", "====", "=",
		"Z===", "Zm9v=", "Zm 9v", "Zm9v\n", "Zm-_",
		"Zg==Zg==", "Zh==", "Zm9=", "Z=g=", "Zm8=Zm8=" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b = BUF_INIT(100);
		if (base64_decode(span_of(bad[i]), &b))
			check_fail(__FILE__, __LINE__, bad[i]);
		CHECK(buf_ok(&b));
		buf_fini(&b);
	}
}

TEST(base64_respects_the_buffers_limit)
{
	struct buf b = BUF_INIT(2);

	CHECK(!base64_decode(SPAN_LIT("Zm9v"), &b));
	CHECK(!buf_ok(&b));
	buf_fini(&b);
}

TEST(base32_of_a_digest_is_right)
{
	/* printf abc | sha256sum | xxd -r -p | base32, without padding */
	uint8_t d[32];
	char out[BASE32_SHA256_LEN + 1] = { 0 };

	crypto_sha256(SPAN_LIT("abc"), d);
	base32_sha256(d, out);
	CHECK_EQ_STR(out, "XJ4BNP4PAHH6UQKBIDPF3LRCEOYAGYNDSYLXVHFUCD7WD4QACWWQ");
	memset(d, 0xff, sizeof(d));
	base32_sha256(d, out);
	CHECK_EQ_STR(out, "777777777777777777777777777777777777777777777777777Q");
}

TEST(random_bytes_differ)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	crypto_random(a, sizeof(a));
	crypto_random(b, sizeof(b));
	CHECK(memcmp(a, b, sizeof(a)) != 0);
}

RUN_TESTS(T(sha256_gives_the_published_digests), T(base64_matches_the_rfc_both_ways),
	T(base64_of_every_byte_comes_back), T(other_spellings_of_base64_are_refused),
	T(base64_respects_the_buffers_limit), T(base32_of_a_digest_is_right),
	T(random_bytes_differ))
