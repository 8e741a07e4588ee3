/* SPDX-License-Identifier: MIT
 * codec/splicer.h and codec/document_walk.h: which documents they know, which they leave to
 * entity_json_decode(), and that both ways lead to the same.  (fuzz_entity_json.c looks for
 * a document where they do not.) */
#include "check.h"
#include "codec/document_walk.h"
#include "codec/entity_json.h"
#include "codec/splicer.h"

#include <stdlib.h>

/* What is not wanted is NULL. */
static void takes(struct splicer *s, const char *text, const char *document)
{
	struct arena a = { 0 };
	struct entity e = { 0 };
	struct spliced got;
	struct buf want = BUF_INIT(1u << 20);

	bool taken = splicer_take(s, span_of(text), &a, &got);
	if (taken != (document != NULL))
		printf("# %s\n", text);
	CHECK(taken == (document != NULL));
	if (taken && document != NULL) {
		CHECK(span_is(got.document, document));
		CHECK_ERR(entity_json_decode(span_of(text), ENTITY_JSON_FILE, &e, NULL, NULL),
			ERR_OK);
		entity_json_encode(&e, ENTITY_JSON_NEWLINE, &want);
		CHECK(span_eq(buf_span(&want), got.document));
	}
	buf_fini(&want);
	entity_fini(&e);
	arena_fini(&a);
}

/* Behind rows of other shapes, too. */
static void takes_always(const char *text, const char *document)
{
	struct splicer *s = splicer_new();

	REQUIRE(s != NULL);
	takes(s, text, document);
	takes(s, "{\"Z\":1,\"A\":2}", "{\"Z\":1,\"A\":2}\n");
	takes(s, text, document);
	takes(s, text, document);
	splicer_free(s);
}

static void takes_value(const char *value, bool known)
{
	char text[200], document[210];

	(void)snprintf(text, sizeof(text), "{\"A\":%s}", value);
	(void)snprintf(document, sizeof(document), "{\"A\":%s}\n", value);
	takes_always(text, known ? document : NULL);
}

static void takes_typed(const char *type, const char *value, bool known)
{
	char text[200], document[210];

	(void)snprintf(text, sizeof(text), "{\"A@odata.type\":\"%s\",\"A\":%s}", type, value);
	(void)snprintf(document, sizeof(document), "%s\n", text);
	takes_always(text, known ? document : NULL);
}

TEST(members_are_copied_without_keys_timestamp_nulls_and_blanks)
{
	takes_always("{}", "{}\n");
	takes_always("{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}", "{}\n");
	takes_always(
		"{\"RowKey\":\"r\",\"A\":1,\"PartitionKey\":\"\",\"B\":2}", "{\"A\":1,\"B\":2}\n");
	takes_always(" { \"A\" : 1 ,\n\"B\":\t\"x y\" } \r\n", "{\"A\":1,\"B\":\"x y\"}\n");
	takes_always("{\"A\":null,\"B\":1,\"C\":null}", "{\"B\":1}\n");
	takes_always("{\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"x\",\"A\":1}",
		"{\"A\":1}\n");
}

TEST(keys_are_told)
{
	struct splicer *s = splicer_new();
	struct arena a = { 0 };
	struct spliced got;

	REQUIRE(s != NULL);
	CHECK(splicer_take(
		s, SPAN_LIT("{\"RowKey\":\"\",\"PartitionKey\":\"\xc3\xa4\"}"), &a, &got));
	CHECK(span_is(got.pk, "\xc3\xa4") && got.rk.p != NULL && got.rk.n == 0);
	CHECK(splicer_take(s, SPAN_LIT("{\"A\":1}"), &a, &got));
	CHECK(got.pk.p == NULL && got.rk.p == NULL);
	splicer_free(s);
	arena_fini(&a);
}

TEST(values_are_known_that_the_encoder_writes_so)
{
	static const char *const known[] = { "0", "-1", "999999999", "2147483647", "-2147483648",
		"true", "false", "\"\"", "\"a\\n\\\"\\\\\\t\"", "\"\xe2\x82\xac\"", "0.0", "-0.0",
		"1.0", "0.5", "-1.25", "0.0001", "123456789012.345", "10000000000000.0" };
	static const char *const unknown[] = { "-0", "2147483648", "-2147483649", "1.50", "1e3",
		"1.5E+20", "1.00", "0.00001", "1234567890123456.5", "0.1234567890123456",
		"\"a\\/b\"", "\"\\u0041\"", "1.5e1", "[1]", "{}" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		takes_value(known[i], true);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		takes_value(unknown[i], false);
}

TEST(typed_values_are_known_in_their_one_spelling)
{
	takes_typed("Edm.Int64", "\"-9223372036854775808\"", true);
	takes_typed("Edm.Int64", "\"01\"", false);
	takes_typed("Edm.Int64", "1", false);
	takes_typed("Edm.DateTime", "\"2020-02-29T23:59:59.5Z\"", true);
	takes_typed("Edm.DateTime", "\"2020-02-29T23:59:59.50Z\"", false);
	takes_typed("Edm.DateTime", "\"2020-02-30T00:00:00Z\"", false);
	takes_typed("Edm.Guid", "\"01234567-89ab-cdef-0123-456789abcdef\"", true);
	takes_typed("Edm.Guid", "\"01234567-89AB-cdef-0123-456789abcdef\"", false);
	takes_typed("Edm.Int32", "1", false);
	takes_typed("Edm.Double", "\"NaN\"", false);
	takes_typed("Edm.Binary", "\"AAAA\"", false);
	takes_typed("Edm.What", "\"1\"", false);
	takes_always("{\"A\":\"1\",\"A@odata.type\":\"Edm.Int64\"}", NULL);
	takes_always("{\"A@odata.type\":\"Edm.Int64\",\"B\":\"1\"}", NULL);
	takes_always("{\"A@odata.type\":\"Edm.Int64\"}", NULL);
}

TEST(what_breaks_a_rule_is_never_taken)
{
	takes_always("{\"A\":1,\"A\":1}", NULL);
	takes_always("{\"A\":null,\"A\":1}", NULL);
	takes_always("{\"RowKey\":\"r\",\"RowKey\":\"r\"}", NULL);
	takes_always("{\"RowKey\":1}", NULL);
	takes_always("{\"RowKey\":\"a/b\"}", NULL);
	takes_always("{\"a b\":1}", NULL);
	takes_always("{\"\\u0041\":1}", NULL);
	takes_always("{\"odata.etag\":\"x\"}", NULL);
	takes_always("{\"A\":1", NULL);
	takes_always("{\"A\":1}x", NULL);
	takes_always("", NULL);
}

/* A document of so many properties. */
static char *many(unsigned n)
{
	struct buf b = BUF_INIT(1u << 20);

	buf_add_char(&b, '{');
	for (unsigned i = 0; i < n; i++)
		buf_addf(&b, "%s\"P%u\":1", i == 0 ? "" : ",", i);
	buf_add_char(&b, '}');
	return b.data;
}

TEST(limits_hold)
{
	struct splicer *s = splicer_new();
	struct arena a = { 0 };
	struct spliced got;
	struct buf text = BUF_INIT(1u << 20);

	REQUIRE(s != NULL);
	for (unsigned n = 252; n <= 253; n++) {
		char *row = many(n);
		CHECK(splicer_take(s, span_of(row), &a, &got) == (n == 252));
		free(row);
	}
	for (size_t n = 32768; n <= 32769; n++) {
		buf_clear(&text);
		buf_add_str(&text, "{\"A\":\"");
		for (size_t i = 0; i < n; i++)
			buf_add_char(&text, 'x');
		buf_add_str(&text, "\"}");
		CHECK(splicer_take(s, buf_span(&text), &a, &got) == (n == 32768));
	}
	buf_fini(&text);
	arena_fini(&a);
	splicer_free(s);
}

/* More names than it remembers, again and again. */
TEST(it_forgets_and_goes_on)
{
	struct splicer *s = splicer_new();
	struct arena a = { 0 };
	struct spliced got;
	char text[64];
	unsigned taken = 0;

	REQUIRE(s != NULL);
	for (unsigned i = 0; i < 3000; i++) {
		int n = snprintf(text, sizeof(text), "{\"Same\":1,\"P%u\":%u}", i, i);
		taken += splicer_take(s, span_make(text, (size_t)n), &a, &got);
		CHECK(!splicer_take(s, SPAN_LIT("{\"Same\":1,\"Same\":2}"), &a, &got));
		arena_reset(&a);
	}
	CHECK(taken >= 2990);
	arena_fini(&a);
	splicer_free(s);
}

TEST(a_walk_tells_names_and_values)
{
	static const char document[] =
		"{\"S\":\"a\\\"b\\u0001\",\"N\":-5,\"D\":1.5,\"T\":true,"
		"\"L@odata.type\":\"Edm.Int64\",\"L\":\"7\",\"E\":\"\",\"B\\\\\":0}\n";
	struct document_walk w;
	struct document_property p;
	struct arena a = { 0 };
	struct value v;

	CHECK(document_walk_begin(SPAN_LIT(document), &w));
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK_ERR(document_value(&p, &a, &v), ERR_OK);
	CHECK(span_is(p.name, "S") && v.type == EDM_STRING && span_is(v.bytes, "a\"b\x01"));
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK_ERR(document_value(&p, &a, &v), ERR_OK);
	CHECK(v.type == EDM_INT32 && v.int32 == -5);
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK_ERR(document_value(&p, &a, &v), ERR_OK);
	CHECK(v.type == EDM_DOUBLE && v.dbl == 1.5);
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK_ERR(document_value(&p, &a, &v), ERR_OK);
	CHECK(v.type == EDM_BOOLEAN && v.boolean);
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK_ERR(document_value(&p, &a, &v), ERR_OK);
	CHECK(span_is(p.name, "L") && v.type == EDM_INT64 && v.int64 == 7);
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK_ERR(document_value(&p, &a, &v), ERR_OK);
	CHECK(v.type == EDM_STRING && v.bytes.n == 0);
	CHECK_ERR(document_walk_next(&w, &p), ERR_OK);
	CHECK(span_is(p.name, "B\\\\"));
	CHECK_ERR(document_walk_next(&w, &p), ERR_NOT_FOUND);
	arena_fini(&a);
}

TEST(a_broken_document_is_said_to_be_one)
{
	static const char *const broken[] = { "{\"A\":}\n", "{\"A\"}\n", "{\"A\":1,}\n", "{A:1}\n",
		"{\"A\":\"x}\n", "{\"A@odata.type\":\"Edm.Int64\"}\n",
		"{\"A@odata.type\":\"Edm.Int64\",\"B\":\"1\"}\n", "{A}\n", "{\"}\n", "{\"A\"1}\n",
		"{\"A@odata.type\":1,\"A\":1}\n", "{\"A@odata.type\":\"Edm.Int64\":\"A\":\"1\"}\n",
		"{\"A@odata.type\":\"Edm.Int64\",A:\"1\"}\n", "{\"A\":\"x\"\"B\":1}\n" };
	struct document_walk w;
	struct document_property p;
	enum err e;

	CHECK(!document_walk_begin(SPAN_LIT(""), &w) && !document_walk_begin(SPAN_LIT("{"), &w));
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		CHECK(document_walk_begin(span_of(broken[i]), &w));
		while ((e = document_walk_next(&w, &p)) == ERR_OK)
			;
		CHECK_ERR(e, ERR_CORRUPT);
	}
}

static enum err value_of(const char *type, const char *text, struct value *ret)
{
	struct document_property p = {
		.name = SPAN_LIT("A"), .type = span_of(type), .text = span_of(text)
	};
	struct arena a = { 0 };
	enum err e = document_value(&p, &a, ret);

	arena_fini(&a);
	return e;
}

TEST(a_broken_value_is_said_to_be_one)
{
	static const char *const broken[] = { "\"\\\"", "\"\\x\"", "\"\\u00\"", "\"\\u1234\"",
		"\"\\u00g0\"", "\"\\u000g\"", "x", "1e999", "99999999999", "-", "tru" };
	struct value v;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		CHECK_ERR(value_of("", broken[i], &v), ERR_CORRUPT);
	CHECK_ERR(value_of("Edm.Int64", "5", &v), ERR_CORRUPT);
	CHECK_ERR(value_of("Edm.Int64", "\"x\"", &v), ERR_CORRUPT);
	CHECK_ERR(value_of("Edm.Other", "\"5\"", &v), ERR_CORRUPT);
	CHECK_ERR(value_of("Edm.Binary", "\"AA==\"", &v), ERR_NOT_SUPPORTED);
	CHECK_ERR(value_of("Edm.Int64", "\"5\"", &v), ERR_OK);
}

TEST(odd_spellings_are_left_to_the_decoder)
{
	takes_value("1E5", false);
	takes_value("1.5E3", false);
	takes_value("1.5e3", false);
	takes_value("1.00001", true);
	takes_value("0.00001", false);
	takes_value("\"a\\u0062\"", false);
	takes_typed("Edm.Int64", "\"\\u0031\"", false);
	takes_typed("Edm.Int64", "1", false);
	takes_typed("Edm.\\u0049nt64", "\"1\"", false);
	takes_typed("Edm.DateTime",
		"\"2026-11-20T12:29:19.000000000000000000000000000000000000000000000000000Z\"",
		false);
	takes_always("{\"A@odata.type\":5,\"A\":\"1\"}", NULL);
	takes_always("{\"A\":1,\"A@odata.type\":\"Edm.Int64\",\"A\":\"1\"}", NULL);
	takes_always("{\"PartitionKey@odata.type\":\"Edm.String\",\"PartitionKey\":\"p\"}", NULL);
	takes_always("{\"RowKey@odata.type\":\"Edm.String\",\"RowKey\":\"p\"}", NULL);
	takes_always("{\"RowKey\":\"a\\u0062\"}", NULL);
	takes_always("{\"A\":1,\"B\" :2}", "{\"A\":1,\"B\":2}\n");
	takes_always("{\"A\":1,\"B\": 2}", "{\"A\":1,\"B\":2}\n");
}

TEST(a_row_of_more_names_than_it_remembers_is_left_to_the_decoder)
{
	struct buf text = BUF_INIT(1u << 20);

	buf_add_char(&text, '{');
	for (unsigned i = 0; i < 600; i++)
		buf_addf(&text, "%s\"P%u\":null", i == 0 ? "" : ",", i);
	buf_add_char(&text, '}');
	takes_always(text.data, NULL);
	buf_fini(&text);
}

RUN_TESTS(T(members_are_copied_without_keys_timestamp_nulls_and_blanks), T(keys_are_told),
	T(values_are_known_that_the_encoder_writes_so),
	T(typed_values_are_known_in_their_one_spelling), T(what_breaks_a_rule_is_never_taken),
	T(limits_hold), T(it_forgets_and_goes_on), T(a_walk_tells_names_and_values),
	T(a_broken_document_is_said_to_be_one), T(a_broken_value_is_said_to_be_one),
	T(odd_spellings_are_left_to_the_decoder),
	T(a_row_of_more_names_than_it_remembers_is_left_to_the_decoder))
