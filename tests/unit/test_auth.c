/* SPDX-License-Identifier: MIT
 * rest/core/access.h: signatures that real clients made (protocol section 4.3), and the same ones
 * with one thing changed. */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "check.h"
#include "rest/core/access.h"
#include "rest/tables/table_request.h"
#include "rest/tables/tables.h"
#include "service/core/tables.h"
#include "service/sas/sas.h"
#include "store/engines.h"

#include <stdarg.h>
#include <stdlib.h>

#define MUST(cond_) BUG_ON(!(cond_))

#define KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define ACCOUNT "devstoreaccount1"
#define DATE "Fri, 20 Nov 2026 12:00:00 GMT"
#define NOON (TICKS_UNIX_EPOCH + INT64_C(1795176000) * TICKS_PER_SECOND)
#define SECOND TICKS_PER_SECOND
#define MINUTE (60 * TICKS_PER_SECOND)

/* ---- a service with one account and one table ---- */

struct world {
	struct service *service;
	struct account_secrets secrets;
	uint64_t table;
};

static struct world world_new(void)
{
	struct world w = { 0 };
	struct store *store;
	struct buf key = BUF_INIT(100);
	struct item it = { 0 };

	MUST(store_open_memory(&store) == ERR_OK);
	MUST(service_new(store, &w.service) == ERR_OK);
	MUST(base64_decode(SPAN_LIT(KEY), &key));
	struct span given = buf_span(&key);
	MUST(account_create(w.service, ORIGIN_COMMAND, SPAN_LIT(ACCOUNT), &given, NULL, NULL) ==
		ERR_OK);
	buf_fini(&key);
	MUST(account_secrets_get(w.service, SPAN_LIT(ACCOUNT), &w.secrets) == ERR_OK);
	MUST(table_create(w.service, ORIGIN_COMMAND, w.secrets.id, SPAN_LIT("MyTable"), &it,
		     NULL) == ERR_OK);
	w.table = it.id;
	item_fini(&it);
	return w;
}

static void world_fini(struct world *w)
{
	account_secrets_fini(&w->secrets);
	service_free(w->service);
}

static struct span key_of(const struct world *w, int which)
{
	return span_make(w->secrets.keys.key[which], w->secrets.keys.len[which]);
}

/* ---- a request ---- */

#define HEADERS_MAX 8

/* Texts are copied: a test changes one thing of a good one. */
struct ask {
	char method[16], target[2048];
	char names[HEADERS_MAX][32], values[HEADERS_MAX][512];
	size_t nheaders;
	struct peer peer;
	int64_t now;
};

static void put(char *out, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void put(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(out, size, fmt, ap);
	va_end(ap);
	MUST(n >= 0 && (size_t)n < size);
}

static struct ask ask_of(const char *method, const char *target)
{
	struct ask a = { .now = NOON, .peer = { .ip = "192.168.1.20" } };
	put(a.method, sizeof(a.method), "%s", method);
	put(a.target, sizeof(a.target), "%s", target);
	return a;
}

/* Replaces the header, or adds it; value NULL takes it away. */
static void header(struct ask *a, const char *name, const char *value)
{
	size_t i = 0;
	while (i < a->nheaders && strcmp(a->names[i], name) != 0)
		i++;
	MUST(i < HEADERS_MAX);
	if (value == NULL) {
		a->names[i][0] = '\0';
		return;
	}
	put(a->names[i], sizeof(a->names[i]), "%s", name);
	put(a->values[i], sizeof(a->values[i]), "%s", value);
	a->nheaders += i == a->nheaders;
}

static bool exists(void *arg, struct span name)
{
	(void)arg;
	return span_is(name, ACCOUNT);
}

/* access_check() of it.  The result borrows until the next call. */
static enum err check_full(
	const struct world *w, const struct ask *a, struct access *ret, struct err_detail *detail)
{
	struct header headers[HEADERS_MAX + 1] = { { SPAN_LIT("Host"),
		SPAN_LIT("127.0.0.1:10002") } };
	struct request r = { .method = span_of(a->method),
		.target = span_of(a->target),
		.headers = headers,
		.nheaders = a->nheaders + 1,
		.peer = &a->peer };
	static struct arena arena;
	struct request_url target;

	for (size_t i = 0; i < a->nheaders; i++) {
		headers[i + 1] = (struct header){ span_of(a->names[i]), span_of(a->values[i]) };
		if (strcmp(a->names[i], "Host") == 0)
			headers[0].value = span_of(a->values[i]);
	}
	struct err_detail why = { 0 };
	arena_fini(&arena);
	if (request_url_parse(&r, exists, NULL, &arena, &target, &why) != ERR_OK)
		printf("# %s: %s\n", a->target, why.text);
	MUST(why.text[0] == '\0');
	struct access_facts f = { &rest_tables, w->service, &r, &target, SPAN_LIT(""), &w->secrets,
		a->now };
	return access_check(&f, ret, detail);
}

static char last_text[256]; /* the detail of the latest answer */

static enum err check(const struct world *w, const struct ask *a)
{
	struct access access;
	struct err_detail detail = { 0 };
	enum err e = check_full(w, a, &access, &detail);
	memcpy(last_text, detail.text, sizeof(last_text));
	return e;
}

/* ---- SharedKey ---- */

static const char *signature_of(struct span key, const char *text)
{
	static char out[64];
	uint8_t code[32];
	struct buf b = BUF_INIT(100);

	crypto_hmac_sha256(key, span_of(text), code);
	base64_encode(span_make(code, sizeof(code)), &b);
	put(out, sizeof(out), "%s", b.data);
	buf_fini(&b);
	return out;
}

static void authorize(struct ask *a, const char *scheme, const char *signature)
{
	char value[256];
	put(value, sizeof(value), "%s " ACCOUNT ":%s", scheme, signature);
	header(a, "Authorization", value);
}

/* A Lite request at NOON whose resource was signed so. */
static struct ask lite(const struct world *w, const char *target, const char *resource)
{
	char text[1024];
	struct ask a = ask_of("GET", target);
	header(&a, "x-ms-date", DATE);
	put(text, sizeof(text), DATE "\n%s", resource);
	authorize(&a, "SharedKeyLite", signature_of(key_of(w, 0), text));
	return a;
}

struct shared_key_vector {
	const char *method, *target, *host, *type, *date;
	int seconds; /* of the date, behind noon */
	const char *scheme, *signature;
};

static const struct shared_key_vector shared_keys[] = {
	{ "GET", "/devstoreaccount1/Tables", NULL, NULL, "Fri, 20 Nov 2026 12:29:19 GMT", 1759,
		"SharedKeyLite", "50x8BrIqs4pPRQU6pD5Ha0XV1It3dQncjn3HVGW5HpI=" },
	{ "GET", "/devstoreaccount1/?restype=service&comp=properties", NULL, NULL,
		"Fri, 20 Nov 2026 12:29:19 GMT", 1759, "SharedKeyLite",
		"IWxB3RFpZrxNRbqr7NdTDAkf+rRIEhT7Qap51ZzhIns=" },
	{ "GET",
		"/devstoreaccount1/smoke1795177759090(PartitionKey='a%20b%2Bc%25d%26e%3Df',"
		"RowKey='a%20b%2Bc%25d%26e%3Df')",
		NULL, NULL, "Fri, 20 Nov 2026 12:29:19 GMT", 1759, "SharedKeyLite",
		"Rg8FNARcY5p4DuSZf8TS9KOriEAxZ1jtY0+ynz+jBvQ=" },
	{ "POST", "/devstoreaccount1/Tables", NULL, "application/json",
		"Fri, 20 Nov 2026 12:35:37 GMT", 2137, "SharedKey",
		"zzWSI0z5Uf4oUbhYwavOpFqcAr+yXAanzMVySAC+/QM=" },
	{ "GET", "/devstoreaccount1/jsn1795178137473?comp=acl&timeout=30", NULL, "",
		"Fri, 20 Nov 2026 12:35:37 GMT", 2137, "SharedKey",
		"akZkLzX9Yu4j2+fQ6jPB33OhpyGXUK5oQwh2G0aI9HQ=" },
	{ "POST", "/Tables", "devstoreaccount1.table.example.net",
		"application/atom+xml;charset=\"utf-8\"", "Fri, 20 Nov 2026 12:35:34 GMT", 2134,
		"SharedKey", "rZRY0FP4at0R08XjRjT/nnbJRr10nGSbDmU3trEi8Ls=" },
};

static struct ask shared_key_ask(const struct shared_key_vector *v)
{
	struct ask a = ask_of(v->method, v->target);
	a.now = NOON + v->seconds * SECOND;
	if (v->host != NULL)
		header(&a, "Host", v->host);
	if (v->type != NULL)
		header(&a, "Content-Type", v->type);
	header(&a, "x-ms-date", v->date);
	authorize(&a, v->scheme, v->signature);
	return a;
}

TEST(the_clients_signatures_make_an_owner)
{
	struct world w = world_new();

	for (size_t i = 0; i < ARRAY_LEN(shared_keys); i++) {
		struct ask a = shared_key_ask(&shared_keys[i]);
		struct access access;
		struct err_detail detail = { 0 };
		CHECK_ERR(check_full(&w, &a, &access, &detail), ERR_OK);
		CHECK_EQ_STR(detail.text, "");
		CHECK_EQ_INT(access.kind, ACCESS_OWNER);
	}
	world_fini(&w);
}

TEST(the_signature_is_of_the_method_the_type_the_md5_the_date_and_the_path)
{
	struct world w = world_new();
	const struct ask good = shared_key_ask(&shared_keys[3]);
	struct ask a = good;

	put(a.method, sizeof(a.method), "PUT");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	header(&a, "Content-Type", "application/json;odata=nometadata");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	header(&a, "Content-Type", NULL);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	header(&a, "Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	header(&a, "x-ms-date", "Fri, 20 Nov 2026 12:35:38 GMT");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	put(a.target, sizeof(a.target), "/devstoreaccount1/Tables()");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	put(a.target, sizeof(a.target), "/devstoreaccount1/Tables?comp=acl");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	authorize(&a, "SharedKeyLite", shared_keys[3].signature);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = good;
	CHECK_ERR(check(&w, &a), ERR_OK);
	world_fini(&w);
}

TEST(nothing_else_is_signed)
{
	struct world w = world_new();
	struct ask a = shared_key_ask(&shared_keys[3]);

	header(&a, "x-ms-version", "2019-02-02");
	header(&a, "Accept", "application/json");
	header(&a, "Date", "Sat, 21 Nov 2026 12:35:37 GMT");
	put(a.target, sizeof(a.target), "/devstoreaccount1/Tables?$top=5&sv=2012-02-12&se=x");
	CHECK_ERR(check(&w, &a), ERR_OK);
	world_fini(&w);
}

TEST(a_wrong_signature_fails_in_every_byte)
{
	struct world w = world_new();
	const struct ask good = shared_key_ask(&shared_keys[3]);
	const char *signature = shared_keys[3].signature;

	for (size_t i = 0; i < strlen(signature); i++) {
		char bad[64];
		struct ask a = good;
		put(bad, sizeof(bad), "%s", signature);
		bad[i] = bad[i] == 'A' ? 'B' : 'A';
		authorize(&a, "SharedKey", bad);
		CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	}
	static const char *const bad[] = { "=", "x", "zzWSI0z5Uf4oUbhYwavOpFqcAr+yXAanzMVySAC+/QM",
		"zzWSI0z5Uf4oUbhYwavOpFqcAr+yXAanzMVySAC+/QM==",
		"zzWSI0z5Uf4oUbhYwavOpFqcAr+yXAanzMVySAC+/Q==",
		"zzWSI0z5Uf4oUbhYwavOpFqcAr+yXAanzMVySAC+/QN=" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ask a = good;
		authorize(&a, "SharedKey", bad[i]);
		CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	}
	world_fini(&w);
}

TEST(either_key_signs)
{
	struct world w = world_new();
	struct ask a = ask_of("GET", "/devstoreaccount1/Tables");
	const char *text = DATE "\n/devstoreaccount1/devstoreaccount1/Tables";

	header(&a, "x-ms-date", DATE);
	authorize(&a, "SharedKeyLite", signature_of(key_of(&w, 0), text));
	CHECK_ERR(check(&w, &a), ERR_OK);
	authorize(&a, "SharedKeyLite", signature_of(key_of(&w, 1), text));
	CHECK_ERR(check(&w, &a), ERR_OK);
	authorize(&a, "SharedKeyLite", signature_of(SPAN_LIT("another"), text));
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);

	/* An account without a second key is not open to who signs with an empty one. */
	w.secrets.keys.len[1] = 0;
	authorize(&a, "SharedKeyLite", signature_of(SPAN_LIT(""), text));
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	world_fini(&w);
}

TEST(the_path_is_signed_in_every_layout)
{
	static const struct {
		const char *host, *target, *resource;
	} rows[] = {
		/* path style doubles the account */
		{ NULL, "/devstoreaccount1/T()", "/devstoreaccount1/devstoreaccount1/T()" },
		{ NULL, "/devstoreaccount1", "/devstoreaccount1/devstoreaccount1" },
		{ NULL, "/devstoreaccount1/", "/devstoreaccount1/devstoreaccount1/" },
		{ NULL, "http://127.0.0.1:10002/devstoreaccount1/T()?$top=1",
			"/devstoreaccount1/devstoreaccount1/T()" },
		/* its secondary, with the suffix and without it */
		{ NULL, "/devstoreaccount1-secondary/T()",
			"/devstoreaccount1/devstoreaccount1-secondary/T()" },
		{ NULL, "/devstoreaccount1-secondary/T()",
			"/devstoreaccount1/devstoreaccount1/T()" },
		{ NULL, "/devstoreaccount1-secondary/?restype=service&comp=stats",
			"/devstoreaccount1/devstoreaccount1/?comp=stats" },
		/* the account twice in the path */
		{ NULL, "/devstoreaccount1-secondary/devstoreaccount1/?restype=service&comp=stats",
			"/devstoreaccount1/devstoreaccount1-secondary/devstoreaccount1/"
			"?comp=stats" },
		{ NULL, "/devstoreaccount1-secondary/devstoreaccount1/?restype=service&comp=stats",
			"/devstoreaccount1/devstoreaccount1/?comp=stats" },
		{ NULL, "/devstoreaccount1-secondary/devstoreaccount1/?comp=stats",
			"/devstoreaccount1/devstoreaccount1/devstoreaccount1/?comp=stats" },
		{ NULL, "/devstoreaccount1-secondary", "/devstoreaccount1/devstoreaccount1" },
		{ NULL, "/devstoreaccount1-secondary/devstoreaccount1",
			"/devstoreaccount1/devstoreaccount1" },
		/* host style */
		{ "devstoreaccount1.table.example.net", "/T()", "/devstoreaccount1/T()" },
		{ "devstoreaccount1.table.example.net", "/", "/devstoreaccount1/" },
		{ "devstoreaccount1-secondary.table.example.net", "/?comp=stats",
			"/devstoreaccount1/?comp=stats" },
		{ NULL, "http://devstoreaccount1.table.example.net?comp=list",
			"/devstoreaccount1/?comp=list" },
		/* no account but in the header */
		{ NULL, "/T()", "/devstoreaccount1/T()" },
		/* the parameter's name may be encoded; only comp is signed */
		{ NULL, "/devstoreaccount1/T?%63omp=acl&restype=x",
			"/devstoreaccount1/devstoreaccount1/T?comp=acl" },
	};
	struct world w = world_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ask a = lite(&w, rows[i].target, rows[i].resource);
		if (rows[i].host != NULL)
			header(&a, "Host", rows[i].host);
		if (check(&w, &a) != ERR_OK)
			check_fail(__FILE__, __LINE__, rows[i].resource);
	}
	world_fini(&w);
}

TEST(other_paths_are_not_the_one_that_was_signed)
{
	static const char *const rows[][2] = {
		{ "/devstoreaccount1/T()", "/devstoreaccount1/T()" },
		{ "/devstoreaccount1/T()", "/devstoreaccount1/devstoreaccount1-secondary/T()" },
		{ "/devstoreaccount1/T()", "/devstoreaccount1/devstoreaccount1/T" },
		{ "/devstoreaccount1/T()", "/devstoreaccount1/devstoreaccount1/t()" },
		{ "/devstoreaccount1/T(PartitionKey='a%20b',RowKey='')",
			"/devstoreaccount1/devstoreaccount1/T(PartitionKey='a b',RowKey='')" },
		{ "/devstoreaccount1/T?comp=acl", "/devstoreaccount1/devstoreaccount1/T" },
		{ "/devstoreaccount1-secondary/T()",
			"/devstoreaccount1-secondary/devstoreaccount1/T()" },
		{ "/devstoreaccount1-secondary/T()", "/devstoreaccount1/T()" },
		{ "/T()", "/devstoreaccount1/devstoreaccount1/T()" },
		{ "/devstoreaccount1-secondary/devstoreaccount1x",
			"/devstoreaccount1/devstoreaccount1x" },
		{ "/devstoreaccount1-secondary/devstoreaccount2",
			"/devstoreaccount1/devstoreaccount2" },
	};
	struct world w = world_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ask a = lite(&w, rows[i][0], rows[i][1]);
		if (check(&w, &a) != ERR_AUTH_FAILED)
			check_fail(__FILE__, __LINE__, rows[i][1]);
	}
	world_fini(&w);
}

#define P "/devstoreaccount1"

TEST(quotes_may_be_encoded_after_the_signing_or_decoded)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/T(PartitionKey=%27a%27,RowKey=%27b%27)",
		P P "/T(PartitionKey='a',RowKey='b')");

	CHECK_ERR(check(&w, &a), ERR_OK);
	a = lite(&w, P "/T(PartitionKey='a',RowKey='b')",
		P P "/T(PartitionKey=%27a%27,RowKey=%27b%27)");
	CHECK_ERR(check(&w, &a), ERR_OK);
	a = lite(&w, P "-secondary/T(PartitionKey='a%27%27',RowKey='b')",
		P P "/T(PartitionKey=%27a%27%27%27,RowKey=%27b%27)");
	CHECK_ERR(check(&w, &a), ERR_OK);
	a = lite(&w, P "/T(PartitionKey='a',RowKey='b')", P P "/T(PartitionKey='a',RowKey='c')");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = lite(&w, P "/T(PartitionKey='a',RowKey='b')",
		P P "/T(PartitionKey=%22a%22,RowKey=%22b%22)");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	world_fini(&w);
}

TEST(the_date_may_be_a_quarter_of_an_hour_off)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/Tables", P P "/Tables");

	a.now = NOON + 14 * MINUTE + 59 * SECOND;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON + 15 * MINUTE;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON + 15 * MINUTE + 1;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text, "Request date header too old: '" DATE "'.");
	a.now = NOON + 15 * MINUTE + SECOND;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);

	a.now = NOON - 14 * MINUTE - 59 * SECOND;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON - 15 * MINUTE;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON - 15 * MINUTE - 1;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text, "Request date header too far ahead: '" DATE "'.");
	a.now = NOON - 15 * MINUTE - SECOND;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	world_fini(&w);
}

static struct ask dated(const struct world *w, const char *name, const char *date)
{
	char text[512];
	struct ask a = ask_of("GET", P "/Tables");
	header(&a, name, date);
	put(text, sizeof(text), "%s\n" P P "/Tables", date);
	authorize(&a, "SharedKeyLite", signature_of(key_of(w, 0), text));
	return a;
}

TEST(the_ms_date_wins)
{
	struct world w = world_new();
	struct ask a = dated(&w, "x-ms-date", DATE);

	header(&a, "Date", "Fri, 20 Nov 2020 12:00:00 GMT");
	CHECK_ERR(check(&w, &a), ERR_OK);
	header(&a, "Date", DATE);
	header(&a, "x-ms-date", "Fri, 20 Nov 2020 12:00:00 GMT");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = dated(&w, "Date", DATE);
	CHECK_ERR(check(&w, &a), ERR_OK);
	header(&a, "x-ms-date", "");
	CHECK_ERR(check(&w, &a), ERR_OK);
	header(&a, "x-ms-date", NULL);
	header(&a, "Date", NULL);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "no date") != NULL);
	world_fini(&w);
}

TEST(dates_have_one_form)
{
	static const char *const bad[] = { "2026-11-20T12:00:00Z", "Fri, 20 Nov 2026 12:00:00",
		"Fri, 20 Nov 2026 12:00:00 UTC", "Fri, 20 Nov 2026 12:00:00 +0000",
		"Fri 20 Nov 2026 12:00:00 GMT", "20 Nov 2026 12:00:00 GMT",
		"Friday, 20-Nov-26 12:00:00 GMT", "Fri Nov 20 12:00:00 2026",
		"Fri, 20 Nov 26 12:00:00 GMT", "Fri, 31 Nov 2026 12:00:00 GMT",
		"Fri, 20 Nov 2026 24:00:00 GMT", "Fri, 20 Nov 2026 12:60:00 GMT",
		"Fri, 20 Nov 2026 12:00:61 GMT", "Fri, 20 Foo 2026 12:00:00 GMT",
		"Foo, 20 Nov 2026 12:00:00 GMT", "Fri, 20 Nov 2026 12:00:00 GMT x",
		"Fri, 20 Nov 2026 12:00 GMT", "Fri, 020 Nov 2026 12:00:00 GMT", "Fri, ", "Fri",
		"Fri, x Nov 2026 12:00:00 GMT", "Fri, 20-Nov 2026 12:00:00 GMT",
		"Fri, 20 Nov-2026 12:00:00 GMT", "Fri, 20 Nov x 12:00:00 GMT",
		"Fri, 20 Nov 2026-12:00:00 GMT", "Fri, 20 Nov 2026 x:00:00 GMT",
		"Fri, 20 Nov 2026 12-00:00 GMT", "Fri, 20 Nov 2026 12:x:00 GMT",
		"Fri, 20 Nov 2026 12:00:x GMT", "Fri, 20 No", "Fri, 2", "Fri, 20 Nov 2026 1" };
	struct world w = world_new();
	struct ask a;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		a = dated(&w, "x-ms-date", bad[i]);
		CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
		if (strstr(last_text, "RFC 1123") == NULL)
			check_fail(__FILE__, __LINE__, bad[i]);
	}
	a = dated(&w, "x-ms-date", "Sun, 1 Nov 2026 00:00:00 GMT");
	a.now = NOON - 19 * 1440 * MINUTE - 720 * MINUTE;
	CHECK_ERR(check(&w, &a), ERR_OK);
	world_fini(&w);
}

TEST(the_header_has_a_scheme_an_account_and_a_signature)
{
	static const struct {
		const char *value;
		enum err want;
	} rows[] = {
		{ "", ERR_AUTH_HEADER },
		{ "SharedKey", ERR_AUTH_HEADER },
		{ "SharedKey ", ERR_AUTH_HEADER },
		{ "SharedKey devstoreaccount1", ERR_AUTH_HEADER },
		{ "SharedKey devstoreaccount1:", ERR_AUTH_HEADER },
		{ "SharedKey :abcd", ERR_AUTH_HEADER },
		{ "SharedKeyLite:abcd", ERR_AUTH_HEADER },
		{ "SharedKeyHeavy devstoreaccount1:abcd", ERR_AUTH_HEADER },
		{ "Basic ZGV2OmFiYw==", ERR_AUTH_HEADER },
		{ "devstoreaccount1:abcd", ERR_AUTH_HEADER },
		{ "Bearer eyJ0eXAi.eyJh.abc", ERR_AUTH_BEARER },
		{ "bearer x", ERR_AUTH_BEARER },
		{ "Bearer", ERR_AUTH_BEARER },
		{ "SharedKeyHeavierThanAnyOtherKeyThereIsInTheWorld a:b", ERR_AUTH_HEADER },
		{ "BasicBasicX a:b", ERR_AUTH_HEADER },
		{ "Bareness a:b", ERR_AUTH_HEADER },
		{ "Sharedxxx a:b", ERR_AUTH_HEADER },
		{ "SharedKey otheraccount:50x8BrIqs4pPRQU6pD5Ha0XV1It3dQncjn3HVGW5HpI=",
			ERR_AUTH_FAILED },
		{ "SharedKey Devstoreaccount1:50x8BrIqs4pPRQU6pD5Ha0XV1It3dQncjn3HVGW5HpI=",
			ERR_AUTH_FAILED },
	};
	struct world w = world_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ask a = ask_of("GET", P "/Tables");
		header(&a, "x-ms-date", DATE);
		header(&a, "Authorization", rows[i].value);
		enum err e = check(&w, &a);
		if (e != rows[i].want || last_text[0] == '\0')
			check_err(__FILE__, __LINE__, rows[i].value, e, rows[i].want);
		/* A trusted peer is judged by what it sends. */
		a.peer = (struct peer){ .is_unix = true, .trusted = true };
		CHECK_ERR(check(&w, &a), rows[i].want);
	}
	world_fini(&w);
}

TEST(the_account_of_the_header_is_that_of_the_url)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/Tables", P P "/Tables");
	char value[512];

	put(value, sizeof(value), "SharedKeyLite otheraccount:%s", strchr(a.values[1], ':') + 1);
	header(&a, "Authorization", value);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text,
		"The Authorization header names the account 'otheraccount', but the URL names "
		"'devstoreaccount1'.");
	world_fini(&w);
}

TEST(an_empty_path_is_signed_as_a_slash)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/", "/devstoreaccount1/");
	const struct header headers[] = { { span_of(a.names[0]), span_of(a.values[0]) },
		{ span_of(a.names[1]), span_of(a.values[1]) } };
	struct request r = {
		.method = SPAN_LIT("GET"), .headers = headers, .nheaders = 2, .peer = &a.peer
	};
	struct request_url t = { .path = SPAN_LIT(""), .account = ACCOUNT };
	struct access_facts f = { &rest_tables, w.service, &r, &t, SPAN_LIT(""), &w.secrets, NOON };
	struct access access;

	CHECK_ERR(access_check(&f, &access, NULL), ERR_OK);
	world_fini(&w);
}

TEST(schemes_have_no_case_and_blanks_do_no_harm)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/Tables", P P "/Tables");
	char value[512];

	put(value, sizeof(value), "sharedkeylite   %s", strchr(a.values[1], ' ') + 1);
	header(&a, "Authorization", value);
	CHECK_ERR(check(&w, &a), ERR_OK);
	world_fini(&w);
}

TEST(two_headers_are_refused)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/Tables", P P "/Tables");

	CHECK_ERR(check(&w, &a), ERR_OK);
	header(&a, "authorization", a.values[1]);
	CHECK_ERR(check(&w, &a), ERR_AUTH_HEADER);
	world_fini(&w);
}

TEST(without_a_credential_only_a_trusted_peer_gets_in)
{
	struct world w = world_new();
	struct ask a = ask_of("GET", P "/Tables");
	struct access access;

	CHECK_ERR(check(&w, &a), ERR_AUTH_NONE);
	CHECK(strstr(last_text, "no credential") != NULL);
	a.peer = (struct peer){ .is_unix = true };
	CHECK_ERR(check(&w, &a), ERR_AUTH_NONE);
	a.peer.trusted = true;
	CHECK_ERR(check_full(&w, &a, &access, NULL), ERR_OK);
	CHECK_EQ_INT(access.kind, ACCESS_OWNER);
	put(a.target, sizeof(a.target), P "/Tables?sv=2019-02-02&sp=r");
	CHECK_ERR(check(&w, &a), ERR_OK);
	/* a signature is judged, also from a trusted peer */
	put(a.target, sizeof(a.target), P "/Tables?sig=");
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = lite(&w, P "/Tables", P P "/Other");
	a.peer = (struct peer){ .is_unix = true, .trusted = true };
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	a = lite(&w, P "/Tables", P P "/Tables");
	a.peer = (struct peer){ .is_unix = true };
	CHECK_ERR(check(&w, &a), ERR_OK);
	world_fini(&w);
}

TEST(the_detail_shows_what_to_sign_and_no_secret)
{
	struct world w = world_new();
	struct ask a = lite(&w, P "/Tables", P P "/Other");
	char right[64];

	put(right, sizeof(right), "%s", signature_of(key_of(&w, 0), DATE "\n" P P "/Tables"));
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text,
		"The signature does not match. The service is 'table'; the string to sign is '" DATE
		"\\n" P P "/Tables'.");
	CHECK(strstr(last_text, right) == NULL);
	CHECK(strstr(last_text, KEY) == NULL);

	/* far too long, in UTF-8, with a control character */
	memset(a.target + strlen(P "/"), 'x', 1000);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK(strlen(last_text) > 200 && strstr(last_text, "xxx...'.") != NULL);
	a = ask_of("GET", P "/Tables");
	header(&a, "x-ms-date", DATE);
	header(&a, "Content-Type", "a\x01\xc3\xbc\xff/b");
	authorize(&a, "SharedKey", shared_keys[0].signature);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK(strstr(last_text,
		      "'GET\\n\\na???"
		      "?/b\\n") != NULL);
	world_fini(&w);
}

/* ---- SAS ---- */

#define EVER SPAN_LIT("2035-01-01T00:00:00Z")

static struct sas table_sas(void)
{
	return (struct sas){ .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("MyTable"),
		.sp = SPAN_LIT("raud"),
		.se = EVER };
}

static struct sas account_sas(void)
{
	return (struct sas){ .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.ss = SPAN_LIT("t"),
		.srt = SPAN_LIT("sco"),
		.sp = SPAN_LIT("rwdlacu"),
		.se = EVER };
}

static struct ask ask_with(const struct sas *s)
{
	struct buf query = BUF_INIT(2048);
	char target[2048];

	sas_to_query(s, &query);
	put(target, sizeof(target), P "/MyTable()?$top=1&%s", buf_ok(&query) ? query.data : "");
	buf_fini(&query);
	return ask_of("GET", target);
}

/* Signed with a key of the account, if the version signs such tokens at all. */
static struct ask signed_ask(const struct world *w, int key, struct sas s)
{
	struct buf sig = BUF_INIT(100);

	enum err e = sas_sign(&s, SPAN_LIT(ACCOUNT), key_of(w, key), &sig);
	MUST(e == ERR_OK || e == ERR_INVALID_INPUT);
	s.sig = e == ERR_OK ? buf_span(&sig) : SPAN_LIT("AAAA");
	struct ask a = ask_with(&s);
	buf_fini(&sig);
	return a;
}

static enum err check_sas(const struct world *w, struct sas s)
{
	struct ask a = signed_ask(w, 0, s);
	return check(w, &a);
}

static struct access access_of(const struct world *w, struct sas s)
{
	struct ask a = signed_ask(w, 0, s);
	struct access access = { 0 };
	CHECK_ERR(check_full(w, &a, &access, NULL), ERR_OK);
	return access;
}

/* The rows that a token of these fields gives, if the service takes it. */
static struct table_request rows_of(const struct world *w, struct sas s)
{
	struct table_request t = { 0 };
	(void)access_of(w, s);
	CHECK_ERR(table_request_limit(&t, &s), ERR_OK);
	return t;
}

static void rows_fini(struct table_request *t)
{
	struct request_context c = { .own = t };
	table_request_end(&c);
}

static void store_policies(struct world *w, const char *xml)
{
	MUST(table_policies_set(w->service, ORIGIN_COMMAND, w->table, span_of(xml), NULL) ==
		ERR_OK);
}

#define POLICIES(inner_) \
	"<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>" inner_ \
	"</SignedIdentifiers>"
#define POLICY(id_, inner_) \
	"<SignedIdentifier><Id>" id_ "</Id><AccessPolicy>" inner_ \
	"</AccessPolicy></SignedIdentifier>"

TEST(the_clients_tokens_are_good)
{
	static const struct {
		struct sas sas;
		enum access_kind kind;
		int version;
	} rows[] = {
		{ { .of = &sas_tables,
			  .sv = SPAN_LIT("2019-02-02"),
			  .tn = SPAN_LIT("mytable"),
			  .sp = SPAN_LIT("ra"),
			  .st = SPAN_LIT("2020-01-01T00:00:00Z"),
			  .se = SPAN_LIT("2035-01-01T00:00:00Z"),
			  .spk = SPAN_LIT("a"),
			  .srk = SPAN_LIT("0"),
			  .epk = SPAN_LIT("b"),
			  .erk = SPAN_LIT("9"),
			  .sig = SPAN_LIT("q3W7mdON500Ta88sRSpGAd7aQjq8KMIJMIjj+3HBXj0=") },
			ACCESS_SERVICE_SAS, 20190202 },
		{ { .of = &sas_tables,
			  .sv = SPAN_LIT("2019-02-02"),
			  .tn = SPAN_LIT("mytable"),
			  .si = SPAN_LIT("policy1"),
			  .sig = SPAN_LIT("7fk7F8vYktbK9ITerPezirtr6NZNSL8zDLE5ET8adv8=") },
			ACCESS_SERVICE_SAS, 20190202 },
		{ { .of = &sas_tables,
			  .sv = SPAN_LIT("2014-02-14"),
			  .tn = SPAN_LIT("mytable"),
			  .sp = SPAN_LIT("r"),
			  .se = SPAN_LIT("2035-01-01T00:00:00Z"),
			  .sig = SPAN_LIT("/DVF7Sm+HOwCH6LRmW8Ye5dtV7dCz2OkdfNH1/hZ1gQ=") },
			ACCESS_SERVICE_SAS, 20140214 },
		{ { .of = &sas_tables,
			  .sv = SPAN_LIT("2019-02-02"),
			  .ss = SPAN_LIT("t"),
			  .srt = SPAN_LIT("sco"),
			  .sp = SPAN_LIT("rwdlau"),
			  .se = SPAN_LIT("2035-01-01T00:00:00Z"),
			  .sig = SPAN_LIT("/dxzvmrSc05VvNKT3SRd+PdMksOe6MIR3stqSrkQrS4=") },
			ACCESS_ACCOUNT_SAS, 20190202 },
		{ { .of = &sas_tables,
			  .sv = SPAN_LIT("2020-12-06"),
			  .ss = SPAN_LIT("t"),
			  .srt = SPAN_LIT("sco"),
			  .sp = SPAN_LIT("rwdlau"),
			  .se = SPAN_LIT("2035-01-01T00:00:00Z"),
			  .sig = SPAN_LIT("fGoblXs8+dE0jVgHJoA88LvtF3HpPJkZRBoU6mnLoAw=") },
			ACCESS_ACCOUNT_SAS, 20201206 },
	};
	struct world w = world_new();

	store_policies(&w,
		POLICIES(POLICY(
			"policy1", "<Expiry>2035-01-01</Expiry><Permission>r</Permission>")));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ask a = ask_with(&rows[i].sas);
		struct access access;
		struct err_detail detail = { 0 };
		CHECK_ERR(check_full(&w, &a, &access, &detail), ERR_OK);
		CHECK_EQ_STR(detail.text, "");
		CHECK_EQ_INT(access.kind, rows[i].kind);
		CHECK_EQ_INT(access.version, rows[i].version);
		if (rows[i].kind == ACCESS_SERVICE_SAS)
			CHECK(span_is(access.container, "mytable"));
		CHECK((access.permissions & PERMISSION('r')) != 0);
	}
	world_fini(&w);
}

/* Signs the token, changes the field behind that, and asks. */
static enum err check_tampered(
	const struct world *w, struct sas s, const char *name, struct span value)
{
	struct buf sig = BUF_INIT(100);

	MUST(sas_sign(&s, SPAN_LIT(ACCOUNT), key_of(w, 0), &sig) == ERR_OK);
	s.sig = buf_span(&sig);
	*sas_field(&s, span_of(name)) = value;
	struct ask a = ask_with(&s);
	enum err e = check(w, &a);
	buf_fini(&sig);
	return e;
}

static void check_each_tampered(const struct world *w, struct sas s, const char *const *names)
{
	CHECK_ERR(check_sas(w, s), ERR_OK);
	for (; *names != NULL; names++) {
		const struct span *field = sas_field(&s, span_of(*names));
		char longer[64];
		put(longer, sizeof(longer), "%.*sx", (int)field->n, field->p);
		enum err e = check_tampered(w, s, *names, span_of(longer));
		if (e != ERR_AUTH_FAILED)
			check_err(__FILE__, __LINE__, *names, e, ERR_AUTH_FAILED);
		if (field->n == 0)
			continue;
		e = check_tampered(w, s, *names, (struct span){ NULL, 0 });
		if (e != ERR_AUTH_FAILED)
			check_err(__FILE__, __LINE__, *names, e, ERR_AUTH_FAILED);
	}
}

TEST(every_field_of_a_table_token_is_signed)
{
	static const char *const all[] = { "sv", "tn", "sp", "st", "se", "sip", "spr", "spk", "srk",
		"epk", "erk", "si", NULL };
	static const char *const old[] = { "sv", "tn", "sp", "st", "se", "spk", "srk", "epk", "erk",
		"si", NULL };
	struct world w = world_new();
	struct sas s = table_sas();

	s.st = SPAN_LIT("2020-01-01");
	s.spk = s.epk = SPAN_LIT("a");
	s.srk = s.erk = SPAN_LIT("b");
	s.sip = SPAN_LIT("192.168.1.20");
	s.spr = SPAN_LIT("https,http");
	check_each_tampered(&w, s, all);
	/* to something that would do as well */
	CHECK_ERR(check_tampered(&w, s, "sv", SPAN_LIT("2019-07-07")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "sv", SPAN_LIT("2015-04-05")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "tn", SPAN_LIT("other")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "tn", SPAN_LIT("MYTABLE")), ERR_OK);
	CHECK_ERR(check_tampered(&w, s, "sp", SPAN_LIT("r")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "st", SPAN_LIT("2019-01-01")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "se", SPAN_LIT("2036-01-01")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "sip", SPAN_LIT("192.168.1.0-192.168.1.99")),
		ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "spr", SPAN_LIT("https")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "epk", SPAN_LIT("z")), ERR_AUTH_FAILED);
	s.sip.p = s.spr.p = NULL;
	s.sip.n = s.spr.n = 0;
	s.sv = SPAN_LIT("2015-02-21");
	check_each_tampered(&w, s, old);
	s.sv = SPAN_LIT("2012-02-12");
	check_each_tampered(&w, s, old);
	world_fini(&w);
}

TEST(every_field_of_an_account_token_is_signed)
{
	static const char *const all[] = { "sv", "ss", "srt", "sp", "st", "se", "sip", "spr",
		NULL };
	static const char *const new[] = { "sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "ses",
		NULL };
	struct world w = world_new();
	struct sas s = account_sas();

	s.st = SPAN_LIT("2020-01-01");
	s.sip = SPAN_LIT("192.168.1.20");
	s.spr = SPAN_LIT("https,http");
	check_each_tampered(&w, s, all);
	s.sv = SPAN_LIT("2015-04-05");
	check_each_tampered(&w, s, all);
	s.sv = SPAN_LIT("2020-12-06");
	check_each_tampered(&w, s, new);
	s.ses = SPAN_LIT("scope");
	check_each_tampered(&w, s, new);
	CHECK_ERR(check_tampered(&w, s, "ss", SPAN_LIT("bqtf")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, s, "srt", SPAN_LIT("ocs")), ERR_AUTH_FAILED);
	/* one kind as the other */
	CHECK_ERR(check_tampered(&w, s, "tn", SPAN_LIT("MyTable")), ERR_AUTH_FAILED);
	CHECK_ERR(check_tampered(&w, table_sas(), "ss", SPAN_LIT("t")), ERR_AUTH_FAILED);
	world_fini(&w);
}

TEST(a_wrong_signature_of_a_token_fails)
{
	static const char *const bad[] = { "", "x", "AAAA",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" };
	struct world w = world_new();
	struct sas s = table_sas();
	struct ask a;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		s.sig = span_of(bad[i]);
		a = ask_with(&s);
		CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
		CHECK_EQ_STR(last_text,
			"The signature does not match. The service is 'table'; the string to sign is "
			"'raud\\n\\n2035-01-01T00:00:00Z\\n/table/devstoreaccount1/mytable"
			"\\n\\n\\n\\n2019-02-02\\n\\n\\n\\n'.");
	}
	world_fini(&w);
}

TEST(either_key_signs_tokens)
{
	struct world w = world_new();
	struct ask a = signed_ask(&w, 0, table_sas());

	CHECK_ERR(check(&w, &a), ERR_OK);
	a = signed_ask(&w, 1, table_sas());
	CHECK_ERR(check(&w, &a), ERR_OK);
	a = signed_ask(&w, 1, account_sas());
	CHECK_ERR(check(&w, &a), ERR_OK);
	/* regenerated: what it signed is void */
	account_secrets_fini(&w.secrets);
	MUST(account_key_regenerate(w.service, ORIGIN_COMMAND, SPAN_LIT(ACCOUNT), 1, NULL, NULL) ==
		ERR_OK);
	MUST(account_secrets_get(w.service, SPAN_LIT(ACCOUNT), &w.secrets) == ERR_OK);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	world_fini(&w);
}

TEST(tokens_lack_nothing_and_hold_nothing_twice)
{
	static const char *const needed[] = { "sv", "tn", "sp", "se" };
	static const char *const account_needed[] = { "sv", "ss", "srt", "sp", "se" };
	struct world w = world_new();
	struct ask a;

	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		struct sas s = table_sas();
		*sas_field(&s, span_of(needed[i])) = (struct span){ NULL, 0 };
		char text[64];
		put(text, sizeof(text), "The token has no '%s'.", needed[i]);
		CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
		CHECK_EQ_STR(last_text, text);
		*sas_field(&s, span_of(needed[i])) = SPAN_LIT("");
		CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	}
	for (size_t i = 0; i < ARRAY_LEN(account_needed); i++) {
		struct sas s = account_sas();
		*sas_field(&s, span_of(account_needed[i])) = (struct span){ NULL, 0 };
		CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
		*sas_field(&s, span_of(account_needed[i])) = SPAN_LIT("");
		CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	}
	static const char *const twice[] = { "&sp=raud", "&sp=r", "&sig=x", "&sv=2019-02-02", "&se",
		"&%73p=raud" };
	for (size_t i = 0; i < ARRAY_LEN(twice); i++) {
		a = signed_ask(&w, 0, table_sas());
		size_t n = strlen(a.target);
		put(a.target + n, sizeof(a.target) - n, "%s", twice[i]);
		CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
		CHECK(strstr(last_text, "more than once") != NULL);
	}
	/* other parameters are no business of the token */
	a = signed_ask(&w, 0, table_sas());
	size_t n = strlen(a.target);
	put(a.target + n, sizeof(a.target) - n, "&$top=1&api-version=2014-02-14&SP=r&sr=b");
	CHECK_ERR(check(&w, &a), ERR_OK);
	world_fini(&w);
}

TEST(tokens_of_other_versions)
{
	static const struct {
		const char *sv;
		bool table, account;
	} rows[] = {
		{ "2011-08-18", false, false },
		{ "2012-02-11", false, false },
		{ "2012-02-12", true, false },
		{ "2013-08-15", true, false },
		{ "2015-02-21", true, false },
		{ "2015-04-04", true, false },
		{ "2015-04-05", true, true },
		{ "2020-12-06", true, true },
		{ "2026-06-06", true, true },
		{ "2030-01-01", true, true }, /* signs what today's do */
		{ "2019-02-30", false, false },
		{ "20190202", false, false },
		{ "x", false, false },
	};
	struct world w = world_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sas t = table_sas(), a = account_sas();
		t.sv = a.sv = span_of(rows[i].sv);
		CHECK_ERR(check_sas(&w, t), rows[i].table ? ERR_OK : ERR_AUTH_FAILED);
		CHECK_ERR(check_sas(&w, a), rows[i].account ? ERR_OK : ERR_AUTH_FAILED);
	}
	world_fini(&w);
}

TEST(what_a_version_does_not_sign_is_refused)
{
	struct world w = world_new();
	struct sas s = table_sas();

	s.sv = SPAN_LIT("2015-02-21");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	s.sip = SPAN_LIT("192.168.1.20");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "'sip'") != NULL);
	s = account_sas();
	s.spk = SPAN_LIT("a");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s = account_sas();
	s.ses = SPAN_LIT("scope");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.sv = SPAN_LIT("2020-12-06");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	world_fini(&w);
}

TEST(a_token_is_valid_from_its_start_until_just_before_its_expiry)
{
	struct world w = world_new();
	struct sas s = table_sas();
	s.st = SPAN_LIT("2026-11-20T11:00:00Z");
	s.se = SPAN_LIT("2026-11-20T13:00:00Z");
	struct ask a = signed_ask(&w, 0, s);

	a.now = NOON - 60 * MINUTE - 1;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text, "The token is not valid before '2026-11-20T11:00:00Z'.");
	a.now = NOON - 60 * MINUTE;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON + 60 * MINUTE - 1;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON + 60 * MINUTE;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text, "The token expired at '2026-11-20T13:00:00Z'.");
	s.se = SPAN_LIT("2026-11-20T14:00+01:00");
	a = signed_ask(&w, 0, s);
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.now = NOON + 60 * MINUTE;
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	s.se = SPAN_LIT("2026-11-21");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	s.se = SPAN_LIT("2026-11-20");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.se = SPAN_LIT("tomorrow");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.se = EVER;
	s.st = SPAN_LIT("yesterday");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.st = SPAN_LIT("");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	world_fini(&w);
}

TEST(a_token_may_be_for_some_addresses_only)
{
	static const struct {
		const char *sip, *ip;
		enum err want;
	} rows[] = {
		{ "192.168.1.20", "192.168.1.20", ERR_OK },
		{ "192.168.1.20", "::ffff:192.168.1.20", ERR_OK },
		{ "192.168.1.21", "192.168.1.20", ERR_SAS_IP },
		{ "192.168.1.0-192.168.1.255", "192.168.1.20", ERR_OK },
		{ "192.168.1.20-192.168.1.30", "192.168.1.20", ERR_OK },
		{ "192.168.1.10-192.168.1.20", "192.168.1.20", ERR_OK },
		{ "192.168.1.21-192.168.1.30", "192.168.1.20", ERR_SAS_IP },
		{ "0.0.0.0-255.255.255.255", "::1", ERR_SAS_IP },
		{ "::1", "::1", ERR_OK },
		{ "", "::1", ERR_OK },
		{ "192.168.1.0/24", "192.168.1.20", ERR_AUTH_FAILED },
		{ "localhost", "127.0.0.1", ERR_AUTH_FAILED },
	};
	struct world w = world_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sas kinds[2] = { table_sas(), account_sas() };
		for (size_t k = 0; k < 2; k++) {
			kinds[k].sip = span_of(rows[i].sip);
			struct ask a = signed_ask(&w, 0, kinds[k]);
			put(a.peer.ip, sizeof(a.peer.ip), "%s", rows[i].ip);
			CHECK_ERR(check(&w, &a), rows[i].want);
		}
	}
	struct sas s = table_sas();
	s.sip = SPAN_LIT("0.0.0.0-255.255.255.255");
	struct ask a = signed_ask(&w, 0, s);
	a.peer = (struct peer){ .is_unix = true, .trusted = true };
	CHECK_ERR(check(&w, &a), ERR_SAS_IP);
	CHECK_EQ_STR(last_text, "A Unix socket has no address.");
	world_fini(&w);
}

TEST(a_token_may_be_for_https_only)
{
	struct world w = world_new();
	struct sas s = table_sas();
	struct ask a;

	s.spr = SPAN_LIT("https");
	CHECK_ERR(check_sas(&w, s), ERR_SAS_PROTOCOL);
	a = signed_ask(&w, 0, s);
	a.peer.tls = true;
	CHECK_ERR(check(&w, &a), ERR_OK);
	a.peer = (struct peer){ .is_unix = true, .trusted = true };
	CHECK_ERR(check(&w, &a), ERR_SAS_PROTOCOL);
	s.spr = SPAN_LIT("https,http");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	static const char *const bad[] = { "http", "HTTPS", "https,", "http,https", "ftp" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		s.spr = span_of(bad[i]);
		a = signed_ask(&w, 0, s);
		a.peer.tls = true;
		CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	}
	world_fini(&w);
}

TEST(the_signature_comes_first_then_time_address_protocol)
{
	struct world w = world_new();
	struct sas s = table_sas();

	s.se = SPAN_LIT("2026-01-01");
	s.sip = SPAN_LIT("10.0.0.1");
	s.spr = SPAN_LIT("https");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "expired") != NULL);
	CHECK_ERR(check_tampered(&w, s, "sp", SPAN_LIT("r")), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "signature") != NULL);
	s.se = EVER;
	CHECK_ERR(check_sas(&w, s), ERR_SAS_IP);
	s.sip.n = 0;
	CHECK_ERR(check_sas(&w, s), ERR_SAS_PROTOCOL);
	world_fini(&w);
}

TEST(letters_that_mean_nothing_are_refused)
{
	struct world w = world_new();
	struct sas s = table_sas();

	s.sp = SPAN_LIT("rx");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.sp = SPAN_LIT("R");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.sp = SPAN_LIT("dura");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	s = account_sas();
	s.sp = SPAN_LIT("rwdxylacuptfi"); /* some mean something to other services */
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	s.sp = SPAN_LIT("r,w");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s = account_sas();
	s.ss = SPAN_LIT("T");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s = account_sas();
	s.srt = SPAN_LIT("s c");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	world_fini(&w);
}

/* ---- stored policies ---- */

TEST(start_expiry_and_permissions_come_from_one_place_each)
{
	struct world w = world_new();
	static const char *const xml[8] = {
		POLICIES(POLICY("p", "")),
		POLICIES(POLICY("p", "<Start>2026-01-01</Start>")),
		POLICIES(POLICY("p", "<Expiry>2035-01-01</Expiry>")),
		POLICIES(POLICY("p", "<Start>2026-01-01</Start><Expiry>2035-01-01</Expiry>")),
		POLICIES(POLICY("p", "<Permission>r</Permission>")),
		POLICIES(POLICY("p", "<Start>2026-01-01</Start><Permission>r</Permission>")),
		POLICIES(POLICY("p", "<Expiry>2035-01-01</Expiry><Permission>r</Permission>")),
		POLICIES(POLICY("p",
			"<Start>2026-01-01</Start><Expiry>2035-01-01</Expiry>"
			"<Permission>r</Permission>")),
	};

	for (unsigned stored = 0; stored < 8; stored++) {
		store_policies(&w, xml[stored]);
		for (unsigned sent = 0; sent < 8; sent++) {
			struct sas s = { .of = &sas_tables,
				.sv = SPAN_LIT("2019-02-02"),
				.tn = SPAN_LIT("MyTable"),
				.si = SPAN_LIT("p") };
			if (sent & 1)
				s.st = SPAN_LIT("2026-01-01");
			if (sent & 2)
				s.se = EVER;
			if (sent & 4)
				s.sp = SPAN_LIT("r");
			bool good = (stored & sent) == 0 && ((stored | sent) & 6) == 6;
			enum err e = check_sas(&w, s);
			if (e != (good ? ERR_OK : ERR_AUTH_FAILED)) {
				printf("# stored %u, sent %u\n", stored, sent);
				check_err(__FILE__, __LINE__, "check", e,
					good ? ERR_OK : ERR_AUTH_FAILED);
			}
		}
	}
	world_fini(&w);
}

TEST(a_policy_decides_as_long_as_it_is_there)
{
	struct world w = world_new();
	struct sas s = { .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("MyTable"),
		.si = SPAN_LIT("two & a half") };
	struct access access;

	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK_EQ_STR(last_text, "There is no stored policy 'two & a half' (si).");
	store_policies(&w,
		POLICIES(POLICY("one", "<Expiry>2035-01-01</Expiry><Permission>raud</Permission>")
				POLICY("two &amp; a half",
					"<Expiry>2035-01-01</Expiry>"
					"<Permission>au</Permission>")));
	access = access_of(&w, s);
	CHECK_EQ_INT(access.permissions, PERMISSION('a') | PERMISSION('u'));
	s.si = SPAN_LIT("Two & a half");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.si = SPAN_LIT("one");
	s.tn = SPAN_LIT("nosuchtable");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.tn = SPAN_LIT("mytable");
	CHECK_ERR(check_sas(&w, s), ERR_OK);

	store_policies(&w,
		POLICIES(POLICY("one",
			"<Expiry>2026-11-20T12:00:00Z</Expiry>"
			"<Permission>raud</Permission>")));
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "expired") != NULL);
	store_policies(&w,
		POLICIES(POLICY("one",
			"<Start>2026-11-20T12:00:00.0000001Z</Start>"
			"<Expiry>2035-01-01</Expiry><Permission>raud</Permission>")));
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "not valid before") != NULL);
	store_policies(&w, "");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	/* An id alone is a policy that gives nothing. */
	store_policies(&w, POLICIES("<SignedIdentifier><Id>one</Id></SignedIdentifier>"));
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.se = EVER;
	s.sp = SPAN_LIT("r");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	world_fini(&w);
}

TEST(a_policy_is_not_looked_for_unless_the_token_is_signed)
{
	struct world w = world_new();
	struct sas s = table_sas();

	s.si = SPAN_LIT("nosuchpolicy");
	s.sig = SPAN_LIT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	struct ask a = ask_with(&s);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "signature") != NULL);
	world_fini(&w);
}

/* ---- ranges ---- */

#define NONE ((struct span){ NULL, 0 })

static void check_rows(struct span spk, struct span srk, struct span epk, struct span erk,
	const char *const (*rows)[2], const char *want)
{
	struct world w = world_new();
	struct sas s = table_sas();

	s.spk = spk;
	s.srk = srk;
	s.epk = epk;
	s.erk = erk;
	struct table_request given = rows_of(&w, s);
	for (; *want != '\0'; want++, rows++) {
		enum err e =
			table_request_allows_row(&given, span_of((*rows)[0]), span_of((*rows)[1]));
		if (e != (*want == '+' ? ERR_OK : ERR_NOT_PERMITTED)) {
			printf("# %s/%s should be %c\n", (*rows)[0], (*rows)[1], *want);
			check_fail(__FILE__, __LINE__, err_symbol(e));
		}
	}
	rows_fini(&given);
	world_fini(&w);
}

TEST(a_range_holds_both_its_ends)
{
	static const char *const rows[][2] = { { "", "" }, { "a", "z" }, { "b", "" }, { "b", "1" },
		{ "b", "2" }, { "b", "3" }, { "c", "" }, { "c", "9" }, { "d", "" }, { "d", "2" },
		{ "d", "20" }, { "d", "3" }, { "e", "" } };
#define S(text_) SPAN_LIT(text_)
	check_rows(NONE, NONE, NONE, NONE, rows, "+++++++++++++");
	check_rows(S("b"), NONE, NONE, NONE, rows, "--+++++++++++");
	check_rows(NONE, NONE, S("d"), NONE, rows, "++++++++++++-");
	check_rows(S("b"), NONE, S("d"), NONE, rows, "--++++++++++-");
	check_rows(S("b"), S("2"), NONE, NONE, rows, "----+++++++++");
	check_rows(NONE, NONE, S("d"), S("2"), rows, "++++++++++---");
	check_rows(S("b"), S("2"), S("d"), S("2"), rows, "----++++++---");
	check_rows(S("b"), NONE, S("b"), NONE, rows, "--++++-------");
	check_rows(S("b"), S("2"), S("b"), S("2"), rows, "----+--------");
	check_rows(S("b"), S("1"), S("b"), S("2"), rows, "---++--------");
	/* empty ends are ends */
	check_rows(S(""), NONE, NONE, NONE, rows, "+++++++++++++");
	check_rows(NONE, NONE, S(""), NONE, rows, "+------------");
	check_rows(S("b"), S(""), S("d"), S(""), rows, "--+++++++----");
	/* crossed */
	check_rows(S("d"), NONE, S("b"), NONE, rows, "-------------");
	check_rows(S("b"), S("3"), S("b"), S("1"), rows, "-------------");
	check_rows(S("d"), S("1"), S("b"), S("9"), rows, "-------------");
#undef S
}

TEST(ranges_are_in_the_order_of_utf16)
{
	/* U+FF61 comes behind U+1F600, whose first unit is D83D. */
	static const char *const rows[][2] = { { "\xf0\x9f\x98\x80", "" }, { "\xef\xbd\xa1", "" },
		{ "z", "" } };

	check_rows(span_of(rows[1][0]), NONE, NONE, NONE, rows, "-+-");
	check_rows(NONE, NONE, span_of(rows[0][0]), NONE, rows, "+-+");
}

TEST(what_is_no_key_is_in_no_range)
{
	struct world w = world_new();
	struct sas s = table_sas();
	static char longest[LIMIT_KEY_BYTES + 1];

	memset(longest, 'b', sizeof(longest));
	s.spk = SPAN_LIT("a");
	struct table_request given = rows_of(&w, s);
	CHECK_ERR(table_request_allows_row(&given, SPAN_LIT("b"), SPAN_LIT("")), ERR_OK);
	CHECK_ERR(table_request_allows_row(&given, SPAN_LIT("b\xff"), SPAN_LIT("")),
		ERR_NOT_PERMITTED);
	CHECK_ERR(table_request_allows_row(&given, SPAN_LIT("b"), SPAN_LIT("\xc3")),
		ERR_NOT_PERMITTED);
	CHECK_ERR(
		table_request_allows_row(&given, span_make(longest, LIMIT_KEY_BYTES), SPAN_LIT("")),
		ERR_OK);
	CHECK_ERR(
		table_request_allows_row(&given, span_make(longest, sizeof(longest)), SPAN_LIT("")),
		ERR_NOT_PERMITTED);
	CHECK_ERR(table_request_allows_row(
			  &given, SPAN_LIT("b"), span_make(longest, sizeof(longest))),
		ERR_NOT_PERMITTED);
	rows_fini(&given);
	world_fini(&w);
}

TEST(a_row_key_bound_needs_its_partition_key)
{
	struct world w = world_new();
	struct sas s = table_sas();

	s.srk = SPAN_LIT("1");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.srk = NONE;
	s.erk = SPAN_LIT("1");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.spk = SPAN_LIT("a");
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	s.epk = SPAN_LIT("a");
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	world_fini(&w);
}

/* ---- what it allows ---- */

#define B(letter_) PERMISSION(letter_)

struct operation {
	const char *name;
	struct access_need need;
	const char *types;      /* account SAS: srt letters any one of which does; "": never */
	const char *sufficient; /* and these sp letters, as words: each is enough */
	const char *table;      /* table SAS: sp letters that are enough; "": never */
};

/* Protocol sections 4.5 and 4.6. */
static const struct operation operations[] = {
	{ "get properties", { B('s'), B('r'), 0, 0 }, "s", "r", "" },
	{ "set properties", { B('s'), B('w'), 0, 0 }, "s", "w", "" },
	{ "query tables", { B('s') | B('c'), B('l'), 0, 0 }, "sc", "l", "" },
	{ "create table", { B('c'), B('c') | B('w'), 0, 0 }, "c", "c w", "" },
	{ "delete table", { B('c'), B('d'), 0, 0 }, "c", "d", "" },
	{ "query", { B('o'), B('r'), 0, B('r') }, "o", "r", "r" },
	{ "insert", { B('o'), B('a'), 0, B('a') }, "o", "a", "a" },
	{ "upsert", { B('o'), 0, B('a') | B('u'), B('a') | B('u') }, "o", "au", "au" },
	{ "update", { B('o'), 0, B('u'), B('u') }, "o", "u", "u" },
	{ "delete", { B('o'), B('d'), 0, B('d') }, "o", "d", "d" },
	{ "access policies", { 0, 0, 0, 0 }, "", "", "" },
};

static bool has_all(unsigned bits, const char *letters, size_t n, const char *of)
{
	for (size_t i = 0; i < n; i++) {
		if ((bits >> (strchr(of, letters[i]) - of) & 1) == 0)
			return false;
	}
	return true;
}

static bool has_word(unsigned bits, const char *words, const char *of)
{
	while (*words != '\0') {
		size_t n = strcspn(words, " ");
		if (has_all(bits, words, n, of))
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

static bool has_one(unsigned bits, const char *letters, const char *of)
{
	for (; *letters != '\0'; letters++) {
		if (has_all(bits, letters, 1, of))
			return true;
	}
	return false;
}

static uint32_t bits_of(unsigned chosen, const char *letters)
{
	uint32_t bits = 0;
	for (; *letters != '\0'; letters++, chosen >>= 1)
		bits |= (chosen & 1) != 0 ? PERMISSION(*letters) : 0;
	return bits;
}

TEST(an_account_token_allows_what_its_letters_say)
{
	static const char types[] = "sco", letters[] = "rwdlacu";

	for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
		const struct operation *op = &operations[i];
		for (unsigned t = 0; t < 8; t++) {
			for (unsigned p = 0; p < 128; p++) {
				struct access a = { .kind = ACCESS_ACCOUNT_SAS,
					.services = B('t'),
					.resource_types = bits_of(t, types),
					.permissions = bits_of(p, letters),
					.version = 20190202 };
				enum err want = ERR_OK;
				if (op->types[0] == '\0')
					want = ERR_NOT_PERMITTED;
				else if (!has_one(t, op->types, types))
					want = ERR_SAS_RESOURCE_TYPE;
				else if (!has_word(p, op->sufficient, letters))
					want = ERR_SAS_PERMISSION;
				enum err e = access_allows(
					&rest_tables, &a, &op->need, SPAN_LIT("t"), NULL);
				if (e != want)
					check_err(__FILE__, __LINE__, op->name, e, want);
				/* first of all: for tables at all */
				a.services = B('b') | B('q') | B('f');
				if (access_allows(&rest_tables, &a, &op->need, SPAN_LIT("t"),
					    NULL) != ERR_SAS_SERVICE)
					check_fail(__FILE__, __LINE__, op->name);
			}
		}
	}
}

TEST(a_table_token_allows_what_its_letters_say)
{
	static const char letters[] = "raud";

	for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
		const struct operation *op = &operations[i];
		for (unsigned p = 0; p < 16; p++) {
			struct access a = { .kind = ACCESS_SERVICE_SAS,
				.permissions = bits_of(p, letters),
				.version = 20150405,
				.container = SPAN_LIT("mytable") };
			bool never = op->table[0] == '\0';
			bool may = !never && has_word(p, op->table, letters);
			enum err want = never ? ERR_NOT_PERMITTED
				: may         ? ERR_OK
					      : ERR_SAS_PERMISSION;
			CHECK_ERR(access_allows(
					  &rest_tables, &a, &op->need, SPAN_LIT("mytable"), NULL),
				want);
			CHECK_ERR(access_allows(
					  &rest_tables, &a, &op->need, SPAN_LIT("MYTable"), NULL),
				want);
			CHECK_ERR(
				access_allows(&rest_tables, &a, &op->need, SPAN_LIT("other"), NULL),
				ERR_NOT_PERMITTED);
			CHECK_ERR(access_allows(&rest_tables, &a, &op->need, SPAN_LIT(""), NULL),
				ERR_NOT_PERMITTED);
			a.version = 20150221;
			CHECK_ERR(access_allows(
					  &rest_tables, &a, &op->need, SPAN_LIT("MYTable"), NULL),
				want == ERR_SAS_PERMISSION ? ERR_NOT_FOUND : want);
		}
	}
}

TEST(tables_with_long_names_are_other_tables)
{
	struct access a = {
		.kind = ACCESS_SERVICE_SAS, .permissions = B('r'), .version = 20190202
	};
	char name[64];

	memset(name, 'a', sizeof(name));
	a.container = span_make(name, 63);
	CHECK_ERR(access_allows(&rest_tables, &a, &operations[5].need, span_make(name, 63), NULL),
		ERR_OK);
	CHECK_ERR(access_allows(&rest_tables, &a, &operations[5].need, span_make(name, 64), NULL),
		ERR_NOT_PERMITTED);
	CHECK_ERR(access_allows(&rest_tables, &a, &operations[5].need, span_make(name, 62), NULL),
		ERR_NOT_PERMITTED);
}

TEST(an_owner_may_do_everything)
{
	struct access a = { .kind = ACCESS_OWNER };

	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		CHECK_ERR(access_allows(&rest_tables, &a, &operations[i].need, SPAN_LIT("t"), NULL),
			ERR_OK);
	struct table_request all = { 0 };
	CHECK_ERR(table_request_allows_row(&all, SPAN_LIT("p"), SPAN_LIT("r")), ERR_OK);
}

TEST(the_detail_says_which_letter_is_missing)
{
	struct access a = { .kind = ACCESS_SERVICE_SAS,
		.permissions = B('r'),
		.version = 20190202,
		.container = SPAN_LIT("t") };
	struct err_detail d = { 0 };

	CHECK_ERR(access_allows(&rest_tables, &a, &operations[7].need, SPAN_LIT("T"), &d),
		ERR_SAS_PERMISSION);
	CHECK_EQ_STR(d.text, "The permissions (sp) must have all of 'au'.");
	a = (struct access){ .kind = ACCESS_ACCOUNT_SAS, .services = B('t'), .version = 20190202 };
	CHECK_ERR(access_allows(&rest_tables, &a, &operations[2].need, SPAN_LIT(""), &d),
		ERR_SAS_RESOURCE_TYPE);
	CHECK_EQ_STR(d.text, "The resource types (srt) must have one of 'cs'.");
}

TEST(a_token_long_as_a_url_is_no_trouble)
{
	struct world w = world_new();
	static char key[600];
	struct sas s = table_sas();

	memset(key, 'k', sizeof(key));
	s.spk = s.epk = span_make(key, sizeof(key));
	s.tn = span_make(key, 63);
	CHECK_ERR(check_sas(&w, s), ERR_OK);
	s.tn = span_make(key, 64);
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	world_fini(&w);
}

/* A request of our own making, signed with the first key as one of this path. */
static enum err check_made(
	const struct world *w, const struct request_url *t, const char *path, struct span type)
{
	char value[128];
	struct buf text = BUF_INIT(4u << 20);
	uint8_t code[32];
	struct err_detail detail = { 0 };
	struct access access;

	buf_addf(&text, "GET\n\n");
	buf_add_span(&text, type);
	buf_addf(&text, "\n" DATE "\n/" ACCOUNT "%s", path);
	crypto_hmac_sha256(key_of(w, 0), buf_span(&text), code);
	buf_clear(&text);
	base64_encode(span_make(code, sizeof(code)), &text);
	put(value, sizeof(value), "SharedKey " ACCOUNT ":%s", text.data);
	buf_fini(&text);
	const struct header headers[] = { { SPAN_LIT("x-ms-date"), SPAN_LIT(DATE) },
		{ SPAN_LIT("Content-Type"), type }, { SPAN_LIT("Authorization"), span_of(value) } };
	struct peer peer = { .ip = "192.168.1.20" };
	struct request r = {
		.method = SPAN_LIT("GET"), .headers = headers, .nheaders = 3, .peer = &peer
	};
	struct access_facts f = { &rest_tables, w->service, &r, t, SPAN_LIT(""), &w->secrets,
		NOON };
	enum err e = access_check(&f, &access, &detail);
	memcpy(last_text, detail.text, sizeof(last_text));
	return e;
}

TEST(a_string_to_sign_beyond_its_limit_is_never_a_match)
{
	struct world w = world_new();
	struct request_url t = { .path = SPAN_LIT("/T"), .account = ACCOUNT };
	char *type = malloc(SAS_STRING_LIMIT + 1);

	MUST(type != NULL);
	memset(type, 't', SAS_STRING_LIMIT + 1);
	CHECK_ERR(check_made(&w, &t, "/T", span_make(type, 100000)), ERR_OK);
	CHECK_ERR(check_made(&w, &t, "/T", span_make(type, SAS_STRING_LIMIT + 1)), ERR_NO_MEMORY);
	free(type);
	world_fini(&w);
}

TEST(a_path_without_a_segment_has_nothing_behind_it)
{
	struct world w = world_new();
	struct request_url t = {
		.path = SPAN_LIT(""), .account = ACCOUNT, .path_style = true, .secondary = true
	};

	CHECK_ERR(check_made(&w, &t, "/", SPAN_LIT("")), ERR_OK);
	t.path = SPAN_LIT("/");
	CHECK_ERR(check_made(&w, &t, "/", SPAN_LIT("x\x7fy")), ERR_OK);
	CHECK_ERR(check_made(&w, &t, "/x", SPAN_LIT("")), ERR_AUTH_FAILED);
	w.secrets.keys.key[0][0] ^= 1;
	struct ask a = ask_of("GET", P "/Tables");
	header(&a, "x-ms-date", DATE);
	header(&a, "Content-Type", "x\x7fy");
	authorize(&a, "SharedKey", shared_keys[0].signature);
	CHECK_ERR(check(&w, &a), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "\\nx?y\\n") != NULL);
	world_fini(&w);
}

TEST(long_fields_of_a_token_are_shown_cut)
{
	struct world w = world_new();
	struct sas s = table_sas();
	char text[100];

	memset(text, 'e', sizeof(text));
	s.se = span_make(text, 90);
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK(strstr(last_text, "eee' (se) is no time.") != NULL);
	CHECK(strlen(last_text) == 64 + strlen("'' (se) is no time."));
	s = table_sas();
	s.si = span_make(text, 90);
	CHECK_ERR(check_sas(&w, s), ERR_AUTH_FAILED);
	CHECK(strlen(last_text) == 64 + strlen("There is no stored policy '' (si)."));
	world_fini(&w);
}

TEST(stored_policies_that_are_broken_are_corrupt_and_let_nobody_in)
{
	static const char *const broken[] = { "<x", "<SignedIdentifiers>", POLICIES("<x/>"),
		POLICIES(POLICY("p", "<Start>tomorrow</Start>")) };
	struct world w = world_new();
	struct sas s = table_sas();

	s.si = SPAN_LIT("p");
	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		store_policies(&w, broken[i]);
		CHECK_ERR(check_sas(&w, s), ERR_CORRUPT);
	}
	world_fini(&w);
}

TEST(a_field_without_a_value_is_empty)
{
	struct world w = world_new();
	struct ask a = signed_ask(&w, 0, table_sas());
	size_t n = strlen(a.target);

	put(a.target + n, sizeof(a.target) - n, "&st");
	CHECK_ERR(check(&w, &a), ERR_OK);
	a = signed_ask(&w, 0, account_sas());
	n = strlen(a.target);
	put(a.target + n, sizeof(a.target) - n, "&tn");
	CHECK(check(&w, &a) != ERR_OK);
	world_fini(&w);
}

RUN_TESTS(T(the_clients_signatures_make_an_owner),
	T(the_signature_is_of_the_method_the_type_the_md5_the_date_and_the_path),
	T(nothing_else_is_signed), T(a_wrong_signature_fails_in_every_byte), T(either_key_signs),
	T(the_path_is_signed_in_every_layout), T(other_paths_are_not_the_one_that_was_signed),
	T(quotes_may_be_encoded_after_the_signing_or_decoded),
	T(the_date_may_be_a_quarter_of_an_hour_off), T(the_ms_date_wins), T(dates_have_one_form),
	T(the_header_has_a_scheme_an_account_and_a_signature),
	T(the_account_of_the_header_is_that_of_the_url), T(an_empty_path_is_signed_as_a_slash),
	T(schemes_have_no_case_and_blanks_do_no_harm), T(two_headers_are_refused),
	T(without_a_credential_only_a_trusted_peer_gets_in),
	T(the_detail_shows_what_to_sign_and_no_secret), T(the_clients_tokens_are_good),
	T(every_field_of_a_table_token_is_signed), T(every_field_of_an_account_token_is_signed),
	T(a_wrong_signature_of_a_token_fails), T(either_key_signs_tokens),
	T(tokens_lack_nothing_and_hold_nothing_twice), T(tokens_of_other_versions),
	T(what_a_version_does_not_sign_is_refused),
	T(a_token_is_valid_from_its_start_until_just_before_its_expiry),
	T(a_token_may_be_for_some_addresses_only), T(a_token_may_be_for_https_only),
	T(the_signature_comes_first_then_time_address_protocol),
	T(letters_that_mean_nothing_are_refused),
	T(start_expiry_and_permissions_come_from_one_place_each),
	T(a_policy_decides_as_long_as_it_is_there),
	T(a_policy_is_not_looked_for_unless_the_token_is_signed), T(a_range_holds_both_its_ends),
	T(ranges_are_in_the_order_of_utf16), T(what_is_no_key_is_in_no_range),
	T(a_row_key_bound_needs_its_partition_key), T(an_account_token_allows_what_its_letters_say),
	T(a_table_token_allows_what_its_letters_say), T(tables_with_long_names_are_other_tables),
	T(an_owner_may_do_everything), T(the_detail_says_which_letter_is_missing),
	T(a_token_long_as_a_url_is_no_trouble),
	T(a_string_to_sign_beyond_its_limit_is_never_a_match),
	T(a_path_without_a_segment_has_nothing_behind_it), T(long_fields_of_a_token_are_shown_cut),
	T(stored_policies_that_are_broken_are_corrupt_and_let_nobody_in),
	T(a_field_without_a_value_is_empty))
