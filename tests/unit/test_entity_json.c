/* SPDX-License-Identifier: MIT
 * codec/entity_json.h. */
#include "base/clock.h"
#include "check.h"
#include "codec/entity_json.h"
#include "model/limits.h"

#include <stdlib.h>

static struct entity e;
static struct entity_json_facts facts;
static struct err_detail why;
static struct buf text = { .limit = 8u << 20 };

static enum err decode_as(const char *doc, enum entity_json_rules rules)
{
	return entity_json_decode(span_of(doc), rules, &e, &facts, &why);
}

static enum err decode(const char *doc)
{
	return decode_as(doc, ENTITY_JSON_FILE);
}

static enum err decode_buf(const struct buf *b)
{
	return entity_json_decode(buf_span(b), ENTITY_JSON_FILE, &e, &facts, &why);
}

static const char *encode(unsigned flags)
{
	buf_clear(&text);
	entity_json_encode(&e, flags, &text);
	CHECK(buf_ok(&text));
	return text.data;
}

static void becomes(const char *doc, const char *want)
{
	enum err err = decode(doc);

	CHECK_ERR(err, ERR_OK);
	if (err != ERR_OK)
		check_fail(__FILE__, __LINE__, doc);
	else
		CHECK_EQ_STR(encode(0), want);
}

static void keeps(const char *doc)
{
	becomes(doc, doc);
}

/* Refused with err at the byte where mark first stands. */
static void refused(const char *doc, enum err want, const char *mark)
{
	enum err got = decode(doc);

	CHECK_ERR(got, want);
	if (got != want) {
		check_fail(__FILE__, __LINE__, doc);
		return;
	}
	CHECK(why.text[0] != '\0');
	CHECK(why.has_offset);
	if (why.offset != (size_t)(strstr(doc, mark) - doc)) {
		CHECK_EQ_INT(why.offset, strstr(doc, mark) - doc);
		check_fail(__FILE__, __LINE__, doc);
	}
}

static enum edm_type type_of(const char *name)
{
	struct property *p = entity_find(&e, span_of(name));

	return p == NULL ? EDM_COUNT_ : p->value.type;
}

TEST(bare_values_have_the_type_they_look_like)
{
	CHECK_ERR(
		decode("{\"s\":\"x\",\"t\":true,\"f\":false,\"i\":2147483647,\"j\":-2147483648,"
		       "\"k\":2147483648,\"l\":-9223372036854775808,\"d\":1.0,\"x\":1e3,\"n\":null}"),
		ERR_OK);
	CHECK_EQ_INT(e.nprops, 9);
	CHECK_EQ_INT(type_of("s"), EDM_STRING);
	CHECK_EQ_INT(type_of("t"), EDM_BOOLEAN);
	CHECK_EQ_INT(type_of("i"), EDM_INT32);
	CHECK_EQ_INT(type_of("j"), EDM_INT32);
	CHECK_EQ_INT(type_of("k"), EDM_INT64);
	CHECK_EQ_INT(type_of("l"), EDM_INT64);
	CHECK_EQ_INT(type_of("d"), EDM_DOUBLE);
	CHECK_EQ_INT(type_of("x"), EDM_DOUBLE);
	CHECK_EQ_INT(type_of("n"), EDM_COUNT_);
}

TEST(large_integers_differ_by_the_rules)
{
	refused("{\"a\":9223372036854775808}", ERR_VALUE_INVALID, "9");
	CHECK_ERR(decode_as("{\"a\":2147483648}", ENTITY_JSON_REST), ERR_OK);
	CHECK_EQ_INT(type_of("a"), EDM_DOUBLE);
	CHECK_ERR(decode_as("{\"a\":9223372036854775808}", ENTITY_JSON_REST), ERR_OK);
	CHECK_EQ_INT(type_of("a"), EDM_DOUBLE);
	CHECK_ERR(decode_as("{\"a\":2147483647}", ENTITY_JSON_REST), ERR_OK);
	CHECK_EQ_INT(type_of("a"), EDM_INT32);
	refused("{\"a\":1e999}", ERR_VALUE_INVALID, "1e");
	becomes("{\"a\":-0}", "{\"a\":0}");
}

TEST(extreme_values_of_all_types_come_back)
{
	keeps("{\"a\":2147483647,\"b\":-2147483648}");
	keeps("{\"a@odata.type\":\"Edm.Int64\",\"a\":\"9223372036854775807\"}");
	keeps("{\"a@odata.type\":\"Edm.Int64\",\"a\":\"-9223372036854775808\"}");
	keeps("{\"a@odata.type\":\"Edm.Int64\",\"a\":\"1\"}");
	keeps("{\"a\":1.7976931348623157E+308,\"b\":5E-324,\"c\":-0.0,\"d\":3.0}");
	keeps("{\"a@odata.type\":\"Edm.Double\",\"a\":\"NaN\"}");
	keeps("{\"a@odata.type\":\"Edm.Double\",\"a\":\"Infinity\"}");
	keeps("{\"a@odata.type\":\"Edm.Double\",\"a\":\"-Infinity\"}");
	keeps("{\"a@odata.type\":\"Edm.DateTime\",\"a\":\"1601-01-01T00:00:00Z\"}");
	keeps("{\"a@odata.type\":\"Edm.DateTime\",\"a\":\"9999-12-31T23:59:59.9999999Z\"}");
	keeps("{\"a@odata.type\":\"Edm.Guid\",\"a\":\"ffffffff-ffff-ffff-ffff-ffffffffffff\"}");
	keeps("{\"a@odata.type\":\"Edm.Binary\",\"a\":\"\"}");
	keeps("{\"a@odata.type\":\"Edm.Binary\",\"a\":\"AP8A/w==\"}");
	keeps("{\"a\":true,\"b\":false}");
	keeps("{\"a\":\"\",\"b\":\"\\u0000\\\"\\\\/\xc3\xa9\xf0\x9f\x98\x80\\n\"}");
	keeps("{}");
}

TEST(annotated_types_accept_strings_and_their_literals)
{
	becomes("{\"a@odata.type\":\"Edm.Int32\",\"a\":\"5\"}", "{\"a\":5}");
	becomes("{\"a@odata.type\":\"Edm.Int32\",\"a\":5}", "{\"a\":5}");
	becomes("{\"a@odata.type\":\"Edm.Boolean\",\"a\":\"true\"}", "{\"a\":true}");
	becomes("{\"a@odata.type\":\"Edm.Boolean\",\"a\":\"TRUE\"}", "{\"a\":true}");
	becomes("{\"a@odata.type\":\"Edm.Boolean\",\"a\":\"False\"}", "{\"a\":false}");
	becomes("{\"a@odata.type\":\"Edm.Boolean\",\"a\":false}", "{\"a\":false}");
	becomes("{\"a@odata.type\":\"Edm.Double\",\"a\":\"3\"}", "{\"a\":3.0}");
	becomes("{\"a@odata.type\":\"Edm.Double\",\"a\":3}", "{\"a\":3.0}");
	becomes("{\"a@odata.type\":\"Edm.String\",\"a\":\"\\u0061\"}", "{\"a\":\"a\"}");
	becomes("{\"a@odata.type\":\"Edm.Int64\",\"a\":7}",
		"{\"a@odata.type\":\"Edm.Int64\",\"a\":\"7\"}");
	becomes("{\"a@odata.type\":\"Edm.Guid\",\"a\":\"\\u0030f000000000000000000000000000000\"}",
		"{\"a@odata.type\":\"Edm.Guid\",\"a\":\"0f000000-0000-0000-0000-000000000000\"}");
}

TEST(annotations_may_stand_anywhere)
{
	becomes("{\"a\":\"5\",\"b\":1,\"a@odata.type\":\"Edm.Int32\"}", "{\"a\":5,\"b\":1}");
	becomes("{\"a@odata.type\":\"Edm.Int32\",\"b\":1,\"a\":\"5\"}", "{\"a\":5,\"b\":1}");
	becomes("{\"\\u0061\\u0040odata.type\":\"Edm.Int32\",\"a\":\"5\"}", "{\"a\":5}");
	becomes("{\"a@odata.type\":\"Edm.Int32\"}", "{}");
	becomes("{\"a@odata.type\":\"Edm.Int32\",\"a\":null}", "{}");
}

TEST(unknown_types_are_refused)
{
	refused("{\"a@odata.type\":\"Edm.Null\",\"a\":null}", ERR_VALUE_INVALID, "\"Edm");
	refused("{\"a@odata.type\":\"Edm.Int16\",\"a\":1}", ERR_VALUE_INVALID, "\"Edm");
	refused("{\"a@odata.type\":\"\",\"a\":1}", ERR_VALUE_INVALID, "\"\"");
	refused("{\"a@odata.type\":null,\"a\":1}", ERR_VALUE_INVALID, "null");
	refused("{\"a\":1,\"a@odata.type\":3}", ERR_VALUE_INVALID, "3");
}

TEST(values_that_are_not_of_their_type_are_refused)
{
	refused("{\"a@odata.type\":\"Edm.Int32\",\"a\":2147483648}", ERR_VALUE_INVALID, "2147");
	refused("{\"a@odata.type\":\"Edm.Int32\",\"a\":\"-2147483649\"}", ERR_VALUE_INVALID,
		"\"-2147");
	refused("{\"a@odata.type\":\"Edm.Int32\",\"a\":1.5}", ERR_VALUE_INVALID, "1.5");
	refused("{\"a@odata.type\":\"Edm.Int32\",\"a\":true}", ERR_VALUE_INVALID, "true");
	refused("{\"a@odata.type\":\"Edm.Int64\",\"a\":\"9223372036854775808\"}", ERR_VALUE_INVALID,
		"\"922");
	refused("{\"a@odata.type\":\"Edm.String\",\"a\":1}", ERR_VALUE_INVALID, "1}");
	refused("{\"a@odata.type\":\"Edm.Boolean\",\"a\":1}", ERR_VALUE_INVALID, "1}");
	refused("{\"a@odata.type\":\"Edm.Guid\",\"a\":\"x\"}", ERR_VALUE_INVALID, "\"x");
	refused("{\"a@odata.type\":\"Edm.Binary\",\"a\":\"x\"}", ERR_VALUE_INVALID, "\"x");
	refused("{\"a@odata.type\":\"Edm.DateTime\",\"a\":\"x\"}", ERR_VALUE_INVALID, "\"x");
	refused("{\"a@odata.type\":\"Edm.DateTime\",\"a\":\"1600-12-31T23:59:59Z\"}",
		ERR_OUT_OF_RANGE, "\"1600");
	CHECK(strstr(why.text, "'a'") != NULL);
}

TEST(system_properties_are_taken_out)
{
	CHECK_ERR(
		decode("{\"odata.etag\":\"x\",\"odata.x\":5,\"PartitionKey\":\"p\\u0061\",\"RowKey@odata.type\":"
		       "\"Edm.String\",\"RowKey\":\"\",\"Timestamp\":7,\"a\":1}"),
		ERR_OK);
	CHECK(e.has_pk && e.has_rk && facts.has_keys && facts.has_system);
	CHECK(span_is(e.pk, "pa"));
	CHECK(span_is(e.rk, ""));
	CHECK_EQ_STR(encode(0), "{\"a\":1}");
	CHECK_ERR(decode("{\"Timestamp@odata.type\":\"what\",\"Timestamp\":\"ever\"}"), ERR_OK);
	CHECK(!facts.has_keys && facts.has_system);
	CHECK_ERR(decode("{\"a\":1}"), ERR_OK);
	CHECK(!facts.has_keys && !facts.has_system && !e.has_pk && !e.has_rk);
	CHECK_ERR(decode("{\"partitionkey\":1}"), ERR_OK);
	CHECK_EQ_INT(e.nprops, 1);
}

TEST(keys_in_the_document_are_checked)
{
	refused("{\"PartitionKey\":1}", ERR_VALUE_INVALID, "1");
	refused("{\"RowKey\":null}", ERR_VALUE_INVALID, "null");
	refused("{\"RowKey\":\"5\",\"RowKey@odata.type\":\"Edm.Int32\"}", ERR_VALUE_INVALID, "\"5");
	refused("{\"RowKey\":\"a/b\"}", ERR_KEY_INVALID, "\"a/b");
	refused("{\"RowKey\":\"\\u001f\"}", ERR_KEY_INVALID, "\"\\u001f");
	buf_clear(&text);
	buf_addf(&text, "{\"RowKey\":\"%0512d\"}", 0);
	CHECK_ERR(decode_buf(&text), ERR_OK);
	buf_clear(&text);
	buf_addf(&text, "{\"RowKey\":\"%0513d\"}", 0);
	CHECK_ERR(decode_buf(&text), ERR_KEY_TOO_LARGE);
}

TEST(names_are_compared_and_checked_unescaped)
{
	refused("{\"a\":1,\"\\u0061\":2}", ERR_PROPERTY_DUPLICATE, "\"\\u");
	refused("{\"a\":1,\"a\":1}", ERR_PROPERTY_DUPLICATE, "\"a\":1}");
	refused("{\"a\":null,\"a\":1}", ERR_PROPERTY_DUPLICATE, "\"a\":1}");
	refused("{\"RowKey\":\"1\",\"RowKey\":\"1\" }", ERR_PROPERTY_DUPLICATE,
		"\"RowKey\":\"1\" }");
	refused("{\"a@odata.type\":\"Edm.Int32\",\"a@odata.type\": 1}", ERR_PROPERTY_DUPLICATE,
		"\"a@odata.type\": 1");
	refused("{\"a b\":1}", ERR_PROPERTY_NAME_INVALID, "1");
	refused("{\"\":1}", ERR_PROPERTY_NAME_INVALID, "1");
	refused("{\"a b\":null}", ERR_PROPERTY_NAME_INVALID, "null");
	refused("{\"a@b\":1}", ERR_PROPERTY_NAME_INVALID, "1");
	keeps("{\"a\":1,\"A\":2,\"\xc3\xa9\":3}");
}

TEST(a_name_has_at_most_255_characters)
{
	buf_clear(&text);
	buf_addf(&text, "{\"n%0254d\":1}", 0);
	CHECK_ERR(decode_buf(&text), ERR_OK);
	buf_clear(&text);
	buf_addf(&text, "{\"n%0255d\":1}", 0);
	CHECK_ERR(decode_buf(&text), ERR_PROPERTY_NAME_LONG);
}

static void put_many(int n, const char *value)
{
	buf_clear(&text);
	buf_add_char(&text, '{');
	for (int i = 0; i < n; i++)
		buf_addf(&text, "%s\"p%d\":%s", i > 0 ? "," : "", i, value);
}

TEST(an_entity_has_at_most_252_properties)
{
	put_many(252, "1");
	buf_add_str(&text,
		",\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"t\",\"odata.x\":1,\"n\":null}");
	CHECK_ERR(decode_buf(&text), ERR_OK);
	CHECK_EQ_INT(e.nprops, 252);
	for (int i = 0; i < 252; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "p%d", i);
		CHECK(span_is(e.props[i].name, name));
	}
	put_many(253, "1");
	buf_add_char(&text, '}');
	CHECK_ERR(decode_buf(&text), ERR_TOO_MANY_PROPERTIES);
	CHECK(why.has_offset);
	CHECK_EQ_INT(why.offset, text.len - 2);
}

TEST(duplicates_are_found_among_many)
{
	for (int n = 1; n < 100; n++) {
		put_many(n, "1");
		buf_addf(&text, ",\"p%d\":2}", n / 2);
		CHECK_ERR(decode_buf(&text), ERR_PROPERTY_DUPLICATE);
	}
	put_many(50000, "null");
	buf_add_char(&text, '}');
	CHECK_ERR(decode_buf(&text), ERR_OK);
	CHECK_EQ_INT(e.nprops, 0);
}

static enum err decode_string(size_t units, const char *one, size_t per)
{
	buf_clear(&text);
	buf_add_str(&text, "{\"a\":\"");
	for (size_t i = 0; i < units; i += per)
		buf_add_str(&text, one);
	buf_add_str(&text, "\"}");
	return decode_buf(&text);
}

TEST(a_string_has_at_most_32768_units)
{
	CHECK_ERR(decode_string(32768, "x", 1), ERR_OK);
	CHECK_ERR(decode_string(32769, "x", 1), ERR_PROPERTY_TOO_LARGE);
	CHECK_ERR(decode_string(32768, "\xf0\x9f\x98\x80", 2), ERR_OK);
	CHECK_ERR(decode_string(32770, "\xf0\x9f\x98\x80", 2), ERR_PROPERTY_TOO_LARGE);
	CHECK_ERR(decode_string(32768, "\\ud83d\\ude00", 2), ERR_OK);
	CHECK_ERR(decode_string(32769, "\\u0041", 1), ERR_PROPERTY_TOO_LARGE);
}

static enum err decode_binary(size_t n)
{
	char *bytes = calloc(n, 1);
	struct value v = { .type = EDM_BINARY, .bytes = span_make(bytes, n) };
	struct entity from = { 0 };
	enum err err;

	CHECK_ERR(entity_add(&from, SPAN_LIT("a"), &v), ERR_OK);
	buf_clear(&text);
	entity_json_encode(&from, 0, &text);
	err = decode_buf(&text);
	CHECK(err != ERR_OK || value_same(&e.props[0].value, &v));
	entity_fini(&from);
	free(bytes);
	return err;
}

TEST(a_binary_has_at_most_65536_bytes)
{
	CHECK_ERR(decode_binary(65535), ERR_OK);
	CHECK_ERR(decode_binary(65536), ERR_OK);
	CHECK_ERR(decode_binary(65537), ERR_PROPERTY_TOO_LARGE);
}

/* 15 strings of 32768 units and one of n: 4 + 15 * (8 + 4 + 4 + 65536) + 8 + 4 + 4 + 2n. */
static enum err decode_large(size_t n, const char *head)
{
	buf_clear(&text);
	buf_addf(&text, "{%s", head);
	for (int i = 0; i < 15; i++)
		buf_addf(&text, "\"p%c\":\"%032768d\",", 'a' + i, 0);
	buf_add_str(&text, "\"zz\":\"");
	for (size_t i = 0; i < n; i++)
		buf_add_char(&text, 'x');
	buf_add_str(&text, "\"}");
	return decode_buf(&text);
}

TEST(an_entity_has_at_most_one_mebibyte)
{
	size_t rest = (1048576 - 4 - 15 * (8 + 4 + 4 + 65536) - (8 + 4 + 4)) / 2;

	CHECK_ERR(decode_large(rest, ""), ERR_OK);
	CHECK_EQ_INT(entity_size(&e), 1048576);
	CHECK_ERR(decode_large(rest + 1, ""), ERR_ENTITY_TOO_LARGE);
	CHECK_ERR(decode_large(rest, "\"RowKey\":\"\","), ERR_OK);
	CHECK_ERR(decode_large(rest, "\"RowKey\":\"r\","), ERR_ENTITY_TOO_LARGE);
	CHECK_ERR(decode_large(rest - 5, "\"b\":true,"), ERR_ENTITY_TOO_LARGE); /* 11 bytes */
	CHECK_ERR(decode_large(rest - 6, "\"b\":true,"), ERR_OK);
}

TEST(empty_cut_and_broken_texts_differ)
{
	CHECK_ERR(decode(""), ERR_EMPTY);
	CHECK_ERR(decode(" \n\t\r"), ERR_EMPTY);
	CHECK_ERR(entity_json_decode(span_make(NULL, 0), ENTITY_JSON_FILE, &e, NULL, NULL),
		ERR_EMPTY);
	CHECK_ERR(decode("{"), ERR_INCOMPLETE);
	CHECK_ERR(decode("{\"a\":1,\"a\":2"), ERR_INCOMPLETE);
	CHECK_EQ_INT(why.offset, 12);
	refused("{\"a\":{}}", ERR_INVALID_INPUT, "{}");
	refused("{\"a\":[1]}", ERR_INVALID_INPUT, "[");
	refused("{\"odata.x\":{}}", ERR_INVALID_INPUT, "{}");
	refused("[]", ERR_INVALID_INPUT, "[");
	refused("{} x", ERR_INVALID_INPUT, "x");
}

TEST(the_place_is_told_in_lines)
{
	CHECK_ERR(decode("{\n \"a\": 1,\n \"b\": x\n}"), ERR_INVALID_INPUT);
	CHECK_EQ_INT(why.line, 3);
	CHECK_EQ_INT(why.column, 7);
	CHECK_EQ_STR(why.text, "Not a valid document: expected a value.");
}

TEST(system_properties_are_written_on_request)
{
	CHECK_ERR(decode("{\"PartitionKey\":\"p\\\"\",\"RowKey\":\"r\",\"a\":1}"), ERR_OK);
	CHECK_EQ_STR(encode(ENTITY_JSON_NEWLINE), "{\"a\":1}\n");
	CHECK_EQ_STR(encode(ENTITY_JSON_PK), "{\"PartitionKey\":\"p\\\"\",\"a\":1}");
	e.timestamp = TICKS_UNIX_EPOCH + 5000000;
	CHECK_EQ_STR(encode(ENTITY_JSON_PK | ENTITY_JSON_RK | ENTITY_JSON_TIMESTAMP),
		"{\"PartitionKey\":\"p\\\"\",\"RowKey\":\"r\",\"Timestamp@odata.type\":\"Edm.DateTime\","
		"\"Timestamp\":\"1970-01-01T00:00:00.5Z\",\"a\":1}");
	CHECK_ERR(decode("{}"), ERR_OK);
	CHECK_EQ_STR(encode(ENTITY_JSON_PK | ENTITY_JSON_NEWLINE), "{}\n");
}

TEST(the_encoder_appends)
{
	struct buf two = BUF_INIT(100);

	CHECK_ERR(decode("{\"a\":\"{\",\"b\":1}"), ERR_OK);
	entity_json_encode(&e, ENTITY_JSON_NEWLINE, &two);
	entity_json_encode(&e, 0, &two);
	CHECK_EQ_STR(two.data, "{\"a\":\"{\",\"b\":1}\n{\"a\":\"{\",\"b\":1}");
	buf_fini(&two);
}

TEST(strings_without_escapes_borrow_from_the_text)
{
	static const char doc[] = "{\"a\":\"plain\",\"b\":\"\\u0061\"}";

	CHECK_ERR(decode(doc), ERR_OK);
	CHECK(e.props[0].value.bytes.p == strstr(doc, "plain"));
	CHECK(span_is(e.props[1].value.bytes, "a"));
	entity_fini(&e);
	buf_fini(&text);
}

/* What went wrong, in words with the name in them: no more than its first 100 bytes. */
TEST(long_names_are_shown_cut)
{
	char doc[400], name[301];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)snprintf(doc, sizeof(doc), "{\"%.150s@odata.type\":\"x\",\"%.150s\":1}", name, name);
	CHECK_ERR(decode(doc), ERR_VALUE_INVALID);
	name[100] = '\0';
	CHECK(strstr(why.text, name) != NULL);
	name[100] = 'n';
	name[101] = '\0';
	CHECK(strstr(why.text, name) == NULL);
}

TEST(a_number_that_no_double_holds_is_refused_by_either_rules)
{
	char doc[500];

	memset(doc, '9', sizeof(doc));
	memcpy(doc, "{\"A\":", 5);
	memcpy(doc + 480, "}", 2);
	CHECK_ERR(decode_as(doc, ENTITY_JSON_REST), ERR_VALUE_INVALID);
	CHECK_ERR(decode_as(doc, ENTITY_JSON_FILE), ERR_VALUE_INVALID);
	CHECK_ERR(decode_as("{\"A\":1e999}", ENTITY_JSON_REST), ERR_VALUE_INVALID);
}

TEST(a_key_that_is_null_is_missing_for_rest_and_no_string_for_a_file)
{
	CHECK_ERR(decode_as("{\"RowKey\":null}", ENTITY_JSON_REST), ERR_KEY_MISSING);
	CHECK_ERR(decode_as("{\"PartitionKey\":null}", ENTITY_JSON_REST), ERR_KEY_MISSING);
	CHECK_ERR(decode_as("{\"RowKey\":null}", ENTITY_JSON_FILE), ERR_VALUE_INVALID);
	CHECK_ERR(decode_as("{\"RowKey\":5}", ENTITY_JSON_REST), ERR_VALUE_INVALID);
}

TEST(dates_out_of_range_are_told_with_and_without_seconds)
{
	CHECK_ERR(decode("{\"D@odata.type\":\"Edm.DateTime\",\"D\":\"1601-01-01T00:00:07+01:00\"}"),
		ERR_OUT_OF_RANGE);
	CHECK(strstr(why.text, "'01/01/1601 00:00:07' is out of range") != NULL);
	CHECK_ERR(decode("{\"D@odata.type\":\"Edm.DateTime\",\"D\":\"1601-01-01T00:00+01:00\"}"),
		ERR_OUT_OF_RANGE);
	CHECK(strstr(why.text, "'01/01/1601 00:00:00' is out of range") != NULL);
	CHECK_ERR(decode("{\"D@odata.type\":\"Edm.DateTime\",\"D\":\"1600-12-31T23:59\"}"),
		ERR_OUT_OF_RANGE);
	CHECK(strstr(why.text, "'12/31/1600 23:59:00' is out of range") != NULL);
	CHECK_ERR(decode("{\"D@odata.type\":\"Edm.DateTime\",\"D\":\"9999-12-31T23:59-14:00\"}"),
		ERR_OUT_OF_RANGE);
}

TEST(a_property_by_itself_has_no_comma_in_front)
{
	const struct value v = { .type = EDM_INT64, .int64 = 5 };

	buf_clear(&text);
	entity_json_encode_property(SPAN_LIT("A"), &v, false, &text);
	CHECK_EQ_STR(text.data, "\"A\":\"5\"");
	entity_json_encode_property(SPAN_LIT("B"), &v, true, &text);
	CHECK_EQ_STR(text.data, "\"A\":\"5\",\"B@odata.type\":\"Edm.Int64\",\"B\":\"5\"");
}

RUN_TESTS(T(bare_values_have_the_type_they_look_like), T(large_integers_differ_by_the_rules),
	T(extreme_values_of_all_types_come_back),
	T(annotated_types_accept_strings_and_their_literals), T(annotations_may_stand_anywhere),
	T(unknown_types_are_refused), T(values_that_are_not_of_their_type_are_refused),
	T(system_properties_are_taken_out), T(keys_in_the_document_are_checked),
	T(names_are_compared_and_checked_unescaped), T(a_name_has_at_most_255_characters),
	T(an_entity_has_at_most_252_properties), T(duplicates_are_found_among_many),
	T(a_string_has_at_most_32768_units), T(a_binary_has_at_most_65536_bytes),
	T(an_entity_has_at_most_one_mebibyte), T(empty_cut_and_broken_texts_differ),
	T(the_place_is_told_in_lines), T(system_properties_are_written_on_request),
	T(the_encoder_appends), T(strings_without_escapes_borrow_from_the_text),
	T(long_names_are_shown_cut), T(a_number_that_no_double_holds_is_refused_by_either_rules),
	T(a_key_that_is_null_is_missing_for_rest_and_no_string_for_a_file),
	T(dates_out_of_range_are_told_with_and_without_seconds),
	T(a_property_by_itself_has_no_comma_in_front))
