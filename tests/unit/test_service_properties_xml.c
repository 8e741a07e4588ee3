/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "codec/service_properties_xml.h"
#include "codec/xml.h"

#include <stdlib.h>

#define DECL "<?xml version=\"1.0\" encoding=\"utf-8\"?>"
#define ROOT(inside_) DECL "<StorageServiceProperties>" inside_ "</StorageServiceProperties>"
#define KEEP "<RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy>"
#define KEEP_NOT "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
#define LOGGING_OFF \
	"<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>" \
	"<Delete>false</Delete>" KEEP_NOT "</Logging>"
#define HOUR_DEFAULT \
	"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>" \
	"<IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled>" \
	"<Days>7</Days></RetentionPolicy></HourMetrics>"
#define MINUTE_OFF \
	"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>" KEEP_NOT "</MinuteMetrics>"
#define RULE(origins_, methods_, age_, exposed_, allowed_) \
	"<CorsRule><AllowedOrigins>" origins_ "</AllowedOrigins><AllowedMethods>" methods_ \
	"</AllowedMethods><MaxAgeInSeconds>" age_ "</MaxAgeInSeconds><ExposedHeaders>" exposed_ \
	"</ExposedHeaders><AllowedHeaders>" allowed_ "</AllowedHeaders></CorsRule>"

/* The text set over the properties in *p, and all of it written; or why not. */
static const char *set(struct service_properties *p, const char *xml, enum properties_form form)
{
	static char text[40000];
	struct err_detail detail = { 0 };
	struct buf out = BUF_INIT(sizeof(text) - 1);
	enum err e = service_properties_from_xml(span_of(xml), form, p, &detail);
	if (e == ERR_OK)
		service_properties_to_xml(p, form, &out);
	else
		buf_addf(&out, "%s: %s", err_symbol(e), err_message(e, &detail));
	(void)snprintf(text, sizeof(text), "%s", buf_ok(&out) ? out.data : "failed");
	buf_fini(&out);
	return text;
}

/* The same over the defaults. */
static const char *set_fresh(const char *xml)
{
	struct service_properties p;
	service_properties_default(&p);
	const char *text = set(&p, xml, PROPERTIES_NEW);
	service_properties_fini(&p);
	return text;
}

static enum err read_n(struct span xml)
{
	struct service_properties p;
	struct err_detail detail = { 0 };
	service_properties_default(&p);
	enum err e = service_properties_from_xml(xml, PROPERTIES_NEW, &p, &detail);
	CHECK(e == ERR_OK || detail.text[0] != '\0');
	service_properties_fini(&p);
	return e;
}

static enum err read_it(const char *xml)
{
	return read_n(span_of(xml));
}

TEST(the_defaults_are_the_services)
{
	struct service_properties p;
	struct buf out = BUF_INIT(4096);
	service_properties_default(&p);
	service_properties_to_xml(&p, PROPERTIES_NEW, &out);
	CHECK_EQ_STR(out.data, ROOT(LOGGING_OFF HOUR_DEFAULT MINUTE_OFF "<Cors />"));
	buf_clear(&out);
	service_properties_to_xml(&p, PROPERTIES_OLD, &out);
	CHECK_EQ_STR(out.data,
		ROOT(LOGGING_OFF
			"<Metrics><Version>1.0</Version><Enabled>true</Enabled>"
			"<IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled>"
			"<Days>7</Days></RetentionPolicy></Metrics>"));
	buf_fini(&out);
	service_properties_fini(&p);
}

static const char whole[] = ROOT(
	"<Logging><Version>1.0</Version><Read>true</Read><Write>true</Write>"
	"<Delete>true</Delete>" KEEP "</Logging>"
	"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>"
	"<IncludeAPIs>false</IncludeAPIs>" KEEP "</HourMetrics>"
	"<MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled>"
	"<IncludeAPIs>true</IncludeAPIs>" KEEP_NOT "</MinuteMetrics>"
	"<Cors>" RULE("http://www.contoso.com,https://a.b:8080", "GET, PUT", "500",
		"x-ms-meta-data*,x-ms-meta-customheader",
		"x-ms-meta-target*,x-ms-meta-abc") "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>POST</AllowedMethods>"
						   "<MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders /><AllowedHeaders />"
						   "</CorsRule></Cors>");

TEST(what_was_set_comes_back)
{
	struct service_properties p;
	CHECK_EQ_STR(set_fresh(whole), whole);
	service_properties_default(&p);
	REQUIRE(service_properties_from_xml(span_of(whole), PROPERTIES_NEW, &p, NULL) == ERR_OK);
	CHECK(p.logging.read && p.logging.write && p.logging.delete);
	CHECK(p.logging.retention.enabled && p.logging.retention.days == 5);
	CHECK(p.hour.enabled && !p.hour.include_apis && p.hour.retention.days == 5);
	CHECK(p.minute.enabled && p.minute.include_apis && !p.minute.retention.enabled);
	CHECK_EQ_INT(p.ncors, 2);
	CHECK_EQ_INT(p.cors[0].max_age, 500);
	CHECK(span_is(p.cors[0].origins, "http://www.contoso.com,https://a.b:8080"));
	CHECK(span_is(p.cors[0].methods, "GET, PUT"));
	CHECK(span_is(p.cors[0].allowed, "x-ms-meta-target*,x-ms-meta-abc"));
	CHECK(span_is(p.cors[0].exposed, "x-ms-meta-data*,x-ms-meta-customheader"));
	CHECK(p.cors[1].exposed.p != NULL && p.cors[1].exposed.n == 0);
	service_properties_fini(&p);
}

TEST(what_a_document_leaves_out_stays_as_it_was)
{
	struct service_properties p;
	service_properties_default(&p);
	CHECK_EQ_STR(
		set(&p, ROOT("<Cors>" RULE("*", "GET", "1", "a", "b") "</Cors>"), PROPERTIES_NEW),
		ROOT(LOGGING_OFF HOUR_DEFAULT MINUTE_OFF
			"<Cors>" RULE("*", "GET", "1", "a", "b") "</Cors>"));
	CHECK_EQ_STR(
		set(&p,
			ROOT("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>" KEEP_NOT
			     "</HourMetrics>"),
			PROPERTIES_NEW),
		ROOT(LOGGING_OFF
			"<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>" KEEP_NOT
			"</HourMetrics>" MINUTE_OFF
			"<Cors>" RULE("*", "GET", "1", "a", "b") "</Cors>"));
	/* An old client knows nothing of the rules and cannot lose them. */
	(void)set(&p,
		ROOT("<Metrics><Version>1.0</Version><Enabled>true</Enabled>"
		     "<IncludeAPIs>true</IncludeAPIs>" KEEP "</Metrics>"),
		PROPERTIES_OLD);
	CHECK(p.hour.enabled && p.hour.retention.days == 5);
	CHECK_EQ_INT(p.ncors, 1);
	CHECK_EQ_STR(set(&p, ROOT("<Cors/>"), PROPERTIES_NEW),
		ROOT(LOGGING_OFF "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>"
				 "<IncludeAPIs>true</IncludeAPIs>" KEEP "</HourMetrics>" MINUTE_OFF
				 "<Cors />"));
	/* Fewer rules than before. */
	(void)set(&p, whole, PROPERTIES_NEW);
	CHECK_EQ_INT(p.ncors, 2);
	(void)set(&p, ROOT("<Cors>" RULE("x", "GET", "1", "", "") "</Cors>"), PROPERTIES_NEW);
	CHECK_EQ_INT(p.ncors, 1);
	service_properties_fini(&p);
}

/* The orders of three SDKs, with what is theirs in the declaration. */
TEST(the_orders_of_clients_are_understood)
{
	static const char python[] =
		"<?xml version='1.0' encoding='utf-8'?>\n"
		"<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>"
		"<Read>true</Read><Write>true</Write>" KEEP "</Logging>"
		"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>"
		"<IncludeAPIs>false</IncludeAPIs>" KEEP "</HourMetrics>"
		"<MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled>"
		"<IncludeAPIs>true</IncludeAPIs>" KEEP_NOT "</MinuteMetrics>"
		"<Cors><CorsRule>"
		"<AllowedOrigins>http://www.contoso.com,https://a.b:8080</AllowedOrigins>"
		"<AllowedMethods>GET, PUT</AllowedMethods>"
		"<AllowedHeaders>x-ms-meta-target*,x-ms-meta-abc</AllowedHeaders>"
		"<ExposedHeaders>x-ms-meta-data*,x-ms-meta-customheader</ExposedHeaders>"
		"<MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>"
		"<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>POST</AllowedMethods>"
		"<AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>0</MaxAgeInSeconds>"
		"</CorsRule></Cors></StorageServiceProperties>";
	static const char js[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>"
		"<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete>"
		"<Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled>"
		"<Days>5</Days></RetentionPolicy></Logging>"
		"<Cors><CorsRule>"
		"<AllowedOrigins>http://www.contoso.com,https://a.b:8080</AllowedOrigins>"
		"<AllowedMethods>GET, PUT</AllowedMethods>"
		"<AllowedHeaders>x-ms-meta-target*,x-ms-meta-abc</AllowedHeaders>"
		"<ExposedHeaders>x-ms-meta-data*,x-ms-meta-customheader</ExposedHeaders>"
		"<MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>"
		"<CorsRule><MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders></ExposedHeaders>"
		"<AllowedHeaders></AllowedHeaders><AllowedMethods>POST</AllowedMethods>"
		"<AllowedOrigins>*</AllowedOrigins></CorsRule></Cors>"
		"<MinuteMetrics><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
		"<IncludeAPIs>true</IncludeAPIs><Enabled>true</Enabled><Version>1.0</Version>"
		"</MinuteMetrics>"
		"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled>"
		"<IncludeAPIs>false</IncludeAPIs><RetentionPolicy><Days>5</Days>"
		"<Enabled>true</Enabled></RetentionPolicy></HourMetrics>"
		"</StorageServiceProperties>";
	CHECK_EQ_STR(set_fresh(python), whole);
	CHECK_EQ_STR(set_fresh(js), whole);
	char text[sizeof(python) + 8];
	(void)snprintf(text, sizeof(text), "\xef\xbb\xbf%s", python);
	CHECK_EQ_STR(set_fresh(text), whole);
	CHECK_EQ_STR(set_fresh("<p:StorageServiceProperties xmlns:p='urn:x'>\r\n  <p:Cors>\r\n"
			       "  </p:Cors>\r\n</p:StorageServiceProperties>"),
		ROOT(LOGGING_OFF HOUR_DEFAULT MINUTE_OFF "<Cors />"));
}

TEST(the_old_form_has_metrics_and_nothing_new)
{
	struct service_properties p;
	static const char old[] = ROOT(LOGGING_OFF
		"<Metrics><Version>1.0</Version>"
		"<Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>" KEEP "</Metrics>");
	service_properties_default(&p);
	CHECK_EQ_STR(set(&p, old, PROPERTIES_OLD), old);
	CHECK_EQ_STR(set(&p, ROOT("<Cors/>"), PROPERTIES_OLD),
		"XML_INVALID: The XML element 'Cors' is not supported in "
		"'StorageServiceProperties'.");
	CHECK_EQ_STR(set(&p, ROOT(HOUR_DEFAULT), PROPERTIES_OLD),
		"XML_INVALID: The XML element 'HourMetrics' is not supported in "
		"'StorageServiceProperties'.");
	CHECK_EQ_STR(set(&p, old, PROPERTIES_NEW),
		"XML_INVALID: The XML element 'Metrics' is not supported in "
		"'StorageServiceProperties'.");
	service_properties_fini(&p);
}

TEST(a_document_without_a_section_is_refused)
{
	CHECK_EQ_STR(set_fresh(ROOT("")),
		"XML_INVALID: The XML element 'StorageServiceProperties' holds no property.");
	CHECK_ERR(read_it("<StorageServiceProperties/>"), ERR_XML_INVALID);
	CHECK_ERR(read_it(""), ERR_XML_INVALID);
	CHECK_ERR(read_it("\xef\xbb\xbf"), ERR_XML_INVALID);
	CHECK_ERR(read_it(" "), ERR_XML_INVALID);
	CHECK_ERR(read_it("<Other><Cors/></Other>"), ERR_XML_INVALID);
	CHECK_ERR(read_it(ROOT("text")), ERR_XML_INVALID);
}

/* ---- logging and metrics ---- */

#define LOGGING(inside_) ROOT("<Logging>" inside_ "</Logging>")
#define METRICS(inside_) ROOT("<MinuteMetrics>" inside_ "</MinuteMetrics>")

TEST(a_section_that_is_there_is_complete)
{
	static const char *const parts[] = { "<Version>1.0</Version>", "<Read>true</Read>",
		"<Write>true</Write>", "<Delete>true</Delete>", KEEP };
	char text[1000];
	for (size_t skip = 0; skip <= ARRAY_LEN(parts); skip++) {
		size_t n =
			(size_t)snprintf(text, sizeof(text), "<StorageServiceProperties><Logging>");
		for (size_t i = 0; i < ARRAY_LEN(parts); i++)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, "%s", i == skip ? "" : parts[i]);
		(void)snprintf(text + n, sizeof(text) - n, "</Logging></StorageServiceProperties>");
		CHECK_ERR(read_it(text), skip < ARRAY_LEN(parts) ? ERR_XML_INVALID : ERR_OK);
	}
	CHECK_EQ_STR(set_fresh(LOGGING("<Version>1.0</Version><Read>true</Read>")),
		"XML_INVALID: The XML element 'Write' is missing in 'Logging'.");
	CHECK_ERR(read_it(METRICS("<Enabled>false</Enabled>" KEEP_NOT)), ERR_XML_INVALID);
	CHECK_ERR(read_it(METRICS("<Version>1.0</Version>" KEEP_NOT)), ERR_XML_INVALID);
	CHECK_ERR(read_it(METRICS("<Version>1.0</Version><Enabled>false</Enabled>")),
		ERR_XML_INVALID);
	CHECK_ERR(read_it(METRICS("<Version>1.0</Version><Enabled>false</Enabled>"
				  "<RetentionPolicy/>")),
		ERR_XML_INVALID);
	CHECK_ERR(read_it(LOGGING("<Version>1.0</Version><Read>true</Read><Write>true</Write>"
				  "<Delete>true</Delete><Delete>true</Delete>" KEEP)),
		ERR_XML_INVALID);
	CHECK_ERR(read_it(ROOT("<Cors/><Cors/>")), ERR_XML_INVALID);
	CHECK_ERR(read_it(ROOT(HOUR_DEFAULT HOUR_DEFAULT)), ERR_XML_INVALID);
	CHECK_ERR(read_it(ROOT("<Cors/><StaticWebsite/>")), ERR_XML_INVALID);
}

TEST(include_apis_is_for_metrics_that_are_on)
{
	CHECK_EQ_STR(set_fresh(METRICS("<Version>1.0</Version><Enabled>true</Enabled>" KEEP)),
		"XML_INVALID: The XML element 'IncludeAPIs' is missing in 'MinuteMetrics', which "
		"is enabled.");
	CHECK_EQ_STR(set_fresh(METRICS("<Version>1.0</Version><Enabled>false</Enabled>"
				       "<IncludeAPIs>true</IncludeAPIs>" KEEP_NOT)),
		ROOT(LOGGING_OFF HOUR_DEFAULT MINUTE_OFF "<Cors />"));
	CHECK_ERR(read_it(METRICS("<Version>1.0</Version><Enabled>false</Enabled>"
				  "<IncludeAPIs>maybe</IncludeAPIs>" KEEP_NOT)),
		ERR_XML_VALUE);
}

static const char *with_days(const char *enabled, const char *days)
{
	static char text[500];
	(void)snprintf(text, sizeof(text),
		METRICS("<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy>"
			"<Enabled>%s</Enabled>%s</RetentionPolicy>"),
		enabled, days);
	return text;
}

TEST(days_are_1_to_365_where_they_are_kept)
{
	CHECK_ERR(read_it(with_days("true", "<Days>1</Days>")), ERR_OK);
	CHECK_ERR(read_it(with_days("true", "<Days>365</Days>")), ERR_OK);
	CHECK_ERR(read_it(with_days("true", "<Days> 30 </Days>")), ERR_OK);
	CHECK_ERR(read_it(with_days("true", "<Days>0</Days>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "<Days>366</Days>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "<Days>-1</Days>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "<Days>1.5</Days>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "<Days>x</Days>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "<Days/>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "<Days>4294967297</Days>")), ERR_XML_VALUE);
	CHECK_ERR(
		read_it(with_days("true", "<Days>99999999999999999999999</Days>")), ERR_XML_VALUE);
	CHECK_ERR(read_it(with_days("true", "")), ERR_XML_INVALID);
	CHECK_ERR(read_it(with_days("false", "")), ERR_OK);
	CHECK_EQ_STR(set_fresh(with_days("false", "<Days>9</Days>")),
		ROOT(LOGGING_OFF HOUR_DEFAULT MINUTE_OFF "<Cors />"));
	CHECK_ERR(read_it(with_days("false", "<Days>0</Days>")), ERR_XML_VALUE);
	CHECK_EQ_STR(set_fresh(with_days("true", "<Days>366</Days>")),
		"XML_VALUE: The value '366' of the XML element 'Days' is not a number from 1 to "
		"365.");
}

TEST(values_are_spelled_as_the_protocol_does)
{
	static const char *const bad[] = { "True", "TRUE", "1", "0", "yes", "", "tru", "true false",
		"<x/>" };
	char text[500];
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)snprintf(text, sizeof(text),
			LOGGING("<Version>1.0</Version><Read>%s</Read><Write>true</Write>"
				"<Delete>true</Delete>" KEEP_NOT),
			bad[i]);
		CHECK_ERR(read_it(text), bad[i][0] == '<' ? ERR_XML_INVALID : ERR_XML_VALUE);
	}
	CHECK_ERR(read_it(METRICS("<Version> 1.0 </Version><Enabled> false </Enabled>" KEEP_NOT)),
		ERR_OK);
	CHECK_ERR(read_it(METRICS("<Version>1</Version><Enabled>false</Enabled>" KEEP_NOT)),
		ERR_XML_VALUE);
	CHECK_ERR(read_it(METRICS("<Version>2.0</Version><Enabled>false</Enabled>" KEEP_NOT)),
		ERR_XML_VALUE);
	CHECK_ERR(read_it(METRICS("<Version/><Enabled>false</Enabled>" KEEP_NOT)), ERR_XML_VALUE);
}

/* ---- CORS ---- */

TEST(a_rule_has_all_five_and_each_once)
{
	static const char *const parts[] = { "<AllowedOrigins>*</AllowedOrigins>",
		"<AllowedMethods>GET</AllowedMethods>", "<MaxAgeInSeconds>1</MaxAgeInSeconds>",
		"<ExposedHeaders/>", "<AllowedHeaders/>" };
	char text[1000];
	for (size_t odd = 0; odd <= ARRAY_LEN(parts); odd++) {
		for (int times = 0; times <= 2; times++) {
			size_t n = (size_t)snprintf(
				text, sizeof(text), "<StorageServiceProperties><Cors><CorsRule>");
			for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
				for (int k = 0; k < (i == odd ? times : 1); k++)
					n += (size_t)snprintf(
						text + n, sizeof(text) - n, "%s", parts[i]);
			}
			(void)snprintf(text + n, sizeof(text) - n,
				"</CorsRule></Cors></StorageServiceProperties>");
			bool good = odd == ARRAY_LEN(parts) || times == 1;
			CHECK_ERR(read_it(text), good ? ERR_OK : ERR_XML_INVALID);
		}
	}
	CHECK_EQ_STR(set_fresh(ROOT("<Cors><Rule/></Cors>")),
		"XML_INVALID: The XML element 'Rule' is not supported in 'Cors'.");
	CHECK_EQ_STR(set_fresh(ROOT("<Cors>text</Cors>")),
		"XML_INVALID: The XML element 'Cors' must not contain text.");
	CHECK_ERR(read_it(ROOT("<Cors><CorsRule/></Cors>")), ERR_XML_INVALID);
}

TEST(five_rules_are_allowed)
{
#define R RULE("*", "GET", "1", "", "")
	CHECK_ERR(read_it(ROOT("<Cors>" R R R R R "</Cors>")), ERR_OK);
	CHECK_EQ_STR(set_fresh(ROOT("<Cors>" R R R R R R "</Cors>")),
		"XML_INVALID: The XML element 'Cors' lists more than 5 rules.");
#undef R
}

/* before + number + after, n times. */
static struct buf repeated(const char *before, const char *after, size_t n)
{
	struct buf b = BUF_INIT(30000);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			buf_add_char(&b, ',');
		buf_addf(&b, "%s%zu%s", before, i, after);
	}
	return b;
}

/* A rule with one value set to the text. */
static enum err with_value(const char *name, struct span value)
{
	static const char *const names[] = { "AllowedOrigins", "AllowedMethods", "MaxAgeInSeconds",
		"ExposedHeaders", "AllowedHeaders" };
	struct buf b = BUF_INIT(40000);
	buf_add_str(&b, "<StorageServiceProperties><Cors><CorsRule>");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct span text = i == 2 ? SPAN_LIT("1") : SPAN_LIT("");
		if (strcmp(names[i], name) == 0)
			text = value;
		buf_addf(&b, "<%s>", names[i]);
		xml_add_text(&b, text);
		buf_addf(&b, "</%s>", names[i]);
	}
	buf_add_str(&b, "</CorsRule></Cors></StorageServiceProperties>");
	CHECK(buf_ok(&b));
	enum err e = read_n(buf_span(&b));
	buf_fini(&b);
	return e;
}

static enum err with_items(const char *name, const char *before, const char *after, size_t n)
{
	struct buf b = repeated(before, after, n);
	enum err e = with_value(name, buf_span(&b));
	buf_fini(&b);
	return e;
}

TEST(lists_have_64_items_and_two_prefixes)
{
	CHECK_ERR(with_items("AllowedOrigins", "http://", "", 64), ERR_OK);
	CHECK_ERR(with_items("AllowedOrigins", "http://", "", 65), ERR_XML_INVALID);
	static const char *const lists[] = { "ExposedHeaders", "AllowedHeaders" };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		CHECK_ERR(with_items(lists[i], "h", "", 64), ERR_OK);
		CHECK_ERR(with_items(lists[i], "h", "", 65), ERR_XML_INVALID);
		CHECK_ERR(with_items(lists[i], "h", "*", 2), ERR_OK);
		CHECK_ERR(with_items(lists[i], "h", "*", 3), ERR_XML_INVALID);
		struct buf b = repeated("h", "", 64);
		buf_add_str(&b, ",x-ms-meta-a*,x-ms-meta-b*");
		CHECK_ERR(with_value(lists[i], buf_span(&b)), ERR_OK);
		buf_add_str(&b, ",*");
		CHECK_ERR(with_value(lists[i], buf_span(&b)), ERR_XML_INVALID);
		buf_fini(&b);
		CHECK_ERR(with_value(lists[i], SPAN_LIT("*")), ERR_OK);
	}
}

TEST(an_item_has_256_characters)
{
	static const char *const lists[] = { "AllowedOrigins", "ExposedHeaders", "AllowedHeaders" };
	char text[300];
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		CHECK_ERR(with_value(lists[i], span_make(text, 256)), ERR_OK);
		CHECK_ERR(with_value(lists[i], span_make(text, 257)), ERR_XML_VALUE);
	}
}

TEST(all_rules_hold_2_kib_without_tags)
{
	/* Eight origins of 255 bytes with their commas are 2047, the age is one more. */
	char text[8 * 256];
	memset(text, 'a', sizeof(text));
	for (size_t i = 255; i < sizeof(text); i += 256)
		text[i] = ',';
	CHECK_ERR(with_value("AllowedOrigins", span_make(text, 2047)), ERR_OK);
	text[2047] = 'a';
	CHECK_ERR(with_value("AllowedOrigins", span_make(text, 2048)), ERR_XML_INVALID);
}

TEST(methods_headers_origins_and_ages_are_checked)
{
	static const char *const methods[] = { "DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS",
		"PUT", "PATCH", "GET,PUT", " GET , PUT ", "", "GET,GET" };
	static const char *const bad_methods[] = { "get", "TRACE", "CONNECT", "*", "GET PUT",
		"GET,", ",GET", "GET,,PUT", "GET;PUT", "," };
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		CHECK_ERR(with_value("AllowedMethods", span_of(methods[i])), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(bad_methods); i++)
		CHECK_ERR(with_value("AllowedMethods", span_of(bad_methods[i])), ERR_XML_VALUE);

	static const char *const bad_headers[] = { "a b", "a:b", "a\nb", "\xc3\xa9", "a,", "a,,b",
		"(a)", "a\r\nSet-Cookie" };
	for (size_t i = 0; i < ARRAY_LEN(bad_headers); i++) {
		CHECK_ERR(with_value("AllowedHeaders", span_of(bad_headers[i])), ERR_XML_VALUE);
		CHECK_ERR(with_value("ExposedHeaders", span_of(bad_headers[i])), ERR_XML_VALUE);
	}
	CHECK_ERR(with_value("AllowedHeaders", SPAN_LIT("a,\n b,\r\n\tc")), ERR_OK);

	static const char *const bad_origins[] = { "a b", "http://a\r\nb", "http://\xc3\xa9", "a,",
		",", "a,,b" };
	for (size_t i = 0; i < ARRAY_LEN(bad_origins); i++)
		CHECK_ERR(with_value("AllowedOrigins", span_of(bad_origins[i])), ERR_XML_VALUE);
	CHECK_ERR(with_value("AllowedOrigins", SPAN_LIT("*, http://a")), ERR_OK);
	CHECK_ERR(with_value("AllowedOrigins", SPAN_LIT("http://a<&>")), ERR_OK);

	CHECK_ERR(with_value("MaxAgeInSeconds", SPAN_LIT("0")), ERR_OK);
	CHECK_ERR(with_value("MaxAgeInSeconds", SPAN_LIT("2147483647")), ERR_OK);
	CHECK_ERR(with_value("MaxAgeInSeconds", SPAN_LIT("2147483648")), ERR_XML_VALUE);
	CHECK_ERR(with_value("MaxAgeInSeconds", SPAN_LIT("-1")), ERR_XML_VALUE);
	CHECK_ERR(with_value("MaxAgeInSeconds", SPAN_LIT("")), ERR_XML_VALUE);
	CHECK_ERR(with_value("MaxAgeInSeconds", SPAN_LIT("1h")), ERR_XML_VALUE);
}

/* ---- lists ---- */

static const char *items(const char *list)
{
	static char text[200];
	struct span rest = span_of(list), item;
	size_t n = 0;
	text[0] = '\0';
	while (cors_list_next(&rest, &item))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "[%.*s]", (int)item.n, item.p);
	return text;
}

TEST(a_list_gives_its_items_without_blanks)
{
	CHECK_EQ_STR(items(""), "");
	CHECK_EQ_STR(items(" \t\r\n"), "");
	CHECK_EQ_STR(items("a"), "[a]");
	CHECK_EQ_STR(items(" a , b\n,c "), "[a][b][c]");
	CHECK_EQ_STR(items("a,,b"), "[a][][b]");
	CHECK_EQ_STR(items(","), "[]");
	CHECK_EQ_STR(items("a b"), "[a b]");
}

/* ---- what an account keeps ---- */

TEST(the_stored_text_is_read_or_found_corrupt)
{
	struct service_properties p;
	CHECK_ERR(service_properties_load(SPAN_LIT(""), &p), ERR_OK);
	CHECK(p.hour.enabled && p.ncors == 0);
	service_properties_fini(&p);
	CHECK_ERR(service_properties_load(span_of(whole), &p), ERR_OK);
	CHECK_EQ_INT(p.ncors, 2);
	service_properties_fini(&p);
	CHECK_ERR(service_properties_load(SPAN_LIT("<x"), &p), ERR_CORRUPT);
	service_properties_fini(&p);
	CHECK_ERR(
		service_properties_load(SPAN_LIT("<StorageServiceProperties/>"), &p), ERR_CORRUPT);
	service_properties_fini(&p);

	CHECK(service_properties_have_cors(span_of(whole)));
	CHECK(!service_properties_have_cors(SPAN_LIT("")));
	CHECK(!service_properties_have_cors((struct span){ 0 }));
	CHECK(!service_properties_have_cors(
		SPAN_LIT(ROOT(LOGGING_OFF HOUR_DEFAULT MINUTE_OFF "<Cors />"))));
}

/* ---- bad documents ---- */

TEST(hostile_documents_are_refused)
{
	CHECK_ERR(
		read_it("<!DOCTYPE a><StorageServiceProperties><Cors/></StorageServiceProperties>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it("<!DOCTYPE a [<!ENTITY b 'true'>]><StorageServiceProperties><Logging>"
			  "<Read>&b;</Read></Logging></StorageServiceProperties>"),
		ERR_XML_INVALID);
	CHECK_ERR(read_it(ROOT("<Cors>&x;</Cors>")), ERR_XML_INVALID);
	CHECK_ERR(read_it("<?xml version='1.0' encoding='utf-16'?><StorageServiceProperties>"
			  "<Cors/></StorageServiceProperties>"),
		ERR_XML_INVALID);
	struct buf b = BUF_INIT(100000);
	buf_add_str(&b, ROOT("<Cors/>"));
	size_t n = b.len;
	REQUIRE(buf_resize(&b, XML_BYTES_MAX));
	memset(b.data + n, '\n', XML_BYTES_MAX - n);
	CHECK_ERR(read_n(buf_span(&b)), ERR_OK);
	buf_add_char(&b, '\n');
	CHECK_ERR(read_n(buf_span(&b)), ERR_BODY_TOO_LARGE);
	buf_fini(&b);
}

TEST(a_document_cut_anywhere_is_refused)
{
	size_t n = strlen(whole);
	for (size_t i = 1; i < n; i++) {
		char *cut = malloc(i);
		REQUIRE(cut != NULL);
		memcpy(cut, whole, i);
		CHECK_ERR(read_n(span_make(cut, i)), ERR_XML_INVALID);
		free(cut);
	}
}

TEST(the_largest_properties_fit_the_place_where_they_are_kept)
{
	/* Everything at its limit, and every byte of it one that is escaped. */
	struct service_properties p;
	struct buf out = BUF_INIT(XML_BYTES_MAX), in = BUF_INIT(XML_BYTES_MAX);
	service_properties_default(&p);
	buf_add_str(&in, "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>");
	for (int i = 0; i < 2040; i++)
		buf_add_str(&in, i % 256 == 255 ? "," : "&amp;");
	buf_add_str(&in,
		"</AllowedOrigins><AllowedMethods/><MaxAgeInSeconds>1</MaxAgeInSeconds>"
		"<ExposedHeaders/><AllowedHeaders/></CorsRule></Cors>"
		"</StorageServiceProperties>");
	CHECK_ERR(service_properties_from_xml(buf_span(&in), PROPERTIES_NEW, &p, NULL), ERR_OK);
	service_properties_to_xml(&p, PROPERTIES_NEW, &out);
	CHECK(buf_ok(&out) && out.len < 20000);
	service_properties_fini(&p);
	CHECK_ERR(service_properties_load(buf_span(&out), &p), ERR_OK);
	CHECK_EQ_INT(p.cors[0].origins.n, 2040);
	service_properties_fini(&p);
	buf_fini(&in);
	buf_fini(&out);
}

TEST(elements_where_text_belongs_are_refused)
{
	static const char *const places[] = { "Version", "Days", "Enabled", "MaxAgeInSeconds",
		"AllowedOrigins" };
	struct buf xml = BUF_INIT(1u << 16);

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char name[40];
		(void)snprintf(name, sizeof(name), "<%s>", places[i]);
		const char *at = strstr(whole, name);
		REQUIRE(at != NULL);
		at += strlen(name);
		buf_clear(&xml);
		buf_add(&xml, whole, (size_t)(at - whole));
		buf_add_str(&xml, "<x />");
		buf_add_str(&xml, at);
		CHECK_ERR(read_n(buf_span(&xml)), ERR_XML_INVALID);
	}
	buf_fini(&xml);
}

TEST(long_values_and_odd_origins_are_shown_cut)
{
	char value[71];

	memset(value, 'v', sizeof(value) - 1);
	value[70] = '\0';
	CHECK_ERR(with_value("MaxAgeInSeconds", span_of(value)), ERR_XML_VALUE);
	CHECK_ERR(with_value("AllowedOrigins", SPAN_LIT("http://a\x7f")), ERR_XML_VALUE);
	CHECK_ERR(with_value("AllowedOrigins", SPAN_LIT("http://\xc3\xa9")), ERR_XML_VALUE);
}

RUN_TESTS(T(the_defaults_are_the_services), T(what_was_set_comes_back),
	T(what_a_document_leaves_out_stays_as_it_was), T(the_orders_of_clients_are_understood),
	T(the_old_form_has_metrics_and_nothing_new), T(a_document_without_a_section_is_refused),
	T(a_section_that_is_there_is_complete), T(include_apis_is_for_metrics_that_are_on),
	T(days_are_1_to_365_where_they_are_kept), T(values_are_spelled_as_the_protocol_does),
	T(a_rule_has_all_five_and_each_once), T(five_rules_are_allowed),
	T(lists_have_64_items_and_two_prefixes), T(an_item_has_256_characters),
	T(all_rules_hold_2_kib_without_tags), T(methods_headers_origins_and_ages_are_checked),
	T(a_list_gives_its_items_without_blanks), T(the_stored_text_is_read_or_found_corrupt),
	T(hostile_documents_are_refused), T(a_document_cut_anywhere_is_refused),
	T(the_largest_properties_fit_the_place_where_they_are_kept),
	T(elements_where_text_belongs_are_refused), T(long_values_and_odd_origins_are_shown_cut))
