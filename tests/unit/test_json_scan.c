/* SPDX-License-Identifier: MIT
 * codec/json_scan.h.  The documents here are tried byte by byte: every cut, every
 * changed byte, every split into two pieces. */
#include "check.h"
#include "codec/json_scan.h"

static const char *const documents[] = {
	"{}",
	" \t\r\n{ \n } \n",
	"{\"a\":1}",
	"{\"a\":-0,\"b\":0.5,\"c\":1e5,\"d\":-12.25E-7,\"e\":100}",
	"{ \"t\" : true , \"f\":false,\"n\":null }\n",
	"{\"s\":\"\",\"\":\"x\",\"esc\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uFFFF\"}",
	"{\"pair\":\"\\ud83d\\uDE00\",\"\\u0061b\":\"12345678901234567890\"}",
	"{\"utf\":\"\xc3\xa9\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"}",
};

struct outcome {
	enum json_scan_result result;
	size_t members, bad_at;
	const char *why;
};

static void go_on(struct json_scan *s, struct span text, struct outcome *o)
{
	struct json_member m;

	while ((o->result = json_scan_next(s, text, &m)) == JSON_SCAN_MEMBER)
		o->members++;
	o->bad_at = s->bad_at;
	o->why = s->why;
}

/* From memory of exactly this size, so that a sanitizer sees a read behind it. */
static struct outcome scan(const char *p, size_t n)
{
	char exact[512];
	struct json_scan s = { 0 };
	struct outcome o = { .members = 0 };
	size_t start = sizeof(exact) - n;

	memcpy(exact + start, p, n);
	go_on(&s, span_make(exact + start, n), &o);
	return o;
}

static struct outcome scan_text(const char *text)
{
	return scan(text, strlen(text));
}

static void is_bad(const char *text, size_t at)
{
	struct outcome o = scan_text(text);

	if (o.result != JSON_SCAN_BAD || o.bad_at != at) {
		printf("# %s: result %d, bad at %zu\n", text, (int)o.result, o.bad_at);
		check_fail(__FILE__, __LINE__, "not bad at the right byte");
	}
	CHECK(o.result != JSON_SCAN_BAD || o.why != NULL);
}

static size_t object_end(const char *text)
{
	return (size_t)(strrchr(text, '}') - text) + 1;
}

TEST(whole_documents_end)
{
	static const size_t members[] = { 0, 0, 1, 5, 3, 3, 2, 1 };

	for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
		struct outcome o = scan_text(documents[i]);
		CHECK_EQ_INT(o.result, JSON_SCAN_END);
		CHECK_EQ_INT(o.members, members[i]);
	}
}

TEST(every_strict_prefix_wants_more)
{
	for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
		size_t end = object_end(documents[i]);
		for (size_t n = 0; n < end; n++)
			CHECK_EQ_INT(scan(documents[i], n).result, JSON_SCAN_MORE);
		for (size_t n = end; n <= strlen(documents[i]); n++)
			CHECK_EQ_INT(scan(documents[i], n).result, JSON_SCAN_END);
	}
}

/* All before the byte to blame is the beginning of some document, with it no more. */
static void check_changed(const char *text, size_t n, size_t changed)
{
	struct outcome o = scan(text, n);

	if (o.result != JSON_SCAN_BAD)
		return;
	CHECK(o.bad_at >= changed && o.bad_at < n);
	CHECK(scan(text, o.bad_at).result != JSON_SCAN_BAD);
	CHECK_EQ_INT(scan(text, o.bad_at + 1).result, JSON_SCAN_BAD);
	CHECK_EQ_INT(scan(text, o.bad_at + 1).bad_at, o.bad_at);
}

TEST(a_changed_byte_is_blamed_where_it_becomes_impossible)
{
	for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
		size_t n = strlen(documents[i]);
		char text[256];
		memcpy(text, documents[i], n);
		for (size_t k = 0; k < n; k++) {
			for (int b = 0; b < 256; b++) {
				text[k] = (char)b;
				check_changed(text, n, k);
			}
			text[k] = documents[i][k];
		}
	}
}

TEST(pieces_give_the_same_answer_as_the_whole)
{
	static const char *const more[] = { "{\"a\":1,,}", "{\"a\":\"\\ud83dx\"}", "{} x",
		"{\"a\":01}", "{\"a\":tru}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":1 \"b\"" };

	for (size_t i = 0; i < ARRAY_LEN(documents) + ARRAY_LEN(more); i++) {
		const char *text =
			i < ARRAY_LEN(documents) ? documents[i] : more[i - ARRAY_LEN(documents)];
		struct outcome whole = scan_text(text);
		for (size_t cut = 0; cut <= strlen(text); cut++) {
			struct json_scan s = { 0 };
			struct outcome o = { .members = 0 };
			go_on(&s, span_make(text, cut), &o);
			go_on(&s, span_of(text), &o);
			CHECK_EQ_INT(o.result, whole.result);
			CHECK_EQ_INT(o.members, whole.members);
			CHECK_EQ_INT(o.bad_at, whole.bad_at);
		}
		struct json_scan s = { 0 };
		struct outcome o = { .members = 0 };
		for (size_t n = 0; n <= strlen(text); n++)
			go_on(&s, span_make(text, n), &o);
		CHECK_EQ_INT(o.result, whole.result);
		CHECK_EQ_INT(o.members, whole.members);
	}
}

TEST(after_the_end_only_white_space_may_come)
{
	struct json_scan s = { 0 };
	struct outcome o = { .members = 0 };

	go_on(&s, SPAN_LIT("{}"), &o);
	CHECK_EQ_INT(o.result, JSON_SCAN_END);
	go_on(&s, SPAN_LIT("{} \r\n\t"), &o);
	CHECK_EQ_INT(o.result, JSON_SCAN_END);
	go_on(&s, SPAN_LIT("{} \r\n\t{"), &o);
	CHECK_EQ_INT(o.result, JSON_SCAN_BAD);
	CHECK_EQ_INT(o.bad_at, 6);
	go_on(&s, SPAN_LIT("{} \r\n\t{}"), &o);
	CHECK_EQ_INT(o.result, JSON_SCAN_BAD);
}

TEST(members_have_their_places)
{
	const char *text = "{ \"n\\u0061\" : \"v\\n\", \"b\":-1.5 }";
	struct json_scan s = { 0 };
	struct json_member m;

	REQUIRE(json_scan_next(&s, span_of(text), &m) == JSON_SCAN_MEMBER);
	CHECK(span_is(m.name, "n\\u0061"));
	CHECK(m.name_escaped && m.value_escaped);
	CHECK(span_is(m.value, "v\\n"));
	CHECK_EQ_INT(m.token, JSON_TOKEN_STRING);
	CHECK_EQ_INT(m.offset, 2);
	CHECK_EQ_INT(m.value_offset, 14);
	REQUIRE(json_scan_next(&s, span_of(text), &m) == JSON_SCAN_MEMBER);
	CHECK(!m.name_escaped && !m.value_escaped);
	CHECK(span_is(m.value, "-1.5"));
	CHECK_EQ_INT(m.token, JSON_TOKEN_NUMBER);
	CHECK_EQ_INT(m.value_offset, 25);
}

TEST(the_first_impossible_byte_is_named)
{
	is_bad("x", 0);
	is_bad("[1]", 0);
	is_bad("\xef\xbb\xbf{}", 0);
	is_bad("  \"a\"", 2);
	is_bad("{a", 1);
	is_bad("{,", 1);
	is_bad("{\"a\":1,}", 7);
	is_bad("{\"a\" 1", 5);
	is_bad("{\"a\":}", 5);
	is_bad("{\"a\":'", 5);
	is_bad("{\"a\":+1", 5);
	is_bad("{\"a\":.5", 5);
	is_bad("{\"a\":-x", 6);
	is_bad("{\"a\":01", 6);
	is_bad("{\"a\":-01", 7);
	is_bad("{\"a\":1.}", 7);
	is_bad("{\"a\":1e}", 7);
	is_bad("{\"a\":1e+}", 8);
	is_bad("{\"a\":1x", 6);
	is_bad("{\"a\":0x1", 6);
	is_bad("{\"a\":True", 5);
	is_bad("{\"a\":trux", 8);
	is_bad("{\"a\":truex", 9);
	is_bad("{\"a\":nulL", 8);
	is_bad("{\"a\":NaN", 5);
	is_bad("{\"a\":1}x", 7);
	is_bad("{\"a\":1}}", 7);
	is_bad("{\"a\":1 \"b\"", 7);
	is_bad("{\"a\":\"\n", 6);
	is_bad("{\"a\":\"\x1f", 6);
	is_bad("{\"a\":\"\\x", 7);
	is_bad("{\"a\":\"\\u12g", 10);
	is_bad("{\"a\":\"\\udc", 9);
	is_bad("{\"a\":\"\\uD800x", 12);
	is_bad("{\"a\":\"\\ud800\\n", 13);
	is_bad("{\"a\":\"\\ud800\\ue", 14);
	is_bad("{\"a\":\"\\ud800\\ud8", 15);
	is_bad("{\"a\":\"\\ud800\"", 12);
	is_bad("{/**/}", 1);
}

TEST(bad_utf8_and_nul_are_named)
{
	struct outcome o = scan("{\"a\":\"\0\"}", 9);

	CHECK_EQ_INT(o.result, JSON_SCAN_BAD);
	CHECK_EQ_INT(o.bad_at, 6);
	CHECK_EQ_INT(scan("{\0}", 3).result, JSON_SCAN_BAD);
	CHECK_EQ_INT(scan("{}\0", 3).result, JSON_SCAN_BAD);
	is_bad("{\"a\":\"\x80", 6);
	is_bad("{\"a\":\"\xc0", 6);
	is_bad("{\"a\":\"\xc1", 6);
	is_bad("{\"a\":\"\xf5", 6);
	is_bad("{\"a\":\"\xe0\x9f", 7);
	is_bad("{\"a\":\"\xed\xa0", 7);
	is_bad("{\"a\":\"\xf0\x8f", 7);
	is_bad("{\"a\":\"\xf4\x90", 7);
	is_bad("{\"a\":\"\xc3\"", 7);
	is_bad("{\"a\":\"\xe2\x82\"", 8);
	is_bad("{\"\xff", 2);
}

TEST(nesting_is_refused_at_its_first_byte)
{
	is_bad("{\"a\":{", 5);
	is_bad("{\"a\": [1]}", 6);
	CHECK_EQ_STR(scan_text("{\"a\":{").why, "a property value cannot be an object or array");
	CHECK_EQ_STR(scan_text("{\"a\":[").why, "a property value cannot be an object or array");
}

TEST(special_bytes_are_seen_at_every_distance)
{
	for (size_t fill = 0; fill < 40; fill++) {
		static const char specials[] = { '"', '\\', '\x1f', '\0', '\x80', '\xff' };
		for (size_t k = 0; k < sizeof(specials); k++) {
			char text[64];
			memcpy(text, "{\"", 2);
			memset(text + 2, 0x7f, sizeof(text) - 2);
			text[2 + fill] = specials[k];
			text[3 + fill] = 'x';
			struct outcome o = scan(text, fill + 4);
			CHECK_EQ_INT(o.result, JSON_SCAN_BAD);
			CHECK_EQ_INT(o.bad_at, fill + 2 + (k < 2));
		}
	}
}

TEST(escapes_are_resolved)
{
	char out[64];
	size_t n = json_unescape(
		SPAN_LIT("a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20AC\\uD83d\\ude00z"), out);

	CHECK_EQ_INT(n, 20);
	CHECK(memcmp(out, "a\"\\/\b\f\n\r\t\0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", 20) == 0);
	CHECK_EQ_INT(json_unescape(SPAN_LIT(""), out), 0);
}

TEST(escapes_above_the_surrogates_are_characters)
{
	char out[16];

	CHECK_EQ_INT(json_unescape(SPAN_LIT("\\ue000\\ufffd"), out), 6);
	CHECK(memcmp(out, "\xee\x80\x80\xef\xbf\xbd", 6) == 0);
}

RUN_TESTS(T(whole_documents_end), T(every_strict_prefix_wants_more),
	T(a_changed_byte_is_blamed_where_it_becomes_impossible),
	T(pieces_give_the_same_answer_as_the_whole), T(after_the_end_only_white_space_may_come),
	T(members_have_their_places), T(the_first_impossible_byte_is_named),
	T(bad_utf8_and_nul_are_named), T(nesting_is_refused_at_its_first_byte),
	T(special_bytes_are_seen_at_every_distance), T(escapes_are_resolved),
	T(escapes_above_the_surrogates_are_characters))
