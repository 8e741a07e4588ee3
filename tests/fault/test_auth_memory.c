/* SPDX-License-Identifier: MIT
 * Nobody gets in for lack of memory: requests with each kind of credential, the policies and
 * keys behind them, with the n-th allocation failing, n from 1 until none fails.  A good
 * credential is then let in, or answered with an error; a bad one never is let in; and what an
 * operation on accounts was told to fail has changed nothing. */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "calls.h"
#include "codec/change_set_json.h"
#include "codec/document_walk.h"
#include "codec/entity_json.h"
#include "codec/multipart.h"
#include "codec/splicer.h"
#include "codec/uri.h"
#include "codec/xml.h"
#include "rest/core/handle.h"
#include "rest/tables/tables.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/sas/sas.h"
#include "store/engines.h"
#include "unit/check.h"

#include <errno.h>
#include <stdlib.h>

#define MUST(cond_) BUG_ON(!(cond_))
#define MOST 5000 /* allocations of one operation */
#define LONG "PartitionKey='O''Brien%20and%20some%20more',RowKey='%C3%BC''s'"

/* libxml2 2.9.14 forgets its first buffer where it gets no memory for what follows. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:xmlBufCreateSize\n";
}

struct world {
	struct service *service;
	struct account_keys keys;
	char date[CLOCK_TEXT_MAX], target[1024], header[512];
	const char *method, *body;
	struct peer peer;
};

static void setup(struct world *w)
{
	struct store *store;
	struct item it = { 0 };

	*w = (struct world){ .method = "GET", .body = "", .peer = { .ip = "192.168.1.20" } };
	MUST(store_open_memory(&store) == ERR_OK && service_new(store, &w->service) == ERR_OK);
	MUST(account_create(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, &w->keys, NULL) ==
		ERR_OK);
	MUST(account_find(w->service, SPAN_LIT("acct"), &it) == ERR_OK);
	uint64_t account = it.id;
	item_fini(&it);
	MUST(table_create(w->service, ORIGIN_COMMAND, account, SPAN_LIT("Blogs"), &it, NULL) ==
		ERR_OK);
	MUST(table_policies_set(w->service, ORIGIN_COMMAND, it.id,
		     SPAN_LIT("<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy>"
			      "<Expiry>2099-01-01</Expiry><Permission>raud</Permission>"
			      "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"),
		     NULL) == ERR_OK);
	item_fini(&it);
}

/* The status. */
static int ask(struct world *w)
{
	const struct header headers[] = { { SPAN_LIT("Host"), SPAN_LIT("127.0.0.1:10002") },
		{ SPAN_LIT("x-ms-version"), SPAN_LIT("2019-02-02") },
		{ SPAN_LIT("x-ms-date"), span_of(w->date) },
		{ SPAN_LIT("Authorization"), span_of(w->header) } };
	struct request q = { .method = span_of(w->method),
		.target = span_of(w->target),
		.headers = headers,
		.nheaders = w->header[0] == '\0' ? 2 : 4,
		.body = span_of(w->body),
		.peer = &w->peer };
	struct response r;

	rest_handle(&rest_tables, w->service, &q, &r);
	int status = r.status;
	response_fini(&r);
	return status;
}

/* Its answer is `want`, or, if memory fails, an error of ours; and `want` again. */
static void sweep(struct world *w, int want)
{
	CHECK_EQ_INT(ask(w), want);
	for (unsigned n = 1; n < MOST; n++) {
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		int status = ask(w);
		uint32_t struck = calls_now()->struck;
		calls_stop();
		if (status != want && status < 500) {
			printf("# allocation %u: status %d\n", n, status);
			CHECK(false);
		}
		CHECK_EQ_INT(ask(w), want);
		if (struck == 0)
			return;
	}
	printf("# there are more allocations than that\n");
	CHECK(false);
}

static void sign(struct world *w, const char *resource)
{
	char text[1024];
	uint8_t code[32];
	struct buf b = BUF_INIT(200);
	time_t now = time(NULL);
	struct tm tm;

	/* No locale is set: the names are the C locale's. */
	gmtime_r(&now, &tm);
	CHECK(strftime(w->date, sizeof(w->date), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
	(void)snprintf(text, sizeof(text), "%s\n%s", w->date, resource);
	crypto_hmac_sha256(span_make(w->keys.key[0], w->keys.len[0]), span_of(text), code);
	base64_encode(span_make(code, sizeof(code)), &b);
	(void)snprintf(w->header, sizeof(w->header), "SharedKeyLite acct:%s", b.data);
	buf_fini(&b);
}

TEST(a_signature_is_checked_or_an_error)
{
	struct world w;

	setup(&w);
	(void)snprintf(w.target, sizeof(w.target), "%s", "/acct/Blogs(" LONG ")?timeout=3");
	sign(&w, "/acct/acct/Blogs(" LONG ")");
	sweep(&w, 404);
	sign(&w, "/acct/acct/Blogs()");
	sweep(&w, 403);
	service_free(w.service);
}

static void with_token(struct world *w, struct sas s, bool good)
{
	struct buf out = BUF_INIT(1000), query = BUF_INIT(1000);
	struct span key = { (const char *)w->keys.key[0], w->keys.len[0] };

	MUST(sas_sign(&s, SPAN_LIT("acct"), key, &out) == ERR_OK);
	if (!good)
		out.data[3] = out.data[3] == 'A' ? 'B' : 'A';
	s.sig = buf_span(&out);
	sas_to_query(&s, &query);
	MUST(buf_ok(&query));
	(void)snprintf(w->target, sizeof(w->target), "/acct/Blogs()?%s", query.data);
	buf_fini(&out);
	buf_fini(&query);
}

TEST(a_token_is_checked_or_an_error)
{
	const struct sas of_policy = { .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("Blogs"),
		.si = SPAN_LIT("p") };
	const struct sas of_range = { .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("Blogs"),
		.sp = SPAN_LIT("r"),
		.se = SPAN_LIT("2099-01-01"),
		.spk = SPAN_LIT("a"),
		.srk = SPAN_LIT("a"),
		.epk = SPAN_LIT("b"),
		.erk = SPAN_LIT("b") };
	const struct sas expired = { .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("Blogs"),
		.sp = SPAN_LIT("r"),
		.se = SPAN_LIT("2019-01-01") };
	struct sas stranger = of_policy;
	struct world w;

	setup(&w);
	with_token(&w, of_policy, true);
	sweep(&w, 200);
	with_token(&w, of_policy, false);
	sweep(&w, 403);
	with_token(&w, of_range, true);
	sweep(&w, 200);
	with_token(&w, expired, true);
	sweep(&w, 403);
	stranger.si = SPAN_LIT("q");
	with_token(&w, stranger, true);
	sweep(&w, 403);
	service_free(w.service);
}

TEST(policies_and_properties_are_read_and_set_or_an_error)
{
	struct world w;

	setup(&w);
	w.peer = (struct peer){ .is_unix = true, .trusted = true };
	(void)snprintf(w.target, sizeof(w.target), "/acct/Blogs?comp=acl");
	sweep(&w, 200);
	w.method = "PUT";
	w.body = "<SignedIdentifiers><SignedIdentifier><Id>one &amp; two</Id><AccessPolicy>"
		 "<Start>2019-01-01</Start><Expiry>2099-01-01</Expiry><Permission>r</Permission>"
		 "</AccessPolicy></SignedIdentifier></SignedIdentifiers>";
	sweep(&w, 204);
	w.body = "";
	sweep(&w, 204);
	w.method = "GET";
	sweep(&w, 200);
	w.method = "PUT";
	w.body = "<SignedIdentifiers>";
	sweep(&w, 400);
	(void)snprintf(w.target, sizeof(w.target), "/acct/?restype=service&comp=properties");
	w.body =
		"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a</AllowedOrigins>"
		"<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds>"
		"<ExposedHeaders>x</ExposedHeaders><AllowedHeaders>y</AllowedHeaders></CorsRule>"
		"</Cors></StorageServiceProperties>";
	sweep(&w, 202);
	w.method = "GET";
	w.body = "";
	sweep(&w, 200);
	service_free(w.service);
}

TEST(a_key_is_made_whole_or_not_at_all)
{
	struct world w;
	struct account_keys before, after, told;

	setup(&w);
	bool done = false;
	for (unsigned n = 1; !done && n < MOST; n++) {
		MUST(account_keys_get(w.service, SPAN_LIT("acct"), &before) == ERR_OK);
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		enum err e = account_key_regenerate(
			w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), 1, &told, NULL);
		done = calls_now()->struck == 0;
		calls_stop();
		MUST(account_keys_get(w.service, SPAN_LIT("acct"), &after) == ERR_OK);
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY);
		CHECK(memcmp(&after, e == ERR_OK ? &told : &before, sizeof(after)) == 0);
	}
	CHECK(done);
	done = false;
	for (unsigned n = 1; !done && n < MOST; n++) {
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		enum err e = account_create(
			w.service, ORIGIN_COMMAND, SPAN_LIT("fresh"), NULL, NULL, NULL);
		done = calls_now()->struck == 0;
		calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY);
		CHECK_ERR(account_keys_get(w.service, SPAN_LIT("fresh"), &after),
			e == ERR_OK ? ERR_OK : ERR_ACCOUNT_NOT_FOUND);
		if (e == ERR_OK)
			MUST(account_remove(w.service, ORIGIN_COMMAND, SPAN_LIT("fresh"), true,
				     NULL) == ERR_OK);
	}
	CHECK(done);
	service_free(w.service);
}

TEST(the_splicer_leaves_to_others_what_it_has_no_memory_for)
{
	bool done = false;

	for (unsigned n = 1; !done && n < MOST; n++) {
		struct arena a = { 0 };
		struct spliced got;
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		struct splicer *s = splicer_new();
		bool taken = s != NULL &&
			splicer_take(
				s, SPAN_LIT("{\"RowKey\":\"r\",\"A\":1,\"B\":\"x\"}"), &a, &got);
		done = calls_now()->struck == 0;
		calls_stop();
		CHECK(taken == done);
		if (taken)
			CHECK(span_is(got.document, "{\"A\":1,\"B\":\"x\"}\n"));
		splicer_free(s);
		arena_fini(&a);
	}
	CHECK(done);
}

/* ---- texts so long that each needs memory of its own ---- */

static struct buf text = { .limit = 1u << 20 };

/* before, n times part, after. */
static struct span repeated(const char *before, const char *part, size_t n, const char *after)
{
	buf_clear(&text);
	buf_add_str(&text, before);
	while (n-- > 0)
		buf_add_str(&text, part);
	buf_add_str(&text, after);
	MUST(buf_ok(&text));
	return buf_span(&text);
}

static void sweep_text(enum err (*read)(struct span, struct arena *), struct span s, enum err want)
{
	bool done = false;

	for (unsigned n = 1; !done && n < MOST; n++) {
		struct arena a = { 0 };
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, n, ENOMEM);
		enum err e = read(s, &a);
		done = calls_now()->struck == 0;
		calls_stop();
		arena_fini(&a);
		CHECK_ERR(e, done ? want : ERR_NO_MEMORY);
	}
	CHECK(done);
}

static enum err read_set(struct span s, struct arena *a)
{
	struct change_set_json json;

	return change_set_json_parse(s, 100, a, &json, NULL);
}

static enum err read_row(struct span s, struct arena *a)
{
	struct entity e = { 0 };
	enum err ret = entity_json_decode(s, ENTITY_JSON_REST, &e, NULL, NULL);

	(void)a;
	entity_fini(&e);
	return ret;
}

static enum err read_path(struct span s, struct arena *a)
{
	struct resource r;

	return resource_parse(s, a, &r, NULL);
}

static enum err read_batch(struct span s, struct arena *a)
{
	struct batch_body b;

	return batch_body_parse(SPAN_LIT("multipart/mixed; boundary=a"), s, 100, a, &b, NULL);
}

static enum err read_value(struct span s, struct arena *a)
{
	struct document_property p = { .name = SPAN_LIT("A"), .text = s };
	struct value v;

	return document_value(&p, a, &v);
}

static enum err read_double(struct span s, struct arena *a)
{
	struct document_property p = {
		.name = SPAN_LIT("A"), .type = SPAN_LIT("Edm.Double"), .text = s
	};
	struct value v;

	return document_value(&p, a, &v);
}

static enum err read_xml(struct span s, struct arena *a)
{
	struct xml_node *root;

	return xml_parse(s, a, &root, NULL);
}

TEST(long_texts_are_read_or_memory_is_out)
{
	static const char u[] = "\\u0041";

	sweep_text(read_set, repeated("[{\"delete\":{},\"if_match\":\"", u, 9000, "\"}]"), ERR_OK);
	sweep_text(read_set, repeated("[{\"", u, 9000, "\":{}}]"), ERR_INVALID_INPUT);
	sweep_text(read_row, repeated("{\"", u, 9000, "\":1}"), ERR_PROPERTY_NAME_LONG);
	sweep_text(read_row, repeated("{\"B@odata.type\":\"", u, 9000, "\",\"B\":\"x\"}"),
		ERR_VALUE_INVALID);
	sweep_text(read_row, repeated("{\"A\":\"", u, 9000, "\"}"), ERR_OK);
	sweep_text(read_row,
		repeated("{\"A@odata.type\":\"Edm.Binary\",\"A\":\"", "AAAA", 9000, "\"}"), ERR_OK);
	sweep_text(read_row, repeated("{\"A@odata.type\":\"Edm.String\",\"A\":\"", u, 9000, "\"}"),
		ERR_OK);
	sweep_text(read_row, repeated("{\"A\":0.", "1", 100, "}"), ERR_OK);
	sweep_text(read_row,
		repeated("{\"A@odata.type\":\"Edm.Double\",\"A\":\"0.", "1", 100, "\"}"), ERR_OK);
	sweep_text(read_value, repeated("\"", u, 9000, "\""), ERR_OK);
	sweep_text(read_value, repeated("0.", "1", 100, ""), ERR_OK);
	sweep_text(read_double, repeated("\"0.", "1", 100, "\""), ERR_OK);
	sweep_text(read_path, repeated("/T(PartitionKey='%41", "''", 9000, "',RowKey='')"), ERR_OK);
	sweep_text(read_batch,
		repeated("", "--a\nContent-Type: application/http\n\nGET t HTTP/1.1\n\n", 100,
			"--a--\n"),
		ERR_OK);
	sweep_text(read_xml, repeated("<x", "x", 9000, "/>"), ERR_OK);
	buf_fini(&text);
}

RUN_TESTS(T(a_signature_is_checked_or_an_error), T(a_token_is_checked_or_an_error),
	T(policies_and_properties_are_read_and_set_or_an_error),
	T(a_key_is_made_whole_or_not_at_all),
	T(the_splicer_leaves_to_others_what_it_has_no_memory_for),
	T(long_texts_are_read_or_memory_is_out))
