/* SPDX-License-Identifier: MIT
 * codec/entity_atom.h, and with it atom_entry.h, xml_controls.h and xml_names.h. */
#include "base/compiler.h"
#include "base/text.h"
#include "check.h"
#include "codec/atom_entry.h"
#include "codec/atom_tags.h"
#include "codec/atom_text.h"
#include "codec/entity_atom.h"
#include "codec/entity_json.h"
#include "codec/xml.h"
#include "codec/xml_controls.h"
#include "codec/xml_events.h"
#include "codec/xml_names.h"
#include "codec/xml_scan.h"
#include "odata_row.h"

#include <math.h>
#include <stdlib.h>

#define XML "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>"
#define SPACES "xmlns:d=\"" ATOM_DATA "\" xmlns:m=\"" ATOM_METADATA "\" xmlns=\"" ATOM_SPACE "\""
#define HEAD XML "<entry " SPACES "><title /><content type=\"application/xml\"><m:properties>"
#define TAIL "</m:properties></content></entry>"
#define ETAG "m:etag=\"W/&quot;datetime'2021-10-15T16%3A13%3A07.21463Z'&quot;\""
#define BIG ((size_t)16 << 20)

static struct buf text = { .limit = BIG }, out = { .limit = BIG }, other = { .limit = BIG };
static struct entity entity;
static struct err_detail detail;

/* ---- helpers ---- */

static enum err decode(struct span body)
{
	detail = (struct err_detail){ 0 };
	return entity_atom_decode(body, &entity, &detail);
}

/* An entry with these properties. */
static enum err reads(const char *properties)
{
	buf_clear(&text);
	buf_add_str(&text, HEAD);
	buf_add_str(&text, properties);
	buf_add_str(&text, TAIL);
	return decode(buf_span(&text));
}

static void refuses(const char *properties, enum err e, const char *why)
{
	CHECK_ERR(reads(properties), e);
	if (strstr(detail.text, why) == NULL)
		CHECK_EQ_STR(detail.text, why);
}

static void becomes(const char *properties, const char *json)
{
	CHECK_ERR(reads(properties), ERR_OK);
	CHECK_EQ_STR(detail.text, "");
	buf_clear(&out);
	entity_json_encode(&entity, ENTITY_JSON_PK | ENTITY_JSON_RK, &out);
	CHECK_EQ_STR(out.data, json);
}

/* What stands between <m:properties> and its end, in an entry of a feed. */
static void renders(const char *want)
{
	static const struct span begin = SPAN_LIT("<m:properties>"), end = SPAN_LIT(TAIL);

	style.single = false;
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
	CHECK(buf_ok(&out) && span_ends(buf_span(&out), end));
	const char *p = memmem(out.data, out.len, begin.p, begin.n);
	REQUIRE(p != NULL);
	out.data[out.len - end.n] = '\0';
	CHECK_EQ_STR(p + begin.n, want);
}

/* ---- reading ---- */

TEST(every_type_is_read)
{
	becomes("<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>"
		"<d:Timestamp m:type=\"Edm.DateTime\">0001-01-01T00:00:00</d:Timestamp>"
		"<d:S>text</d:S><d:S2 m:type=\"Edm.String\"></d:S2><d:S3/><d:S4 m:type=\"\">x</d:S4>"
		"<d:T m:type=\"Edm.Boolean\">true</d:T><d:F m:type=\"Edm.Boolean\">0</d:F>"
		"<d:U m:type=\"Edm.Boolean\">TRUE</d:U>"
		"<d:I m:type=\"Edm.Int32\">-7</d:I><d:L m:type=\"Edm.Int64\">9007199254740993</d:L>"
		"<d:D m:type=\"Edm.Double\">1.5E+300</d:D><d:Z m:type=\"Edm.Double\">-0.0</d:Z>"
		"<d:N m:type=\"Edm.Double\">NaN</d:N><d:P m:type=\"Edm.Double\">INF</d:P>"
		"<d:M m:type=\"Edm.Double\">-Infinity</d:M>"
		"<d:W m:type=\"Edm.DateTime\">2024-02-29T01:02:03.4567891Z</d:W>"
		"<d:G m:type=\"Edm.Guid\">C9DA6455-213D-42C9-9A79-3E9149A57833</d:G>"
		"<d:B m:type=\"Edm.Binary\">AAECAwQ=</d:B><d:B2 m:type=\"Edm.Binary\"/>",
		"{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"S\":\"text\",\"S2\":\"\",\"S3\":\"\","
		"\"S4\":\"x\",\"T\":true,\"F\":false,\"U\":true,\"I\":-7,\"L@odata.type\":\"Edm.Int64\","
		"\"L\":\"9007199254740993\",\"D\":1.5E+300,\"Z\":-0.0,"
		"\"N@odata.type\":\"Edm.Double\",\"N\":\"NaN\",\"P@odata.type\":\"Edm.Double\","
		"\"P\":\"Infinity\",\"M@odata.type\":\"Edm.Double\",\"M\":\"-Infinity\","
		"\"W@odata.type\":\"Edm.DateTime\",\"W\":\"2024-02-29T01:02:03.4567891Z\","
		"\"G@odata.type\":\"Edm.Guid\",\"G\":\"c9da6455-213d-42c9-9a79-3e9149a57833\","
		"\"B@odata.type\":\"Edm.Binary\",\"B\":\"AAECAwQ=\","
		"\"B2@odata.type\":\"Edm.Binary\",\"B2\":\"\"}");
}

TEST(only_in_a_string_blanks_count)
{
	becomes("<d:I m:type=\"Edm.Int32\">\n\t5\r\n </d:I><d:S> \n x </d:S><d:E>  </d:E>"
		"<d:B m:type=\"Edm.Binary\">\nAAEC\r\n\tAw Q=\n</d:B>",
		"{\"I\":5,\"S\":\" \\n x \",\"E\":\"  \",\"B@odata.type\":\"Edm.Binary\","
		"\"B\":\"AAECAwQ=\"}");
}

TEST(a_null_is_no_property)
{
	becomes("<d:A m:null=\"true\"/><d:B m:null=\"1\" m:type=\"Edm.Int32\">x</d:B>"
		"<d:C m:null=\"false\">c</d:C><d:D m:null=\"0\">d</d:D><d:E null=\"true\">e</d:E>",
		"{\"C\":\"c\",\"D\":\"d\",\"E\":\"e\"}");
	becomes("<d:A>&#1;</d:A><d:B/>", "{\"A\":\"\\u0001\",\"B\":\"\"}");
	refuses("<d:A m:null=\"yes\"/>", ERR_VALUE_INVALID, "m:null is either true or false");
	refuses("<d:PartitionKey m:null=\"true\"/>", ERR_KEY_MISSING, "The values are not");
	refuses("<d:RowKey m:null=\"true\">r</d:RowKey>", ERR_KEY_MISSING, "The values are not");
	refuses("<d:a-b m:null=\"true\"/>", ERR_PROPERTY_NAME_INVALID, "");
}

TEST(keys_are_strings)
{
	CHECK_ERR(reads("<d:PartitionKey></d:PartitionKey>"), ERR_OK);
	CHECK(entity.has_pk && entity.pk.n == 0 && !entity.has_rk);
	CHECK_ERR(reads("<d:RowKey m:type=\"Edm.String\"> r</d:RowKey>"), ERR_OK);
	CHECK(!entity.has_pk && entity.has_rk && span_is(entity.rk, " r"));
	refuses("<d:RowKey m:type=\"Edm.Int32\">1</d:RowKey>", ERR_VALUE_INVALID,
		"a key must be a string");
	refuses("<d:PartitionKey>a/b</d:PartitionKey>", ERR_KEY_INVALID, "");
	refuses("<d:RowKey>&#x1;</d:RowKey>", ERR_KEY_INVALID, "");
}

TEST(what_is_not_known_is_passed_over)
{
	static const char body[] =
		"\xef\xbb\xbf<?xml version='1.0'?><!-- c --><a:entry xmlns:a='" ATOM_SPACE
		"' xmlns:q='" ATOM_DATA "'><a:id>x</a:id><x><m:properties xmlns:m='" ATOM_METADATA
		"'><q:No>1</q:No></m:properties></x>text<a:content src='y'><z><q:No>1</q:No></z>"
		"<properties xmlns='" ATOM_METADATA "'>text<q:A>1<!-- c -->2<?pi?>"
		"<![CDATA[3<]]></q:A></properties></a:content>"
		"<m:properties xmlns:m='" ATOM_METADATA "'><q:B>x</q:B></m:properties><a:content/>"
		"</a:entry>\n<!-- c -->";

	CHECK_ERR(decode(span_of(body)), ERR_OK);
	CHECK_EQ_STR(detail.text, "");
	buf_clear(&out);
	entity_json_encode(&entity, 0, &out);
	CHECK_EQ_STR(out.data, "{\"A\":\"123<\",\"B\":\"x\"}");
}

TEST(an_entry_is_wanted)
{
	static const struct {
		const char *body, *why;
	} bad[] = {
		{ "", "The document is empty" },
		{ "\xef\xbb\xbf", "The document is empty" },
		{ "{\"A\":1}", "not well-formed: Start tag expected, '<' not found" },
		{ "<entry/>", "must be an Atom entry (" ATOM_SPACE "), not 'entry'" },
		{ "<feed xmlns='" ATOM_SPACE "'/>", "not 'feed'" },
		{ "<entry xmlns='" ATOM_SPACE "'/>", "no element 'properties' of " ATOM_METADATA },
		{ XML "<entry " SPACES
		      "><content><m:properties><A/></m:properties></content></entry>",
			"A property must have the namespace " ATOM_DATA },
		{ HEAD "<d:A>1</d:A>", "not well-formed: " },
		{ HEAD "<d:A><b/></d:A>" TAIL, "A property must not contain elements" },
		{ HEAD "<d:A>&nosuch;</d:A>" TAIL, "Entity 'nosuch' not defined" },
		{ HEAD "<q:A/>" TAIL, "Namespace prefix q on A is not defined" },
		{ HEAD "<d:A m:type='Edm.String' m:type='x'/>" TAIL, "Attribute m:type redefined" },
		{ HEAD "<d:A>&#xD800;</d:A>" TAIL, "not well-formed: " },
		{ HEAD "<d:A>\x01</d:A>" TAIL, "not well-formed: " },
		{ HEAD "<d:A>\xef\xbf\xbe&#1;</d:A>" TAIL, "not well-formed: " },
		{ HEAD "<d:A>\xff</d:A>" TAIL, "not valid UTF-8" },
		{ "<?xml version='1.0' encoding='utf-16'?><entry/>", "declares the encoding" },
		{ "<!DOCTYPE entry [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><entry>&e;</entry>",
			"a document type is not allowed" },
		{ "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "not 'a'" },
		{ XML "<entry " SPACES "><x><x><x><x><x><x><x><x><x><x><x><x><x><x><x><x/>",
			"nested too deeply" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_ERR(decode(span_of(bad[i].body)), ERR_VALUE_INVALID);
		if (strstr(detail.text, bad[i].why) == NULL)
			CHECK_EQ_STR(detail.text, bad[i].why);
	}
	CHECK_ERR(decode(SPAN_LIT("<a>\0</a>")), ERR_VALUE_INVALID);
}

TEST(a_mistake_has_its_place)
{
	CHECK_ERR(reads("\n<d:A>1</d:A>\n  <d:B m:type=\"Edm.Int32\">&#1;\nx</d:B>"),
		ERR_VALUE_INVALID);
	CHECK_EQ_INT(detail.line, 3);
	CHECK_ERR(reads("\n<d:A>1</d:A>\n  <d:B m:type=\"Edm.Int32\">x</d:B>"), ERR_VALUE_INVALID);
	CHECK_EQ_INT(detail.line, 3);
	CHECK_EQ_INT(detail.column, (int)strlen("  <d:B m:type=\"Edm.Int32\">"));
	CHECK_EQ_STR(detail.text, "The property 'B': 'x' is not a value of Edm.Int32.");
}

TEST(what_is_wrong_with_the_XML_is_told_with_its_place)
{
	static const struct {
		const char *body;
		unsigned line, column;
		const char *why;
	} bad[] = {
		{ "<entry xmlns='" ATOM_SPACE "'>\n  &nosuch;</entry>", 2, 11,
			"The XML is not well-formed: Entity 'nosuch' not defined" },
		{ "<entry xmlns='" ATOM_SPACE "'>\n<y></z></entry>", 2, 8,
			"The XML is not well-formed: Opening and ending tag mismatch: y line 2 and "
			"z" },
		{ "<?xml version='1.0'?>\n <!DOCTYPE x><x/>", 2, 13,
			"Not accepted: a document type is not allowed." },
		{ "<?xml version='1.0' encoding='x'?><x/>", 1, 31,
			"The XML document declares the encoding 'x'; only utf-8 is read." },
		{ "<x>\n\xff", 2, 1, "The XML document is not valid UTF-8." },
		{ XML "<entry " SPACES ">\n<x><x><x><x><x><x><x><x><x><x><x><x><x><x><x><x>", 2, 48,
			"Not accepted: elements are nested too deeply." },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_ERR(
			entity_atom_decode(span_of(bad[i].body), &entity, NULL), ERR_VALUE_INVALID);
		CHECK_ERR(decode(span_of(bad[i].body)), ERR_VALUE_INVALID);
		CHECK_EQ_STR(detail.text, bad[i].why);
		CHECK_EQ_INT(detail.line, bad[i].line);
		CHECK_EQ_INT(detail.column, bad[i].column);
	}
	CHECK_ERR(decode(SPAN_LIT("<x>\n<y>\0")), ERR_VALUE_INVALID);
	CHECK_EQ_STR(detail.text, "The document contains a NUL.");
	CHECK(detail.line == 2 && detail.column == 4);
}

/* Cut between characters. */
TEST(long_words_of_the_parser_are_cut)
{
	for (size_t shift = 0; shift < 2; shift++) {
		buf_clear(&other);
		buf_add_str(&other, shift == 0 ? HEAD "&" : HEAD "&a");
		for (size_t i = 0; i < 1000; i++)
			buf_add_str(&other, "\xc3\xa9");
		buf_add_str(&other, ";</x>");
		CHECK_ERR(decode(buf_span(&other)), ERR_VALUE_INVALID);
		CHECK(strlen(detail.text) > 150 && utf8_valid(span_of(detail.text)));
	}
}

TEST(an_entry_has_a_thousand_instructions)
{
	for (size_t n = XML_INSTRUCTIONS_MAX; n <= XML_INSTRUCTIONS_MAX + 1; n++) {
		buf_clear(&other);
		for (size_t i = 0; i < n; i++)
			buf_addf(&other, "<?a%zu?>", i);
		CHECK_ERR(
			reads(other.data), n == XML_INSTRUCTIONS_MAX ? ERR_OK : ERR_VALUE_INVALID);
	}
	CHECK_EQ_STR(detail.text, "Not accepted: too many processing instructions.");
	CHECK(detail.line == 1 && detail.column > 5000);
}

/* Counted from the root, whatever is done with what stands there. */
TEST(elements_are_nested_sixteen_deep)
{
	struct arena arena = { 0 };
	struct xml_node *root;

	for (size_t depth = 16; depth <= 17; depth++) {
		const char *why =
			depth == 16 ? "" : "Not accepted: elements are nested too deeply.";
		buf_clear(&other);
		buf_add_str(&other, XML "<entry " SPACES ">");
		for (size_t i = 2; i <= depth; i++)
			buf_add_str(&other, "<x>");
		for (size_t i = 2; i <= depth; i++)
			buf_add_str(&other, "</x>");
		buf_add_str(&other, "<content><m:properties><d:A>1</d:A>" TAIL);
		CHECK_ERR(decode(buf_span(&other)), depth == 16 ? ERR_OK : ERR_VALUE_INVALID);
		CHECK_EQ_STR(detail.text, why);
		detail = (struct err_detail){ 0 };
		CHECK_ERR(xml_parse(buf_span(&other), &arena, &root, &detail),
			depth == 16 ? ERR_OK : ERR_XML_INVALID);
		CHECK_EQ_STR(detail.text, why);
	}
	arena_fini(&arena);
}

/* Of the JSON reader. */
static void json_says(const char *type, const char *value, enum err want)
{
	struct err_detail theirs = { 0 };

	buf_clear(&other);
	buf_addf(&other, "{\"X@odata.type\":\"%s\",\"X\":\"%s\"}", type, value);
	CHECK_ERR(entity_json_decode(buf_span(&other), ENTITY_JSON_REST, &entity, NULL, &theirs),
		want);
	buf_clear(&other);
	buf_addf(&other, "<d:X m:type=\"%s\">%s</d:X>", type, value);
	CHECK_ERR(reads(other.data), want);
	CHECK_EQ_STR(detail.text, theirs.text);
}

TEST(both_formats_refuse_with_the_same_words)
{
	static const char *const types[] = { "Edm.Boolean", "Edm.Int32", "Edm.Int64", "Edm.Double",
		"Edm.DateTime", "Edm.Guid", "Edm.Binary" };

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		json_says(types[i], "(x)", ERR_VALUE_INVALID);
	json_says("Edm.Byte", "1", ERR_VALUE_INVALID);
	json_says("edm.int32", "1", ERR_VALUE_INVALID);
	json_says("Edm.Int32", "2147483648", ERR_VALUE_INVALID);
	json_says("Edm.Int64", "9223372036854775808", ERR_VALUE_INVALID);
	json_says("Edm.Double", "1e400", ERR_VALUE_INVALID);
	json_says("Edm.DateTime", "1600-12-31T23:59:59Z", ERR_OUT_OF_RANGE);
	json_says("Edm.DateTime", "1600-12-31T23:59Z", ERR_OUT_OF_RANGE);
	json_says("Edm.Guid", "c9da6455", ERR_VALUE_INVALID);
}

/* A name or type of 150 characters is told in part. */
TEST(long_names_are_cut_in_messages)
{
	static const char *const forms[] = { "<d:A m:type=\"%s\"/>", "<d:%s/><d:%s/>",
		"<d:%s m:type=\"Edm.Int32\">x</d:%s>" };
	char name[151];

	memset(name, 'N', 150);
	name[150] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		buf_clear(&other);
		for (const char *p = forms[i]; *p != '\0'; p++) {
			if (*p == '%')
				buf_add_str(&other, name);
			else if (*p != 's' || p == forms[i] || p[-1] != '%')
				buf_add_char(&other, *p);
		}
		CHECK(reads(other.data) != ERR_OK);
		CHECK(strlen(detail.text) > 100 && strlen(detail.text) < 190);
	}
	buf_clear(&other);
	buf_addf(&other, "<%s/>", name);
	CHECK_ERR(decode(buf_span(&other)), ERR_VALUE_INVALID);
	CHECK(strlen(detail.text) > 100 && strlen(detail.text) < 200);
}

TEST(an_entry_has_a_thousand_elements)
{
	/* entry, title, content, m:properties are there. */
	for (size_t n = 996; n <= 997; n++) {
		buf_clear(&other);
		for (size_t i = 0; i < n; i++)
			buf_addf(&other, "<d:N%zu m:null=\"true\"/>", i);
		CHECK_ERR(reads(other.data), n == 996 ? ERR_OK : ERR_VALUE_INVALID);
	}
	CHECK_EQ_STR(detail.text, "The entry has too many elements.");
}

/* Whatever the mistake is, the parser is given no more. */
TEST(behind_a_mistake_nothing_is_read)
{
	static const char *const mistakes[] = { "<d:A></d:B>", "<d:A>&nosuch;", "<d:A>]]>",
		"<d:A><b a='<'>", "<d:A><b a>", "<d:A>\x01", "<q:A/>", "<d:A>&" };

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		buf_clear(&text);
		buf_add_str(&text, HEAD);
		buf_add_str(&text, mistakes[i]);
		for (size_t n = 0; n < 10000; n++)
			buf_add_str(&text, "<x a='b'/>text");
		CHECK_ERR(decode(buf_span(&text)), ERR_VALUE_INVALID);
		CHECK(strstr(detail.text, "not well-formed: ") != NULL);
		CHECK_EQ_INT(detail.line, 1);
	}
}

TEST(a_property_stands_once)
{
	refuses("<d:A>1</d:A><d:B/><d:A>1</d:A>", ERR_PROPERTY_DUPLICATE,
		"The property 'A' is specified more than one time.");
	refuses("<d:A>1</d:A><d:A m:null=\"true\"/>", ERR_PROPERTY_DUPLICATE, "'A'");
	refuses("<d:RowKey/><d:RowKey/>", ERR_PROPERTY_DUPLICATE, "'RowKey'");
	refuses("<d:Timestamp/><d:Timestamp/>", ERR_PROPERTY_DUPLICATE, "'Timestamp'");
	CHECK_ERR(reads("<d:Timestamp m:type=\"Edm.Nothing\">x</d:Timestamp><d:a/><d:A/>"), ERR_OK);
	CHECK_EQ_INT(entity.nprops, 2);
}

static void fill(char c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_add_char(&other, c);
}

static const char *element(const char *attributes, char c, size_t n)
{
	buf_clear(&other);
	buf_addf(&other, "<d:X%s>", attributes);
	fill(c, n);
	buf_add_str(&other, "</d:X>");
	return other.data;
}

TEST(limits_hold)
{
	CHECK_ERR(reads(element("", 'x', 32768)), ERR_OK);
	refuses(element("", 'x', 32769), ERR_PROPERTY_TOO_LARGE, "longer than 32768");
	CHECK_ERR(reads(element(" m:type=\"Edm.Binary\"", 'A', 87380)), ERR_OK);
	CHECK_EQ_INT(entity.props[0].value.bytes.n, 65535);
	CHECK_ERR(reads(element(" m:type=\"Edm.Binary\"", 'A', 87384)), ERR_PROPERTY_TOO_LARGE);

	for (size_t n = 255; n <= 256; n++) {
		buf_clear(&other);
		buf_add_str(&other, "<d:");
		fill('n', n);
		buf_add_str(&other, "/>");
		CHECK_ERR(reads(other.data), n == 255 ? ERR_OK : ERR_PROPERTY_NAME_LONG);
	}
	for (size_t n = 512; n <= 513; n++) {
		buf_clear(&other);
		buf_add_str(&other, "<d:RowKey>");
		fill('k', n);
		buf_add_str(&other, "</d:RowKey>");
		CHECK_ERR(reads(other.data), n == 512 ? ERR_OK : ERR_KEY_TOO_LARGE);
	}
	for (size_t n = 252; n <= 253; n++) {
		buf_clear(&other);
		for (size_t i = 0; i < 300; i++)
			buf_addf(&other, "<d:N%zu m:null=\"true\"/>", i);
		for (size_t i = 0; i < n; i++)
			buf_addf(&other, "<d:P%zu/>", i);
		CHECK_ERR(reads(other.data), n == 252 ? ERR_OK : ERR_TOO_MANY_PROPERTIES);
	}
}

/* 16 strings of 32,767 and one that is too much. */
TEST(a_mebibyte_is_the_most)
{
	for (size_t n = 0; n < 2; n++) {
		buf_clear(&other);
		for (size_t i = 0; i < 15; i++) {
			buf_addf(&other, "<d:P%02zu>", i);
			fill('x', 32768);
			buf_addf(&other, "</d:P%02zu>", i);
		}
		/* 4, and for each 8 + 2 * 3 + 4 + 65536 */
		buf_add_str(&other, "<d:Q>");
		fill('x', (1048576 - 4 - 15 * (18 + 65536) - 14) / 2 + n);
		buf_add_str(&other, "</d:Q>");
		CHECK_ERR(reads(other.data), n == 0 ? ERR_OK : ERR_ENTITY_TOO_LARGE);
	}
	CHECK_EQ_STR(detail.text, err_text(ERR_ENTITY_TOO_LARGE));
}

TEST(four_mebibytes_are_the_most)
{
	for (size_t n = 0; n < 2; n++) {
		buf_clear(&text);
		buf_add_str(&text, HEAD TAIL);
		while (text.len < LIMIT_DOCUMENT_BYTES + n)
			buf_add_char(&text, '\n');
		CHECK_ERR(decode(buf_span(&text)), n == 0 ? ERR_OK : ERR_BODY_TOO_LARGE);
	}
	buf_clear(&text);
}

TEST(a_table_has_a_name)
{
	static const struct {
		const char *properties;
		enum err e;
	} all[] = {
		{ "<d:Other>x</d:Other><d:TableName>Tab</d:TableName>", ERR_OK },
		{ "<d:TableName m:type=\"Edm.Int32\">1</d:TableName>", ERR_KEY_MISSING },
		{ "<d:TableName m:null=\"true\"/>", ERR_KEY_MISSING },
		{ "", ERR_KEY_MISSING },
		{ "<d:TableName>Tab</d:TableName><d:TableName>Tab</d:TableName>",
			ERR_PROPERTY_DUPLICATE },
		{ "<d:TableName><x/></d:TableName>", ERR_VALUE_INVALID },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct arena arena = { 0 };
		struct span name = { 0 };
		buf_clear(&text);
		buf_addf(&text, "%s%s%s", HEAD, all[i].properties, TAIL);
		CHECK_ERR(table_atom_decode(buf_span(&text), &arena, &name, &detail), all[i].e);
		CHECK(all[i].e != ERR_OK || span_is(name, "Tab"));
		arena_fini(&arena);
	}
}

/* ---- writing ---- */

static const char canonical[] =
	"{\"N@odata.type\":\"Edm.Int64\",\"N\":\"5\",\"S\":\"x\\\"<y>\\\\&\\r\\u0001\",\"I\":-1,\"B\":true,"
	"\"F\":false,\"D\":1.5,\"X@odata.type\":\"Edm.Double\",\"X\":\"NaN\","
	"\"P@odata.type\":\"Edm.Double\",\"P\":\"Infinity\",\"M@odata.type\":\"Edm.Double\","
	"\"M\":\"-Infinity\",\"Y@odata.type\":\"Edm.Binary\",\"Y\":\"Infinity\",\"Z\":\"Infinity\"}\n";
#define KEYS \
	"<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>" \
	"<d:Timestamp m:type=\"Edm.DateTime\">" TIME "</d:Timestamp>"
#define STRING "<d:S>x\"&lt;y&gt;\\&amp;&#xD;&#x1;</d:S>"
#define VALUES \
	"<d:N m:type=\"Edm.Int64\">5</d:N>" STRING \
	"<d:I m:type=\"Edm.Int32\">-1</d:I><d:B m:type=\"Edm.Boolean\">true</d:B>" \
	"<d:F m:type=\"Edm.Boolean\">false</d:F><d:D m:type=\"Edm.Double\">1.5</d:D>" \
	"<d:X m:type=\"Edm.Double\">NaN</d:X><d:P m:type=\"Edm.Double\">INF</d:P>" \
	"<d:M m:type=\"Edm.Double\">-INF</d:M><d:Y m:type=\"Edm.Binary\">Infinity</d:Y>" \
	"<d:Z>Infinity</d:Z>"

TEST(a_document_is_shown_whatever_its_form)
{
	struct entity e = { 0 };

	set_document(canonical, true);
	renders(KEYS VALUES);
	set_document(canonical, false);
	renders(KEYS VALUES);
	CHECK_ERR(entity_json_decode(span_of(canonical), ENTITY_JSON_FILE, &e, NULL, NULL), ERR_OK);
	set_document("not looked at", false);
	row.entity = &e;
	renders(KEYS VALUES);
	entity_fini(&e);
	set_document("{}\n", true);
	renders(KEYS);
	set_document("{}", false);
	renders(KEYS);
}

TEST(selected_properties_come_in_order_and_missing_ones_as_null)
{
	static const struct span names[] = { SPAN_LIT("X"), SPAN_LIT("Timestamp"), SPAN_LIT("N"),
		SPAN_LIT("Lacks"), SPAN_LIT("S"), SPAN_LIT("RowKey"), SPAN_LIT("PartitionKey") };
	static const char want[] =
		"<d:X m:type=\"Edm.Double\">NaN</d:X><d:Timestamp m:type=\"Edm.DateTime\">" TIME
		"</d:Timestamp><d:N m:type=\"Edm.Int64\">5</d:N><d:Lacks m:null=\"true\" />" STRING
		"<d:RowKey>r</d:RowKey><d:PartitionKey>p</d:PartitionKey>";

	select_names(names, ARRAY_LEN(names));
	set_document(canonical, true);
	renders(want);
	set_document(canonical, false);
	renders(want);
	select_names(names + 3, 1);
	set_document("{}\n", true);
	renders("<d:Lacks m:null=\"true\" />");
	select_all();
}

TEST(an_entry_is_whole)
{
	set_document("{}\n", true);
	row.pk = SPAN_LIT("a&b'c{<\"\xc3\xa9");
	buf_clear(&out);
	style.single = true;
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
#define URL "t(PartitionKey='a&amp;b''c%7B%3C%22%C3%A9',RowKey='r')"
#define ENTRY \
	"<id>" BASE URL \
	"</id><title type=\"text\"></title><updated>2021-10-15T16:13:07Z</updated>" \
	"<author><name /></author><link rel=\"edit\" title=\"t\" href=\"" URL "\" />" \
	"<category term=\"acct.t\" scheme=\"" ATOM_DATA "/scheme\" />" \
	"<content type=\"application/xml\"><m:properties>" \
	"<d:PartitionKey>a&amp;b'c{&lt;\"\xc3\xa9</d:PartitionKey><d:RowKey>r</d:RowKey>" \
	"<d:Timestamp m:type=\"Edm.DateTime\">" TIME "</d:Timestamp>" TAIL
#define ROOT(name_, etag_) \
	XML "<" name_ " xml:base=\"" BASE "\" xmlns:d=\"" ATOM_DATA "\" xmlns:m=\"" ATOM_METADATA \
	    "\"" etag_ " xmlns=\"" ATOM_SPACE "\">"
	CHECK_EQ_STR(out.data, ROOT("entry", " " ETAG) ENTRY);
	style.single = false;
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
	CHECK_EQ_STR(out.data, "<entry " ETAG ">" ENTRY);
	row.pk = SPAN_LIT("");
	row.rk = SPAN_LIT("a&");
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
	CHECK(strstr(out.data, "(PartitionKey='',RowKey='a&amp;')\"") != NULL);
	row.pk = SPAN_LIT("p");
	row.rk = SPAN_LIT("r");
}

static int64_t noon(void)
{
	return version();
}

TEST(tables_and_feeds_are_whole)
{
#define TABLE \
	"<id>" BASE "Tables('Tab')</id><title type=\"text\"></title>" \
	"<updated>2021-10-15T16:13:07Z</updated><author><name /></author>" \
	"<link rel=\"edit\" title=\"Tables\" href=\"Tables('Tab')\" />" \
	"<category term=\"acct.Tables\" scheme=\"" ATOM_DATA "/scheme\" />" \
	"<content type=\"application/xml\"><m:properties><d:TableName>Tab</d:TableName>" TAIL
	clock_set_source(noon);
	buf_clear(&out);
	style.single = true;
	table_atom_render(&style, SPAN_LIT("Tab"), &out);
	CHECK_EQ_STR(out.data, ROOT("entry", "") TABLE);
	style.single = false;
	buf_clear(&out);
	atom_feed_begin(&style, SPAN_LIT("Tables"), &out);
	table_atom_render(&style, SPAN_LIT("Tab"), &out);
	atom_feed_end(&out);
	CHECK_EQ_STR(out.data,
		ROOT("feed", "") "<title type=\"text\">Tables</title><id>" BASE
				 "Tables</id><updated>2021-10-15T16:13:07Z</updated>"
				 "<link rel=\"self\" title=\"Tables\" href=\"Tables\" />"
				 "<entry>" TABLE "</feed>");
	clock_set_source(NULL);
}

TEST(a_damaged_document_is_told)
{
	static char many[LIMIT_PROPERTIES * 16];
	size_t n = 0;
	static const struct span name = SPAN_LIT("A");
	static const char *const damaged[] = { "", "{", "{\"A\":1,}", "{\"A\"}", "{\"A\":\"\\q\"}",
		"{\"A\":\"\\u12\"}", "{\"A\":\"b\\q and more behind it\"}" };

	for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
		for (int canonical_form = 0; canonical_form < 2; canonical_form++) {
			set_document(damaged[i], canonical_form == 1);
			buf_clear(&out);
			CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_CORRUPT);
			select_names(&name, 1);
			buf_clear(&out);
			CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_CORRUPT);
			select_all();
		}
	}
	for (int i = 0; i <= LIMIT_PROPERTIES; i++)
		n += (size_t)snprintf(
			many + n, sizeof(many) - n, "%c\"P%d\":1", i == 0 ? '{' : ',', i);
	(void)snprintf(many + n, sizeof(many) - n, "}");
	set_document(many, true);
	select_names(&name, 1);
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_CORRUPT);
	select_all();
}

/* ---- there and back ---- */

/* Writes the entity as a row of either form, and reads it again. */
static void comes_back(struct entity *e)
{
	struct buf json = BUF_INIT(BIG);
	size_t n = e->nprops;

	entity_json_encode(e, 0, &json);
	set_document(json.data, true);
	style.single = true;
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
	row.canonical = false;
	row.entity = e;
	buf_clear(&other);
	CHECK_ERR(entity_atom_render(&style, &row, &other), ERR_OK);
	row.entity = NULL;
	CHECK(span_eq(buf_span(&out), buf_span(&other)));
	CHECK_ERR(decode(buf_span(&out)), ERR_OK);
	CHECK_EQ_INT(entity.nprops, n);
	for (size_t i = 0; i < n && i < entity.nprops; i++)
		CHECK(span_eq(entity.props[i].name, e->props[i].name) &&
			value_same(&entity.props[i].value, &e->props[i].value));
	buf_fini(&json);
	entity_fini(e);
}

static void string_comes_back(struct span s)
{
	struct entity e = { 0 };
	struct value v = { .type = EDM_STRING, .bytes = s };

	CHECK_ERR(entity_add(&e, SPAN_LIT("S"), &v), ERR_OK);
	comes_back(&e);
}

/* Each of them between others of its kind, in strings of a thousand. */
TEST(every_character_comes_back)
{
	struct buf s = BUF_INIT(BIG);

	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		char c[4];
		if (cp >= 0xd800 && cp <= 0xdfff)
			continue;
		/* Of the higher planes a sixteenth will do. */
		if (cp < 0x10000 || cp % 0x10000 < 0x1000)
			buf_add(&s, c, utf8_write(cp, c));
		if (s.len > 8000 || cp == 0x10ffff) {
			string_comes_back(buf_span(&s));
			buf_clear(&s);
		}
	}
	buf_fini(&s);
}

TEST(awkward_strings_come_back)
{
	static const struct span awkward[] = {
		SPAN_LIT(""),
		SPAN_LIT(" "),
		SPAN_LIT("\n"),
		SPAN_LIT("\r"),
		SPAN_LIT("\r\n"),
		SPAN_LIT("\t x"),
		SPAN_LIT("x\n"),
		SPAN_LIT("x\r"),
		SPAN_LIT("a\rb\r\nc\nd"),
		SPAN_LIT("\0"),
		SPAN_LIT("a\0b\x01\x1f"),
		SPAN_LIT("]]>"),
		SPAN_LIT("]]>\x01]]>"),
		SPAN_LIT("<![CDATA[\x01]]>"),
		SPAN_LIT("<!-- \x02 -->"),
		SPAN_LIT("&#x1;"),
		SPAN_LIT("&amp;#1;\x01"),
		SPAN_LIT("\xc2\x80"),
		SPAN_LIT("\xc2\x80\x01"),
		SPAN_LIT("\xc2\x80"
			 "A\x01"),
		SPAN_LIT("\xc2\x80\xc2\x80\xc2\x80z\x01\xc2\x80"),
		SPAN_LIT("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"),
		SPAN_LIT("\xef\xbb\xbf"),
		SPAN_LIT("\xc2\x85\xe2\x80\xa8"),
		SPAN_LIT("\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf"),
		SPAN_LIT("\"'\\"),
	};
	for (size_t i = 0; i < ARRAY_LEN(awkward); i++)
		string_comes_back(awkward[i]);
}

TEST(blanks_at_an_end_are_said_to_count)
{
	set_document(
		"{\"A\":\" x\",\"B\":\"x\\n\",\"C\":\"x x\",\"D\":\"\\tx\",\"E\":\"\\r\"}\n", true);
#define KEEP " xml:space=\"preserve\""
	renders(KEYS "<d:A" KEEP "> x</d:A><d:B" KEEP ">x\n</d:B><d:C>x x</d:C><d:D" KEEP
		     ">\tx</d:D><d:E" KEEP ">&#xD;</d:E>");
}

/* On both sides of what is written in one piece, with a name that needs an escape and with one
 * that does not. */
TEST(long_values_come_back)
{
	static const char *const names[] = { "N", "N\xc2\xb5" };

	for (size_t n = 1023; n < 1027; n++) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			struct buf s = BUF_INIT(BIG);
			struct entity e = { 0 };
			CHECK(buf_resize(&s, n));
			const struct value v[] = { { .type = EDM_STRING, .bytes = buf_span(&s) },
				{ .type = EDM_BINARY, .bytes = buf_span(&s) },
				{ .type = EDM_INT32, .int32 = -5 } };
			CHECK_ERR(entity_add(&e, span_of(names[i]), &v[0]), ERR_OK);
			CHECK_ERR(entity_add(&e, SPAN_LIT("B"), &v[1]), ERR_OK);
			CHECK_ERR(entity_add(&e, SPAN_LIT("I\xc2\xb5"), &v[2]), ERR_OK);
			comes_back(&e);
			buf_fini(&s);
		}
	}
}

TEST(a_long_string_that_is_damaged_is_told)
{
	struct buf json = BUF_INIT(BIG);

	buf_add_str(&json, "{\"A\":\"");
	for (int i = 0; i < 2000; i++)
		buf_add_char(&json, 'x');
	buf_add_str(&json, "\\q\"}");
	set_document(json.data, true);
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_CORRUPT);
	buf_fini(&json);
}

TEST(a_row_that_does_not_fit_is_told_by_the_buffer)
{
	set_document("{\"A\":\"x\",\"N\xc2\xb5\":1}", true);
	buf_clear(&out);
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
	for (size_t limit = 0; limit < out.len; limit++) {
		struct buf small = BUF_INIT(limit);
		CHECK_ERR(entity_atom_render(&style, &row, &small), ERR_OK);
		CHECK(!buf_ok(&small));
		buf_fini(&small);
	}
}

/* ---- pages ---- */

/* A row that comes after others is written as it is alone. */
static void is_written_as_alone(struct atom_tags *tags, const char *document)
{
	set_document(document, true);
	style.single = false;
	buf_clear(&out);
	buf_clear(&other);
	style.tags = NULL;
	enum err e = entity_atom_render(&style, &row, &out);
	style.tags = tags;
	CHECK_ERR(entity_atom_render(&style, &row, &other), e);
	style.tags = NULL;
	if (e == ERR_OK)
		CHECK_EQ_STR(other.data, out.data);
	CHECK(strlen(other.data) == other.len);
}

TEST(rows_of_a_page_are_written_as_each_alone)
{
	static const char *const documents[] = {
		"{\"A\":1,\"B\":\"x\",\"L@odata.type\":\"Edm.Int64\",\"L\":\"5\",\"T\":true}",
		"{\"A\":-7,\"B\":\"<\\r&\\\"\",\"L@odata.type\":\"Edm.Int64\",\"L\":\"-6\",\"T\":false}",
		/* Other kinds under the same names. */
		"{\"A\":1.5,\"B\":1,\"L\":\"5\",\"T\":\"true\"}",
		("{\"A\":\"1\",\"B\":true,\"L\":5,\"T@odata.type\":\"Edm.Guid\","
		 "\"T\":\"c9da6455-213d-42c9-9a79-3e9149a57833\"}"),
		"{\"A\":1e+300,\"B@odata.type\":\"Edm.Binary\",\"B\":\"\",\"L\":1,\"T\":0.5}",
		/* Missing, in another order, more. */
		"{}",
		"{\"T\":true}",
		"{\"T\":true,\"A\":2}",
		"{\"B\":\"x\",\"T\":true,\"Z\":1}",
		"{\"A\":1,\"AB\":2,\"B\":\"\",\"BA\":\"\"}",
		/* Blanks at an end, before one that has none and behind it. */
		"{\"S\":\" x\",\"B\":\"x\\n\"}",
		"{\"S\":\"x\",\"B\":\"x\"}",
		"{\"S\":\"x \",\"B\":\"\\tx\"}",
		/* What XML spells in another way. */
		"{\"D@odata.type\":\"Edm.Double\",\"D\":\"NaN\"}",
		"{\"D@odata.type\":\"Edm.Double\",\"D\":\"Infinity\"}",
		"{\"D@odata.type\":\"Edm.Double\",\"D\":\"-Infinity\"}",
		"{\"N\xc2\xb5\":1,\"N\xc3\xa9\":\"x\"}",
		"{\"N\xc2\xb5\":2,\"N\xc3\xa9\":\"y\"}",
		/* Damaged. */
		"{\"A\":1,\"B\":\"x}",
		"{\"A\":1,\"B\":\"x\\q\"}",
		"{\"A\":1,}",
		"{\"A\":}",
		"{\"A\":1,\"B\":\"x\",\"L@odata.type\":\"Edm.Int64\",\"L\":5}",
	};
	struct arena arena = { 0 };
	struct atom_tags *tags = atom_tags_new(&arena);

	for (size_t a = 0; a < ARRAY_LEN(documents); a++)
		for (size_t b = 0; b < ARRAY_LEN(documents); b++) {
			is_written_as_alone(tags, documents[a]);
			is_written_as_alone(tags, documents[b]);
		}
	for (size_t a = 0; a < ARRAY_LEN(documents); a++)
		for (size_t b = 0; b < ARRAY_LEN(documents); b++) {
			arena_reset(&arena);
			tags = atom_tags_new(&arena);
			is_written_as_alone(tags, documents[a]);
			is_written_as_alone(tags, documents[b]);
			is_written_as_alone(tags, documents[a]);
		}
	arena_fini(&arena);
}

/* Longer values and names than are written in one piece, and more names than are remembered. */
TEST(a_page_may_have_rows_of_any_size)
{
	struct arena arena = { 0 };
	struct atom_tags *tags = atom_tags_new(&arena);
	struct buf json = BUF_INIT(BIG);

	for (size_t i = 0; i < 40; i++) {
		buf_clear(&json);
		buf_add_str(&json, "{\"A\":\"");
		for (size_t k = 0; k < (i % 4 == 0 ? 3 : 1010 + i); k++)
			buf_add_str(&json, i % 3 == 0 ? "&" : "x");
		buf_addf(&json, "\",\"B\":%zu,\"N%0250zu\":%zu", i, (size_t)1, i);
		for (size_t k = 0; k < i * 4; k++)
			buf_addf(&json, ",\"C%zu\":%zu", k * (1 + i % 7), k);
		buf_add_char(&json, '}');
		is_written_as_alone(tags, json.data);
		is_written_as_alone(tags, json.data);
	}
	buf_fini(&json);
	arena_fini(&arena);
}

TEST(a_page_that_is_full_is_told_by_the_buffer)
{
	struct arena arena = { 0 };
	const char *document = "{\"A\":\"x\",\"N\xc2\xb5\":1,\"B\":true}";
	size_t one;

	set_document(document, true);
	buf_clear(&out);
	style.single = false;
	CHECK_ERR(entity_atom_render(&style, &row, &out), ERR_OK);
	one = out.len;
	for (size_t limit = 0; limit < 2 * one; limit++) {
		struct buf small = BUF_INIT(limit);
		arena_reset(&arena);
		style.tags = atom_tags_new(&arena);
		CHECK_ERR(entity_atom_render(&style, &row, &small), ERR_OK);
		CHECK_ERR(entity_atom_render(&style, &row, &small), ERR_OK);
		CHECK(!buf_ok(&small));
		buf_fini(&small);
	}
	style.tags = NULL;
	arena_fini(&arena);
}

TEST(values_come_back)
{
	static const double doubles[] = { 0.0, -0.0, 1.5, 1e300, 5e-324, -1e15, 0.1,
		(double)INFINITY, -(double)INFINITY, (double)NAN };
	struct entity e = { 0 };
	struct value v = { .type = EDM_DOUBLE };
	char names[ARRAY_LEN(doubles)][4];

	for (size_t i = 0; i < ARRAY_LEN(doubles); i++) {
		(void)snprintf(names[i], sizeof(names[i]), "D%zu", i);
		v.dbl = doubles[i];
		CHECK_ERR(entity_add(&e, span_of(names[i]), &v), ERR_OK);
	}
	v = (struct value){ .type = EDM_BINARY, .bytes = SPAN_LIT("\0\xff<&") };
	CHECK_ERR(entity_add(&e, SPAN_LIT("Bytes"), &v), ERR_OK);
	v = (struct value){ .type = EDM_INT64, .int64 = INT64_MIN };
	CHECK_ERR(entity_add(&e, SPAN_LIT("Long"), &v), ERR_OK);
	v = (struct value){ .type = EDM_DATETIME, .ticks = TICKS_MAX };
	CHECK_ERR(entity_add(&e, SPAN_LIT("Last"), &v), ERR_OK);
	v = (struct value){ .type = EDM_GUID, .guid = { 1, 2, 0xff } };
	CHECK_ERR(entity_add(&e, SPAN_LIT("Guid"), &v), ERR_OK);
	comes_back(&e);
}

TEST(every_name_comes_back)
{
	static const struct {
		const char *name, *written;
	} all[] = {
		{ "_", "_" },
		{ "ax_xb", "ax_xb" },
		{ "\xc3\xa9", "\xc3\xa9" },
		{ "\xc2\xaa", "_x00AA_" },
		{ "a\xc2\xb5_\xc2\xba", "a_x00B5___x00BA_" },
		{ "_x00AA_", "_x005F_x00AA_" },
		{ "_x00AA_x00AA_", "_x005F_x00AA_x005F_x00AA_" },
		{ "_x005F_", "_x005F_x005F_" },
		{ "_x00AA\xc2\xba", "_x005F_x00AA_x00BA_" },
		{ "_x0020_", "_x0020_" },
		{ "_x00aa_", "_x00aa_" },
		{ "_x00A_x", "_x00A_x" },
		{ "x_x00AAB", "x_x00AAB" },
		{ "_x00AG_", "_x00AG_" },
		{ "A_y00AA_", "A_y00AA_" },
		{ "a\xe2\x81\xa0\xe2\xb8\xaf", "a_x2060_\xe2\xb8\xaf" },
		{ "\xf0\x9d\x9f\x8b", "\xf0\x9d\x9f\x8b" },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct entity e = { 0 };
		struct value v = { .type = EDM_BOOLEAN, .boolean = true };
		struct buf name = BUF_INIT(1000);
		xml_name_add(&name, span_of(all[i].name));
		CHECK_EQ_STR(name.data, all[i].written);
		name.len = xml_name_show(name.data, name.len);
		CHECK(span_is(buf_span(&name), all[i].name));
		buf_fini(&name);
		CHECK_ERR(entity_add(&e, span_of(all[i].name), &v), ERR_OK);
		comes_back(&e);
	}
	/* What the mount cannot have made; it is not looked behind its end. */
	struct buf name = BUF_INIT(100);
	xml_name_add(&name, SPAN_LIT("a\xff"));
	CHECK_EQ_STR(name.data, "a\xff");
	buf_fini(&name);
}

/* ---- characters that XML cannot carry ---- */

static void hides(const char *document, const char *want)
{
	struct buf hidden = BUF_INIT(BIG);

	CHECK(xml_controls_hide(span_of(document), &hidden) == (want != NULL));
	if (want != NULL)
		CHECK_EQ_STR(hidden.data, want);
	buf_fini(&hidden);
}

TEST(references_that_need_it_are_hidden)
{
	hides("", NULL);
	hides("&", NULL);
	hides("&#", NULL);
	hides("&#1", NULL);
	hides("&#9;&#10;&#13;&#32;&#x80;&amp;", NULL);
	hides("&#;&#x;&#1&#x1 ;&#-1;&#xg;&#X1;&#99999999999999999999;&#xFFFFFFFFFFFFFFFFFF1;",
		NULL);
	hides("&#0;",
		"\xc2\x80"
		"A");
	hides("a&#1;&#x1F;&#x0001;&#65534;&#xfFfF;b",
		"a\xc2\x80"
		"B\xc2\x80"
		"f\xc2\x80"
		"B\xc2\x80x\xc2\x80yb");
	hides("&#1;\xc2\x80&#x80;&#128;\xc2\x81\xc3\x80",
		"\xc2\x80"
		"B\xc2\x80z\xc2\x80z\xc2\x80z\xc2\x81\xc3\x80");
	hides("<![CDATA[&#1;\xc2\x80]]><!--&#1;--><?&#1;?>&#1;",
		"<![CDATA[&#1;\xc2\x80z]]><!--&#1;--><?&#1;?>\xc2\x80"
		"B");
	hides("&#1;<![CDATA[&#1;",
		"\xc2\x80"
		"B<![CDATA[&#1;");
	hides("&#1;<a b='&#2;'>",
		"\xc2\x80"
		"B<a b='\xc2\x80"
		"C'>");
	hides("&#1;\xc2",
		"\xc2\x80"
		"B\xc2");
}

TEST(a_mark_that_hides_nothing_is_shown_as_it_is)
{
	static const char *const same[] = { "", "\xc2\x80", "a\xc2\x80", "\xc2\x80!", "\xc2\x80g" };

	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		char copy[8];
		size_t n = strlen(same[i]);
		memcpy(copy, same[i], n);
		CHECK_EQ_INT(xml_controls_show(copy, n), n);
		CHECK(memcmp(copy, same[i], n) == 0);
	}
}

/* Characters and escapes in any order and number, for they are taken several at a time. */
TEST(whatever_stands_beside_it_is_written_in_the_same_way)
{
	static const struct {
		const char *raw, *want;
	} parts[] = { { "x", "x" }, { "abcdefg", "abcdefg" }, { "n", "n" }, { "&", "&amp;" },
		{ "<", "&lt;" }, { ">", "&gt;" }, { "\\\"", "\"" }, { "\\\\", "\\" },
		{ "\\n", "\n" }, { "\\t", "\t" }, { "\\r", "&#xD;" }, { "\\u001f", "&#x1F;" },
		{ "\xc3\xa9", "\xc3\xa9" }, { "\xef\xbf\xbf", "&#xFFFF;" },
		{ "\xef\xbc\x81", "\xef\xbc\x81" } };
	struct buf raw = BUF_INIT(BIG), want = BUF_INIT(BIG);
	uint32_t seed = 1;

	for (size_t i = 0; i < 20000; i++) {
		buf_clear(&raw);
		buf_clear(&want);
		/* Some only of the first, some longer than a piece. */
		size_t n = i % 1000 == 0 ? 1500 : i % 23, of = i % 3 == 0 ? 6 : ARRAY_LEN(parts);
		for (size_t k = 0; k < n; k++) {
			seed = seed * 1664525 + 1013904223;
			buf_add_str(&raw, parts[(seed >> 16) % of].raw);
			buf_add_str(&want, parts[(seed >> 16) % of].want);
		}
		buf_clear(&out);
		CHECK(atom_add_json_text(&out, buf_span(&raw)));
		REQUIRE(span_eq(buf_span(&out), buf_span(&want)));
		buf_add_char(&raw, '\\');
		buf_clear(&out);
		CHECK(!atom_add_json_text(&out, buf_span(&raw)));
	}
	buf_fini(&raw);
	buf_fini(&want);
}

TEST(bytes_that_are_no_character_are_passed_on)
{
	buf_clear(&out);
	atom_add_text(&out, SPAN_LIT("a\xef\xbf"));
	CHECK(span_is(buf_span(&out), "a\xef\xbf"));
}

TEST(escapes_of_a_document_become_characters)
{
	static const char *const broken[] = { "\\", "x\\", "\\q", "\\u", "\\u001", "\\u1001",
		"\\u0101", "\\u0021", "\\u00g1", "\\u001/", "\\u001:", "\\u001g", "\\u001A" };
	static const struct {
		const char *raw;
		bool blank_ends;
	} ends[] = { { "", false }, { "x", false }, { "n", false }, { " x", true }, { "x ", true },
		{ "\\nx", true }, { "x\\r", true }, { "\\t", true }, { "\\\\n", false },
		{ "xn", false }, { "\\\\\\n", true }, { "\\bx", false }, { "x\\f", false } };

	buf_clear(&out);
	CHECK(atom_add_json_text(
		&out, SPAN_LIT("\\\"\\\\\\n\\t\\r\\b\\f\\u0000\\u0009\\u001az\xef\xbf\xbe")));
	CHECK_EQ_STR(out.data, "\"\\\n\t&#xD;&#x8;&#xC;&#x0;&#x9;&#x1A;z&#xFFFE;");
	for (size_t i = 0; i < ARRAY_LEN(broken); i++)
		CHECK(!atom_add_json_text(&out, span_of(broken[i])));
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		CHECK_EQ_INT(atom_json_has_blank_ends(span_of(ends[i].raw)), ends[i].blank_ends);
}

/* Of a piece, too, that ends in the middle of a character. */
TEST(a_full_buffer_is_told_by_the_buffer)
{
	struct buf small = BUF_INIT(100);

	for (size_t n = 1020; n < 1030; n++) {
		buf_clear(&other);
		fill('x', n);
		buf_add_str(&other, "\xef\xbf\xbf&\xc3\xa9");
		buf_clear(&out);
		atom_add_text(&out, buf_span(&other));
		CHECK_EQ_INT(out.len, n + 8 + 5 + 2);
		CHECK(span_ends(buf_span(&out), SPAN_LIT("x&#xFFFF;&amp;\xc3\xa9")));
	}
	atom_add_text(&small, buf_span(&other));
	CHECK(!buf_ok(&small));
	buf_fini(&small);
}

TEST(a_message_leaves_out_what_xml_cannot_carry)
{
	buf_clear(&out);
	xml_add_message(&out, SPAN_LIT("a\x01\n<b>\xef\xbf\xbf\xff\xc3\xa9"));
	CHECK_EQ_STR(out.data, "a\n&lt;b&gt;\xc3\xa9");
}

/* ---- tags ---- */

TEST(a_tag_has_few_attributes)
{
	size_t at = 0;

	for (size_t n = XML_ATTRIBUTES_MAX; n <= XML_ATTRIBUTES_MAX + 1; n++) {
		buf_clear(&other);
		buf_add_str(&other, "<!-- '' \" --><?x '' ?><a b='>'>'\"<c");
		for (size_t i = 0; i < n; i++)
			buf_addf(&other, i % 2 == 0 ? " a%zu='\"<>'" : " a%zu=\"'\"", i);
		buf_add_str(&other, "/>");
		CHECK(xml_tags_are_small(buf_span(&other), &at) == (n == XML_ATTRIBUTES_MAX));
	}
	CHECK_EQ_INT(at, strlen("<!-- '' \" --><?x '' ?><a b='>'>'\""));
	CHECK(xml_tags_are_small(SPAN_LIT("<a b='"), &at));
	CHECK(xml_tags_are_small(SPAN_LIT("<a b=\"'"), &at));
	CHECK(xml_tags_are_small(SPAN_LIT("<"), &at));
	CHECK(xml_tags_are_small(SPAN_LIT("<![CDATA[ <a '' "), &at));
	buf_clear(&text);
	buf_add_str(&text, "<entry");
	for (size_t i = 0; i <= XML_ATTRIBUTES_MAX; i++)
		buf_addf(&text, " a%zu=''", i);
	buf_add_str(&text, "/>");
	CHECK_ERR(decode(buf_span(&text)), ERR_VALUE_INVALID);
	CHECK(strstr(detail.text, "more than 32 attributes") != NULL);
}

int main(void)
{
	static const struct check_test tests[] = {
		T(every_type_is_read),
		T(only_in_a_string_blanks_count),
		T(a_null_is_no_property),
		T(keys_are_strings),
		T(what_is_not_known_is_passed_over),
		T(an_entry_is_wanted),
		T(a_mistake_has_its_place),
		T(what_is_wrong_with_the_XML_is_told_with_its_place),
		T(long_words_of_the_parser_are_cut),
		T(an_entry_has_a_thousand_instructions),
		T(elements_are_nested_sixteen_deep),
		T(both_formats_refuse_with_the_same_words),
		T(long_names_are_cut_in_messages),
		T(an_entry_has_a_thousand_elements),
		T(behind_a_mistake_nothing_is_read),
		T(a_property_stands_once),
		T(limits_hold),
		T(a_mebibyte_is_the_most),
		T(four_mebibytes_are_the_most),
		T(a_table_has_a_name),
		T(a_document_is_shown_whatever_its_form),
		T(selected_properties_come_in_order_and_missing_ones_as_null),
		T(an_entry_is_whole),
		T(tables_and_feeds_are_whole),
		T(a_damaged_document_is_told),
		T(every_character_comes_back),
		T(awkward_strings_come_back),
		T(blanks_at_an_end_are_said_to_count),
		T(long_values_come_back),
		T(a_long_string_that_is_damaged_is_told),
		T(a_row_that_does_not_fit_is_told_by_the_buffer),
		T(rows_of_a_page_are_written_as_each_alone),
		T(a_page_may_have_rows_of_any_size),
		T(a_page_that_is_full_is_told_by_the_buffer),
		T(values_come_back),
		T(every_name_comes_back),
		T(references_that_need_it_are_hidden),
		T(a_mark_that_hides_nothing_is_shown_as_it_is),
		T(whatever_stands_beside_it_is_written_in_the_same_way),
		T(bytes_that_are_no_character_are_passed_on),
		T(escapes_of_a_document_become_characters),
		T(a_full_buffer_is_told_by_the_buffer),
		T(a_message_leaves_out_what_xml_cannot_carry),
		T(a_tag_has_few_attributes),
	};
	int status = check_main(tests, ARRAY_LEN(tests));

	entity_fini(&entity);
	buf_fini(&text);
	buf_fini(&out);
	buf_fini(&other);
	return status;
}
