/* SPDX-License-Identifier: MIT
 * Handles a request.  The order of the checks is: form, credential, version, resource, permission;
 * then the operation runs.  So a client without a credential learns nothing about an account. */
#include "rest/core/handle.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "codec/service_properties_xml.h"
#include "model/versions.h"
#include "rest/core/cors.h"
#include "rest/core/route.h"
#include "rest/rest.h"
#include "rest/tables/change.h"
#include "rest/tables/error_body.h"
#include "rest/tables/ops.h"
#include "service/core/metrics.h"

#include <strings.h>

#define CLIENT_ID_MAX 1024
#define HEADERS_USUAL 512 /* bytes, reserved at once */

struct handling {
	struct request_context context;
	struct arena arena;
	uint64_t since_us;
	const struct route *route;
	bool head_only; /* called by rest_admit() */
	bool has_secrets, has_access;
	enum err unknown;         /* why the account's existence is unknown; else ERR_OK */
	enum err version, format; /* errors that are reported later */
	struct err_detail format_detail;
	char found[LIMIT_ACCOUNT_NAME_MAX + 1]; /* the account that the secrets belong to */
	bool xml;                               /* errors are XML */
	struct service_properties cors;         /* of the account; most have no rules */
};

/* ---- what the request is ---- */

/* Makes a UUID of version 4, as clients expect. */
static void make_request_id(const uint8_t *given, char out[37])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t b[REQUEST_ID_BYTES];
	if (given != NULL)
		memcpy(b, given, sizeof(b));
	else
		crypto_random(b, sizeof(b));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(b); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = digits[b[i] >> 4];
		*out++ = digits[b[i] & 0x0f];
	}
	*out = '\0';
}

/* Called while the URL is parsed.  It keeps the secrets, since this is usually the URL's
 * account. */
static bool account_exists(void *arg, struct span name)
{
	struct handling *h = arg;
	struct request_context *c = &h->context;
	if (h->has_secrets)
		account_secrets_fini(&c->secrets);
	enum err e = account_secrets_get(c->service, name, &c->secrets);
	h->has_secrets = e == ERR_OK;
	if (e != ERR_OK && e != ERR_ACCOUNT_NOT_FOUND)
		h->unknown = e;
	/* Copy the name: it is valid only during the call. */
	BUG_ON(name.n >= sizeof(h->found));
	memcpy(h->found, name.p, name.n);
	h->found[name.n] = '\0';
	return h->has_secrets;
}

static enum err read_url(struct handling *h)
{
	struct request_context *c = &h->context;
	enum err e =
		request_url_parse(c->request, account_exists, h, c->arena, &c->url, &c->detail);
	h->xml = c->url.comp.p != NULL || c->url.restype.p != NULL;
	/* The parser may choose another account than it asked for last. */
	struct span account = span_of(c->url.account);
	if (e == ERR_OK && !(h->has_secrets && span_is(account, h->found)))
		(void)account_exists(h, account);
	return e;
}

/* Also for requests that are refused: errors use the negotiated format.  Problems found here are
 * reported later, to authenticated clients. */
static void read_format(struct handling *h)
{
	struct request_context *c = &h->context;
	struct err_detail before = c->detail;
	c->detail = (struct err_detail){ 0 };
	h->version = context_read_version(c);
	h->format = context_negotiate(c);
	h->format_detail = c->detail;
	c->detail = before;
}

/* Two values could contradict each other. */
static enum err check_once(struct request_context *c)
{
	static const char *const headers[] = { "x-ms-version", "x-ms-date", "Content-Type",
		"Content-MD5", "If-Match", "If-None-Match" };
	static const char *const params[] = { "$filter", "$select", "$top", "$format", "comp",
		"restype", "timeout", "NextPartitionKey", "NextRowKey", "NextTableName" };
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (request_header_count(c->request, headers[i]) > 1)
			return err_set(&c->detail, ERR_HEADER_INVALID,
				"The header %s was sent more than once.", headers[i]);
	for (size_t i = 0; i < ARRAY_LEN(params); i++)
		if (query_params_count(&c->url.params, params[i]) > 1)
			return err_set(&c->detail, ERR_QUERY_VALUE,
				"The parameter %s was sent more than once.", params[i]);
	return ERR_OK;
}

static enum err check_md5(struct request_context *c)
{
	struct span sent = request_header(c->request, "Content-MD5");
	if (sent.p == NULL || sent.n == 0)
		return ERR_OK;
	struct buf sum = BUF_INIT(64);
	uint8_t right[16];
	bool ok = base64_decode(sent, &sum) && buf_ok(&sum) && sum.len == sizeof(right);
	crypto_md5(c->request->body, right);
	bool same = ok && memcmp(sum.data, right, sizeof(right)) == 0;
	buf_fini(&sum);
	if (!ok)
		return ERR_MD5_INVALID;
	return same ? ERR_OK : ERR_MD5_MISMATCH;
}

/* ---- the way of a request ---- */

static bool is_challenge(enum err e)
{
	return e == ERR_AUTH_BEARER || e == ERR_AUTH_NONE;
}

static enum err authenticate(struct handling *h)
{
	struct request_context *c = &h->context;
	if (h->unknown != ERR_OK)
		return h->unknown;
	if (!h->has_secrets)
		return err_set(&c->detail, ERR_AUTH_FAILED, "There is no account '%s' here.",
			c->url.account);
	struct access_facts facts = { .service = c->service,
		.request = c->request,
		.url = &c->url,
		.keys = &c->secrets,
		.now = clock_ticks() };
	enum err e = access_check(&facts, &c->access, &c->detail);
	h->has_access = e == ERR_OK;
	return is_challenge(e) && !version_has(c->version, VERSION_BEARER) ? ERR_AUTH_FAILED : e;
}

static enum err authorize(struct handling *h)
{
	struct request_context *c = &h->context;
	/* Each part of a batch is checked by itself. */
	if (h->route->body == ROUTE_MULTIPART && c->access.kind == ACCESS_TABLE_SAS)
		return ERR_OK;
	return access_allows(&c->access, &h->route->need, c->url.resource.table, &c->detail);
}

/* Makes all checks before the operation. */
static enum err judge(struct handling *h)
{
	struct request_context *c = &h->context;
	enum err e = authenticate(h);
	if (e != ERR_OK || h->head_only)
		return e;
	e = check_once(c);
	if (e == ERR_OK && h->version != ERR_OK)
		e = err_set(&c->detail, h->version, "x-ms-version is a date from 2009-04-14 on.");
	if (e == ERR_OK)
		e = context_read_method(c);
	if (e == ERR_OK)
		e = route_find(c, &h->route);
	if (h->route != NULL)
		h->xml = h->route->body == ROUTE_XML;
	if (e == ERR_OK && h->format != ERR_OK && h->route->body == ROUTE_ODATA) {
		c->detail = h->format_detail;
		e = h->format;
	}
	if (e == ERR_OK)
		e = authorize(h);
	if (e == ERR_OK)
		e = context_options(c);
	if (e == ERR_OK)
		e = check_md5(c);
	if (e == ERR_OK && c->request->body.n > LIMIT_BATCH_BYTES)
		e = ERR_BODY_TOO_LARGE;
	return e;
}

static enum err serve(struct handling *h, struct response *r)
{
	enum err e = judge(h);
	return e == ERR_OK && !h->head_only ? op_run(&h->context, h->route->operation, r) : e;
}

/* Unreadable rules count as none: the request itself does not fail. */
static void load_cors(struct handling *h)
{
	struct span stored = { 0 };
	if (h->has_secrets && version_has(h->context.version, VERSION_CORS))
		stored = buf_span(&h->context.secrets.properties);
	if (!service_properties_have_cors(stored) ||
		service_properties_load(stored, &h->cors) != ERR_OK)
		h->cors.ncors = 0;
}

static bool is_preflight(const struct request *q)
{
	return span_is(q->method, "OPTIONS");
}

/* ---- counting ---- */

void rest_name_operations(struct service *service)
{
	static const char *const names[REST_OPERATIONS_] = {
#define X(symbol_, name_) name_,
		REST_OPERATION_LIST(X)
#undef X
	};
	metrics_name(service_metrics(service), METRICS_REST, names, REST_OPERATIONS_);
}

static void count(const struct handling *h, struct service *service, const struct response *r)
{
	int status = r->outcome != 0 ? r->outcome : r->status;
	const struct request *q = h->context.request;
	enum rest_operation o = h->route != NULL ? h->route->operation
		: is_preflight(q)                ? REST_PREFLIGHT
						 : REST_OTHER;
	enum metrics_end end = status >= 500 ? METRICS_FAILED
		: status >= 400              ? METRICS_REFUSED
					     : METRICS_DONE;
	metrics_count(
		service_metrics(service), METRICS_REST, o, clock_mono_us() - h->since_us, end);
}

/* ---- headers of every response ---- */

static void add_common(const struct request_context *c, struct response *r)
{
	response_header_str(r, "Server", "rowfs");
	response_header_str(r, "x-ms-request-id", c->request_id);
	struct span id = request_header(c->request, "x-ms-client-request-id");
	if (id.p != NULL && id.n > 0 && id.n <= CLIENT_ID_MAX)
		response_header(r, "x-ms-client-request-id", id);
	/* Also if the request was refused before its version was checked. */
	struct span version = request_header(c->request, "x-ms-version");
	if (version_has(version_parse(version), VERSION_ECHO))
		response_header(r, "x-ms-version", version);
}

static void add_preference(const struct handling *h, struct response *r)
{
	const char *preference = h->route != NULL && span_is(h->context.method, "POST") && !h->xml
		? context_preference(&h->context)
		: NULL;
	if (preference != NULL && h->route->body == ROUTE_ODATA)
		response_header_str(r, "Preference-Applied", preference);
}

/* Names the source of tokens: unquoted and with a space between, as the service writes it and SDKs
 * parse it. */
static void add_challenge(const struct request *q, struct response *r)
{
	struct buf value = BUF_INIT(256);
	buf_addf(&value,
		"Bearer authorization_uri=https://login.microsoftonline.com/%s/oauth2/authorize "
		"resource_id=https://storage.azure.com",
		q->tenant != NULL ? q->tenant : REST_TENANT_DEFAULT);
	response_header(r, "WWW-Authenticate", buf_span(&value));
	buf_fini(&value);
}

static void fail(const struct handling *h, enum err e, struct response *r)
{
	const struct request_context *c = &h->context;
	struct error_facts facts = { .e = e,
		.detail = &c->detail,
		.request_id = c->request_id,
		.xml = h->xml,
		.format = c->format,
		.level = c->level };
	response_error(r, &facts);
	if (is_challenge(e))
		add_challenge(c->request, r);
	add_preference(h, r);
}

static void begin(struct handling *h, struct service *service, const struct request *request)
{
	struct request_context *c = &h->context;
	c->service = service;
	c->request = request;
	h->since_us = request->since_us != 0 ? request->since_us : clock_mono_us();
	c->method = request->method;
	c->arena = &h->arena;
	c->format = &format_json;
	c->level = ODATA_MINIMAL;
	c->version = VERSION_NEWEST;
	make_request_id(request->id, c->request_id);
}

static enum err handle(struct service *service, const struct request *request, bool head_only,
	struct response *ret)
{
	struct handling h = { 0 };
	response_init(ret);
	begin(&h, service, request);
	(void)buf_reserve(&ret->headers, HEADERS_USUAL);
	h.head_only = head_only;
	enum err e = read_url(&h);
	read_format(&h);
	load_cors(&h);
	if (e == ERR_OK && is_preflight(request))
		e = cors_preflight(&h.cors, request, ret);
	else if (e == ERR_OK)
		e = serve(&h, ret);
	if (e == ERR_OK && (!buf_ok(&ret->body) || !buf_ok(&ret->headers)))
		e = ERR_NO_MEMORY;
	if (e != ERR_OK)
		fail(&h, e, ret);
	add_common(&h.context, ret);
	if (!is_preflight(request))
		cors_decorate(&h.cors, request, ret);
	if (e != ERR_OK || !head_only)
		count(&h, service, ret);
	service_properties_fini(&h.cors);
	if (h.has_access)
		access_fini(&h.context.access);
	if (h.has_secrets)
		account_secrets_fini(&h.context.secrets);
	arena_fini(&h.arena);
	return e;
}

void rest_handle(struct service *service, const struct request *request, struct response *ret)
{
	(void)handle(service, request, false, ret);
}

enum err rest_admit(struct service *service, const struct request *request, struct response *ret)
{
	enum err e = handle(service, request, true, ret);
	if (e == ERR_OK) {
		response_fini(ret);
		response_init(ret);
	}
	return e;
}

void rest_refuse(
	struct service *service, const struct request *request, enum err e, struct response *ret)
{
	struct handling h = { 0 };
	response_init(ret);
	begin(&h, NULL, request);
	read_format(&h);
	/* The URL is not parsed here, so this is a guess. */
	h.xml = memmem(request->target.p, request->target.n, "comp=", 5) != NULL;
	fail(&h, e, ret);
	add_common(&h.context, ret);
	if (service != NULL)
		count(&h, service, ret);
	arena_fini(&h.arena);
}

bool rest_is_quick(const struct request *request)
{
	if (span_is(request->method, "OPTIONS"))
		return true;
	if (!span_is(request->method, "GET") && !span_is(request->method, "HEAD"))
		return false;
	const char *query = memchr(request->target.p, '?', request->target.n);
	size_t n = query != NULL ? (size_t)(query - request->target.p) : request->target.n;
	const char *keys = memchr(request->target.p, '(', n);
	if (keys == NULL)
		return false;
	n -= (size_t)(keys - request->target.p);
	return memmem(keys, n, "PartitionKey=", 13) != NULL &&
		memmem(keys, n, "RowKey=", 7) != NULL;
}
