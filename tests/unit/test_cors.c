/* SPDX-License-Identifier: MIT
 * Cross-origin requests: the rules, and the table of protocol section 2.17 row by row. */
#include "check.h"
#include "codec/service_properties_xml.h"
#include "rest/core/cors.h"

#include <strings.h>

#define RULE(origins_, methods_, age_, exposed_, allowed_) \
	"<CorsRule><AllowedOrigins>" origins_ "</AllowedOrigins><AllowedMethods>" methods_ \
	"</AllowedMethods><MaxAgeInSeconds>" age_ "</MaxAgeInSeconds><ExposedHeaders>" exposed_ \
	"</ExposedHeaders><AllowedHeaders>" allowed_ "</AllowedHeaders></CorsRule>"
#define RULES(rules_) "<StorageServiceProperties><Cors>" rules_ "</Cors></StorageServiceProperties>"

#define A "http://a.example"
#define B "http://b.example"

#define HEADERS_MAX 8

/* What was sent and what came back. */
struct talk {
	struct service_properties p;
	bool none; /* p is passed as NULL */
	struct header sent[HEADERS_MAX];
	size_t nsent;
	struct response r;
	enum err e;
};

static struct talk talk_with(const char *rules)
{
	struct talk t = { .none = rules == NULL };
	service_properties_default(&t.p);
	if (rules != NULL)
		BUG_ON(service_properties_from_xml(span_of(rules), PROPERTIES_NEW, &t.p, NULL) !=
			ERR_OK);
	response_init(&t.r);
	return t;
}

static void send_header(struct talk *t, const char *name, const char *value)
{
	BUG_ON(t->nsent == HEADERS_MAX);
	if (value != NULL)
		t->sent[t->nsent++] = (struct header){ span_of(name), span_of(value) };
}

static struct request request_of(const struct talk *t, const char *method)
{
	return (struct request){ .method = span_of(method),
		.target = SPAN_LIT("/acct/Tables"),
		.headers = t->sent,
		.nheaders = t->nsent };
}

static void talk_fini(struct talk *t)
{
	response_fini(&t->r);
	service_properties_fini(&t->p);
}

static const char *got(const struct talk *t, const char *name)
{
	const char *value = response_header_get(&t->r, name);
	return value == NULL ? "(none)" : value;
}

static unsigned cors_headers(const struct talk *t)
{
	const char *name, *value;
	unsigned n = 0;
	for (size_t at = 0; response_header_next(&t->r, &at, &name, &value);)
		n += strncasecmp(name, "Access-Control-", 15) == 0 || strcasecmp(name, "Vary") == 0;
	return n;
}

/* ---- preflight ---- */

static struct talk preflight(
	const char *rules, const char *origin, const char *method, const char *headers)
{
	struct talk t = talk_with(rules);
	send_header(&t, "origin", origin);
	send_header(&t, "access-control-request-method", method);
	send_header(&t, "access-control-request-headers", headers);
	struct request q = request_of(&t, "OPTIONS");
	t.e = cors_preflight(t.none ? NULL : &t.p, &q, &t.r);
	return t;
}

static enum err preflight_err(
	const char *rules, const char *origin, const char *method, const char *headers)
{
	struct talk t = preflight(rules, origin, method, headers);
	enum err e = t.e;
	CHECK_EQ_INT(t.r.status, e == ERR_OK ? 200 : 0);
	CHECK_EQ_INT(cors_headers(&t) > 0, e == ERR_OK);
	talk_fini(&t);
	return e;
}

TEST(a_preflight_answers_with_what_was_asked_for)
{
	struct talk t = preflight(RULES(RULE(A, "GET,PUT", "500", "x", "x-ms-meta*,content-type")),
		A, "PUT", "X-MS-Meta-Abc, Content-Type");
	CHECK_ERR(t.e, ERR_OK);
	CHECK_EQ_INT(t.r.status, 200);
	CHECK_EQ_INT(t.r.body.len, 0);
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), A);
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Methods"), "PUT");
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Headers"), "X-MS-Meta-Abc, Content-Type");
	CHECK_EQ_STR(got(&t, "Access-Control-Max-Age"), "500");
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Credentials"), "true");
	CHECK_EQ_STR(got(&t, "Vary"), "(none)");
	CHECK_EQ_STR(got(&t, "Access-Control-Expose-Headers"), "(none)");
	talk_fini(&t);

	t = preflight(RULES(RULE("*", "GET", "0", "", "")), A, "GET", NULL);
	CHECK_ERR(t.e, ERR_OK);
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), "*");
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Headers"), "(none)");
	CHECK_EQ_STR(got(&t, "Access-Control-Max-Age"), "0");
	talk_fini(&t);
}

TEST(a_preflight_needs_an_origin_and_a_method)
{
	const char *rules = RULES(RULE("*", "GET", "1", "", "*"));
	CHECK_ERR(preflight_err(rules, NULL, "GET", NULL), ERR_CORS_HEADER);
	CHECK_ERR(preflight_err(rules, "", "GET", NULL), ERR_CORS_HEADER);
	CHECK_ERR(preflight_err(rules, A, NULL, NULL), ERR_CORS_HEADER);
	CHECK_ERR(preflight_err(rules, A, "", NULL), ERR_CORS_HEADER);
	CHECK_ERR(preflight_err(NULL, NULL, NULL, NULL), ERR_CORS_HEADER);
}

TEST(a_preflight_without_a_rule_fails)
{
	CHECK_ERR(preflight_err(NULL, A, "GET", NULL), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(RULES(""), A, "GET", NULL), ERR_CORS_FAILED);
	CHECK_ERR(
		preflight_err(RULES(RULE(A, "GET", "1", "", "")), B, "GET", NULL), ERR_CORS_FAILED);
	CHECK_ERR(
		preflight_err(RULES(RULE(A, "GET", "1", "", "")), A, "PUT", NULL), ERR_CORS_FAILED);
	/* Origins have case; so have methods. */
	CHECK_ERR(
		preflight_err(RULES(RULE(A, "GET", "1", "", "")), "http://A.example", "GET", NULL),
		ERR_CORS_FAILED);
	CHECK_ERR(
		preflight_err(RULES(RULE(A, "GET", "1", "", "")), A, "get", NULL), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(RULES(RULE(A, "GET", "1", "", "")), A ".org", "GET", NULL),
		ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(RULES(RULE("", "GET", "1", "", "")), A, "GET", NULL),
		ERR_CORS_FAILED);
	CHECK_ERR(
		preflight_err(RULES(RULE("*", "", "1", "", "")), A, "GET", NULL), ERR_CORS_FAILED);
	/* '*' is an origin's spelling, not one that may be sent to match anything. */
	CHECK_ERR(preflight_err(RULES(RULE(A, "GET", "1", "", "")), "*", "GET", NULL),
		ERR_CORS_FAILED);
}

TEST(the_first_rule_for_origin_and_method_is_the_rule)
{
	const char *rules = RULES(RULE(A, "GET", "1", "", "one") RULE(
		A "," B, "GET,PUT", "2", "", "two") RULE("*", "GET,PUT,POST", "3", "", "*"));
	struct talk t = preflight(rules, A, "PUT", "two");
	CHECK_ERR(t.e, ERR_OK);
	CHECK_EQ_STR(got(&t, "Access-Control-Max-Age"), "2");
	talk_fini(&t);
	t = preflight(rules, B, "GET", "TWO");
	CHECK_EQ_STR(got(&t, "Access-Control-Max-Age"), "2");
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), B);
	talk_fini(&t);
	t = preflight(rules, A, "POST", "anything");
	CHECK_EQ_STR(got(&t, "Access-Control-Max-Age"), "3");
	CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), "*");
	talk_fini(&t);
	/* What the rule refuses, no later one allows. */
	CHECK_ERR(preflight_err(rules, A, "GET", "two"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(rules, A, "GET", "one,two"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(rules, A, "GET", "one"), ERR_OK);
	CHECK_ERR(preflight_err(rules, A, "GET", NULL), ERR_OK);
}

TEST(every_header_asked_for_is_allowed_by_name_prefix_or_star)
{
	const char *rules = RULES(RULE("*", "GET", "1", "", "x-ms-meta-target*, x-ms-meta-abc"));
	CHECK_ERR(preflight_err(rules, A, "GET", "x-ms-meta-abc"), ERR_OK);
	CHECK_ERR(preflight_err(rules, A, "GET", "X-MS-META-ABC"), ERR_OK);
	CHECK_ERR(preflight_err(rules, A, "GET", "x-ms-meta-target"), ERR_OK);
	CHECK_ERR(preflight_err(rules, A, "GET", "x-ms-meta-targetABC,x-ms-meta-abc"), ERR_OK);
	CHECK_ERR(preflight_err(rules, A, "GET", " x-ms-meta-abc ,, x-ms-meta-target1 "), ERR_OK);
	CHECK_ERR(preflight_err(rules, A, "GET", "x-ms-meta-abcd"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(rules, A, "GET", "x-ms-meta-ab"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(rules, A, "GET", "x-ms-meta-abc,other"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(rules, A, "GET", "*"), ERR_CORS_FAILED);
	const char *all = RULES(RULE("*", "GET", "1", "", "*"));
	CHECK_ERR(preflight_err(all, A, "GET", "anything,x-ms-date"), ERR_OK);
	CHECK_ERR(preflight_err(all, A, "GET", "not a name"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(all, A, "GET", "a:b"), ERR_CORS_FAILED);
	CHECK_ERR(preflight_err(RULES(RULE("*", "GET", "1", "", "")), A, "GET", "x"),
		ERR_CORS_FAILED);
}

/* ---- actual requests ---- */

static struct talk actual(const char *rules, const char *method, const char *origin)
{
	struct talk t = talk_with(rules);
	send_header(&t, "Origin", origin);
	response_header_str(&t.r, "x-ms-request-id", "1");
	response_header_str(&t.r, "x-ms-version", "2");
	response_header_str(&t.r, "ETag", "3");
	struct request q = request_of(&t, method);
	cors_decorate(t.none ? NULL : &t.p, &q, &t.r);
	return t;
}

#define EXACT RULES(RULE(A, "GET,HEAD,PUT,POST", "1", "ETag", ""))
#define STAR RULES(RULE("*", "GET,HEAD,PUT,POST", "1", "ETag", ""))

/* A row of the table: what is sent, what must be there ("(none)": nothing). */
static void row(const char *rules, const char *origin, bool vary, const char *allow,
	const char *expose, const char *credentials)
{
	static const char *const methods[] = { "GET", "HEAD" };
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct talk t = actual(rules, methods[i], origin);
		CHECK_EQ_STR(got(&t, "Vary"), vary ? "Origin" : "(none)");
		CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), allow);
		CHECK_EQ_STR(got(&t, "Access-Control-Expose-Headers"), expose);
		CHECK_EQ_STR(got(&t, "Access-Control-Allow-Credentials"), credentials);
		CHECK_EQ_INT(t.r.status, 0);
		talk_fini(&t);
	}
}

#define NO "(none)"

TEST(row_1_no_origin_no_rules)
{
	row(NULL, NULL, false, NO, NO, NO);
	row(RULES(""), NULL, false, NO, NO, NO);
}

TEST(row_2_no_origin_and_no_rule_for_all)
{
	row(EXACT, NULL, true, NO, NO, NO);
	row(RULES(RULE("*", "PUT", "1", "ETag", "")), NULL, true, NO, NO, NO);
}

TEST(row_3_no_origin_and_a_rule_for_all)
{
	row(STAR, NULL, false, "*", "ETag", NO);
	row(RULES(RULE(A, "GET,HEAD", "1", "x", "") RULE("*", "GET,HEAD", "1", "ETag", "")), NULL,
		false, "*", "ETag", NO);
}

TEST(row_4_an_origin_and_no_rules)
{
	row(NULL, A, false, NO, NO, NO);
	row(RULES(""), A, false, NO, NO, NO);
}

TEST(row_5_an_origin_with_a_rule_of_its_own)
{
	row(EXACT, A, true, A, "ETag", "true");
	row(RULES(RULE(A, "GET,HEAD", "1", "", "") RULE("*", "GET,HEAD", "1", "ETag", "")), A, true,
		A, NO, "true");
}

TEST(row_6_an_origin_that_no_rule_suits)
{
	row(EXACT, B, true, NO, NO, NO);
	row(RULES(RULE("*", "PUT", "1", "ETag", "")), A, true, NO, NO, NO);
}

TEST(row_7_an_origin_and_a_rule_for_all)
{
	row(STAR, A, false, "*", "ETag", NO);
	row(RULES(RULE(A ",*", "GET,HEAD", "1", "ETag", "")), A, false, "*", "ETag", NO);
}

TEST(other_methods_have_no_vary)
{
	static const char *const methods[] = { "PUT", "POST" };
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct talk t = actual(EXACT, methods[i], A);
		CHECK_EQ_STR(got(&t, "Vary"), NO);
		CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), A);
		CHECK_EQ_STR(got(&t, "Access-Control-Allow-Credentials"), "true");
		CHECK_EQ_STR(got(&t, "Access-Control-Expose-Headers"), "ETag");
		talk_fini(&t);
		t = actual(STAR, methods[i], A);
		CHECK_EQ_STR(got(&t, "Access-Control-Allow-Origin"), "*");
		talk_fini(&t);
		t = actual(EXACT, methods[i], B);
		CHECK_EQ_INT(cors_headers(&t), 0);
		talk_fini(&t);
		t = actual(STAR, methods[i], NULL);
		CHECK_EQ_INT(cors_headers(&t), 0);
		talk_fini(&t);
		t = actual(EXACT, methods[i], NULL);
		CHECK_EQ_INT(cors_headers(&t), 0);
		talk_fini(&t);
	}
}

static void exposes(const char *list, const char *want)
{
	char rules[500];
	(void)snprintf(rules, sizeof(rules), RULES(RULE("*", "GET", "1", "%s", "")), list);
	struct talk t = actual(rules, "GET", A);
	CHECK_EQ_STR(got(&t, "Access-Control-Expose-Headers"), want);
	talk_fini(&t);
}

TEST(prefixes_are_expanded_to_the_headers_of_the_answer)
{
	exposes("", NO);
	exposes("one, two", "one,two");
	exposes("x-ms-*", "x-ms-request-id,x-ms-version");
	exposes("X-MS-*", "x-ms-request-id,x-ms-version");
	exposes("x-ms-v*,etag", "x-ms-version,etag");
	exposes("X-MS-Version,x-ms-*", "X-MS-Version,x-ms-request-id");
	exposes("x-ms-meta-*", NO);
	exposes("x-ms-r*,x-ms-*", "x-ms-request-id,x-ms-version");
	exposes("*", "x-ms-request-id,x-ms-version,ETag");
}

RUN_TESTS(T(a_preflight_answers_with_what_was_asked_for),
	T(a_preflight_needs_an_origin_and_a_method), T(a_preflight_without_a_rule_fails),
	T(the_first_rule_for_origin_and_method_is_the_rule),
	T(every_header_asked_for_is_allowed_by_name_prefix_or_star), T(row_1_no_origin_no_rules),
	T(row_2_no_origin_and_no_rule_for_all), T(row_3_no_origin_and_a_rule_for_all),
	T(row_4_an_origin_and_no_rules), T(row_5_an_origin_with_a_rule_of_its_own),
	T(row_6_an_origin_that_no_rule_suits), T(row_7_an_origin_and_a_rule_for_all),
	T(other_methods_have_no_vary), T(prefixes_are_expanded_to_the_headers_of_the_answer))
