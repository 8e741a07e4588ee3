/* SPDX-License-Identifier: MIT
 * SharedKey and SharedKeyLite (protocol section 4.2).  The signature covers the path as sent, but
 * clients and HTTP libraries differ in how they encode it.  A request is valid if either key signed
 * one of a few forms of the same resource.  The service decides what else is signed. */
#include "base/clock.h"
#include "base/compiler.h"
#include "codec/http_date.h"
#include "rest/core/auth.h"
#include "rest/core/rest_service.h"
#include "rest/core/signature.h"

#include <inttypes.h>
#include <strings.h>

#define WINDOW (15 * 60 * TICKS_PER_SECOND)
#define STRING_USUAL 256 /* the usual size of the string to sign, reserved at once */

struct credential {
	bool lite;
	struct span account, signature;
};

/* ---- the header ---- */

static bool same_word(struct span a, const char *b)
{
	return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

/* Splits s at the first c, which is in neither part.  Returns false without a c. */
static bool split(struct span s, char c, struct span *ret_left, struct span *ret_right)
{
	const char *at = s.n > 0 ? memchr(s.p, c, s.n) : NULL;

	if (at == NULL)
		return false;
	*ret_left = span_make(s.p, (size_t)(at - s.p));
	*ret_right = span_make(at + 1, s.n - ret_left->n - 1);
	return true;
}

static int shown(struct span s)
{
	return s.n < 40 ? (int)s.n : 40;
}

static enum err check_scheme(struct span scheme, struct err_detail *detail)
{
	if (same_word(scheme, "SharedKey") || same_word(scheme, "SharedKeyLite"))
		return ERR_OK;
	return err_set(detail, ERR_AUTH_HEADER,
		"The scheme is SharedKey, SharedKeyLite or Bearer, not '%.*s'.", shown(scheme),
		scheme.p);
}

/* Parses "SharedKey account:signature". */
static enum err parse_header(struct span header, struct credential *ret, struct err_detail *detail)
{
	struct span scheme, rest;

	if (!split(header, ' ', &scheme, &rest)) {
		scheme = header;
		rest = SPAN_LIT("");
	}
	enum err e = check_scheme(scheme, detail);
	if (e != ERR_OK)
		return e;
	ret->lite = same_word(scheme, "SharedKeyLite");
	while (rest.n > 0 && rest.p[0] == ' ')
		rest = span_make(rest.p + 1, rest.n - 1);
	if (!split(rest, ':', &ret->account, &ret->signature) || ret->account.n == 0 ||
		ret->signature.n == 0)
		return err_set(detail, ERR_AUTH_HEADER,
			"The scheme must be followed by ACCOUNT:SIGNATURE.");
	return ERR_OK;
}

/* ---- the date ---- */

static enum err check_date(
	const struct access_facts *f, struct span date, struct err_detail *detail)
{
	int64_t ticks;

	if (date.n == 0)
		return err_set(detail, ERR_AUTH_FAILED,
			"The request has no date: neither x-ms-date nor Date.");
	if (!http_date_parse(date, &ticks))
		return err_set(detail, ERR_AUTH_FAILED,
			"The date of the request is not in the form of RFC 1123: '%.*s'.",
			shown(date), date.p);
	if (f->now - ticks > WINDOW)
		return err_set(detail, ERR_AUTH_FAILED, "Request date header too old: '%.*s'.",
			shown(date), date.p);
	if (ticks - f->now > WINDOW)
		return err_set(detail, ERR_AUTH_FAILED,
			"Request date header too far ahead: '%.*s'.", shown(date), date.p);
	return ERR_OK;
}

/* ---- the string to sign ---- */

/* The forms of a request's path.  All of them name the same resource, so a signature of any of them
 * is valid. */
enum path_form {
	PATH_AS_SENT,
	PATH_WITHOUT_SUFFIX,  /* "/acct-secondary/T" as "/acct/T" */
	PATH_WITHOUT_SEGMENT, /* "/acct-secondary/acct/T" as "/acct/T" */
	PATH_FORMS_,
};

/* HTTP libraries may encode or decode quotes after the client has signed. */
enum quote_form {
	QUOTES_AS_SENT,
	QUOTES_PLAIN,
	QUOTES_ENCODED,
	QUOTE_FORMS_,
};

static const struct span plain_quote = SPAN_LIT("'"), encoded_quote = SPAN_LIT("%27");

static struct span skip(struct span s, size_t n)
{
	return span_make(s.p + n, s.n - n);
}

/* Returns the quote at the start of s; n is 0 if there is none. */
static struct span leading_quote(struct span s)
{
	if (span_starts(s, plain_quote))
		return plain_quote;
	return span_starts(s, encoded_quote) ? encoded_quote : SPAN_LIT("");
}

static void add_path(struct span path, enum quote_form quotes, struct buf *out)
{
	struct span wanted = quotes == QUOTES_PLAIN ? plain_quote : encoded_quote;

	if (quotes == QUOTES_AS_SENT) {
		buf_add_span(out, path);
		return;
	}
	for (size_t i = 0; i < path.n;) {
		struct span quote = leading_quote(skip(path, i));
		buf_add_span(out, quote.n > 0 ? wanted : span_make(path.p + i, 1));
		i += quote.n > 0 ? quote.n : 1;
	}
}

/* Returns the path behind its first segment. */
static struct span behind_account(struct span path)
{
	const char *slash = path.n > 1 ? memchr(path.p + 1, '/', path.n - 1) : NULL;

	return slash == NULL ? SPAN_LIT("") : skip(path, (size_t)(slash - path.p));
}

static bool starts_with_account(const struct request_url *url, struct span path)
{
	struct span name = span_of(url->account);

	return path.n > name.n && span_starts(skip(path, 1), name) &&
		(path.n == name.n + 1 || path.p[name.n + 1] == '/');
}

static bool applies(const struct request_url *url, enum path_form form)
{
	if (form == PATH_AS_SENT)
		return true;
	if (!url->path_style)
		return false;
	return form == PATH_WITHOUT_SUFFIX ? url->secondary
					   : starts_with_account(url, behind_account(url->path));
}

/* Adds the canonical path.  An empty path is signed as "/".  In path style the account appears
 * twice. */
static void add_canonical_path(
	const struct request_url *url, enum path_form form, enum quote_form quotes, struct buf *out)
{
	struct span path = form == PATH_AS_SENT ? url->path : behind_account(url->path);

	for (int i = 0; i < (form == PATH_WITHOUT_SUFFIX ? 2 : 1); i++) {
		buf_add_char(out, '/');
		buf_add_str(out, url->account);
	}
	add_path(url->path.n > 0 ? path : SPAN_LIT("/"), quotes, out);
}

static void make_string(const struct access_facts *f, bool lite, enum path_form form,
	enum quote_form quotes, struct buf *out)
{
	buf_clear(out);
	f->rest->sign_head(f->request, lite, out);
	add_canonical_path(f->url, form, quotes, out);
	f->rest->sign_query(f->url, lite, out);
}

/* ---- the check ---- */

static bool any_spelling(const struct access_facts *f, bool lite,
	const uint8_t signature[SIGNATURE_BYTES], struct buf *text)
{
	bool quoted = memchr(f->url->path.p, '\'', f->url->path.n) != NULL ||
		memmem(f->url->path.p, f->url->path.n, "%27", 3) != NULL;

	for (enum path_form form = 0; form < PATH_FORMS_; form++) {
		if (!applies(f->url, form))
			continue;
		for (enum quote_form q = 0; q < (quoted ? QUOTE_FORMS_ : 1); q++) {
			make_string(f, lite, form, q, text);
			if (buf_ok(text) &&
				signature_matches(&f->keys->keys, buf_span(text), signature))
				return true;
		}
	}
	return false;
}

static enum err check_signature(
	const struct access_facts *f, const struct credential *c, struct err_detail *detail)
{
	struct buf text = BUF_INIT(SAS_STRING_LIMIT);
	uint8_t signature[SIGNATURE_BYTES];
	enum err e = ERR_OK;

	(void)buf_reserve(&text, STRING_USUAL);
	if (!signature_parse(c->signature, signature) ||
		!any_spelling(f, c->lite, signature, &text)) {
		make_string(f, c->lite, PATH_AS_SENT, QUOTES_AS_SENT, &text);
		e = buf_ok(&text) ? signature_mismatch(f->rest->name, buf_span(&text), detail)
				  : ERR_NO_MEMORY;
	}
	buf_fini(&text);
	return e;
}

enum err auth_shared_key(const struct access_facts *f, struct span header, struct access *ret,
	struct err_detail *detail)
{
	struct credential c = { 0 };
	enum err e = parse_header(header, &c, detail);

	if (e != ERR_OK)
		return e;
	if (!span_is(c.account, f->url->account))
		return err_set(detail, ERR_AUTH_FAILED,
			"The Authorization header names the account '%.*s', but the URL names '%s'.",
			shown(c.account), c.account.p, f->url->account);
	e = check_date(f, request_date(f->request), detail);
	if (e == ERR_OK)
		e = check_signature(f, &c, detail);
	if (e == ERR_OK)
		ret->kind = ACCESS_OWNER;
	return e;
}
