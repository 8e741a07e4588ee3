/* SPDX-License-Identifier: MIT
 * The URL is read as that of a request of its own, which would GET the source. */
#include "rest/blobs/copy_source.h"

#include "rest/blobs/blob_request.h"
#include "service/blobs/containers.h"

#include <string.h>
#include <strings.h>

struct source_request {
	struct request_context context;
	struct blob_request own;
	struct request request;
	struct header host;
	struct peer peer;
};

static bool same_text(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static struct span behind_label(struct span host)
{
	struct span rest = host;
	(void)span_take(&rest, '.');
	return rest;
}

/* This server has the host of the request.  In host style the first label is the account. */
static bool is_here(const struct request_context *c, struct span host)
{
	struct span here = c->url.host;
	return same_text(host, here) ||
		(c->url.host_style && behind_label(here).n > 0 &&
			same_text(behind_label(host), behind_label(here)));
}

static enum err split_url(struct request_context *c, struct span *ret_host, struct span *ret_target)
{
	struct span url = request_header(c->request, "x-ms-copy-source");
	bool tls = span_starts(url, SPAN_LIT("https://"));
	if (!tls && !span_starts(url, SPAN_LIT("http://")))
		return err_set(
			&c->detail, ERR_HEADER_INVALID, "x-ms-copy-source is the URL of a blob.");
	struct span rest = span_make(url.p + (tls ? 8 : 7), url.n - (tls ? 8 : 7));
	const char *slash = rest.n > 0 ? memchr(rest.p, '/', rest.n) : NULL;
	size_t n = slash != NULL ? (size_t)(slash - rest.p) : rest.n;
	*ret_host = span_make(rest.p, n);
	*ret_target = span_make(rest.p + n, rest.n - n);
	return is_here(c, *ret_host) ? ERR_OK : ERR_COPY_SOURCE;
}

static bool account_exists(void *arg, struct span name)
{
	struct account_secrets secrets = { 0 };
	enum err e = account_secrets_get(arg, name, &secrets);
	if (e == ERR_OK)
		account_secrets_fini(&secrets);
	return e == ERR_OK;
}

/* Makes the request that would GET the source.  On ERR_OK call account_secrets_fini() on its secrets. */
static enum err begin(struct request_context *c, struct source_request *s)
{
	struct request_context *from = &s->context;
	struct span host, target;
	enum err e = split_url(c, &host, &target);
	if (e != ERR_OK)
		return e;
	s->host = (struct header){ SPAN_LIT("Host"), host };
	s->peer = *c->request->peer;
	s->peer.trusted = false;
	s->request = (struct request){ .method = SPAN_LIT("GET"),
		.target = target,
		.headers = &s->host,
		.nheaders = 1,
		.peer = &s->peer };
	*from = (struct request_context){ .rest = c->rest,
		.service = c->service,
		.request = &s->request,
		.method = s->request.method,
		.arena = c->arena,
		.version = c->version,
		.own = &s->own };
	e = request_url_parse(
		&s->request, account_exists, c->service, c->arena, &from->url, &from->detail);
	if (e == ERR_OK)
		e = blob_request_read_path(from, from->url.resource);
	if (e != ERR_OK || from->kind != BLOB_ITSELF)
		return e == ERR_NO_MEMORY ? e : ERR_COPY_SOURCE;
	e = account_secrets_get(c->service, span_of(from->url.account), &from->secrets);
	return e == ERR_ACCOUNT_NOT_FOUND ? ERR_COPY_SOURCE : e;
}

/* The owner of the source's account needs nothing more. */
static enum err check_access(const struct request_context *c, struct source_request *s)
{
	static const struct access_need read = { PERMISSION('o'), PERMISSION('r'), 0,
		PERMISSION('r'), 0 };
	struct request_context *from = &s->context;
	const struct access_facts facts = { c->rest, c->service, &s->request, &from->url,
		from->container, &from->secrets, service_now(c->service), from->blob };
	bool same = strcmp(c->url.account, from->url.account) == 0;
	if (same && c->access.kind == ACCESS_OWNER)
		return ERR_OK;
	if (same && c->access.kind == ACCESS_TOKEN)
		return access_allows(c->rest, &c->access, &read, from->container, &from->detail) ==
				ERR_OK
			? ERR_OK
			: ERR_COPY_ACCESS;
	if (!query_params_find(&from->url.params, "sig", &(struct span){ 0 }))
		return blob_request_anonymous(from) ? ERR_OK : ERR_COPY_ACCESS;
	enum err e = access_check(&facts, &from->access, &from->detail);
	if (e == ERR_OK)
		e = access_allows(c->rest, &from->access, &read, from->container, &from->detail);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_COPY_ACCESS;
}

/* The signature of a URL is a secret, and other users may see what a copy came from. */
static enum err keep_url(struct request_context *c, struct copy_source *ret)
{
	struct span url = request_header(c->request, "x-ms-copy-source");
	ret->url = span_take(&url, '?');
	for (size_t i = 0; i < ret->url.n; i++)
		if ((unsigned char)ret->url.p[i] <= 0x20 || ret->url.p[i] == 0x7f)
			return ERR_HEADER_INVALID;
	return ERR_OK;
}

enum err copy_source_read(struct request_context *c, struct copy_source *ret)
{
	struct source_request s = { 0 };
	*ret = (struct copy_source){ 0 };
	if (request_header(c->request, "x-ms-copy-source-authorization").p != NULL)
		return err_set(&c->detail, ERR_NOT_SUPPORTED,
			"A copy's source is authorized by a SAS in its URL.");
	enum err e = keep_url(c, ret);
	if (e == ERR_OK)
		e = blob_request_source_conditions(c, &ret->conditions);
	if (e == ERR_OK)
		e = begin(c, &s);
	if (e != ERR_OK)
		return e;
	e = check_access(c, &s);
	if (e == ERR_OK)
		e = container_id(
			c->service, s.context.secrets.id, s.context.container, &ret->container);
	if (e == ERR_OK)
		e = blob_request_key(&s.context, s.own.name, &ret->name);
	account_secrets_fini(&s.context.secrets);
	return e;
}
