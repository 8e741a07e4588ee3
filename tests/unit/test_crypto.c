/* SPDX-License-Identifier: MIT
 * base/crypto.h, against published vectors (FIPS 180-4, RFC 1321, RFC 4231, RFC 4648). */
#include "base/crypto.h"
#include "check.h"

#include <pthread.h>

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

TEST(md5_gives_the_published_digests)
{
	uint8_t d[16];
	char text[33];

	crypto_md5(span_make(NULL, 0), d);
	hex(d, 16, text);
	CHECK_EQ_STR(text, "d41d8cd98f00b204e9800998ecf8427e");
	crypto_md5(SPAN_LIT("message digest"), d);
	hex(d, 16, text);
	CHECK_EQ_STR(text, "f96b697d7cb7938d525a2f31aaf161d0");
}

static void check_hmac(struct span key, struct span text, const char *want)
{
	uint8_t d[32];
	char got[65];

	crypto_hmac_sha256(key, text, d);
	hex(d, 32, got);
	CHECK_EQ_STR(got, want);
}

TEST(hmac_sha256_gives_the_published_codes)
{
	unsigned char key[131], data[50];

	memset(key, 0x0b, 20);
	check_hmac(span_make(key, 20), SPAN_LIT("Hi There"),
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	check_hmac(SPAN_LIT("Jefe"), SPAN_LIT("what do ya want for nothing?"),
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	check_hmac(span_make(key, 20), span_make(data, sizeof(data)),
		"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	/* longer than a block */
	check_hmac(span_make(key, 131),
		SPAN_LIT("Test Using Larger Than Block-Size Key - Hash Key First"),
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(hmac_sha256_takes_an_empty_key_and_an_empty_text)
{
	/* printf '' | openssl dgst -sha256 -hmac '' */
	check_hmac(span_make(NULL, 0), span_make(NULL, 0),
		"b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(a_key_of_a_whole_block_is_taken_as_it_is)
{
	unsigned char key[65] = { 0 };
	uint8_t a[32], b[32];

	memset(key, 'k', 64);
	crypto_hmac_sha256(span_make(key, 64), SPAN_LIT("x"), a);
	crypto_hmac_sha256(span_make(key, 65), SPAN_LIT("x"), b);
	CHECK(!crypto_equal(a, b, sizeof(a))); /* 65 bytes are digested first */
	crypto_hmac_sha256(span_make(key, 63), SPAN_LIT("x"), b);
	CHECK(!crypto_equal(a, b, sizeof(a)));
}

static void *sign_many(void *arg)
{
	uint8_t first[32], d[32];
	bool *same = arg;

	crypto_hmac_sha256(SPAN_LIT("key"), SPAN_LIT("text"), first);
	for (int i = 0; i < 2000 && *same; i++) {
		crypto_hmac_sha256(SPAN_LIT("key"), SPAN_LIT("text"), d);
		*same = crypto_equal(d, first, sizeof(d));
	}
	return NULL;
}

TEST(threads_sign_at_the_same_time)
{
	pthread_t threads[8];
	bool same[8];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		same[i] = true;
		REQUIRE(pthread_create(&threads[i], NULL, sign_many, &same[i]) == 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK(same[i]);
	}
}

TEST(bytes_are_equal_only_where_all_are)
{
	const char a[] = "0123456789", b[] = "0123456780", c[] = "1123456789";

	CHECK(crypto_equal(a, a, 10));
	CHECK(!crypto_equal(a, b, 10));
	CHECK(!crypto_equal(a, c, 10));
	CHECK(crypto_equal(a, b, 9));
	CHECK(crypto_equal(a, c, 0));
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

TEST(base64_of_a_given_size_is_that_size)
{
	char out[4] = "....";

	CHECK(base64_decode_exact(SPAN_LIT("Zm9v"), out, 3));
	CHECK(memcmp(out, "foo.", 4) == 0);
	CHECK(base64_decode_exact(SPAN_LIT("YmE="), out, 2));
	CHECK(memcmp(out, "bao.", 4) == 0);
	CHECK(base64_decode_exact(SPAN_LIT(""), out, 0));
	CHECK(!base64_decode_exact(SPAN_LIT("Zm9v"), out, 2));
	CHECK(!base64_decode_exact(SPAN_LIT("YmE="), out, 3));
	CHECK(!base64_decode_exact(SPAN_LIT("Zm9"), out, 2));
	CHECK(!base64_decode_exact(SPAN_LIT("Zm9="), out, 2));
	CHECK(!base64_decode_exact(SPAN_LIT("Z*9v"), out, 3));
	CHECK(memcmp(out, "bao.", 4) == 0);
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

RUN_TESTS(T(sha256_gives_the_published_digests), T(md5_gives_the_published_digests),
	T(hmac_sha256_gives_the_published_codes),
	T(hmac_sha256_takes_an_empty_key_and_an_empty_text),
	T(a_key_of_a_whole_block_is_taken_as_it_is), T(threads_sign_at_the_same_time),
	T(bytes_are_equal_only_where_all_are), T(base64_matches_the_rfc_both_ways),
	T(base64_of_every_byte_comes_back), T(other_spellings_of_base64_are_refused),
	T(base64_of_a_given_size_is_that_size), T(base64_respects_the_buffers_limit),
	T(base32_of_a_digest_is_right), T(random_bytes_differ))
