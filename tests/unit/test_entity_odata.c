/* SPDX-License-Identifier: MIT
 * codec/entity_odata.h. */
#include "base/compiler.h"
#include "check.h"
#include "codec/edm_text.h"
#include "codec/entity_json.h"
#include "codec/json_scan.h"
#include "odata_row.h"

#include <math.h>
#include <stdlib.h>

#define ETAG "\"odata.etag\":\"W/\\\"datetime'2021-10-15T16%3A13%3A07.21463Z'\\\"\""
#define ID "t(PartitionKey='p',RowKey='r')"
#define KEYS "\"PartitionKey\":\"p\",\"RowKey\":\"r\","

static struct buf out = { .limit = 16u << 20 };

static void renders(enum odata_level level, bool single, const char *want)
{
	style.level = level;
	style.single = single;
	buf_clear(&out);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_OK);
	CHECK(buf_ok(&out));
	CHECK_EQ_STR(out.data, want);
}

static const char canonical[] =
	"{\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"S\":\"x\\\"y\\\\@odata.type\",\"I\":-1,\"B\":true,"
	"\"D\":1.5,\"X@odata.type\":\"Edm.Double\",\"X\":\"NaN\"}\n";
#define ANNOTATED \
	"\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"S\":\"x\\\"y\\\\@odata.type\",\"I\":-1,\"B\":true," \
	"\"D\":1.5,\"X@odata.type\":\"Edm.Double\",\"X\":\"NaN\""
#define BARE \
	"\"N\":\"5\",\"S\":\"x\\\"y\\\\@odata.type\",\"I\":-1,\"B\":true,\"D\":1.5,\"X\":\"NaN\""
/* The same entity as a user may write it. */
static const char handmade[] =
	" {\"PartitionKey\":\"other\",\n\t\"N\" : 5 ,\"odata.etag\":\"no\",\"Timestamp\":\"no\","
	"\"N@odata.type\":\"Edm.Int64\", \"S\":\"\\u0078\\\"y\\\\@odata.type\",\"I\":-1,\"B\":true,"
	"\"Gone\":null,\"D\":15e-1,\"X\":\"NaN\",\"X@odata.type\":\"Edm.Double\"}\n\n";

static void check_all_levels(void)
{
	renders(ODATA_NONE, true, "{" KEYS "\"Timestamp\":\"" TIME "\"," BARE "}");
	renders(ODATA_NONE, false, "{" KEYS "\"Timestamp\":\"" TIME "\"," BARE "}");
	renders(ODATA_MINIMAL, true,
		"{\"odata.metadata\":\"" BASE "$metadata#t/@Element\"," ETAG "," KEYS
		"\"Timestamp\":\"" TIME "\"," ANNOTATED "}");
	renders(ODATA_MINIMAL, false,
		"{" ETAG "," KEYS "\"Timestamp\":\"" TIME "\"," ANNOTATED "}");
	renders(ODATA_FULL, true,
		"{\"odata.metadata\":\"" BASE "$metadata#t/@Element\",\"odata.type\":\"acct.t\","
		"\"odata.id\":\"" BASE ID "\"," ETAG ",\"odata.editLink\":\"" ID "\"," KEYS
		"\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"" TIME "\"," ANNOTATED
		"}");
	renders(ODATA_FULL, false,
		"{\"odata.type\":\"acct.t\",\"odata.id\":\"" BASE ID "\"," ETAG
		",\"odata.editLink\":\"" ID "\"," KEYS
		"\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"" TIME "\"," ANNOTATED
		"}");
}

TEST(a_canonical_document_is_spliced_at_every_level)
{
	set_document(canonical, true);
	check_all_levels();
}

TEST(any_other_document_renders_the_same)
{
	set_document(handmade, false);
	check_all_levels();
}

TEST(a_decoded_entity_renders_without_its_document)
{
	struct entity e = { 0 };

	CHECK_ERR(entity_json_decode(span_of(handmade), ENTITY_JSON_FILE, &e, NULL, NULL), ERR_OK);
	set_document("not looked at", false);
	row.entity = &e;
	check_all_levels();
	row.entity = NULL;
	entity_fini(&e);
}

TEST(an_empty_document_has_system_properties_only)
{
	static const char *const empty[] = { "{}\n", "{}" };

	for (size_t i = 0; i < ARRAY_LEN(empty) * 2; i++) {
		set_document(empty[i / 2], i % 2 == 0);
		renders(ODATA_NONE, true, "{" KEYS "\"Timestamp\":\"" TIME "\"}");
		renders(ODATA_MINIMAL, false, "{" ETAG "," KEYS "\"Timestamp\":\"" TIME "\"}");
	}
}

static const struct span names[] = { { "X", 1 }, { "Timestamp", 9 }, { "N", 1 }, { "Lacks", 5 },
	{ "S", 1 }, { "RowKey", 6 } };
#define SELECTED_URL "&$select=X,Timestamp,N,Lacks,S,RowKey\""

static void check_selected(void)
{
	select_names(names, ARRAY_LEN(names));
	renders(ODATA_NONE, true,
		"{\"X\":\"NaN\",\"Timestamp\":\"" TIME "\",\"N\":\"5\",\"Lacks\":null,"
		"\"S\":\"x\\\"y\\\\@odata.type\",\"RowKey\":\"r\"}");
	renders(ODATA_MINIMAL, true,
		"{\"odata.metadata\":\"" BASE "$metadata#t/@Element" SELECTED_URL "," ETAG
		",\"X@odata.type\":\"Edm.Double\",\"X\":\"NaN\",\"Timestamp\":\"" TIME "\","
		"\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"Lacks\":null,"
		"\"S\":\"x\\\"y\\\\@odata.type\",\"RowKey\":\"r\"}");
	renders(ODATA_FULL, false,
		"{\"odata.type\":\"acct.t\",\"odata.id\":\"" BASE ID "\"," ETAG
		",\"odata.editLink\":\"" ID "\",\"X@odata.type\":\"Edm.Double\",\"X\":\"NaN\","
		"\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"" TIME "\","
		"\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"Lacks\":null,"
		"\"S\":\"x\\\"y\\\\@odata.type\",\"RowKey\":\"r\"}");
	select_all();
}

TEST(select_picks_members_and_gives_null_for_what_lacks)
{
	set_document(canonical, true);
	check_selected();
	set_document(handmade, false);
	check_selected();
}

TEST(selected_names_of_any_text_stay_inside_their_strings)
{
	static const struct span odd[] = { { "a\"b\\", 4 }, { "N@odata.type", 12 },
		{ "\xc3\xbc", 2 }, { "", 0 } };
	static const char *const documents[] = { canonical, handmade };

	for (size_t i = 0; i < 2; i++) {
		set_document(documents[i], i == 0);
		select_names(odd, ARRAY_LEN(odd));
		renders(ODATA_MINIMAL, true,
			"{\"odata.metadata\":\"" BASE
			"$metadata#t/@Element&$select=a%22b%5C,N%40odata.type,%C3%BC,\"," ETAG
			",\"a\\\"b\\\\\":null,\"N@odata.type\":null,\"\xc3\xbc\":null,\"\":null}");
		select_names(NULL, 0);
		renders(ODATA_NONE, true, "{}");
		renders(ODATA_MINIMAL, false, "{" ETAG "}");
		select_all();
	}
}

TEST(keys_are_encoded_in_urls_and_escaped_in_strings)
{
	set_document("{}\n", true);
	row.pk = SPAN_LIT("O'B {1}\"");
	row.rk = SPAN_LIT("");
	renders(ODATA_FULL, false,
		"{\"odata.type\":\"acct.t\",\"odata.id\":\"" BASE
		"t(PartitionKey='O''B%20%7B1%7D%22',RowKey='')\"," ETAG
		",\"odata.editLink\":\"t(PartitionKey='O''B%20%7B1%7D%22',RowKey='')\","
		"\"PartitionKey\":\"O'B {1}\\\"\",\"RowKey\":\"\","
		"\"Timestamp@odata.type\":\"Edm.DateTime\",\"Timestamp\":\"" TIME "\"}");
	row.pk = SPAN_LIT("p");
	row.rk = SPAN_LIT("r");
}

TEST(the_url_of_an_entity_is_made_of_its_keys)
{
	buf_clear(&out);
	entity_odata_url(SPAN_LIT("https://acct.table.x/"), SPAN_LIT("Tab"), SPAN_LIT("a'b"),
		SPAN_LIT("\xc3\xbc%"), &out);
	CHECK_EQ_STR(out.data, "https://acct.table.x/Tab(PartitionKey='a''b',RowKey='%C3%BC%25')");
}

TEST(elements_stand_one_behind_another)
{
	set_document("{\"a\":1}\n", true);
	style.level = ODATA_NONE;
	buf_clear(&out);
	buf_add_str(&out, "[");
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_OK);
	buf_add_char(&out, ',');
	set_document("{ \"a\":2}", false);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_OK);
	CHECK_EQ_STR(out.data,
		"[{" KEYS "\"Timestamp\":\"" TIME "\",\"a\":1},{" KEYS "\"Timestamp\":\"" TIME
		"\",\"a\":2}");
}

TEST(a_document_that_does_not_decode_is_corrupt)
{
	static const char *const bad[] = { "", "\n", "{", "}", "{\"a\":1", "[]", "x\n" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		for (int level = ODATA_NONE; level <= ODATA_FULL; level++) {
			style.level = (enum odata_level)level;
			for (int c = 0; c < 2; c++) {
				set_document(bad[i], c != 0);
				buf_clear(&out);
				CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_CORRUPT);
			}
			select_names(names, 1);
			set_document(bad[i], true);
			CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_CORRUPT);
			select_all();
		}
	}
}

/* Behind properties that are written as they are. */
TEST(a_document_that_ends_too_early_is_corrupt)
{
	style.level = ODATA_NONE;
	set_document("{\"a\":1,\"b\"}\n", true);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_CORRUPT);
	select_names(names, 1);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_CORRUPT);
	select_all();
}

TEST(a_full_buffer_is_told_by_the_buffer)
{
	struct buf small = BUF_INIT(100);

	set_document(canonical, true);
	style.level = ODATA_FULL;
	CHECK_ERR(entity_odata_render(&style, &row, &small), ERR_OK);
	CHECK(!buf_ok(&small));
	buf_fini(&small);
}

/* ---- random entities ---- */

static uint64_t state;

/* xorshift64*: the same run every time. */
static uint64_t next_number(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717);
}

static size_t below(size_t n)
{
	return (size_t)(next_number() >> 33) % n;
}

static struct span random_text(struct entity *e)
{
	static const char *const pieces[] = { "", "a", "\"", "\\", "\\u0041", "\n", "\t", "\x01",
		"\x7f", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "@odata.type", "'", "{", "}", ",", ":", "/", " ", "null", "\":1,\"",
		"long text without anything special " };
	struct buf b = BUF_INIT(4096);

	for (size_t n = below(6); n > 0; n--)
		buf_add_str(&b, pieces[below(ARRAY_LEN(pieces))]);
	struct span s = arena_copy(&e->arena, buf_span(&b));
	buf_fini(&b);
	return s;
}

static double random_double(void)
{
	static const double special[] = { __builtin_nan(""), __builtin_inf(), -__builtin_inf(), 0.0,
		-0.0, 1.0, 1e300, -5e-324, 0.1 };

	return below(2) == 0 ? special[below(ARRAY_LEN(special))]
			     : (double)(int64_t)next_number() / 1000.0;
}

static struct value random_value(struct entity *e)
{
	struct value v = { .type = (enum edm_type)below(EDM_COUNT_) };

	switch (v.type) {
	case EDM_STRING:
	case EDM_BINARY:
		v.bytes = random_text(e);
		break;
	case EDM_BOOLEAN:
		v.boolean = below(2) != 0;
		break;
	case EDM_INT32:
		v.int32 = (int32_t)next_number();
		break;
	case EDM_INT64:
		v.int64 = (int64_t)next_number() >> below(64);
		break;
	case EDM_DOUBLE:
		v.dbl = random_double();
		break;
	case EDM_DATETIME:
		v.ticks = (int64_t)(next_number() % (uint64_t)TICKS_MAX);
		break;
	case EDM_GUID:
		for (size_t i = 0; i < sizeof(v.guid); i++)
			v.guid[i] = (uint8_t)next_number();
		break;
	case EDM_COUNT_:
		break;
	}
	return v;
}

static void random_entity(struct entity *e)
{
	size_t n = below(20) == 0 ? LIMIT_PROPERTIES : below(8);

	entity_reset(e);
	for (size_t i = 0; i < n; i++) {
		struct value v = random_value(e);
		char name[32];
		int len =
			snprintf(name, sizeof(name), "%sP%zu", below(4) == 0 ? "\xc3\xa4" : "", i);
		struct span copy = arena_copy(&e->arena, span_make(name, (size_t)len));
		CHECK_ERR(entity_add(e, copy, &v), ERR_OK);
	}
}

static size_t random_select(const struct entity *e, struct span *ret, size_t max)
{
	static const struct span system[] = { { "PartitionKey", 12 }, { "RowKey", 6 },
		{ "Timestamp", 9 }, { "Lacks", 5 } };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(system); i++) {
		if (below(2) == 0)
			ret[n++] = system[i];
	}
	for (size_t i = 0; i < e->nprops && n < max; i++) {
		if (below(2) == 0)
			ret[n++] = e->props[i].name;
	}
	for (size_t i = n; i > 1; i--) {
		size_t j = below(i);
		struct span swap = ret[i - 1];
		ret[i - 1] = ret[j];
		ret[j] = swap;
	}
	return n;
}

/* What was rendered scans as one flat object with every property once. */
static void check_members(const struct entity *e, size_t nselect)
{
	struct json_scan scan = { 0 };
	struct json_member m;
	enum json_scan_result r;
	size_t properties = 0;

	while ((r = json_scan_next(&scan, buf_span(&out), &m)) == JSON_SCAN_MEMBER)
		properties += !span_starts(m.name, SPAN_LIT("odata.")) &&
			!span_ends(m.name, SPAN_LIT("@odata.type"));
	CHECK_EQ_INT(r, JSON_SCAN_END);
	CHECK_EQ_INT(properties, style.all ? e->nprops + 3 : nselect);
}

static void check_one(struct entity *e, struct buf *document, struct buf *rendered)
{
	struct span chosen[8 + LIMIT_PROPERTIES];
	size_t n = random_select(e, chosen, ARRAY_LEN(chosen));

	buf_clear(document);
	entity_json_encode(e, ENTITY_JSON_NEWLINE, document);
	style.level = (enum odata_level)below(3);
	style.single = below(2) != 0;
	if (below(2) != 0)
		select_names(chosen, n);
	row.pk = random_text(e);
	row.rk = random_text(e);
	row.version = (int64_t)(next_number() % (uint64_t)TICKS_MAX);
	row.document = buf_span(document);
	row.entity = NULL;
	row.canonical = false;
	buf_clear(rendered);
	CHECK_ERR(entity_odata_render(&style, &row, rendered), ERR_OK);
	row.canonical = true;
	buf_clear(&out);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_OK);
	CHECK(span_eq(buf_span(&out), buf_span(rendered)));
	check_members(e, n);
	select_all();
}

TEST(splicing_equals_decoding_and_rendering)
{
	struct entity e = { 0 };
	struct buf document = BUF_INIT(8u << 20), rendered = BUF_INIT(8u << 20);

	state = 20261120;
	for (int i = 0; i < 4000; i++) {
		unsigned before = check_failures;
		random_entity(&e);
		check_one(&e, &document, &rendered);
		if (check_failures != before) {
			check_fail(__FILE__, __LINE__, out.data);
			check_fail(__FILE__, __LINE__, rendered.data);
			break;
		}
	}
	row.pk = SPAN_LIT("p");
	row.rk = SPAN_LIT("r");
	entity_fini(&e);
	buf_fini(&document);
	buf_fini(&rendered);
	buf_fini(&out);
}

TEST(a_canonical_document_that_is_none_is_corrupt)
{
	struct buf text = BUF_INIT(1u << 16);

	buf_add_char(&text, '{');
	for (int i = 0; i <= LIMIT_PROPERTIES; i++)
		buf_addf(&text, "%s\"p%d\":1", i == 0 ? "" : ",", i);
	buf_add_str(&text, "}\n");
	style.level = ODATA_MINIMAL;
	select_names(names, 1);
	set_document(text.data, true);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_CORRUPT);
	set_document("{\"A\":1,\"B@odata.type\":\"Edm.Int64\"}\n", true);
	CHECK_ERR(entity_odata_render(&style, &row, &out), ERR_CORRUPT);
	select_all();
	buf_fini(&text);
}

RUN_TESTS(T(a_canonical_document_is_spliced_at_every_level), T(any_other_document_renders_the_same),
	T(a_decoded_entity_renders_without_its_document),
	T(an_empty_document_has_system_properties_only),
	T(select_picks_members_and_gives_null_for_what_lacks),
	T(selected_names_of_any_text_stay_inside_their_strings),
	T(keys_are_encoded_in_urls_and_escaped_in_strings),
	T(the_url_of_an_entity_is_made_of_its_keys), T(elements_stand_one_behind_another),
	T(a_document_that_does_not_decode_is_corrupt), T(a_document_that_ends_too_early_is_corrupt),
	T(a_full_buffer_is_told_by_the_buffer), T(splicing_equals_decoding_and_rendering),
	T(a_canonical_document_that_is_none_is_corrupt))
