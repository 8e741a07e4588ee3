/* SPDX-License-Identifier: MIT
 * Handles a request.  The order of the checks is: form, credential, version, resource, permission;
 * then the operation runs.  So a client without a credential learns nothing about an account. */
#include "rest/core/handle.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "codec/service_properties_xml.h"
#include "model/versions.h"
#include "rest/core/cors.h"
#include "rest/core/rest_service.h"
#include "rest/rest.h"
#include "service/core/faults.h"

#include <stdio.h>

#define CLIENT_ID_MAX 1024
#define HEADERS_USUAL 512 /* bytes, reserved at once */

struct handling {
	struct request_context context;
	struct arena arena;
	uint64_t since_us;
	uint64_t *limit; /* rest_admit()'s: only the head is looked at; NULL: all */
	bool has_secrets;
	enum err unknown; /* why the account's existence is unknown; else ERR_OK */
	enum err version; /* an error that is reported later */
	char found[LIMIT_ACCOUNT_NAME_MAX + 1]; /* the account that the secrets belong to */
	struct service_properties cors;         /* of the account; most have no rules */
	_Alignas(max_align_t) char own[REST_OWN_BYTES];
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
	/* The parser may choose another account than it asked for last. */
	struct span account = span_of(c->url.account);
	if (e == ERR_OK && !(h->has_secrets && span_is(account, h->found)))
		(void)account_exists(h, account);
	return e == ERR_OK ? c->rest->read_path(c, c->url.resource) : e;
}

/* Also for requests that are refused, since errors depend on the version.  An invalid version is
 * reported later, to authenticated clients. */
static void read_version(struct handling *h)
{
	struct request_context *c = &h->context;
	h->version = context_read_version(c);
	if (c->rest->begin != NULL)
		c->rest->begin(c);
}

static enum err check_param_once(struct request_context *c, const char *name)
{
	return query_params_count(&c->url.params, name) > 1
		? err_set(&c->detail, ERR_QUERY_VALUE, "The parameter %s was sent more than once.",
			  name)
		: ERR_OK;
}

/* Two values could contradict each other. */
static enum err check_once(struct request_context *c)
{
	static const char *const headers[] = { "x-ms-version", "x-ms-date", "Content-Type",
		"Content-MD5", "If-Match", "If-None-Match" };
	static const char *const params[] = { "comp", "restype", "timeout" };
	enum err e = ERR_OK;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		if (request_header_count(c->request, headers[i]) > 1)
			return err_set(&c->detail, ERR_HEADER_INVALID,
				"The header %s was sent more than once.", headers[i]);
	for (size_t i = 0; i < ARRAY_LEN(params) && e == ERR_OK; i++)
		e = check_param_once(c, params[i]);
	for (const char *const *name = c->rest->params; *name != NULL && e == ERR_OK; name++)
		e = check_param_once(c, *name);
	return e;
}

static enum err check_md5(struct request_context *c)
{
	struct span sent = request_header(c->request, "Content-MD5");
	if (sent.p == NULL || sent.n == 0 || c->request->stream != NULL)
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
	struct access_facts facts = { .rest = c->rest,
		.service = c->service,
		.request = c->request,
		.url = &c->url,
		.container = c->container,
		.blob = c->blob,
		.keys = &c->secrets,
		.now = clock_ticks() };
	enum err e = access_check(&facts, &c->access, &c->detail);
	if (e == ERR_AUTH_NONE && c->rest->admits_anonymous != NULL && c->rest->admits_anonymous(c))
		e = ERR_OK;
	if (e == ERR_OK && c->access.kind == ACCESS_TOKEN &&
		!version_has(c->version, VERSION_BEARER))
		return err_set(
			&c->detail, ERR_AUTH_FAILED, "Bearer tokens came with version 2017-11-09.");
	return is_challenge(e) && !version_has(c->version, VERSION_BEARER) ? ERR_AUTH_FAILED : e;
}

static enum err authorize(struct request_context *c)
{
	/* Each part of a batch is checked by itself. */
	if (c->route->body == ROUTE_MULTIPART && c->access.kind == ACCESS_SERVICE_SAS)
		return ERR_OK;
	return access_allows(c->rest, &c->access, &c->route->need, c->container, &c->detail);
}

static enum err bad_version(struct request_context *c, enum err e)
{
	int since = version_first(c->rest->since);
	return err_set(&c->detail, e, "x-ms-version is a date from %04d-%02d-%02d on.",
		since / 10000, since / 100 % 100, since % 100);
}

/* Makes all checks before the operation. */
static enum err judge(struct handling *h)
{
	struct request_context *c = &h->context;
	const struct rest_service *rest = c->rest;
	enum err e = authenticate(h);
	/* Of a body that is taken in parts nothing is wasted. */
	if (e != ERR_OK || (h->limit != NULL && rest->streams == NULL))
		return e;
	e = check_once(c);
	if (e == ERR_OK && h->version != ERR_OK)
		e = bad_version(c, h->version);
	if (e == ERR_OK && rest->read_method != NULL)
		e = rest->read_method(c);
	if (e == ERR_OK)
		e = route_find(c);
	if (e == ERR_OK)
		e = authorize(c);
	if (e == ERR_OK && rest->check != NULL)
		e = rest->check(c);
	if (e == ERR_OK)
		e = context_read_timeout(c);
	if (e == ERR_OK && h->limit != NULL)
		*h->limit = rest->streams->limit_of(c);
	if (h->limit != NULL)
		return e;
	if (e == ERR_OK)
		e = check_md5(c);
	if (e == ERR_OK && c->request->body.n > rest->body_limit)
		e = ERR_BODY_TOO_LARGE;
	return e;
}

/* Returns the error in place of the operation, or of the response of an operation that was done. */
static enum err serve_fault(
	struct request_context *c, const struct fault *fault, struct response *r)
{
	enum err done = ERR_OK;
	r->ordered = true;
	r->wait_ms = fault->wait_ms;
	switch (fault->kind) {
	case FAULT_BUSY:
		return err_set(&c->detail, ERR_THROTTLED, "A rule of faults refuses it.");
	case FAULT_TIMEOUT:
		return err_set(&c->detail, ERR_OUTCOME_UNKNOWN,
			"A rule of faults let the time pass; nothing was done.");
	case FAULT_DELETING:
		return err_set(&c->detail, c->rest->being_deleted, "A rule of faults says so.");
	case FAULT_LOST:
	case FAULT_CLOSED:
	case FAULT_KINDS_:
		break;
	}
	done = c->route->run(c, r);
	r->hang_up = fault->kind == FAULT_CLOSED;
	return err_set(&c->detail, ERR_IO, "A rule of faults replaced the response, which was: %s",
		done == ERR_OK ? "done." : err_code(done));
}

static bool has_fault(struct request_context *c, struct fault *ret)
{
	struct faults *faults = service_faults(c->service);
	if (!faults_are_set(faults))
		return false;
	struct fault_request q = { .account = span_of(c->url.account),
		.container = c->container,
		.service = c->rest->name,
		.op = c->rest->operations[c->route->operation] };
	if (q.container.n == 0 && c->rest->named_by_body != NULL)
		q.container = c->rest->named_by_body(c);
	return faults_take(faults, &q, clock_mono_us(), ret);
}

static enum err serve(struct handling *h, struct response *r)
{
	struct request_context *c = &h->context;
	struct fault fault;
	enum err e = judge(h);
	if (e != ERR_OK || h->limit != NULL)
		return e;
	return has_fault(c, &fault) ? serve_fault(c, &fault, r) : c->route->run(c, r);
}

/* Unreadable rules count as none: the request itself does not fail. */
static void load_cors(struct handling *h)
{
	struct span stored = { 0 };
	if (h->has_secrets && version_has(h->context.version, VERSION_CORS))
		stored = buf_span(&h->context.secrets.properties[h->context.rest->properties]);
	if (!service_properties_have_cors(stored) ||
		service_properties_load(stored, &h->cors) != ERR_OK)
		h->cors.ncors = 0;
}

static bool is_preflight(const struct request *q)
{
	return span_is(q->method, "OPTIONS");
}

/* ---- counting ---- */

void rest_name_operations(const struct rest_service *rest, struct service *service)
{
	metrics_name(
		service_metrics(service), rest->front_end, rest->operations, rest->noperations);
}

static size_t operation_of(const struct request_context *c)
{
	return c->route != NULL            ? c->route->operation
		: is_preflight(c->request) ? c->rest->preflight
					   : c->rest->other;
}

static void note_facts(const struct request_context *c)
{
	struct request_facts *facts = c->request->facts;
	if (facts == NULL)
		return;
	facts->operation = c->rest->operations[operation_of(c)];
	facts->credential = c->access.credential;
	(void)snprintf(facts->account, sizeof(facts->account), "%s", c->url.account);
}

static void count(const struct handling *h, struct service *service, const struct response *r)
{
	int status = r->outcome != 0 ? r->outcome : r->status;
	const struct request_context *c = &h->context;
	enum metrics_end end = status >= 500 ? METRICS_FAILED
		: status >= 400              ? METRICS_REFUSED
					     : METRICS_DONE;
	metrics_count(service_metrics(service), c->rest->front_end, operation_of(c),
		clock_mono_us() - h->since_us, end);
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
	c->rest->write_error(c, e, r);
	if (is_challenge(e))
		add_challenge(c->request, r);
}

static void begin(struct handling *h, const struct rest_service *rest, struct service *service,
	const struct request *request)
{
	struct request_context *c = &h->context;
	BUG_ON(rest->own_bytes > sizeof(h->own));
	c->rest = rest;
	c->own = h->own;
	c->container = SPAN_LIT("");
	c->service = service;
	c->request = request;
	h->since_us = request->since_us != 0 ? request->since_us : clock_mono_us();
	c->method = request->method;
	c->arena = &h->arena;
	c->version = VERSION_NEWEST;
	make_request_id(request->id, c->request_id);
}

static void end(struct handling *h)
{
	struct request_context *c = &h->context;
	note_facts(c);
	if (c->rest->end != NULL)
		c->rest->end(c);
	service_properties_fini(&h->cors);
	if (h->has_secrets)
		account_secrets_fini(&c->secrets);
	arena_fini(&h->arena);
}

static enum err handle(const struct rest_service *rest, struct service *service,
	const struct request *request, uint64_t *limit, struct response *ret)
{
	struct handling h = { 0 };
	response_init(ret);
	ret->body.memory = request->memory;
	if (rest->answer != NULL) {
		enum err refused =
			limit != NULL && rest->admit != NULL ? rest->admit(request) : ERR_OK;
		if (limit == NULL || refused != ERR_OK)
			rest->answer(service, request, ERR_OK, ret);
		return refused;
	}
	begin(&h, rest, service, request);
	(void)buf_reserve(&ret->headers, HEADERS_USUAL);
	h.limit = limit;
	enum err e = read_url(&h);
	read_version(&h);
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
	if (e != ERR_OK || limit == NULL)
		count(&h, service, ret);
	end(&h);
	return e;
}

void rest_handle(const struct rest_service *rest, struct service *service,
	const struct request *request, struct response *ret)
{
	(void)handle(rest, service, request, NULL, ret);
}

enum err rest_admit(const struct rest_service *rest, struct service *service,
	const struct request *request, uint64_t *limit, struct response *ret)
{
	enum err e = handle(rest, service, request, limit, ret);
	if (e == ERR_OK) {
		response_fini(ret);
		response_init(ret);
	}
	return e;
}

void rest_refuse(const struct rest_service *rest, struct service *service,
	const struct request *request, enum err e, struct response *ret)
{
	struct handling h = { 0 };
	response_init(ret);
	if (rest->answer != NULL) {
		rest->answer(service, request, e, ret);
		return;
	}
	begin(&h, rest, NULL, request);
	read_version(&h);
	fail(&h, e, ret);
	add_common(&h.context, ret);
	if (service != NULL)
		count(&h, service, ret);
	end(&h);
}
