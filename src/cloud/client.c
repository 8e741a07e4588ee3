/* SPDX-License-Identifier: MIT
 * A 503 or 429 says that nothing was done.  After a 500, a 504 or a lost response nobody knows, so only
 * an idempotent request is sent again. */
#include "cloud/client.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "cloud/credentials.h"
#include "cloud/service_error.h"
#include "codec/http_date.h"
#include "codec/table_signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIES 5
#define CONNECT_MS 10000
#define RESPONSE_MS 60000
#define WAIT_MS 200       /* before the second try; doubles */
#define WAIT_MAX_MS 30000 /* also of Retry-After */
#define WAIT_SLICE_MS 20  /* how long a cancelled wait lasts */
#define URL_LIMIT ((size_t)64 << 10)
#define VERSION "2019-02-02"
#define VERSION_TOKEN "2020-12-06" /* the first that takes bearer tokens for tables */
#define AUTHORIZATION_LIMIT ((size_t)17 << 10)

struct client {
	struct endpoint at;
	struct client_options options;
	struct http *http;
	uint64_t requests;
};

enum err client_new(const struct endpoint *at, const struct client_options *o, struct client **ret,
	struct err_detail *detail)
{
	struct client *c = calloc(1, sizeof(*c));
	*ret = NULL;
	if (c == NULL)
		return ERR_NO_MEMORY;
	c->at = *at;
	c->options = *o;
	const struct http_options h = { .ca_file = o->ca_file,
		.connect_ms = o->connect_ms != 0 ? o->connect_ms : CONNECT_MS,
		.response_ms = o->response_ms != 0 ? o->response_ms : RESPONSE_MS,
		.cancelled = o->cancelled,
		.arg = o->arg };
	enum err e = http_new(&h, &c->http, detail);
	if (e == ERR_OK)
		*ret = c;
	else
		client_free(c);
	return e;
}

void client_free(struct client *c)
{
	if (c == NULL)
		return;
	http_free(c->http);
	endpoint_wipe(&c->at);
	free(c);
}

const struct endpoint *client_endpoint(const struct client *c)
{
	return &c->at;
}

uint64_t client_requests(const struct client *c)
{
	return c->requests;
}

/* ---- waits ---- */

static bool cancelled(const struct client *c)
{
	return c->options.cancelled != NULL && c->options.cancelled(c->options.arg);
}

static enum err wait_until(const struct client *c, uint64_t us)
{
	uint64_t now;
	while ((now = clock_mono_us()) < us && !cancelled(c)) {
		uint64_t left = us - now, slice = (uint64_t)WAIT_SLICE_MS * 1000;
		struct timespec t = { .tv_nsec = (long)(left < slice ? left : slice) * 1000 };
		(void)nanosleep(&t, NULL);
	}
	return cancelled(c) ? ERR_CANCELLED : ERR_OK;
}

static enum err wait_turn(const struct client *c, const struct client_request *r, bool again)
{
	struct traffic *t = c->options.traffic;
	return t != NULL ? wait_until(c, traffic_turn(t, r->kind, again)) : ERR_OK;
}

static uint64_t backoff_ms(const struct http_response *r, unsigned failed)
{
	uint64_t ms = (uint64_t)WAIT_MS << (failed < 8 ? failed : 8), seconds;
	uint16_t chance;
	crypto_random(&chance, sizeof(chance));
	if (text_to_u64(http_response_header(r, "Retry-After"), &seconds))
		ms = seconds < WAIT_MAX_MS / 1000 ? seconds * 1000 : WAIT_MAX_MS;
	if (ms > WAIT_MAX_MS)
		ms = WAIT_MAX_MS;
	/* A quarter more at most: clients that were refused together come apart. */
	return ms + ms * chance / 65536 / 4;
}

/* ---- one request ---- */

static bool changes(const struct client_request *r)
{
	return strcmp(r->method, "GET") != 0;
}

static void add_comp(struct span query, struct span *ret)
{
	static const struct span name = SPAN_LIT("comp=");
	*ret = (struct span){ 0 };
	while (query.n > 0) {
		const char *end = memchr(query.p, '&', query.n);
		size_t n = end != NULL ? (size_t)(end - query.p) : query.n;
		if (span_starts(query, name))
			*ret = span_make(query.p + name.n, n - name.n);
		n += end != NULL;
		query = span_make(query.p + n, query.n - n);
	}
}

static void add_signature(
	const struct client *c, const struct client_request *r, struct span date, struct buf *out)
{
	struct buf text = BUF_INIT(URL_LIMIT);
	struct span comp;
	uint8_t digest[32];
	const struct table_signature s = {
		.method = span_of(r->method), .content_type = r->content_type, .date = date
	};
	add_comp(r->query, &comp);
	table_signature_head(&s, &text);
	buf_addf(&text, "/%s%s", c->at.account, c->at.url + c->at.path);
	buf_add_span(&text, r->path);
	table_signature_query(comp, &text);
	crypto_hmac_sha256(span_make(c->at.key, c->at.key_len), buf_span(&text), digest);
	buf_addf(out, "Authorization: SharedKey %s:", c->at.account);
	base64_encode(span_make(digest, sizeof(digest)), out);
	if (!buf_ok(&text))
		out->failed = out->no_memory = true;
	buf_fini(&text);
}

/* The file is read for each try: another program renews it. */
static enum err add_token(const struct client *c, struct buf *out, struct err_detail *detail)
{
	buf_add_str(out, "Authorization: Bearer ");
	enum err e = credentials_read_token(c->at.token_file, out, detail);
	/* A caller takes ERR_NOT_FOUND for the service's 404. */
	return e == ERR_NOT_FOUND ? ERR_ACCESS : e;
}

static void add_url(const struct client *c, const struct client_request *r, struct buf *out)
{
	buf_add_str(out, c->at.url);
	buf_add_span(out, r->path);
	char mark = '?';
	if (r->query.n > 0) {
		buf_add_char(out, mark);
		buf_add_span(out, r->query);
		mark = '&';
	}
	if (c->at.sas[0] != 0) {
		buf_add_char(out, mark);
		buf_add_str(out, c->at.sas);
	}
}

/* The texts of one try: the URL and the headers. */
struct texts {
	struct buf url, date, authorization, content_type, if_match;
};

static void make_texts(const struct client *c, const struct client_request *r, struct texts *t)
{
	static const size_t date = sizeof("x-ms-date: ") - 1;
	*t = (struct texts){ BUF_INIT(URL_LIMIT), BUF_INIT(64), BUF_INIT(AUTHORIZATION_LIMIT),
		BUF_INIT(256), BUF_INIT(2048) };
	add_url(c, r, &t->url);
	buf_add_str(&t->date, "x-ms-date: ");
	http_date_add(&t->date, clock_ticks());
	if (c->at.key_len > 0 && buf_ok(&t->date))
		add_signature(c, r, span_make(t->date.data + date, t->date.len - date),
			&t->authorization);
	buf_addf(&t->content_type, "Content-Type: %.*s", (int)r->content_type.n,
		r->content_type.n > 0 ? r->content_type.p : "");
	buf_addf(&t->if_match, "If-Match: %.*s", (int)r->if_match.n,
		r->if_match.n > 0 ? r->if_match.p : "");
}

static enum err texts_full(const struct texts *t)
{
	bool ok = buf_ok(&t->url) && buf_ok(&t->date) && buf_ok(&t->authorization) &&
		buf_ok(&t->content_type) && buf_ok(&t->if_match);
	return ok ? ERR_OK : buf_full(&t->url) != ERR_OK ? buf_full(&t->url) : ERR_NO_MEMORY;
}

static void free_texts(struct texts *t)
{
	buf_wipe(&t->url);
	buf_fini(&t->date);
	buf_wipe(&t->authorization);
	buf_fini(&t->content_type);
	buf_fini(&t->if_match);
}

static enum err send_once(struct client *c, const struct client_request *r,
	struct http_response *ret, struct err_detail *detail)
{
	struct texts t;
	size_t n = 0;
	*ret = (struct http_response){ 0 };
	make_texts(c, r, &t);
	bool token = c->at.token_file[0] != 0;
	enum err e = token ? add_token(c, &t.authorization, detail) : ERR_OK;
	if (e == ERR_OK)
		e = texts_full(&t);
	struct http_request h = { .method = r->method, .url = t.url.data, .body = r->body };
	h.finishes = c->options.finishes_changes && changes(r);
	h.headers[n++] = token ? "x-ms-version: " VERSION_TOKEN : "x-ms-version: " VERSION;
	h.headers[n++] = "DataServiceVersion: 3.0;NetFx";
	h.headers[n++] = "MaxDataServiceVersion: 3.0;NetFx";
	h.headers[n++] = "Accept: application/json;odata=minimalmetadata";
	h.headers[n++] = "Accept-Charset: UTF-8";
	h.headers[n++] = "User-Agent: rowfs";
	h.headers[n++] = "Prefer: return-no-content";
	h.headers[n++] = t.date.data;
	h.headers[n++] = r->content_type.n > 0 ? t.content_type.data : "Content-Type:";
	if (t.authorization.len > 0)
		h.headers[n++] = t.authorization.data;
	if (r->if_match.n > 0)
		h.headers[n++] = t.if_match.data;
	if (e == ERR_OK)
		e = http_send(c->http, &h, ret, detail);
	c->requests++;
	free_texts(&t);
	return e;
}

/* ---- tries ---- */

static bool may_pass(const struct client_request *r, enum err e)
{
	return e == ERR_THROTTLED || e == ERR_IO || (e == ERR_OUTCOME_UNKNOWN && r->idempotent);
}

/* A message such as a name of the host that is not known would be the same again. */
static enum err say_where(const struct client *c, enum err e, struct err_detail *detail)
{
	char why[sizeof(detail->text)];
	if (detail == NULL || (e != ERR_IO && e != ERR_OUTCOME_UNKNOWN))
		return e;
	(void)snprintf(why, sizeof(why), "%s", err_message(e, detail));
	return err_set(detail, e, "%.160s: %s", c->at.url, why);
}

enum err client_send(struct client *c, const struct client_request *r, struct http_response *ret,
	bool *ret_again, struct err_detail *detail)
{
	unsigned tries = c->options.tries != 0 ? c->options.tries : TRIES;
	bool again = false;
	enum err e;
	for (unsigned failed = 0;; failed++) {
		struct err_detail why = { 0 };
		*ret = (struct http_response){ 0 };
		e = wait_turn(c, r, failed > 0);
		if (e == ERR_OK)
			e = send_once(c, r, ret, &why);
		if (e == ERR_OK)
			e = service_error(ret, &why);
		if (e == ERR_OK && r->inner_error != NULL)
			e = r->inner_error(buf_span(&ret->body), &why);
		if (e == ERR_OK)
			break;
		if (!may_pass(r, e) || failed + 1 >= tries) {
			if (detail != NULL)
				*detail = why;
			break;
		}
		again |= e == ERR_OUTCOME_UNKNOWN;
		uint64_t ms = backoff_ms(ret, failed);
		http_response_fini(ret);
		*ret = (struct http_response){ 0 };
		e = wait_until(c, clock_mono_us() + ms * 1000);
		if (e != ERR_OK)
			break;
	}
	/* An earlier try may have been done. */
	bool stopped = e == ERR_CANCELLED && changes(r);
	if (again && (e == ERR_IO || e == ERR_THROTTLED || stopped))
		e = ERR_OUTCOME_UNKNOWN;
	if (ret_again != NULL)
		*ret_again = again;
	return say_where(c, e, detail);
}
