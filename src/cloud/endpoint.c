/* SPDX-License-Identifier: MIT */
#include "cloud/endpoint.h"

#include "base/crypto.h"
#include "base/text.h"
#include "model/emulator.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"

static const char dev_string[] = "AccountName=" EMULATOR_ACCOUNT ";AccountKey=" EMULATOR_KEY
				 ";TableEndpoint=http://127.0.0.1:10002/" EMULATOR_ACCOUNT;

struct fields {
	struct span protocol, account, key, endpoint, suffix, sas, token_file, development;
};

static bool same_name(struct span a, const char *b)
{
	return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static struct span *field(struct fields *f, struct span name)
{
	const struct {
		const char *name;
		struct span *to;
	} all[] = {
		{ "DefaultEndpointsProtocol", &f->protocol },
		{ "AccountName", &f->account },
		{ "AccountKey", &f->key },
		{ "TableEndpoint", &f->endpoint },
		{ "EndpointSuffix", &f->suffix },
		{ "SharedAccessSignature", &f->sas },
		{ "BearerTokenFile", &f->token_file },
		{ "UseDevelopmentStorage", &f->development },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (same_name(name, all[i].name))
			return all[i].to;
	return NULL;
}

static enum err read_fields(struct span text, struct fields *f, struct err_detail *detail)
{
	while (text.n > 0) {
		const char *semicolon = memchr(text.p, ';', text.n);
		size_t n = semicolon != NULL ? (size_t)(semicolon - text.p) : text.n;
		struct span part = text_trim(span_make(text.p, n), BLANKS);
		const char *equals = part.n > 0 ? memchr(part.p, '=', part.n) : NULL;
		if (part.n > 0 && equals == NULL)
			return err_set(detail, ERR_INVALID_INPUT,
				"a connection string is NAME=VALUE;NAME=VALUE;...");
		if (equals != NULL) {
			size_t k = (size_t)(equals - part.p);
			struct span *to = field(f, text_trim(span_make(part.p, k), BLANKS));
			if (to != NULL)
				*to = text_trim(span_make(equals + 1, part.n - k - 1), BLANKS);
		}
		n += semicolon != NULL;
		text = span_make(text.p + n, text.n - n);
	}
	return ERR_OK;
}

static bool copy(struct span s, char *out, size_t size)
{
	if (s.n >= size)
		return false;
	memcpy(out, s.n > 0 ? s.p : "", s.n);
	out[s.n] = 0;
	return true;
}

static struct span host_of(const char *url)
{
	const char *host = strstr(url, "//") + 2;
	return span_make(host, strcspn(host, "/"));
}

/* An address has no labels: the account is in the path. */
static bool has_account_in_host(struct span host)
{
	bool name = host.n > 0 && isalpha((unsigned char)host.p[0]) && host.p[0] != '[';
	return name && memchr(host.p, '.', host.n) != NULL;
}

static void set_account(struct endpoint *e)
{
	struct span host = host_of(e->url), name = span_of(e->url + e->path);
	if (e->account[0] != 0)
		return;
	if (has_account_in_host(host))
		name = span_make(host.p, strcspn(host.p, "."));
	else if (name.n > 0)
		name = span_make(name.p + 1, strcspn(name.p + 1, "/"));
	(void)copy(name, e->account, sizeof(e->account));
}

static enum err set_url(struct span url, struct endpoint *e, struct err_detail *detail)
{
	while (url.n > 0 && url.p[url.n - 1] == '/')
		url.n--;
	bool scheme =
		span_starts(url, SPAN_LIT("http://")) || span_starts(url, SPAN_LIT("https://"));
	for (size_t i = 0; scheme && i < url.n; i++)
		scheme = url.p[i] > ' ' && url.p[i] != '#' && url.p[i] != '@' && url.p[i] != 127;
	if (!scheme || !copy(url, e->url, sizeof(e->url)) || host_of(e->url).n == 0)
		return err_set(detail, ERR_INVALID_INPUT,
			"the URL of an account is http://HOST/ACCOUNT or https://ACCOUNT.HOST");
	struct span host = host_of(e->url);
	e->path = (size_t)(host.p + host.n - e->url);
	set_account(e);
	return e->account[0] != 0
		? ERR_OK
		: err_set(detail, ERR_INVALID_INPUT, "the URL names no account: %s", e->url);
}

static enum err set_sas(struct span sas, struct endpoint *e, struct err_detail *detail)
{
	if (sas.n > 0 && sas.p[0] == '?')
		sas = span_make(sas.p + 1, sas.n - 1);
	return copy(sas, e->sas, sizeof(e->sas))
		? ERR_OK
		: err_set(detail, ERR_INVALID_INPUT, "the shared access signature is too long");
}

static enum err set_key(struct span text, struct endpoint *e, struct err_detail *detail)
{
	struct buf key = BUF_INIT(sizeof(e->key));
	bool ok = base64_decode(text, &key) && buf_ok(&key);
	if (ok) {
		memcpy(e->key, key.len > 0 ? key.data : "", key.len);
		e->key_len = key.len;
	}
	buf_wipe(&key);
	return ok ? ERR_OK : err_set(detail, ERR_INVALID_INPUT, "AccountKey is not base64");
}

static enum err set_token_file(struct span path, struct endpoint *e, struct err_detail *detail)
{
	if (!span_starts(path, SPAN_LIT("/")) || !copy(path, e->token_file, sizeof(e->token_file)))
		return err_set(detail, ERR_INVALID_INPUT,
			"BearerTokenFile is an absolute path of up to 1,023 bytes");
	return span_starts(span_of(e->url), SPAN_LIT("https://"))
		? ERR_OK
		: err_set(detail, ERR_INVALID_INPUT, "a bearer token is sent over https only");
}

/* The endpoint of a field, which may have a signature behind it. */
static enum err set_given(struct span url, struct endpoint *e, struct err_detail *detail)
{
	const char *query = url.n > 0 ? memchr(url.p, '?', url.n) : NULL;
	size_t n = query != NULL ? (size_t)(query - url.p) : url.n;
	enum err r = set_url(span_make(url.p, n), e, detail);
	if (r == ERR_OK && query != NULL)
		r = set_sas(span_make(query, url.n - n), e, detail);
	return r;
}

static enum err set_default(const struct fields *f, struct endpoint *e, struct err_detail *detail)
{
	struct span scheme = f->protocol.n > 0 ? f->protocol : SPAN_LIT("https");
	struct span suffix = f->suffix.n > 0 ? f->suffix : SPAN_LIT("core.windows.net");
	char url[sizeof(e->url)];
	int n = snprintf(url, sizeof(url), "%.*s://%s.table.%.*s", (int)scheme.n, scheme.p,
		e->account, (int)suffix.n, suffix.p);
	if (e->account[0] == 0 || n < 0 || n >= (int)sizeof(url))
		return err_set(detail, ERR_INVALID_INPUT,
			"the connection string names neither AccountName nor TableEndpoint");
	return set_url(span_of(url), e, detail);
}

/* A request has one Authorization. */
static enum err check_credential(const struct endpoint *e, struct err_detail *detail)
{
	const char *given[3];
	size_t n = 0;
	if (e->key_len > 0)
		given[n++] = "AccountKey";
	if (e->sas[0] != 0)
		given[n++] = "SharedAccessSignature";
	if (e->token_file[0] != 0)
		given[n++] = "BearerTokenFile";
	if (n == 0)
		return err_set(detail, ERR_INVALID_INPUT,
			"the connection string has none of AccountKey, SharedAccessSignature and "
			"BearerTokenFile");
	return n == 1 ? ERR_OK
		      : err_set(detail, ERR_INVALID_INPUT,
				"the connection string has both %s and %s; remove one", given[0],
				given[1]);
}

static enum err set_all(const struct fields *f, struct endpoint *e, struct err_detail *detail)
{
	if (!copy(f->account, e->account, sizeof(e->account)))
		return err_set(detail, ERR_INVALID_INPUT, "AccountName is too long");
	enum err r =
		f->endpoint.n > 0 ? set_given(f->endpoint, e, detail) : set_default(f, e, detail);
	if (r == ERR_OK && f->sas.n > 0)
		r = set_sas(f->sas, e, detail);
	if (r == ERR_OK && f->key.n > 0)
		r = set_key(f->key, e, detail);
	if (r == ERR_OK && f->token_file.n > 0)
		r = set_token_file(f->token_file, e, detail);
	return r == ERR_OK ? check_credential(e, detail) : r;
}

enum err endpoint_parse(struct span text, struct endpoint *ret, struct err_detail *detail)
{
	struct fields f = { 0 };
	*ret = (struct endpoint){ 0 };
	text = text_trim(text, BLANKS);
	if (text.n == 0 || text.n > ENDPOINT_TEXT_MAX || memchr(text.p, 0, text.n) != NULL)
		return err_set(detail, ERR_INVALID_INPUT,
			text.n == 0 ? "the connection string is empty"
				    : "the connection string is too long");
	enum err e = read_fields(text, &f, detail);
	if (e == ERR_OK && same_name(f.development, "true"))
		e = read_fields(span_of(dev_string), &f, detail);
	return e == ERR_OK ? set_all(&f, ret, detail) : e;
}

enum err endpoint_parse_url(struct span url, struct endpoint *ret, struct err_detail *detail)
{
	*ret = (struct endpoint){ 0 };
	if (url.n > 0 && memchr(url.p, '?', url.n) != NULL)
		return err_set(detail, ERR_INVALID_INPUT,
			"a URL on the command line has no query: others could read its signature "
			"there");
	return set_url(url, ret, detail);
}

bool endpoint_same(const struct endpoint *a, const struct endpoint *b)
{
	return strcasecmp(a->url, b->url) == 0;
}

void endpoint_wipe(struct endpoint *e)
{
	explicit_bzero(e, sizeof(*e));
}
