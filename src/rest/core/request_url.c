/* SPDX-License-Identifier: MIT
 * Finds the account of a request.  The text can be ambiguous: "/a/b" is a resource "a/b" of the
 * Host's account, or the table b of account a.  So each interpretation is a candidate, and the
 * existing accounts decide. */
#include "rest/core/request_url.h"

#include "model/names.h"

#include <strings.h>

#define HOST_MAX 512

static const struct span secondary_suffix = { "-secondary", 10 };

/* One interpretation of the request. */
struct reading {
	char account[LIMIT_ACCOUNT_NAME_MAX + 1]; /* "" if it yields no account */
	bool secondary;
	struct span prefix; /* the part of the path that names the account: "/acct" */
};

struct parser {
	const struct request *request;
	account_exists_fn exists;
	void *arg;
	struct span host; /* with its port */
	struct request_url *url;
	struct err_detail *detail;
};

static struct span skip(struct span s, size_t n)
{
	return span_make(s.p + n, s.n - n);
}

/* Returns the offset of the first c, or s.n. */
static size_t find(struct span s, char c)
{
	const char *at = s.n == 0 ? NULL : memchr(s.p, c, s.n);

	return at == NULL ? s.n : (size_t)(at - s.p);
}

static bool starts_nocase(struct span s, struct span prefix)
{
	return s.n >= prefix.n && strncasecmp(s.p, prefix.p, prefix.n) == 0;
}

/* Sets path and query.  ret_host->p is NULL unless the form is absolute. */
static void split(struct span target, struct request_url *ret, struct span *ret_host)
{
	struct url_parts parts;

	url_split(target, &parts);
	*ret_host = parts.host;
	ret->path = parts.path;
	ret->query = parts.query;
}

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c != '\0' && strchr("-._~:[]%", c) != NULL);
}

static enum err check_host(struct span host, struct err_detail *detail)
{
	bool ok = host.n <= HOST_MAX && host.p[0] != ':';

	for (size_t i = 0; ok && i < host.n; i++)
		ok = is_host_char(host.p[i]);
	return ok ? ERR_OK : err_set(detail, ERR_INVALID_INPUT, "The Host is not valid.");
}

static enum err find_host(struct parser *p, struct span absolute)
{
	struct span host = absolute;

	if (host.n == 0)
		host = request_header(p->request, "Host");
	if (host.n == 0 && p->request->peer->is_unix)
		host = SPAN_LIT("localhost");
	if (host.n == 0)
		return err_set(p->detail, ERR_INVALID_INPUT,
			"The required host information is not present in the request. You must "
			"send a non-empty Host header or include the absolute URI in the request "
			"line.");
	p->host = host;
	return check_host(host, p->detail);
}

/* Takes the name if an account can have it. */
static void set_account(struct reading *r, struct span name)
{
	if (span_ends(name, secondary_suffix)) {
		name.n -= secondary_suffix.n;
		r->secondary = true;
	}
	if (account_name_check(name, NULL) != ERR_OK)
		return;
	memcpy(r->account, name.p, name.n);
	r->account[name.n] = '\0';
}

/* Old clients repeat the account in the path of the secondary: "/acct/acct/x". */
static size_t doubled_length(const struct reading *r, struct span rest)
{
	struct span name = span_of(r->account);

	if (rest.n < name.n + 2 || rest.p[0] != '/' || rest.p[name.n + 1] != '/')
		return 0;
	return span_eq(span_make(rest.p + 1, name.n), name) ? name.n + 1 : 0;
}

static struct reading read_path(struct span path)
{
	struct reading r = { 0 };
	struct span rest;
	size_t n;

	if (path.n == 0 || path.p[0] != '/')
		return r;
	rest = skip(path, 1);
	n = find(rest, '/');
	set_account(&r, span_make(rest.p, n));
	if (r.account[0] == '\0')
		return r;
	r.prefix = span_make(path.p, n + 1);
	r.prefix.n += doubled_length(&r, skip(rest, n));
	return r;
}

/* Returns true for an IP address, which names no account: only digits and dots, or brackets. */
static bool is_address(struct span host)
{
	for (size_t i = 0; i < host.n; i++) {
		if (host.p[i] == '[')
			return true;
		if ((host.p[i] < '0' || host.p[i] > '9') && host.p[i] != '.')
			return false;
	}
	return true;
}

/* Takes the first of several labels; their case is ignored. */
static struct reading read_host(struct span host)
{
	struct reading r = { 0 };
	char label[LIMIT_ACCOUNT_NAME_MAX + 16];
	size_t dot;

	host.n = host.n > 0 && host.p[0] == '[' ? host.n : find(host, ':');
	dot = find(host, '.');
	/* "localhost." and "localhost" are one label. */
	if (is_address(host) || dot + 1 >= host.n || dot >= sizeof(label))
		return r;
	table_name_fold(span_make(host.p, dot), label);
	set_account(&r, span_make(label, dot));
	return r;
}

/* Reads "SharedKey acct:signature".  The whole path is then the resource. */
static struct reading read_authorization(const struct request *request)
{
	struct reading r = { 0 };
	struct span text = request_header(request, "Authorization");
	size_t blank = find(text, ' '), colon;

	if (blank == text.n || !starts_nocase(text, SPAN_LIT("SharedKey")))
		return r;
	text = skip(text, blank + 1);
	colon = find(text, ':');
	if (colon < text.n)
		set_account(&r, span_make(text.p, colon));
	r.secondary = false;
	return r;
}

static bool is_there(const struct parser *p, const struct reading *r)
{
	return r->account[0] != '\0' && p->exists(p->arg, span_of(r->account));
}

static bool same_account(const struct reading *a, const struct reading *b)
{
	return a->account[0] != '\0' && strcmp(a->account, b->account) == 0;
}

/* No candidate exists.  Chooses the one that matches the signature, else the likelier one, so that
 * the error names the account that the client meant. */
static struct reading best_of_none(
	struct reading host, struct reading path, struct reading authorization)
{
	if (same_account(&authorization, &path))
		return path;
	if (host.account[0] != '\0')
		return host;
	return path.account[0] != '\0' ? path : authorization;
}

/* A client that omits the account from the path has one segment there. */
static bool may_lack_account(struct span path, const struct reading *r)
{
	return r->account[0] == '\0' || r->prefix.n == path.n;
}

static enum err choose(struct parser *p, struct reading *ret)
{
	struct reading host = read_host(p->host), path = read_path(p->url->path);
	struct reading authorization = read_authorization(p->request);

	if (is_there(p, &host))
		*ret = host;
	else if (is_there(p, &path))
		*ret = path;
	else if (may_lack_account(p->url->path, &path) && is_there(p, &authorization))
		*ret = authorization;
	else
		*ret = best_of_none(host, path, authorization);
	return ret->account[0] != '\0'
		? ERR_OK
		: err_set(p->detail, ERR_INVALID_INPUT, "The URL names no account.");
}

static enum err make_base(struct parser *p, const struct reading *r, struct arena *arena)
{
	struct span scheme = p->request->peer->tls ? SPAN_LIT("https://") : SPAN_LIT("http://");
	const struct span pieces[] = { scheme, p->host, r->prefix, SPAN_LIT("/") };
	char *text = arena_alloc(arena, scheme.n + p->host.n + r->prefix.n + 1);
	size_t n = 0;

	if (text == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		if (pieces[i].n > 0)
			memcpy(text + n, pieces[i].p, pieces[i].n);
		n += pieces[i].n;
	}
	p->url->base = span_make(text, n);
	return ERR_OK;
}

/* path is without the account's prefix. */
static enum err parse_rest(
	struct request_url *url, struct span path, struct arena *arena, struct err_detail *detail)
{
	enum err e = query_params_parse(url->query, arena, &url->params, detail);

	url->resource = path;
	if (e != ERR_OK)
		return e;
	if (!query_params_find(&url->params, "comp", &url->comp))
		url->comp = (struct span){ NULL, 0 };
	if (!query_params_find(&url->params, "restype", &url->restype))
		url->restype = (struct span){ NULL, 0 };
	return ERR_OK;
}

enum err request_url_parse(const struct request *r, account_exists_fn exists, void *arg,
	struct arena *arena, struct request_url *ret, struct err_detail *detail)
{
	struct parser p = { r, exists, arg, { NULL, 0 }, ret, detail };
	struct reading reading;
	struct span absolute;
	enum err e;

	*ret = (struct request_url){ 0 };
	split(r->target, ret, &absolute);
	if (ret->path.n == 0 || ret->path.p[0] != '/')
		return err_set(detail, ERR_INVALID_INPUT, "The URL's path must begin with '/'.");
	e = find_host(&p, absolute);
	if (e == ERR_OK)
		e = choose(&p, &reading);
	if (e == ERR_OK)
		e = make_base(&p, &reading, arena);
	if (e != ERR_OK)
		return e;
	memcpy(ret->account, reading.account, sizeof(ret->account));
	ret->secondary = reading.secondary;
	ret->path_style = reading.prefix.n > 0;
	ret->host_style = !ret->path_style && strcmp(read_host(p.host).account, ret->account) == 0;
	ret->host = p.host;
	return parse_rest(ret, skip(ret->path, reading.prefix.n), arena, detail);
}

static enum err names_another(const struct reading *r, struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT,
		"A request in a batch names another account: '%s'.", r->account);
}

/* Removes the outer account's segment.  A path of one segment can be a resource alone. */
static enum err strip_account(
	const struct request_url *outer, struct span *path, struct err_detail *detail)
{
	struct reading r = read_path(*path);
	bool last = r.prefix.n == path->n;

	if (r.account[0] == '\0')
		return ERR_OK;
	if (strcmp(r.account, outer->account) == 0 && (outer->path_style || !last))
		*path = skip(*path, r.prefix.n);
	else if (!last)
		return names_another(&r, detail);
	return ERR_OK;
}

/* Checks the host of an absolute URL whose path names no account. */
static enum err check_part_host(const struct request_url *outer, struct span host,
	account_exists_fn exists, void *arg, struct err_detail *detail)
{
	struct reading r = read_host(host);
	bool same_host = host.n == outer->host.n && starts_nocase(host, outer->host);

	if (same_host || r.account[0] == '\0' || strcmp(r.account, outer->account) == 0)
		return ERR_OK;
	if (!outer->path_style && !outer->host_style && !exists(arg, span_of(r.account)))
		return ERR_OK;
	return names_another(&r, detail);
}

enum err request_url_parse_part(const struct request_url *outer, struct span target,
	account_exists_fn exists, void *arg, struct arena *arena, struct request_url *ret,
	struct err_detail *detail)
{
	struct span host, path;
	enum err e;

	*ret = *outer;
	split(target, ret, &host);
	path = ret->path;
	e = strip_account(outer, &path, detail);
	if (e == ERR_OK && host.p != NULL && path.n == ret->path.n)
		e = check_part_host(outer, host, exists, arg, detail);
	return e == ERR_OK ? parse_rest(ret, path, arena, detail) : e;
}
