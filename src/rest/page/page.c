/* SPDX-License-Identifier: MIT
 * The secrets belong to the process, as those of TLS do.  They are constant while a socket serves
 * the page, so no lock is needed. */
#include "rest/page/page.h"

#include "base/compiler.h"
#include "base/crypto.h"
#include "codec/uri.h"
#include "rest/blobs/blobs.h"
#include "rest/core/handle.h"
#include "rest/page/page_data.h"
#include "rest/page/page_files.h"
#include "rest/queues/queues.h"
#include "rest/tables/tables.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#define TOKEN_BYTES 16
#define LINK_TEXT "link="
/* Bytes of a change set, of a message, or of a block of a blob that the page uploads in parts. */
#define BODY_LIMIT ((size_t)8 << 20)

static char link_query[sizeof(LINK_TEXT) + 2 * (size_t)TOKEN_BYTES];
/* "rowfs-ID=TOKEN".  The name has an ID because browsers share cookies among ports. */
static char session[64];
static atomic_bool link_used;

static void random_hex(size_t nbytes, char *out)
{
	uint8_t bytes[TOKEN_BYTES];
	crypto_random(bytes, nbytes);
	for (size_t i = 0; i < nbytes; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

void page_start(char link[PAGE_LINK_BYTES])
{
	char id[9], token[2 * TOKEN_BYTES + 1];
	random_hex(TOKEN_BYTES, token);
	(void)snprintf(link_query, sizeof(link_query), LINK_TEXT "%s", token);
	random_hex(sizeof(id) / 2, id);
	random_hex(TOKEN_BYTES, token);
	(void)snprintf(session, sizeof(session), "rowfs-%s=%s", id, token);
	atomic_store(&link_used, false);
	(void)snprintf(link, PAGE_LINK_BYTES, "/?%s", link_query);
}

/* ---- who asks ---- */

static bool is_secret(struct span given, const char *secret)
{
	struct span s = span_of(secret);
	return s.n > 0 && given.n == s.n && crypto_equal(given.p, s.p, s.n);
}

static bool has_session(const struct request *q)
{
	struct span cookies = request_header(q, "Cookie");
	while (cookies.n > 0) {
		struct span one = span_take(&cookies, ';');
		while (one.n > 0 && one.p[0] == ' ')
			one = span_make(one.p + 1, one.n - 1);
		if (is_secret(one, session))
			return true;
	}
	return false;
}

/* Other ports of this machine are the same site to SameSite, but another origin. */
static bool origin_is_ours(const struct request *q)
{
	struct span origin = request_header(q, "Origin"), host = request_header(q, "Host");
	struct span scheme = q->peer->tls ? SPAN_LIT("https://") : SPAN_LIT("http://");
	return origin.p == NULL ||
		(span_starts(origin, scheme) &&
			span_eq(span_make(origin.p + scheme.n, origin.n - scheme.n), host));
}

/* ---- answers ---- */

static const char files_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/* Others wrote the data: a blob may be a document with scripts. */
static const char data_policy[] = "default-src 'none'; sandbox; frame-ancestors 'none'";

static void add_security(struct response *r, const char *policy)
{
	response_header_str(r, "Content-Security-Policy", policy);
	if (response_header_get(r, "X-Content-Type-Options") == NULL)
		response_header_str(r, "X-Content-Type-Options", "nosniff");
	response_header_str(r, "Referrer-Policy", "no-referrer");
	response_header_str(r, "Cross-Origin-Resource-Policy", "same-origin");
	response_header_str(r, "Cross-Origin-Opener-Policy", "same-origin");
}

static void set_text(struct response *r, int status, const char *type, struct span text)
{
	r->status = status;
	response_header_str(r, "Server", "rowfs");
	response_header_str(r, "Cache-Control", "no-store");
	response_header_str(r, "Content-Type", type);
	add_security(r, files_policy);
	buf_add_span(&r->body, text);
	if (!buf_ok(&r->body)) {
		response_clear(r);
		r->status = err_http(ERR_NO_MEMORY);
	}
}

static void refuse(struct response *r, int status, const char *why)
{
	set_text(r, status, "text/plain; charset=utf-8", span_of(why));
}

static void send_data(const struct page_data *data, struct service *service,
	const struct request *q, const struct url_parts *parts, struct response *r)
{
	struct buf text = BUF_INIT(RESPONSE_BODY_LIMIT);
	struct err_detail why = { 0 };
	enum err e = page_data_write(data, service, q, parts, &text, &why);
	if (e == ERR_OK)
		set_text(r, 200, "application/json", buf_span(&text));
	else
		refuse(r, err_http(e), err_message(e, &why));
	buf_fini(&text);
}

/* ---- the services ---- */

/* The goal of a request: a storage service, data, or else a file. */
struct asked {
	struct url_parts parts;
	const struct rest_service *rest; /* or NULL */
	const struct page_data *data;    /* or NULL */
	struct peer peer;
	struct request inner; /* for the service */
};

/* "/table/ACCOUNT/..." asks the Table service for "/ACCOUNT/...". */
static void read_request(const struct request *q, struct asked *ret)
{
	static const struct rest_service *const services[] = { &rest_tables, &rest_queues,
		&rest_blobs };
	*ret = (struct asked){ .peer = *q->peer, .inner = *q };
	url_split(q->target, &ret->parts);
	ret->data = page_data_find(ret->parts.path);
	ret->peer.trusted = true;
	ret->inner.peer = &ret->peer;
	for (size_t i = 0; i < ARRAY_LEN(services); i++) {
		size_t n = strlen(services[i]->name) + 1;
		if (q->target.n > n && q->target.p[0] == '/' && q->target.p[n] == '/' &&
			memcmp(q->target.p + 1, services[i]->name, n - 1) == 0) {
			ret->rest = services[i];
			ret->inner.target = span_make(q->target.p + n, q->target.n - n);
		}
	}
}

static void ask_service(struct service *service, const struct asked *asked, struct response *r)
{
	response_fini(r);
	rest_handle(asked->rest, service, &asked->inner, r);
	add_security(r, data_policy);
}

/* ---- what is refused ---- */

struct refusal {
	int status;
	const char *why; /* NULL: nothing is refused */
};

static bool only_reads(const struct request *q)
{
	return span_is(q->method, "GET") || span_is(q->method, "HEAD");
}

/* A page of another port is the same site, so its requests may carry the cookie.  It cannot send this
 * header: browsers first ask with OPTIONS, which gets 405.  Get Messages is a GET and changes. */
static bool needs_header(const struct request *q, const struct rest_service *rest)
{
	return !only_reads(q) || rest == &rest_queues;
}

static struct refusal check_session(const struct request *q, const struct rest_service *rest)
{
	if (!has_session(q))
		return (struct refusal){ 401,
			"Open the link that rowfs printed on its terminal.\n" };
	if (needs_header(q, rest) && request_header(q, "x-ms-version").p == NULL)
		return (struct refusal){ 403, "A change needs the header x-ms-version.\n" };
	return (struct refusal){ 0 };
}

/* A service checks the methods itself.  Its preflight could admit other origins. */
static bool is_allowed(const struct request *q, const struct asked *asked)
{
	if (asked->rest != NULL)
		return !span_is(q->method, "OPTIONS");
	const struct page_data *data = asked->data;
	if (only_reads(q))
		return data == NULL || data->add != NULL;
	return data != NULL && data->change != NULL &&
		(span_is(q->method, "POST") || span_is(q->method, "DELETE"));
}

/* Checks everything but the path of a file. */
static struct refusal check_request(const struct request *q, const struct asked *asked)
{
	if (!request_host_is_local(q) || asked->parts.host.n > 0)
		return (struct refusal){ 403,
			"The Host header must be localhost, 127.0.0.1 or [::1].\n" };
	if (!origin_is_ours(q))
		return (struct refusal){ 403, "Another origin may not ask.\n" };
	if (!is_allowed(q, asked))
		return (struct refusal){ 405, "This method is not allowed here.\n" };
	if (asked->rest != NULL || asked->data != NULL)
		return check_session(q, asked->rest);
	return (struct refusal){ 0 };
}

static void open_link(const struct request *q, struct span query, struct response *r)
{
	char cookie[sizeof(session) + 64];
	bool known = has_session(q);
	bool opens = is_secret(query, link_query) && span_is(q->method, "GET") &&
		!atomic_exchange(&link_used, true);
	if (!known && !opens) {
		refuse(r, 403,
			"This link is wrong or was used. Start rowfs again for another one.\n");
		return;
	}
	set_text(r, 303, "text/plain; charset=utf-8", SPAN_LIT(""));
	response_header_str(r, "Location", "/");
	(void)snprintf(cookie, sizeof(cookie), "%s; Path=/; HttpOnly; SameSite=Strict%s", session,
		q->peer->tls ? "; Secure" : "");
	response_header_str(r, "Set-Cookie", cookie);
}

static void send_file(struct span path, struct response *r)
{
	for (size_t i = 0; i < page_nfiles; i++) {
		const struct page_file *f = &page_files[i];
		if (span_is(path, f->path)) {
			set_text(r, 200, f->type, span_make(f->bytes, f->n));
			return;
		}
	}
	refuse(r, 404, "There is no such file.\n");
}

static void answer(struct service *service, const struct request *q, enum err e, struct response *r)
{
	struct asked asked;
	read_request(q, &asked);
	struct refusal refused = check_request(q, &asked);
	struct span query = asked.parts.query, path = asked.parts.path;
	if (e != ERR_OK)
		refuse(r, err_http(e), err_text(e));
	else if (refused.why != NULL)
		refuse(r, refused.status, refused.why);
	else if (asked.rest != NULL)
		ask_service(service, &asked, r);
	else if (asked.data != NULL)
		send_data(asked.data, service, q, &asked.parts, r);
	else if (span_starts(query, SPAN_LIT(LINK_TEXT)) && span_is(path, "/"))
		open_link(q, query, r);
	else
		send_file(path, r);
}

static enum err admit(const struct request *q)
{
	struct asked asked;
	read_request(q, &asked);
	return check_request(q, &asked).why == NULL ? ERR_OK : ERR_ACCESS;
}

static void answer_and_note(
	struct service *service, const struct request *q, enum err e, struct response *r)
{
	answer(service, q, e, r);
	if (q->facts != NULL && has_session(q))
		q->facts->credential = CREDENTIAL_SESSION;
}

static enum request_cost cost(const struct request *q)
{
	struct asked asked;
	read_request(q, &asked);
	return asked.rest != NULL    ? asked.rest->cost(&asked.inner)
		: asked.data != NULL ? asked.data->cost
				     : COST_USUAL;
}

const struct rest_service rest_page = {
	.name = "page",
	.body_limit = BODY_LIMIT,
	.cost = cost,
	.admit = admit,
	.answer = answer_and_note,
};
