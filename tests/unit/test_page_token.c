/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "model/limits.h"
#include "query/page_token.h"

/* xorshift64*: the same run every time. */
static uint64_t dice_state;

static void dice_seed(unsigned seed)
{
	dice_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* 0 to 2^31 - 1. */
static int dice(void)
{
	dice_state ^= dice_state >> 12;
	dice_state ^= dice_state << 25;
	dice_state ^= dice_state >> 27;
	return (int)((dice_state * UINT64_C(0x2545F4914F6CDD1D)) >> 33);
}

static void check_token(struct span key, const char *token)
{
	struct buf text = BUF_INIT(1u << 16), back = BUF_INIT(1u << 16);
	page_token_encode(key, &text);
	REQUIRE(buf_ok(&text));
	if (token != NULL)
		CHECK_EQ_STR(text.data, token);
	CHECK_ERR(page_token_decode(buf_span(&text), &back, NULL), ERR_OK);
	CHECK(span_eq(buf_span(&back), key));
	buf_fini(&text);
	buf_fini(&back);
}

TEST(tokens_look_as_the_service_writes_them)
{
	check_token(SPAN_LIT("Smith"), "1!8!U21pdGg-");
	check_token(SPAN_LIT("listEntitiesTest"), "1!24!bGlzdEVudGl0aWVzVGVzdA--");
	check_token(SPAN_LIT("13"), "1!4!MTM-");
	check_token(SPAN_LIT("abc"), "1!4!YWJj");
	check_token(SPAN_LIT(""), "1!0!");
}

TEST(the_characters_that_urls_change_are_replaced)
{
	check_token(SPAN_LIT("~~~"), "1!4!fn5_");
	check_token(SPAN_LIT("a~>"), "1!4!YX4_");
	check_token(SPAN_LIT(">>>"), "1!4!Pj4_");
	check_token(SPAN_LIT("\xef\xbf\xbf"), "1!4!77_.");
	check_token(SPAN_LIT("\xef\xbf\xbf>>"), "1!8!77_.Pj4-");
	check_token(SPAN_LIT("\xf0\x90\x80\x80"), "1!8!8JCAgA--");
	check_token(SPAN_LIT("\xc3\xbf\xc3\xbf"), "1!8!w7.Dvw--");
}

TEST(every_key_comes_back_and_only_letters_for_headers_are_used)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789!_.-";
	dice_seed(1);
	for (int i = 0; i < 2000; i++) {
		char key[3 * 60];
		size_t n = 0;
		for (int left = dice() % 60; left > 0; left--) {
			static const char *const bits[] = { "a", "~", ">", " ", "\xc3\xa9",
				"\xef\xbf\xbd", "\xe2\x82\xac" };
			const char *bit = bits[(size_t)dice() % ARRAY_LEN(bits)];
			memcpy(key + n, bit, strlen(bit));
			n += strlen(bit);
		}
		check_token(span_make(key, n), NULL);
		struct buf text = BUF_INIT(1u << 16);
		page_token_encode(span_make(key, n), &text);
		REQUIRE(buf_ok(&text));
		CHECK(strspn(text.data, letters) == text.len);
		buf_fini(&text);
	}
}

TEST(the_longest_keys_come_back)
{
	char key[LIMIT_KEY_BYTES];
	memset(key, 'k', sizeof(key));
	check_token(span_make(key, LIMIT_KEY_UNITS), NULL);
	for (size_t i = 0; i < sizeof(key); i += 3)
		memcpy(key + i, "\xe2\x82\xac", 3);
	check_token(span_make(key, sizeof(key)), NULL);
}

TEST(the_empty_token_is_the_empty_key)
{
	struct buf back = BUF_INIT(100);
	CHECK_ERR(page_token_decode(SPAN_LIT(""), &back, NULL), ERR_OK);
	CHECK_EQ_INT(back.len, 0);
	buf_fini(&back);
}

static void check_refused(struct span token)
{
	struct buf back = BUF_INIT(1u << 16);
	struct err_detail detail = { 0 };
	enum err e = page_token_decode(token, &back, &detail);
	if (e != ERR_INVALID_INPUT)
		printf("# token %.*s\n", (int)token.n, token.p);
	CHECK_ERR(e, ERR_INVALID_INPUT);
	CHECK(detail.text[0] != '\0');
	buf_fini(&back);
}

TEST(what_was_not_written_here_is_refused)
{
	static const char *const tokens[] = {
		"1", "1!", "1!!", "1!8", "1!8!", "!8!U21pdGg-", "2!8!U21pdGg-", "1!7!U21pdGg-",
		"1!9!U21pdGg-", "1!08!U21pdGg-", "1!+8!U21pdGg-", "1! 8!U21pdGg-", "1!00!",
		"1!8!U21pdGg=", "1!8!U21pdG-g", "1!8!U21pdGh-", "1!8!U21pdGg- ", " 1!8!U21pdGg-",
		"1!8!U21pdGg", "1!4!fn5/", "1!4!fn5+", "1!4!fn5!", "1!4!----", "1!4!A---",
		"1!4!MTM", "1!0!-", "1!99999999999999999999999!U21pdGg-", "Smith", "1%218%21",
		"1!4!_w--", /* 0xff: not UTF-8 */
		"1!4!7aCA", /* a surrogate */
		"1!4!AA--", /* NUL: in no key */
		"1!4!YS9i", /* a/b: in no key */
	};
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
		check_refused(span_of(tokens[i]));
}

TEST(keys_that_are_too_long_are_refused)
{
	char key[4 * LIMIT_KEY_BYTES];
	memset(key, 'k', sizeof(key));
	static const size_t lengths[] = { LIMIT_KEY_UNITS + 1, LIMIT_KEY_BYTES, LIMIT_KEY_BYTES + 1,
		sizeof(key) };
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct buf text = BUF_INIT(1u << 16);
		page_token_encode(span_make(key, lengths[i]), &text);
		REQUIRE(buf_ok(&text));
		check_refused(buf_span(&text));
		buf_fini(&text);
	}
}

TEST(a_changed_letter_never_gives_a_second_spelling)
{
	char token[] = "1!8!U21pdGg-";
	for (size_t at = 0; at < sizeof(token) - 1; at++) {
		char was = token[at];
		for (int c = 0; c < 256; c++) {
			struct buf key = BUF_INIT(100), again = BUF_INIT(100);
			token[at] = (char)c;
			if (page_token_decode(span_make(token, sizeof(token) - 1), &key, NULL) ==
				ERR_OK) {
				page_token_encode(buf_span(&key), &again);
				CHECK(span_eq(
					buf_span(&again), span_make(token, sizeof(token) - 1)));
			}
			buf_fini(&key);
			buf_fini(&again);
		}
		token[at] = was;
	}
}

RUN_TESTS(T(tokens_look_as_the_service_writes_them),
	T(the_characters_that_urls_change_are_replaced),
	T(every_key_comes_back_and_only_letters_for_headers_are_used),
	T(the_longest_keys_come_back), T(the_empty_token_is_the_empty_key),
	T(what_was_not_written_here_is_refused), T(keys_that_are_too_long_are_refused),
	T(a_changed_letter_never_gives_a_second_spelling))
