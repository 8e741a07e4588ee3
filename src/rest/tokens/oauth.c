/* SPDX-License-Identifier: MIT
 * The order of the checks is that of the emulator: form, times, issuer, audience.  With keys the
 * signature comes right behind the form: only a signed claim decides anything. */
#include "rest/tokens/oauth.h"

#include "base/compiler.h"
#include "codec/json_read.h"
#include "codec/jwt.h"
#include "model/limits.h"
#include "rest/tokens/assignments.h"
#include "rest/tokens/key_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_PREFIX "jwks:"

struct oauth {
	bool basic;
	char *path;
	struct key_file keys; /* not basic */
};

/* ---- opening ---- */

enum err oauth_parse(const char *how, const char **ret_file)
{
	const char *file = how + strlen(FILE_PREFIX);
	*ret_file = NULL;
	if (strcmp(how, "basic") == 0)
		return ERR_OK;
	if (strncmp(how, FILE_PREFIX, strlen(FILE_PREFIX)) != 0 || *file == '\0')
		return ERR_INVALID_INPUT;
	*ret_file = file;
	return ERR_OK;
}

enum err oauth_open(const char *how, struct oauth **ret, struct err_detail *detail)
{
	const char *file;
	if (oauth_parse(how, &file) != ERR_OK)
		return err_set(
			detail, ERR_INVALID_INPUT, "oauth is basic or jwks:FILE, not '%s'", how);
	struct oauth *o = calloc(1, sizeof(*o));
	if (o == NULL)
		return ERR_NO_MEMORY;
	o->basic = file == NULL;
	enum err e = ERR_OK;
	if (!o->basic) {
		o->path = strdup(file);
		e = o->path != NULL ? key_file_open(&o->keys, o->path, detail) : ERR_NO_MEMORY;
	}
	if (e != ERR_OK) {
		free(o->path);
		free(o);
		return e;
	}
	*ret = o;
	return ERR_OK;
}

void oauth_close(struct oauth *o)
{
	if (o == NULL)
		return;
	if (!o->basic)
		key_file_close(&o->keys);
	free(o->path);
	free(o);
}

/* ---- the claims ---- */

static enum err refuse(const char *why, struct err_detail *detail)
{
	return err_set(detail, ERR_AUTH_BEARER, "%s", why);
}

/* The emulator wants all three times, and exactly.  RFC 7519 makes them optional; here a token
 * always expires. */
static enum err check_times(
	const struct oauth *o, const struct json_t *claims, int64_t now, struct err_detail *detail)
{
	int64_t start, end, issued, skew = o->basic ? 0 : OAUTH_SKEW_S;
	bool has_start = json_read_number(claims, "nbf", &start);
	if (!json_read_number(claims, "exp", &end) || (!has_start && json_read_has(claims, "nbf")))
		return refuse("Lifetime validation failed. The token has no expiry (exp).", detail);
	if (o->basic && (!has_start || !json_read_number(claims, "iat", &issued)))
		return refuse(
			"Lifetime validation failed. The token has no 'nbf' or 'iat'.", detail);
	if (has_start && now + skew < start)
		return refuse(
			"Lifetime validation failed. The token is not valid yet (nbf).", detail);
	return now - skew > end
		? refuse("Lifetime validation failed. The token is expired.", detail)
		: ERR_OK;
}

/* Those of the emulator. */
static bool is_microsoft(struct span issuer)
{
	static const struct span known[] = { SPAN_LIT("https://sts.windows.net/"),
		SPAN_LIT("https://sts.microsoftonline.de/"),
		SPAN_LIT("https://sts.chinacloudapi.cn/"),
		SPAN_LIT("https://sts.windows-ppe.net") };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (span_starts(issuer, known[i]))
			return true;
	return false;
}

/* Compares with the issuer of a key.  Microsoft's documents have "{tenantid}" in it: one key is for
 * all its tenants, so only the tenant that the server was told is accepted. */
static bool is_issuer(struct span given, struct span wanted, const char *tenant)
{
	static const struct span hole = SPAN_LIT("{tenantid}");
	size_t at = span_find(wanted, hole), n = strlen(tenant);
	if (at == wanted.n)
		return span_eq(given, wanted);
	struct span head = span_make(wanted.p, at);
	struct span tail = span_make(wanted.p + at + hole.n, wanted.n - at - hole.n);
	return given.n == head.n + n + tail.n && span_starts(given, head) &&
		memcmp(given.p + head.n, tenant, n) == 0 &&
		span_eq(span_make(given.p + head.n + n, tail.n), tail);
}

/* wanted.p is NULL if the file names no issuer. */
static enum err check_issuer(const struct oauth *o, const struct json_t *claims, struct span wanted,
	const char *tenant, struct err_detail *detail)
{
	struct span issuer = json_read_text(claims, "iss");
	bool ok = o->basic ? is_microsoft(issuer)
			   : wanted.p == NULL || is_issuer(issuer, wanted, tenant);
	return ok ? ERR_OK : refuse("Issuer validation failed. Issuer did not match.", detail);
}

static bool is_audience(struct span text, const struct oauth_facts *f)
{
	static const char *const any[] = { "https://storage.azure.com",
		"e406a681-f3d4-42a8-90b6-c2b029497af1" };
	static const char *const clouds[] = { "core.windows.net", "core.chinacloudapi.cn",
		"core.usgovcloudapi.net", "core.cloudapi.de" };
	char one[LIMIT_ACCOUNT_NAME_MAX + 64];
	if (text.n > 0 && text.p[text.n - 1] == '/')
		text.n--;
	for (size_t i = 0; i < ARRAY_LEN(any); i++)
		if (span_is(text, any[i]))
			return true;
	/* The SDKs ask for it if the host is one of Cosmos DB. */
	if (f->letter == 't' && span_is(text, "https://cosmos.azure.com"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(clouds); i++) {
		(void)snprintf(
			one, sizeof(one), "https://%s.%s.%s", f->account, f->service, clouds[i]);
		if (span_is(text, one))
			return true;
	}
	return false;
}

static enum err check_audience(
	const struct json_t *claims, const struct oauth_facts *f, struct err_detail *detail)
{
	size_t n = json_read_count(claims, "aud");
	for (size_t i = 0; i < n; i++)
		if (is_audience(json_read_item(claims, "aud", i), f))
			return ERR_OK;
	return refuse("Audience validation failed. Audience did not match.", detail);
}

/* ---- what it gives ---- */

static void copy_name(struct span text, char ret[OAUTH_NAME_MAX + 1])
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	ret[0] = '\0';
	if (text.n == 0 || text.n > OAUTH_NAME_MAX)
		return;
	memcpy(ret, text.p, text.n);
	ret[text.n] = '\0';
	if (ret[strspn(ret, allowed)] != '\0')
		ret[0] = '\0';
}

static enum err check_claims(const struct oauth *o, const struct json_t *claims, struct span issuer,
	const struct oauth_facts *f, struct bearer *ret, struct err_detail *detail)
{
	enum err e = check_times(o, claims, f->now, detail);
	if (e == ERR_OK)
		e = check_issuer(o, claims, issuer, f->tenant, detail);
	if (e == ERR_OK)
		e = check_audience(claims, f, detail);
	if (e == ERR_OK && json_read_count(claims, "roles") > OAUTH_ROLES_MAX)
		e = refuse("The token has more than 256 roles.", detail);
	const char *who = json_read_has(claims, "oid") ? "oid" : "sub";
	copy_name(json_read_text(claims, who), ret->object);
	copy_name(json_read_text(claims, "tid"), ret->tenant);
	return e;
}

static enum err check_basic(const struct oauth *o, const struct jwt *t, const struct oauth_facts *f,
	struct bearer *ret, struct err_detail *detail)
{
	enum err e = check_claims(o, t->claims, (struct span){ 0 }, f, ret, detail);
	if (e == ERR_OK)
		ret->grants = roles_grants(ROLES_ALL, f->letter);
	return e;
}

static enum err check_signed(struct oauth *o, const struct jwt *t, const struct oauth_facts *f,
	struct bearer *ret, struct err_detail *detail)
{
	const struct jwk_set *keys = key_file_take(&o->keys);
	struct span issuer;
	enum err e = jwk_set_verify(keys, t, &issuer, detail);
	if (e == ERR_OK)
		e = check_claims(o, t->claims, issuer, f, ret, detail);
	if (e == ERR_OK)
		ret->grants = roles_grants(
			assignments_roles(jwk_set_file(keys), t->claims, f->letter, f->account),
			f->letter);
	key_file_release(&o->keys);
	return e;
}

enum err oauth_check(struct oauth *o, struct span token, const struct oauth_facts *facts,
	struct bearer *ret, struct err_detail *detail)
{
	struct err_detail why = { 0 };
	struct jwt t;
	*ret = (struct bearer){ 0 };
	enum err e = jwt_read(token, &t, &why);
	if (e == ERR_OK) {
		e = o->basic ? check_basic(o, &t, facts, ret, &why)
			     : check_signed(o, &t, facts, ret, &why);
		jwt_fini(&t);
	}
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : refuse(why.text, detail);
}
