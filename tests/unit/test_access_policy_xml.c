/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "codec/access_policy_xml.h"
#include "codec/xml.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define DECL "<?xml version=\"1.0\" encoding=\"utf-8\"?>"
#define LIST(inside_) DECL "<SignedIdentifiers>" inside_ "</SignedIdentifiers>"
#define ONE(inside_) LIST("<SignedIdentifier>" inside_ "</SignedIdentifier>")
#define POLICY(inside_) ONE("<Id>x</Id><AccessPolicy>" inside_ "</AccessPolicy>")

static enum err read_n(struct span xml, struct err_detail *detail)
{
	struct access_policies p;
	enum err e = access_policies_from_xml(xml, POLICY_LETTERS_TABLE, &p, detail);
	arena_fini(&p.arena);
	return e;
}

static enum err read_it(const char *xml)
{
	struct err_detail detail = { 0 };
	return read_n(span_of(xml), &detail);
}

/* Read and written again. */
static const char *again(const char *xml)
{
	static char text[8192];
	struct access_policies p;
	struct err_detail detail = { 0 };
	struct buf out = BUF_INIT(sizeof(text) - 1);
	enum err e = access_policies_from_xml(span_of(xml), POLICY_LETTERS_TABLE, &p, &detail);
	if (e == ERR_OK)
		access_policies_to_xml(&p, &out);
	else
		buf_addf(&out, "%s: %s", err_symbol(e), err_message(e, &detail));
	(void)snprintf(text, sizeof(text), "%s", buf_ok(&out) ? out.data : "failed");
	buf_fini(&out);
	arena_fini(&p.arena);
	return text;
}

static const char whole[] =
	LIST("<SignedIdentifier><Id>x</Id><AccessPolicy><Start>2013-11-26T08:49:37.0000000Z</Start>"
	     "<Expiry>2013-11-27T08:49:37.0000000Z</Expiry><Permission>raud</Permission>"
	     "</AccessPolicy></SignedIdentifier>"
	     "<SignedIdentifier><Id>only an id</Id></SignedIdentifier>"
	     "<SignedIdentifier><Id>y</Id><AccessPolicy /></SignedIdentifier>"
	     "<SignedIdentifier><Id>z</Id><AccessPolicy>"
	     "<Expiry>2013-11-27T00:00:00.0000000Z</Expiry></AccessPolicy></SignedIdentifier>");

TEST(what_was_set_comes_back_and_what_was_left_out_stays_out)
{
	struct access_policies p;
	CHECK_EQ_STR(again(whole), whole);
	REQUIRE(access_policies_from_xml(span_of(whole), POLICY_LETTERS_TABLE, &p, NULL) == ERR_OK);
	CHECK_EQ_INT(p.n, 4);
	CHECK(span_is(p.all[0].id, "x") && p.all[0].has_policy);
	CHECK(span_is(p.all[0].start, "2013-11-26T08:49:37.0000000Z"));
	CHECK(span_is(p.all[0].expiry, "2013-11-27T08:49:37.0000000Z"));
	CHECK(span_is(p.all[0].permission, "raud"));
	CHECK(span_is(p.all[1].id, "only an id") && !p.all[1].has_policy);
	CHECK(p.all[1].start.p == NULL && p.all[1].expiry.p == NULL &&
		p.all[1].permission.p == NULL);
	CHECK(p.all[2].has_policy && p.all[2].permission.p == NULL);
	CHECK(p.all[3].start.p == NULL && span_is(p.all[3].expiry, "2013-11-27T00:00:00.0000000Z"));
	arena_fini(&p.arena);
}

TEST(no_text_and_an_empty_list_are_no_policy)
{
	static const char none[] = DECL "<SignedIdentifiers />";
	CHECK_EQ_STR(again(""), none);
	CHECK_EQ_STR(again("\xef\xbb\xbf"), none);
	CHECK_EQ_STR(again(none), none);
	CHECK_EQ_STR(again("<SignedIdentifiers></SignedIdentifiers>"), none);
	CHECK_EQ_STR(again("<SignedIdentifiers>\n  \n</SignedIdentifiers>"), none);
	CHECK_EQ_STR(again("\xef\xbb\xbf" DECL "\n<SignedIdentifiers/>\n"), none);
	CHECK_ERR(read_it("  "), ERR_XML_INVALID);
}

/* What two SDKs send: single quotes in the declaration, a standalone mark, their orders. */
TEST(the_spellings_of_clients_are_understood)
{
	CHECK_EQ_STR(again("<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers>"
			   "<SignedIdentifier><Id>testid</Id></SignedIdentifier>"
			   "</SignedIdentifiers>"),
		ONE("<Id>testid</Id>"));
	CHECK_EQ_STR(again("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>"
			   "<SignedIdentifiers><SignedIdentifier><Id>null</Id><AccessPolicy>"
			   "<Start>2021-12-08T09:53:21.5580000Z</Start>"
			   "<Expiry>2021-12-12T00:00:00.0000000Z</Expiry><Permission>r</Permission>"
			   "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"),
		ONE("<Id>null</Id><AccessPolicy><Start>2021-12-08T09:53:21.5580000Z</Start>"
		    "<Expiry>2021-12-12T00:00:00.0000000Z</Expiry><Permission>r</Permission>"
		    "</AccessPolicy>"));
	CHECK_EQ_STR(again("<SignedIdentifiers><SignedIdentifier><AccessPolicy><Permission> dr "
			   "</Permission><Start>2020-01-01</Start></AccessPolicy><Id>i</Id>"
			   "</SignedIdentifier></SignedIdentifiers>"),
		ONE("<Id>i</Id><AccessPolicy><Start>2020-01-01T00:00:00.0000000Z</Start>"
		    "<Permission>dr</Permission></AccessPolicy>"));
	CHECK_EQ_STR(again("<s:SignedIdentifiers xmlns:s='urn:x' a='1'><!-- c --><?pi x?>"
			   "<s:SignedIdentifier b='&lt;'>\r\n\t<s:Id><![CDATA[<&>]]></s:Id>"
			   "</s:SignedIdentifier></s:SignedIdentifiers>"),
		ONE("<Id>&lt;&amp;&gt;</Id>"));
	/* Empty values are values left out. */
	CHECK_EQ_STR(again(POLICY("<Start/><Expiry> </Expiry><Permission></Permission>")),
		ONE("<Id>x</Id><AccessPolicy />"));
}

TEST(an_id_may_hold_what_xml_can_carry)
{
	CHECK_EQ_STR(again(ONE("<Id>a&lt;b&amp;c&gt;\"'&quot;&apos;</Id>")),
		ONE("<Id>a&lt;b&amp;c&gt;\"'\"'</Id>"));
	CHECK_EQ_STR(again(ONE("<Id> a\tb&#13;\n</Id>")), ONE("<Id> a\tb&#xD;\n</Id>"));
	CHECK_EQ_STR(again(ONE("<Id>a\r\nb</Id>")), ONE("<Id>a\nb</Id>"));
	CHECK_EQ_STR(again(ONE("<Id>\xf0\x9f\x98\x80&#x1F600;\xc3\xa9</Id>")),
		ONE("<Id>\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xc3\xa9</Id>"));
	CHECK_ERR(read_it(ONE("<Id>&#1;</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>\x01</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>&#xFFFE;</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>&#xD800;</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>\xef\xbf\xbe</Id>")), ERR_XML_INVALID);

	static const char *const bad[] = { "a\x01", "\xff", "\xef\xbf\xbf", "\xed\xa0\x80" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct access_policies p = { .n = 1 };
		struct buf out = BUF_INIT(4096);
		p.all[0].id = span_of(bad[i]);
		access_policies_to_xml(&p, &out);
		CHECK(!buf_ok(&out));
		buf_fini(&out);
	}
}

/* ---- limits ---- */

static const char *with_ids(int n, bool same)
{
	static char text[4096];
	size_t len = (size_t)snprintf(text, sizeof(text), "<SignedIdentifiers>");
	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"<SignedIdentifier><Id>%d</Id></SignedIdentifier>", same ? 1 : i);
	(void)snprintf(text + len, sizeof(text) - len, "</SignedIdentifiers>");
	return text;
}

TEST(five_identifiers_are_allowed_each_once)
{
	CHECK_ERR(read_it(with_ids(5, false)), ERR_OK);
	CHECK_ERR(read_it(with_ids(6, false)), ERR_XML_INVALID);
	CHECK_ERR(read_it(with_ids(1, true)), ERR_OK);
	CHECK_ERR(read_it(with_ids(2, true)), ERR_XML_INVALID);
	CHECK_ERR(read_it(LIST("<SignedIdentifier><Id>a</Id></SignedIdentifier>"
			       "<SignedIdentifier><Id>A</Id></SignedIdentifier>")),
		ERR_OK);
}

/* n times `unit` as the Id. */
static enum err read_long_id(const char *unit, size_t n)
{
	struct buf b = BUF_INIT(100000);
	struct err_detail detail = { 0 };
	buf_add_str(&b, "<SignedIdentifiers><SignedIdentifier><Id>");
	for (size_t i = 0; i < n; i++)
		buf_add_str(&b, unit);
	buf_add_str(&b, "</Id></SignedIdentifier></SignedIdentifiers>");
	enum err e = read_n(buf_span(&b), &detail);
	buf_fini(&b);
	return e;
}

TEST(an_id_holds_1_to_64_utf16_units)
{
	CHECK_ERR(read_long_id("a", 0), ERR_XML_VALUE);
	CHECK_ERR(read_long_id("a", 1), ERR_OK);
	CHECK_ERR(read_long_id("a", 64), ERR_OK);
	CHECK_ERR(read_long_id("a", 65), ERR_XML_VALUE);
	CHECK_ERR(read_long_id("\xe2\x82\xac", 64), ERR_OK);
	CHECK_ERR(read_long_id("\xf0\x9f\x98\x80", 32), ERR_OK);
	CHECK_ERR(read_long_id("\xf0\x9f\x98\x80", 33), ERR_XML_VALUE);
	CHECK_ERR(read_long_id("&amp;", 64), ERR_OK);
	CHECK_ERR(read_long_id("&amp;", 65), ERR_XML_VALUE);
}

TEST(a_document_has_64_kib)
{
	struct err_detail detail = { 0 };
	struct buf b = BUF_INIT(200000);
	buf_add_str(&b, ONE("<Id>x</Id>"));
	REQUIRE(buf_resize(&b, XML_BYTES_MAX));
	memset(b.data + strlen(ONE("<Id>x</Id>")), ' ', XML_BYTES_MAX - strlen(ONE("<Id>x</Id>")));
	CHECK_ERR(read_n(buf_span(&b), &detail), ERR_OK);
	buf_add_char(&b, ' ');
	CHECK_ERR(read_n(buf_span(&b), &detail), ERR_BODY_TOO_LARGE);
	CHECK_EQ_STR(detail.text, "The XML document is larger than 65536 bytes.");
	buf_fini(&b);
}

TEST(times_are_those_of_the_protocol)
{
	static const char *const good[] = { "2013-11-26", "2013-11-26T08:49Z",
		"2013-11-26T08:49:37Z", "2013-11-26T08:49:37.1Z", "2013-11-26T08:49:37.1234567Z",
		"2013-11-26T08:49+01:00", "2013-11-26T08:49:37-08:30", "2024-02-29", "0001-01-01",
		"9999-12-31T23:59:59.9999999Z", "  2013-11-26  " };
	static const char *const bad[] = { "x", "2013", "2013-11", "2013-13-01", "2013-02-29",
		"2013-1-26", "20131126", "2013-11-26T", "2013-11-26T08Z", "2013-11-26T08:49",
		"2013-11-26T08:49:37", "2013-11-26T24:00Z", "2013-11-26T08:60Z",
		"2013-11-26T08:49:60Z", "2013-11-26T08:49:37.Z", "2013-11-26T08:49:37.12345678Z",
		"2013-11-26T08:49:37z", "2013-11-26t08:49Z", "2013-11-26T08:49Z1",
		"2013-11-26 08:49Z", "2013-11-26T08:49+0100", "2013-11-26T08:49+24:00",
		"2013-11-26Z", "-013-11-26", "2013-11-26T08:49+01:00Z", "0000-01-01",
		"2013-11-26T08:49&#0;Z" };
	char text[400];
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)snprintf(text, sizeof(text), POLICY("<Start>%s</Start>"), good[i]);
		CHECK_ERR(read_it(text), ERR_OK);
		(void)snprintf(text, sizeof(text), POLICY("<Expiry>%s</Expiry>"), good[i]);
		CHECK_ERR(read_it(text), ERR_OK);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		enum err want = strchr(bad[i], '&') != NULL ? ERR_XML_INVALID : ERR_XML_VALUE;
		(void)snprintf(text, sizeof(text), POLICY("<Start>%s</Start>"), bad[i]);
		CHECK_ERR(read_it(text), want);
		(void)snprintf(text, sizeof(text), POLICY("<Expiry>%s</Expiry>"), bad[i]);
		CHECK_ERR(read_it(text), want);
	}
}

TEST(times_come_back_in_one_form)
{
	static const struct {
		const char *sent, *want;
	} times[] = {
		{ "2026-01-01", "2026-01-01T00:00:00.0000000Z" },
		{ "2030-01-01T00:00Z", "2030-01-01T00:00:00.0000000Z" },
		{ "2030-01-01T12:34:56Z", "2030-01-01T12:34:56.0000000Z" },
		{ "2030-01-01T12:34:56.5Z", "2030-01-01T12:34:56.5000000Z" },
		{ "2030-01-01T12:34:56.1234567Z", "2030-01-01T12:34:56.1234567Z" },
		{ "2030-01-01T00:30:00+01:00", "2029-12-31T23:30:00.0000000Z" },
		{ " 2030-01-01T00:00-08:30 ", "2030-01-01T08:30:00.0000000Z" },
		{ "0001-01-01T00:00:00.0000000Z", "0001-01-01T00:00:00.0000000Z" },
		{ "0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00.0000000Z" },
		{ "9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.9999999Z" },
	};
	char text[400], want[400];
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		(void)snprintf(text, sizeof(text), POLICY("<Start>%s</Start><Expiry>%s</Expiry>"),
			times[i].sent, times[i].sent);
		(void)snprintf(want, sizeof(want), POLICY("<Start>%s</Start><Expiry>%s</Expiry>"),
			times[i].want, times[i].want);
		CHECK_EQ_STR(again(text), want);
		CHECK_EQ_STR(again(want), want);
	}
}

TEST(permissions_are_letters_of_raud_each_once)
{
	static const char *const good[] = { "r", "a", "u", "d", "raud", "duar", "rd" };
	static const char *const bad[] = { "R", "x", "raudx", "rr", "r,a", "radu u", "rwdl",
		"\xc3\xa9" };
	char text[300];
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)snprintf(text, sizeof(text), POLICY("<Permission>%s</Permission>"), good[i]);
		CHECK_ERR(read_it(text), ERR_OK);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(text, sizeof(text), POLICY("<Permission>%s</Permission>"), bad[i]);
		CHECK_ERR(read_it(text), ERR_XML_VALUE);
	}
	CHECK_EQ_STR(again(POLICY("<Permission>raudx</Permission>")),
		"XML_VALUE: The value 'raudx' of the XML element 'Permission' is not in the "
		"correct format.");
}

/* ---- what is no such document ---- */

TEST(elements_that_are_unknown_twice_missing_or_misplaced_are_named)
{
	CHECK_EQ_STR(again("<Other/>"),
		"XML_INVALID: The XML document is not a list 'SignedIdentifiers'.");
	CHECK_EQ_STR(again(LIST("<Other/>")),
		"XML_INVALID: The XML element 'Other' is not supported in 'SignedIdentifiers'.");
	CHECK_EQ_STR(again(ONE("<Id>x</Id><Other/>")),
		"XML_INVALID: The XML element 'Other' is not supported in 'SignedIdentifier'.");
	CHECK_EQ_STR(again(ONE("<Id>x</Id><Id>x</Id>")),
		"XML_INVALID: The XML element 'Id' occurs twice in 'SignedIdentifier'.");
	CHECK_EQ_STR(again(ONE("<AccessPolicy/>")),
		"XML_INVALID: The XML element 'Id' is missing in 'SignedIdentifier'.");
	CHECK_EQ_STR(again(ONE("text<Id>x</Id>")),
		"XML_INVALID: The XML element 'SignedIdentifier' must not contain text.");
	CHECK_EQ_STR(again(LIST("text")),
		"XML_INVALID: The XML element 'SignedIdentifiers' must not contain text.");
	CHECK_EQ_STR(again(ONE("<Id>x<b/></Id>")),
		"XML_INVALID: The XML element 'Id' must not contain the element 'b'.");
	CHECK_ERR(read_it(POLICY("<Start>2020-01-01</Start><Start>2020-01-01</Start>")),
		ERR_XML_INVALID);
	CHECK_ERR(read_it(POLICY("<Start><x/></Start>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(POLICY("<start>2020-01-01</start>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>x</Id><AccessPolicy/><AccessPolicy/>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("")), ERR_XML_INVALID);
}

TEST(a_dtd_is_refused_before_anything_comes_of_it)
{
	static const char *const bad[] = {
		"<!DOCTYPE SignedIdentifiers>\n<SignedIdentifiers/>",
		"<!DOCTYPE SignedIdentifiers SYSTEM \"http://127.0.0.1:9/x.dtd\"><SignedIdentifiers/>",
		"<!DOCTYPE s PUBLIC \"a\" \"file:///etc/passwd\"><SignedIdentifiers/>",
		"<!DOCTYPE s [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><SignedIdentifiers>"
		"<SignedIdentifier><Id>&e;</Id></SignedIdentifier></SignedIdentifiers>",
		"<!DOCTYPE s [<!ENTITY % p SYSTEM \"file:///etc/passwd\">%p;]><SignedIdentifiers/>",
		"<!DOCTYPE s [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">"
		"<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\">"
		"<!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;\"><!ENTITY f \"&e;&e;&e;&e;&e;&e;&e;&e;\">"
		"<!ENTITY g \"&f;&f;&f;&f;&f;&f;&f;&f;\"><!ENTITY h \"&g;&g;&g;&g;&g;&g;&g;&g;\">]>"
		"<SignedIdentifiers x='&h;'><SignedIdentifier><Id>&h;</Id></SignedIdentifier>"
		"</SignedIdentifiers>",
		"<!DOCTYPE s [<!ELEMENT SignedIdentifiers ANY>]><SignedIdentifiers/>",
		"<!DOCTYPE s [<!ATTLIST SignedIdentifiers x CDATA \"y\">]><SignedIdentifiers/>",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ_STR(again(bad[i]),
			"XML_INVALID: Not accepted: a document type is not allowed.");
}

TEST(entities_that_are_not_predefined_are_refused)
{
	CHECK_ERR(read_it(ONE("<Id>&nbsp;</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>a&b;c</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id x='&b;'>a</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>&</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>&;</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>%x;</Id>")), ERR_OK);
}

static enum err read_nested(const char *open, const char *close, size_t n)
{
	struct buf b = BUF_INIT(200000);
	struct err_detail detail = { 0 };
	buf_add_str(&b, "<SignedIdentifiers>");
	for (size_t i = 0; i < n; i++)
		buf_add_str(&b, open);
	for (size_t i = 0; i < n && close != NULL; i++)
		buf_add_str(&b, close);
	buf_add_str(&b, "</SignedIdentifiers>");
	enum err e = read_n(buf_span(&b), &detail);
	buf_fini(&b);
	return e;
}

TEST(deep_nesting_and_many_attributes_are_refused_in_bounded_time)
{
	CHECK_ERR(read_nested("<a>", "</a>", 15), ERR_XML_INVALID);
	CHECK_ERR(read_nested("<a>", "</a>", 9000), ERR_XML_INVALID);
	CHECK_ERR(read_nested("<a>", NULL, 20000), ERR_XML_INVALID);
	CHECK_ERR(read_nested("<a xmlns='b'>", "</a>", 3800), ERR_XML_INVALID);
	CHECK_ERR(read_nested("<!---->", NULL, 9000), ERR_OK);
	CHECK_ERR(read_nested("<?a?>", NULL, 1000), ERR_OK);
	CHECK_ERR(read_nested("<![CDATA[ ]]>", NULL, 4900), ERR_OK);
	CHECK_ERR(read_nested("<a/>", NULL, 16000), ERR_XML_INVALID);
}

TEST(only_utf8_is_read)
{
	CHECK_ERR(read_it("<?xml version='1.0' encoding='utf8'?><SignedIdentifiers/>"), ERR_OK);
	CHECK_ERR(
		read_it("<?xml version='1.0' encoding = \"UTF-8\" ?><SignedIdentifiers/>"), ERR_OK);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='iso-8859-1'?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='us-ascii'?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='utf-16'?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='UTF-7'?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='nonsense'?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(
		read_it("<?xml version='1.0' encoding=''?><SignedIdentifiers/>"), ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding=utf-8?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='utf-8?><SignedIdentifiers/>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='3.0'?><SignedIdentifiers/>"), ERR_XML_INVALID);
	CHECK_ERR(read_it(" <?xml version='1.0'?><SignedIdentifiers/>"), ERR_XML_INVALID);
	CHECK_ERR(read_it("\xef\xbb\xbf\xef\xbb\xbf<SignedIdentifiers/>"), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>\xe9</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>\xc0\xaf</Id>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ONE("<Id>\xed\xa0\x80</Id>")), ERR_XML_INVALID);

	struct err_detail detail = { 0 };
	static const char utf16[] = "\xff\xfe<\0S\0i\0g\0n\0e\0d\0I\0d\0/\0>\0";
	CHECK_ERR(read_n(span_make(utf16, sizeof(utf16) - 1), &detail), ERR_XML_INVALID);
	static const char bare16[] = "<\0a\0/\0>\0";
	CHECK_ERR(read_n(span_make(bare16, sizeof(bare16) - 1), &detail), ERR_XML_INVALID);
	static const char nul[] = "<SignedIdentifiers/>\0<x>";
	CHECK_ERR(read_n(span_make(nul, sizeof(nul) - 1), &detail), ERR_XML_INVALID);
	static const char nul_inside[] = "<SignedIdentifiers>\0</SignedIdentifiers>";
	CHECK_ERR(read_n(span_make(nul_inside, sizeof(nul_inside) - 1), &detail), ERR_XML_INVALID);
}

TEST(malformed_documents_are_refused)
{
	static const char *const bad[] = { "x", "<", "<>", "</SignedIdentifiers>",
		"<SignedIdentifiers", "<SignedIdentifiers>", "<SignedIdentifiers/><x/>",
		"<SignedIdentifiers/>x", "x<SignedIdentifiers/>", "<SignedIdentifiers></x>",
		"<SignedIdentifiers a=b/>", "<SignedIdentifiers a='1' a='2'/>",
		"<SignedIdentifiers a='<'/>", "<x:SignedIdentifiers:y/>",
		"<SignedIdentifiers><![CDATA[</SignedIdentifiers>",
		"<SignedIdentifiers>]]></SignedIdentifiers>",
		"<SignedIdentifiers><!-- -- --></SignedIdentifiers>",
		"<SignedIdentifiers><?xml version='1.0'?></SignedIdentifiers>",
		"{\"SignedIdentifiers\":[]}", "<1/>" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(read_it(bad[i]), ERR_XML_INVALID);
}

TEST(a_document_cut_anywhere_is_refused)
{
	size_t n = strlen(whole);
	for (size_t i = 1; i < n; i++) {
		/* A copy of its own, so that reading past its end is seen. */
		char *cut = malloc(i);
		REQUIRE(cut != NULL);
		memcpy(cut, whole, i);
		struct err_detail detail = { 0 };
		CHECK_ERR(read_n(span_make(cut, i), &detail), ERR_XML_INVALID);
		CHECK(detail.text[0] != '\0');
		free(cut);
	}
	CHECK_ERR(read_it(whole), ERR_OK);
}

TEST(every_byte_may_be_changed_without_harm)
{
	char text[sizeof(whole)];
	static const char bytes[] = "<>&/\0'\"\xff!?[ ;x";
	for (size_t i = 0; i + 1 < sizeof(whole); i++) {
		for (size_t k = 0; k < sizeof(bytes) - 1; k++) {
			struct err_detail detail = { 0 };
			memcpy(text, whole, sizeof(text));
			text[i] = bytes[k];
			enum err e = read_n(span_make(text, sizeof(text) - 1), &detail);
			CHECK(e == ERR_OK || e == ERR_XML_INVALID || e == ERR_XML_VALUE);
		}
	}
}

/* ---- the library ---- */

static void *read_often(void *arg)
{
	for (int i = 0; i < 300; i++) {
		if (read_it(whole) != ERR_OK || read_it("<SignedIdentifiers><x>") == ERR_OK)
			return arg;
	}
	return NULL;
}

TEST(threads_read_at_the_same_time)
{
	pthread_t t[8];
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		REQUIRE(pthread_create(&t[i], NULL, read_often, t) == 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		void *failed = t;
		CHECK(pthread_join(t[i], &failed) == 0 && failed == NULL);
	}
}

TEST(nothing_is_printed)
{
	FILE *file = tmpfile();
	REQUIRE(file != NULL);
	fflush(stderr);
	int saved = dup(STDERR_FILENO);
	REQUIRE(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	(void)read_it("<SignedIdentifiers><x></y>&z;");
	(void)read_it("<!DOCTYPE a [<!ENTITY % b SYSTEM 'file:///nothing'>%b;]><a>&c;</a>");
	(void)read_it("<a xmlns:b=''><b:c d:e='f'/>");
	(void)read_it("<a xml:lang='&#0;'>");
	fflush(stderr);
	(void)dup2(saved, STDERR_FILENO);
	close(saved);
	CHECK_EQ_INT(lseek(fileno(file), 0, SEEK_END), 0);
	fclose(file);
}

TEST(what_is_long_is_shown_cut)
{
	static const char sixty[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
	char xml[600];
	struct err_detail detail = { 0 };

	(void)snprintf(xml, sizeof(xml), POLICY("<Start>%sx</Start>"), sixty);
	CHECK_ERR(read_n(span_of(xml), &detail), ERR_XML_VALUE);
	CHECK(strstr(detail.text, sixty) != NULL && strstr(detail.text, "x'") != NULL);
	(void)snprintf(xml, sizeof(xml), LIST("<%sx/>"), sixty);
	CHECK_ERR(read_n(span_of(xml), &detail), ERR_XML_INVALID);
	CHECK(strstr(detail.text, sixty) != NULL &&
		strstr(detail.text, "'SignedIdentifiers'") != NULL);
	(void)snprintf(xml, sizeof(xml), ONE("<%sx/>"), sixty);
	CHECK_ERR(read_n(span_of(xml), &detail), ERR_XML_INVALID);
	CHECK(strstr(detail.text, sixty) != NULL);
	(void)snprintf(xml, sizeof(xml), "<?xml version=\"1.0\" encoding=\"%s\"?><a/>", sixty);
	CHECK_ERR(read_n(span_of(xml), &detail), ERR_XML_INVALID);
	CHECK(strstr(detail.text, "xxx'") != NULL);
}

TEST(xml_is_never_written_with_what_it_cannot_carry)
{
	static const char *const bad[] = { "\x01", "\xef\xbf\xbe", "\xef\xbf\xbf", "\xff" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf out = BUF_INIT(100);
		xml_add_text(&out, span_of(bad[i]));
		CHECK(!buf_ok(&out));
		buf_fini(&out);
	}
}

RUN_TESTS(T(what_was_set_comes_back_and_what_was_left_out_stays_out),
	T(no_text_and_an_empty_list_are_no_policy), T(the_spellings_of_clients_are_understood),
	T(an_id_may_hold_what_xml_can_carry), T(five_identifiers_are_allowed_each_once),
	T(an_id_holds_1_to_64_utf16_units), T(a_document_has_64_kib),
	T(times_are_those_of_the_protocol), T(times_come_back_in_one_form),
	T(permissions_are_letters_of_raud_each_once),
	T(elements_that_are_unknown_twice_missing_or_misplaced_are_named),
	T(a_dtd_is_refused_before_anything_comes_of_it),
	T(entities_that_are_not_predefined_are_refused),
	T(deep_nesting_and_many_attributes_are_refused_in_bounded_time), T(only_utf8_is_read),
	T(malformed_documents_are_refused), T(a_document_cut_anywhere_is_refused),
	T(every_byte_may_be_changed_without_harm), T(threads_read_at_the_same_time),
	T(nothing_is_printed), T(what_is_long_is_shown_cut),
	T(xml_is_never_written_with_what_it_cannot_carry))
