/* SPDX-License-Identifier: MIT
 * The operations with XML bodies, through rest_handle(): Table ACL, service properties,
 * stats. */
#include "base/buf.h"
#include "base/clock.h"
#include "check.h"
#include "rest/core/handle.h"
#include "rest/tables/tables.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "store/engines.h"

#define DECL "<?xml version=\"1.0\" encoding=\"utf-8\"?>"
#define NEW "2019-02-02"
#define ACL "/acct/Blogs?comp=acl"
#define PROPERTIES "/acct/?restype=service&comp=properties"

static const struct peer peer = { .is_unix = true, .trusted = true };

struct world {
	struct service *service;
	char text[8192]; /* the last body */
	char type[100];  /* its Content-Type */
};

static void setup(struct world *w)
{
	struct store *store;
	struct item it = { 0 };
	*w = (struct world){ 0 };
	BUG_ON(store_open_memory(&store) != ERR_OK);
	BUG_ON(service_new(store, &w->service) != ERR_OK);
	BUG_ON(account_create(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) !=
		ERR_OK);
	BUG_ON(account_find(w->service, SPAN_LIT("acct"), &it) != ERR_OK);
	BUG_ON(table_create(w->service, ORIGIN_COMMAND, it.id, SPAN_LIT("Blogs"), NULL, NULL) !=
		ERR_OK);
	item_fini(&it);
}

/* The status. */
static int ask(struct world *w, const char *method, const char *target, const char *version,
	const char *body)
{
	struct header headers[] = { { SPAN_LIT("Host"), SPAN_LIT("127.0.0.1:10002") },
		{ SPAN_LIT("x-ms-version"), span_of(version) },
		{ SPAN_LIT("Accept"), SPAN_LIT("application/atom+xml,application/xml") } };
	struct request q = { .method = span_of(method),
		.target = span_of(target),
		.headers = headers,
		.nheaders = ARRAY_LEN(headers),
		.body = span_of(body),
		.peer = &peer };
	struct response r;
	rest_handle(&rest_tables, w->service, &q, &r);
	(void)snprintf(w->text, sizeof(w->text), "%.*s", (int)r.body.len,
		r.body.len > 0 ? r.body.data : "");
	const char *type = response_header_get(&r, "Content-Type");
	(void)snprintf(w->type, sizeof(w->type), "%s", type == NULL ? "(none)" : type);
	int status = r.status;
	response_fini(&r);
	return status;
}

TEST(a_table_has_no_policies_until_they_are_set)
{
	static const char set[] =
		DECL "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy>"
		     "<Start>2013-11-26T08:49:37.0000000Z</Start><Permission>raud</Permission>"
		     "</AccessPolicy></SignedIdentifier></SignedIdentifiers>";
	struct world w;
	setup(&w);
	CHECK_EQ_INT(ask(&w, "GET", ACL, NEW, ""), 200);
	CHECK_EQ_STR(w.text, DECL "<SignedIdentifiers />");
	CHECK_EQ_STR(w.type, "application/xml");
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW, set), 204);
	CHECK_EQ_STR(w.text, "");
	CHECK_EQ_STR(w.type, "(none)");
	CHECK_EQ_INT(ask(&w, "GET", "/acct/blogs?comp=acl", NEW, ""), 200);
	CHECK_EQ_STR(w.text, set);
	/* The next set replaces all of it; what is refused changes nothing. */
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW,
			     "<SignedIdentifiers><SignedIdentifier><Id>y</Id></SignedIdentifier>"
			     "</SignedIdentifiers>"),
		204);
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW, "<SignedIdentifiers>"), 400);
	CHECK(strstr(w.text, "InvalidXmlDocument") != NULL);
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW,
			     "<SignedIdentifiers><SignedIdentifier><Id>y</Id><AccessPolicy>"
			     "<Permission>x</Permission></AccessPolicy></SignedIdentifier>"
			     "</SignedIdentifiers>"),
		400);
	CHECK(strstr(w.text, "InvalidXmlNodeValue") != NULL);
	CHECK_EQ_INT(ask(&w, "GET", ACL, NEW, ""), 200);
	CHECK_EQ_STR(w.text,
		DECL "<SignedIdentifiers><SignedIdentifier><Id>y</Id>"
		     "</SignedIdentifier></SignedIdentifiers>");
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW, ""), 204);
	CHECK_EQ_INT(ask(&w, "GET", ACL, NEW, ""), 200);
	CHECK_EQ_STR(w.text, DECL "<SignedIdentifiers />");
	service_free(w.service);
}

/* An older version kept times as they were sent. */
TEST(policies_of_an_older_store_are_shown_in_the_form_of_today)
{
#define OLD(time_) \
	DECL "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy><Start>" time_ \
	     "</Start></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
	struct item it = { 0 };
	struct world w;
	setup(&w);
	CHECK_ERR(table_find(w.service, SPAN_LIT("acct"), SPAN_LIT("Blogs"), &it), ERR_OK);
	CHECK_ERR(table_policies_set(
			  w.service, ORIGIN_REST, it.id, SPAN_LIT(OLD("2030-01-01T00:00Z")), NULL),
		ERR_OK);
	CHECK_EQ_INT(ask(&w, "GET", ACL, NEW, ""), 200);
	CHECK_EQ_STR(w.text, OLD("2030-01-01T00:00:00.0000000Z"));
	CHECK_ERR(
		table_policies_set(w.service, ORIGIN_REST, it.id, SPAN_LIT("<x/>"), NULL), ERR_OK);
	CHECK_EQ_INT(ask(&w, "GET", ACL, NEW, ""), 500);
	item_fini(&it);
	service_free(w.service);
}

TEST(the_policies_of_a_missing_table_are_not_found)
{
	struct world w;
	setup(&w);
	CHECK_EQ_INT(ask(&w, "GET", "/acct/Other?comp=acl", NEW, ""), 404);
	CHECK(strstr(w.text, "TableNotFound") != NULL);
	CHECK_EQ_INT(ask(&w, "PUT", "/acct/Other?comp=acl", NEW, ""), 404);
	CHECK(strstr(w.text, "TableNotFound") != NULL);
	service_free(w.service);
}

#define OFF "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
#define LOGGING \
	"<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>" \
	"<Delete>false</Delete>" OFF "</Logging>"
#define METRICS \
	"<Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>" \
	"<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>"

TEST(service_properties_are_shown_as_the_version_knows_them)
{
	struct world w;
	setup(&w);
	CHECK_EQ_INT(ask(&w, "GET", PROPERTIES, "2013-08-15", ""), 200);
	CHECK_EQ_STR(w.text,
		DECL "<StorageServiceProperties>" LOGGING "<HourMetrics>" METRICS
		     "</HourMetrics><MinuteMetrics><Version>1.0</Version>"
		     "<Enabled>false</Enabled>" OFF "</MinuteMetrics><Cors />"
		     "</StorageServiceProperties>");
	CHECK_EQ_STR(w.type, "application/xml");
	CHECK_EQ_INT(ask(&w, "GET", PROPERTIES, "2012-02-12", ""), 200);
	CHECK_EQ_STR(w.text,
		DECL "<StorageServiceProperties>" LOGGING "<Metrics>" METRICS
		     "</Metrics></StorageServiceProperties>");
	service_free(w.service);
}

TEST(a_set_changes_the_sections_it_holds_and_a_refused_one_nothing)
{
	static const char rule[] =
		"<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>"
		"<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>"
		"<ExposedHeaders /><AllowedHeaders /></CorsRule></Cors>";
	struct world w;
	char text[1000];
	setup(&w);
	(void)snprintf(text, sizeof(text),
		"<StorageServiceProperties>%s</StorageServiceProperties>", rule);
	CHECK_EQ_INT(ask(&w, "PUT", PROPERTIES, NEW, text), 202);
	CHECK_EQ_STR(w.text, "");
	CHECK_EQ_INT(
		ask(&w, "PUT", PROPERTIES, "2012-02-12",
			"<StorageServiceProperties><Metrics><Version>1.0</Version>"
			"<Enabled>false</Enabled>" OFF "</Metrics></StorageServiceProperties>"),
		202);
	CHECK_EQ_INT(ask(&w, "PUT", PROPERTIES, NEW, ""), 400);
	CHECK(strstr(w.text, "InvalidXmlDocument") != NULL);
	CHECK_EQ_INT(ask(&w, "PUT", PROPERTIES, NEW,
			     "<StorageServiceProperties><Cors/><Logging/>"
			     "</StorageServiceProperties>"),
		400);
	CHECK(strstr(w.text, "'Version' is missing in 'Logging'") != NULL);
	CHECK_EQ_INT(ask(&w, "GET", PROPERTIES, NEW, ""), 200);
	CHECK(strstr(w.text, rule) != NULL);
	CHECK(strstr(w.text,
		      "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>" OFF
		      "</HourMetrics>") != NULL);
	/* The keys are still there, and what is kept is not the request's own text. */
	struct account_secrets a;
	CHECK_ERR(account_secrets_get(w.service, SPAN_LIT("acct"), &a), ERR_OK);
	CHECK_EQ_INT(a.keys.len[0], 32);
	CHECK_EQ_STR(a.properties[0].data, w.text);
	account_secrets_fini(&a);
	service_free(w.service);
}

TEST(bodies_have_64_kib)
{
	static char text[65600];
	struct world w;
	setup(&w);
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "<SignedIdentifiers/>", 20);
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW, text), 413);
	text[65536] = '\0';
	CHECK_EQ_INT(ask(&w, "PUT", ACL, NEW, text), 204);
	service_free(w.service);
}

static int64_t a_fixed_time(void)
{
	int64_t day;
	BUG_ON(!clock_date(2013, 10, 23, &day));
	return day + (22 * 3600 + 5 * 60 + 54) * TICKS_PER_SECOND + 9999999;
}

TEST(stats_are_live_at_both_endpoints)
{
	static const char want[] =
		DECL "<StorageServiceStats><GeoReplication><Status>live</Status>"
		     "<LastSyncTime>Wed, 23 Oct 2013 22:05:54 GMT</LastSyncTime></GeoReplication>"
		     "</StorageServiceStats>";
	struct world w;
	setup(&w);
	clock_set_source(a_fixed_time);
	CHECK_EQ_INT(ask(&w, "GET", "/acct/?restype=service&comp=stats", NEW, ""), 200);
	CHECK_EQ_STR(w.text, want);
	CHECK_EQ_STR(w.type, "application/xml");
	CHECK_EQ_INT(ask(&w, "GET", "/acct-secondary/?restype=service&comp=stats", NEW, ""), 200);
	CHECK_EQ_STR(w.text, want);
	clock_set_source(NULL);
	service_free(w.service);
}

RUN_TESTS(T(a_table_has_no_policies_until_they_are_set),
	T(policies_of_an_older_store_are_shown_in_the_form_of_today),
	T(the_policies_of_a_missing_table_are_not_found),
	T(service_properties_are_shown_as_the_version_knows_them),
	T(a_set_changes_the_sections_it_holds_and_a_refused_one_nothing), T(bodies_have_64_kib),
	T(stats_are_live_at_both_endpoints))
