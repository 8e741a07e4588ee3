/* SPDX-License-Identifier: MIT
 * The secrets belong to the process, as those of TLS do.  They are constant while a socket serves
 * the page, so no lock is needed. */
#include "rest/page/page.h"

#include "base/compiler.h"
#include "base/crypto.h"
#include "codec/uri.h"
#include "rest/core/handle.h"
#include "rest/page/page_data.h"
#include "rest/page/page_files.h"
#include "rest/tables/tables.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#define TOKEN_BYTES 16
#define LINK_TEXT "link="
#define TABLE_PREFIX SPAN_LIT("/table/")

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

static void add_security(struct response *r)
{
	response_header_str(r, "Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	response_header_str(r, "Referrer-Policy", "no-referrer");
	response_header_str(r, "Cross-Origin-Resource-Policy", "same-origin");
	response_header_str(r, "Cross-Origin-Opener-Policy", "same-origin");
}

static void set_text(struct response *r, int status, const char *type, struct span text)
{
	r->status = status;
	response_header_str(r, "Server", "rowfs");
	response_header_str(r, "Cache-Control", "no-store");
	response_header_str(r, "X-Content-Type-Options", "nosniff");
	response_header_str(r, "Content-Type", type);
	add_security(r);
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
	const struct url_parts *parts, struct response *r)
{
	struct buf text = BUF_INIT(RESPONSE_BODY_LIMIT);
	struct err_detail why = { 0 };
	enum err e = page_data_write(data, service, parts, &text, &why);
	if (e == ERR_OK)
		set_text(r, 200, "application/json", buf_span(&text));
	else
		refuse(r, err_http(e), err_message(e, &why));
	buf_fini(&text);
}

/* The request of the Table service that this request contains. */
static struct request inner_request(const struct request *q, struct peer *peer)
{
	struct request inner = *q;
	size_t n = TABLE_PREFIX.n - 1;
	*peer = *q->peer;
	peer->trusted = true;
	inner.peer = peer;
	inner.target = span_make(q->target.p + n, q->target.n - n);
	return inner;
}

static void ask_tables(struct service *service, const struct request *q, struct response *r)
{
	struct peer peer;
	struct request inner = inner_request(q, &peer);
	response_fini(r);
	rest_handle(&rest_tables, service, &inner, r);
	add_security(r);
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
	struct url_parts parts;
	url_split(q->target, &parts);
	bool tables = span_starts(q->target, TABLE_PREFIX);
	const struct page_data *data = page_data_find(parts.path);
	if (e != ERR_OK) {
		refuse(r, err_http(e), err_text(e));
	} else if (!request_host_is_local(q) || parts.host.n > 0) {
		refuse(r, 403, "The Host header must be localhost, 127.0.0.1 or [::1].\n");
	} else if (!origin_is_ours(q)) {
		refuse(r, 403, "Another origin may not ask.\n");
	} else if (!span_is(q->method, "GET") && !span_is(q->method, "HEAD")) {
		response_header_str(r, "Allow", "GET, HEAD");
		refuse(r, 405, "Only GET and HEAD are allowed.\n");
	} else if (span_starts(parts.query, SPAN_LIT(LINK_TEXT)) && span_is(parts.path, "/")) {
		open_link(q, parts.query, r);
	} else if ((tables || data != NULL) && !has_session(q)) {
		refuse(r, 401, "Open the link that rowfs printed on its terminal.\n");
	} else if (tables) {
		ask_tables(service, q, r);
	} else if (data != NULL) {
		send_data(data, service, &parts, r);
	} else {
		send_file(parts.path, r);
	}
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
	struct peer peer;
	struct url_parts parts;
	url_split(q->target, &parts);
	const struct page_data *data = page_data_find(parts.path);
	if (data != NULL)
		return data->cost;
	if (!span_starts(q->target, TABLE_PREFIX))
		return COST_USUAL;
	struct request inner = inner_request(q, &peer);
	return rest_tables.cost(&inner);
}

const struct rest_service rest_page = {
	.name = "page",
	.cost = cost,
	.answer = answer_and_note,
};
