/* SPDX-License-Identifier: MIT */
#include "daemon/settings/rest_settings.h"

#include "base/compiler.h"
#include "base/span.h"
#include "base/text.h"
#include "codec/edm_text.h"
#include "daemon/core/path.h"
#include "service/core/fault_rules.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIX_PREFIX "unix:"

static bool is_unix(const char *endpoint)
{
	return strncmp(rest_endpoint_address(endpoint), UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
}

static enum err resolve(const char *value, char ret[PATH_MAX], struct err_detail *detail)
{
	if (value[0] == '\0')
		return err_set(detail, ERR_INVALID_INPUT, "names no file");
	/* Absolute: the serving process may work in /. */
	if (!path_absolute(value, ret))
		return err_set(
			detail, ERR_INVALID_INPUT, "names '%s': %s", value, strerrordesc_np(errno));
	return ERR_OK;
}

enum err rest_settings_endpoint(
	struct rest_settings *s, const char *value, struct err_detail *detail)
{
	struct rest_options *o = &s->options;
	char path[PATH_MAX];
	struct err_detail why = { 0 };
	if (o->nendpoints == REST_ENDPOINTS_MAX)
		return err_set(detail, ERR_INVALID_INPUT, "is one too many: there can be %d",
			REST_ENDPOINTS_MAX);
	char *out = s->endpoints[o->nendpoints];
	size_t cap = sizeof(s->endpoints[0]);
	enum err e = ERR_OK;
	int n;
	if (is_unix(value)) {
		const char *address = rest_endpoint_address(value);
		e = resolve(address + strlen(UNIX_PREFIX), path, detail);
		if (e != ERR_OK)
			return e;
		n = snprintf(
			out, cap, "%.*s" UNIX_PREFIX "%s", (int)(address - value), value, path);
	} else {
		n = snprintf(out, cap, "%s", value);
	}
	if (n < 0 || (size_t)n >= cap)
		return err_set(detail, ERR_INVALID_INPUT, "is too long");
	e = rest_endpoint_check(out, &why);
	if (e != ERR_OK)
		return err_set(detail, e, "is no endpoint: %s", err_message(e, &why));
	o->endpoints[o->nendpoints++] = out;
	return ERR_OK;
}

/* Adds an endpoint of a service that has an option of its own. */
static enum err add_own(struct rest_settings *s, const char *prefix, const char *value,
	size_t *count, struct err_detail *detail)
{
	char endpoint[PATH_MAX];
	if (rest_endpoint_address(value) != value)
		return err_set(detail, ERR_INVALID_INPUT, "takes no word before the address");
	int n = snprintf(endpoint, sizeof(endpoint), "%s=%s", prefix, value);
	if (n < 0 || (size_t)n >= sizeof(endpoint))
		return err_set(detail, ERR_INVALID_INPUT, "is too long");
	enum err e = rest_settings_endpoint(s, endpoint, detail);
	*count += e == ERR_OK;
	return e;
}

static enum err set_admin(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	return add_own(s, "admin", value, &s->nadmin, detail);
}

static enum err set_page(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	return add_own(s, "page", value, &s->npage, detail);
}

static enum err set_admin_public(
	struct rest_settings *s, const char *value, struct err_detail *detail)
{
	(void)value;
	(void)detail;
	s->options.admin_public = true;
	return ERR_OK;
}

static enum err set_access_log(
	struct rest_settings *s, const char *value, struct err_detail *detail)
{
	s->options.access_log.path = s->access_log;
	if (strcmp(value, "-") != 0)
		return resolve(value, s->access_log, detail);
	memcpy(s->access_log, "-", sizeof("-"));
	return ERR_OK;
}

static enum err set_access_format(
	struct rest_settings *s, const char *value, struct err_detail *detail)
{
	s->has_access_options = true;
	s->options.access_log.json = strcmp(value, "json") == 0;
	if (s->options.access_log.json || strcmp(value, "combined") == 0)
		return ERR_OK;
	return err_set(detail, ERR_INVALID_INPUT, "is combined or json");
}

static enum err set_access_number(
	struct rest_settings *s, const char *value, uint32_t *out, struct err_detail *detail)
{
	uint64_t n;
	s->has_access_options = true;
	if (!text_to_u64(span_of(value), &n) || n == 0 || n > UINT32_MAX)
		return err_set(detail, ERR_INVALID_INPUT, "wants a number from 1 on");
	*out = (uint32_t)n;
	return ERR_OK;
}

static enum err set_access_sample(
	struct rest_settings *s, const char *value, struct err_detail *detail)
{
	return set_access_number(s, value, &s->options.access_log.sample, detail);
}

static enum err set_access_slow(
	struct rest_settings *s, const char *value, struct err_detail *detail)
{
	return set_access_number(s, value, &s->options.access_log.slow_ms, detail);
}

static enum err set_cert(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	s->options.cert = s->cert;
	return resolve(value, s->cert, detail);
}

static enum err set_key(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	s->options.key = s->key;
	return resolve(value, s->key, detail);
}

static enum err set_tenant(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	struct value v;
	struct buf text = { .data = s->tenant, .cap = sizeof(s->tenant), .limit = 36 };
	if (strlen(value) != text.limit ||
		edm_text_parse(EDM_GUID, span_of(value), &v, NULL, NULL) != ERR_OK)
		return err_set(detail, ERR_INVALID_INPUT,
			"wants a UUID, as " REST_TENANT_DEFAULT ", not '%s'", value);
	edm_text_format(&v, &text);
	s->options.tenant = s->tenant;
	return ERR_OK;
}

static enum err set_oauth(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	char path[PATH_MAX] = "";
	const char *file;
	if (rest_oauth_parse(value, &file) != ERR_OK)
		return err_set(detail, ERR_INVALID_INPUT, "is basic or jwks:FILE, not '%s'", value);
	enum err e = file != NULL ? resolve(file, path, detail) : ERR_OK;
	(void)snprintf(s->oauth, sizeof(s->oauth), "%s%s", file != NULL ? "jwks:" : value, path);
	s->options.oauth = s->oauth;
	return e;
}

static enum err set_tls(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	s->has_tls = true;
	s->options.tls_legacy = strcmp(value, "legacy") == 0;
	if (s->options.tls_legacy || strcmp(value, "strong") == 0)
		return ERR_OK;
	return err_set(detail, ERR_INVALID_INPUT, "is strong or legacy");
}

/* The part up to the next separator; false at the end. */
static bool next_part(const char **at, char separator, struct span *ret)
{
	if (*at == NULL)
		return false;
	const char *end = strchr(*at, separator);
	*ret = end != NULL ? span_make(*at, (size_t)(end - *at)) : span_of(*at);
	*at = end != NULL ? end + 1 : NULL;
	return true;
}

static enum err set_trust(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	struct rest_options *o = &s->options;
	struct span part;
	uint64_t uid;
	s->has_trust = true;
	o->ntrusted = 0;
	o->untrusting = strcmp(value, "none") == 0;
	if (o->untrusting)
		return ERR_OK;
	for (const char *at = value; next_part(&at, ':', &part);) {
		/* The greatest number means "nobody in particular" to the kernel. */
		if (!text_to_u64(part, &uid) || uid >= UINT32_MAX)
			return err_set(detail, ERR_INVALID_INPUT,
				"wants numbers of users, with colons between them, or none");
		if (o->ntrusted == REST_TRUSTED_MAX)
			return err_set(detail, ERR_INVALID_INPUT, "has more than %d users",
				REST_TRUSTED_MAX);
		o->trusted[o->ntrusted++] = (uid_t)uid;
	}
	return ERR_OK;
}

static enum err set_faults(struct rest_settings *s, const char *value, struct err_detail *detail)
{
	struct fault_rule *rules = calloc(FAULT_RULES_MAX, sizeof(*rules));
	struct err_detail why = { 0 };
	size_t used = strlen(s->faults), n;
	const char *between = used > 0 ? ";" : "";
	int len = snprintf(s->faults + used, sizeof(s->faults) - used, "%s%s", between, value);
	enum err e = ERR_OK;
	if (rules == NULL)
		return ERR_NO_MEMORY;
	if (len < 0 || (size_t)len >= sizeof(s->faults) - used)
		e = err_set(detail, ERR_INVALID_INPUT, "is too long");
	if (e == ERR_OK && fault_rules_parse(span_of(s->faults), rules, &n, &why) != ERR_OK)
		e = err_set(detail, ERR_INVALID_INPUT, "has no rules of faults: %s", why.text);
	s->options.faults = s->faults;
	free(rules);
	return e;
}

enum err rest_settings_set(
	struct rest_settings *s, const char *name, const char *value, struct err_detail *detail)
{
	static const struct {
		const char *name;
		enum err (*set)(
			struct rest_settings *s, const char *value, struct err_detail *detail);
	} setters[] = {
		{ "access-log", set_access_log },
		{ "access-log-format", set_access_format },
		{ "access-log-sample", set_access_sample },
		{ "access-log-slow", set_access_slow },
		{ "admin", set_admin },
		{ "admin-public", set_admin_public },
		{ "faults", set_faults },
		{ "oauth", set_oauth },
		{ "page", set_page },
		{ "rest", rest_settings_endpoint },
		{ "rest-cert", set_cert },
		{ "rest-key", set_key },
		{ "rest-tenant", set_tenant },
		{ "rest-tls", set_tls },
		{ "rest-trust", set_trust },
	};
	for (size_t i = 0; i < ARRAY_LEN(setters); i++)
		if (strcmp(name, setters[i].name) == 0)
			return setters[i].set(s, value, detail);
	return ERR_NOT_FOUND;
}

static bool set_limit(struct rest_limits *l, struct span part)
{
	const struct {
		struct span name;
		uint32_t *value;
	} known[] = {
		{ SPAN_LIT("connections="), &l->connections },
		{ SPAN_LIT("head="), &l->head_ms },
		{ SPAN_LIT("idle="), &l->idle_ms },
		{ SPAN_LIT("progress="), &l->progress_ms },
		{ SPAN_LIT("memory="), &l->memory_kib },
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		uint64_t n;
		struct span name = known[i].name;
		if (!span_starts(part, name))
			continue;
		if (!text_to_u64(span_make(part.p + name.n, part.n - name.n), &n) || n == 0 ||
			n > INT32_MAX)
			return false;
		*known[i].value = (uint32_t)n;
		return true;
	}
	return false;
}

static enum err read_limits(struct rest_settings *s, struct err_detail *detail)
{
	const char *at = secure_getenv("ROWFS_REST_LIMITS");
	struct span part;
	while (next_part(&at, ',', &part))
		if (!set_limit(&s->options.limits, part))
			return err_set(detail, ERR_INVALID_INPUT,
				"ROWFS_REST_LIMITS: '%.*s' is not understood", (int)part.n, part.p);
	return ERR_OK;
}

enum err rest_settings_finish(struct rest_settings *s, struct err_detail *detail)
{
	const struct rest_options *o = &s->options;
	bool any_unix = false, any_tcp = false, tls = o->cert != NULL || o->key != NULL;
	for (size_t i = 0; i < o->nendpoints; i++) {
		any_unix = any_unix || is_unix(o->endpoints[i]);
		any_tcp = any_tcp || !is_unix(o->endpoints[i]);
	}
	if ((o->cert == NULL) != (o->key == NULL))
		return err_set(detail, ERR_INVALID_INPUT,
			"TLS needs both rest-cert= and rest-key=; only one is given");
	if (tls && !any_tcp)
		return err_set(detail, ERR_INVALID_INPUT,
			"rest-cert= and rest-key= are for a TCP endpoint, and rest= names none");
	if (s->has_tls && !tls)
		return err_set(detail, ERR_INVALID_INPUT,
			"rest-tls= is for TLS, which needs rest-cert= and rest-key=");
	if (s->has_trust && !any_unix)
		return err_set(detail, ERR_INVALID_INPUT,
			"rest-trust= is for a Unix socket, and rest= names none");
	if (o->admin_public && s->nadmin == 0)
		return err_set(detail, ERR_INVALID_INPUT,
			"admin-public is for an admin socket, and there is no admin=");
	if (s->has_access_options && o->access_log.path == NULL)
		return err_set(detail, ERR_INVALID_INPUT,
			"access-log-format=, access-log-sample= and access-log-slow= are for the "
			"access log, and there is no access-log=");
	if (o->access_log.path != NULL && o->nendpoints == 0)
		return err_set(detail, ERR_INVALID_INPUT,
			"access-log= is that of a REST socket, and there is no rest=");
	if (o->faults != NULL && o->nendpoints == s->nadmin + s->npage)
		return err_set(detail, ERR_INVALID_INPUT,
			"faults= are those of a REST socket, and there is no rest=");
	if (o->oauth != NULL && !tls && !any_unix)
		return err_set(detail, ERR_INVALID_INPUT,
			"oauth= needs TLS (rest-cert= and rest-key=) or a Unix socket, as a token is a "
			"secret");
	return read_limits(s, detail);
}
