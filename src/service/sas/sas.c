/* SPDX-License-Identifier: MIT
 * The string to sign has one line for each field, present or not, in a fixed order.  It is
 * unambiguous only if no field has a line break.  So such a field is refused before a string is
 * signed or compared. */
#include "service/sas/sas.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "codec/uri.h"

#include <arpa/inet.h>
#include <string.h>

enum field_use {
	FOR_BOTH,
	FOR_STORED,    /* a service SAS that an account key signed */
	FOR_DELEGATED, /* a user delegation SAS */
	FOR_TABLE,     /* a service that names its resource in the token */
	FOR_BLOB,      /* a service whose token says what kind of resource it is for */
	FOR_ACCOUNT,
	FOR_ACCOUNT_AND_BLOB,
};

struct field {
	const char *name;
	size_t at; /* in struct sas */
	enum field_use use;
	enum version_rule since;
};

/* sig comes last in a URL: people tend to cut it off. */
static const struct field fields[] = {
	{ "sv", offsetof(struct sas, sv), FOR_BOTH, VERSION_KNOWN },
	{ "ss", offsetof(struct sas, ss), FOR_ACCOUNT, VERSION_KNOWN },
	{ "srt", offsetof(struct sas, srt), FOR_ACCOUNT, VERSION_KNOWN },
	{ "tn", offsetof(struct sas, tn), FOR_TABLE, VERSION_KNOWN },
	{ "sr", offsetof(struct sas, sr), FOR_BLOB, VERSION_KNOWN },
	{ "si", offsetof(struct sas, si), FOR_STORED, VERSION_KNOWN },
	{ "skoid", offsetof(struct sas, skoid), FOR_DELEGATED, VERSION_DELEGATION },
	{ "sktid", offsetof(struct sas, sktid), FOR_DELEGATED, VERSION_DELEGATION },
	{ "skt", offsetof(struct sas, skt), FOR_DELEGATED, VERSION_DELEGATION },
	{ "ske", offsetof(struct sas, ske), FOR_DELEGATED, VERSION_DELEGATION },
	{ "sks", offsetof(struct sas, sks), FOR_DELEGATED, VERSION_DELEGATION },
	{ "skv", offsetof(struct sas, skv), FOR_DELEGATED, VERSION_DELEGATION },
	{ "sp", offsetof(struct sas, sp), FOR_BOTH, VERSION_KNOWN },
	{ "st", offsetof(struct sas, st), FOR_BOTH, VERSION_KNOWN },
	{ "se", offsetof(struct sas, se), FOR_BOTH, VERSION_KNOWN },
	{ "sip", offsetof(struct sas, sip), FOR_BOTH, VERSION_SAS_LIMITS },
	{ "spr", offsetof(struct sas, spr), FOR_BOTH, VERSION_SAS_LIMITS },
	{ "spk", offsetof(struct sas, spk), FOR_TABLE, VERSION_KNOWN },
	{ "srk", offsetof(struct sas, srk), FOR_TABLE, VERSION_KNOWN },
	{ "epk", offsetof(struct sas, epk), FOR_TABLE, VERSION_KNOWN },
	{ "erk", offsetof(struct sas, erk), FOR_TABLE, VERSION_KNOWN },
	{ "ses", offsetof(struct sas, ses), FOR_ACCOUNT_AND_BLOB, VERSION_SAS_ENCRYPTION },
	{ "rscc", offsetof(struct sas, rscc), FOR_BLOB, VERSION_CORS },
	{ "rscd", offsetof(struct sas, rscd), FOR_BLOB, VERSION_CORS },
	{ "rsce", offsetof(struct sas, rsce), FOR_BLOB, VERSION_CORS },
	{ "rscl", offsetof(struct sas, rscl), FOR_BLOB, VERSION_CORS },
	{ "rsct", offsetof(struct sas, rsct), FOR_BLOB, VERSION_CORS },
	{ "sig", offsetof(struct sas, sig), FOR_BOTH, VERSION_KNOWN },
};

static const struct span *value_of(const struct sas *s, const struct field *f)
{
	return (const struct span *)((const char *)s + f->at);
}

struct span *sas_field(struct sas *s, struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (span_is(name, fields[i].name))
			return (struct span *)((char *)s + fields[i].at);
	}
	return NULL;
}

void sas_to_query(const struct sas *s, struct buf *out)
{
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct span *value = value_of(s, &fields[i]);
		if (value->p == NULL)
			continue;
		buf_add_str(out, separator);
		buf_add_str(out, fields[i].name);
		buf_add_char(out, '=');
		percent_encode_value(*value, out);
		separator = "&";
	}
}

bool sas_is_account(const struct sas *s)
{
	return s->ss.p != NULL || s->srt.p != NULL;
}

bool sas_is_delegated(const struct sas *s)
{
	return !sas_is_account(s) && s->skoid.p != NULL;
}

struct span sas_resource(const struct sas *s)
{
	if (s->of->resource != NULL)
		return s->of->resource(s);
	return sas_container(s);
}

struct span sas_container(const struct sas *s)
{
	return s->of->names_resource ? s->tn : s->container;
}

static bool is_signed(const struct sas *s, enum field_use use)
{
	switch (use) {
	case FOR_ACCOUNT:
		return sas_is_account(s);
	case FOR_STORED:
		return !sas_is_account(s) && !sas_is_delegated(s);
	case FOR_DELEGATED:
		return sas_is_delegated(s) && s->of->delegation != VERSION_KNOWN;
	case FOR_TABLE:
		return !sas_is_account(s) && s->of->names_resource;
	case FOR_BLOB:
		return !sas_is_account(s) && s->of->resource != NULL;
	case FOR_ACCOUNT_AND_BLOB:
		return sas_is_account(s) || s->of->resource != NULL;
	case FOR_BOTH:
		break;
	}
	return true;
}

const char *sas_unsigned_field(const struct sas *s)
{
	int version = version_parse(s->sv);

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];
		/* Other services have parameters of these names. */
		if (f->use == FOR_BLOB && s->of->resource == NULL)
			continue;
		if (value_of(s, f)->p != NULL &&
			(!is_signed(s, f->use) || !version_has(version, f->since)))
			return f->name;
	}
	return NULL;
}

/* ---- letters and addresses ---- */

bool sas_letters(struct span text, const char *allowed, uint32_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c < 'a' || c > 'z' || strchr(allowed, c) == NULL)
			return false;
		*ret |= UINT32_C(1) << (c - 'a');
	}
	return true;
}

static size_t address_bytes(int family)
{
	return family == AF_INET ? 4 : 16;
}

static bool parse_address(struct span text, int *ret_family, unsigned char ret[16])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char ip[INET6_ADDRSTRLEN];

	if (text.n == 0 || text.n >= sizeof(ip) || memchr(text.p, '\0', text.n) != NULL)
		return false;
	memcpy(ip, text.p, text.n);
	ip[text.n] = '\0';
	memset(ret, 0, 16);
	*ret_family = AF_INET;
	if (inet_pton(AF_INET, ip, ret) == 1)
		return true;
	*ret_family = AF_INET6;
	if (inet_pton(AF_INET6, ip, ret) != 1)
		return false;
	if (memcmp(ret, mapped, sizeof(mapped)) == 0) {
		*ret_family = AF_INET;
		memmove(ret, ret + 12, 4);
	}
	return true;
}

bool sas_ip_parse(struct span text, struct sas_ip *ret)
{
	const char *dash = text.n > 0 ? memchr(text.p, '-', text.n) : NULL;
	size_t first = dash != NULL ? (size_t)(dash - text.p) : text.n;
	int family;

	if (!parse_address(span_make(text.p, first), &ret->family, ret->from))
		return false;
	memcpy(ret->to, ret->from, sizeof(ret->to));
	return dash == NULL ||
		(parse_address(span_make(dash + 1, text.n - first - 1), &family, ret->to) &&
			family == ret->family);
}

bool sas_ip_holds(const struct sas_ip *r, const char *ip)
{
	unsigned char address[16];
	int family;
	size_t n;

	/* The zone of "fe80::1%eth0" is not part of the address. */
	n = strcspn(ip, "%");
	if (!parse_address(span_make(ip, n), &family, address) || family != r->family)
		return false;
	n = address_bytes(family);
	return memcmp(address, r->from, n) >= 0 && memcmp(address, r->to, n) <= 0;
}

/* ---- signing ---- */

static bool one_line_each(const struct sas *s)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct span *value = value_of(s, &fields[i]);
		if (value->n > 0 && memchr(value->p, '\n', value->n) != NULL)
			return false;
	}
	return true;
}

static void add_line(struct buf *out, struct span value)
{
	buf_add_span(out, value);
	buf_add_char(out, '\n');
}

static void add_lines(struct buf *out, const struct span *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_line(out, values[i]);
}

/* Adds "/table/account/name", with a table's name in lower case. */
static void add_resource(struct buf *out, const struct sas *s, struct span account, int version)
{
	struct span name = sas_resource(s);

	buf_add_char(out, '/');
	if (version_has(version, VERSION_SAS_PREFIX)) {
		buf_add_str(out, s->of->name);
		buf_add_char(out, '/');
	}
	buf_add_span(out, account);
	buf_add_char(out, '/');
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool fold = s->of->names_resource && c >= 'A' && c <= 'Z';
		buf_add_char(out, fold ? (char)(c - 'A' + 'a') : c);
	}
	buf_add_char(out, '\n');
}

/* Adds the stored policy or, in its place, the user delegation key, and empty lines for what rowfs does not
 * support. */
static void add_origin(const struct sas *s, int version, struct buf *out)
{
	const struct span key[] = { s->skoid, s->sktid, s->skt, s->ske, s->sks, s->skv };

	if (!sas_is_delegated(s)) {
		add_line(out, s->si);
		return;
	}
	add_lines(out, key, ARRAY_LEN(key));
	if (s->of->resource != NULL && version_has(version, VERSION_SAS_AGENTS))
		buf_add_str(out, "\n\n\n");
	if (version_has(version, VERSION_SAS_USERS))
		buf_add_str(out, "\n\n");
}

static void add_service_string(
	const struct sas *s, struct span account, int version, struct buf *out)
{
	const struct span times[] = { s->sp, s->st, s->se };
	const struct span limits[] = { s->sip, s->spr };

	add_lines(out, times, ARRAY_LEN(times));
	add_resource(out, s, account, version);
	add_origin(s, version, out);
	if (version_has(version, VERSION_SAS_LIMITS))
		add_lines(out, limits, ARRAY_LEN(limits));
	buf_add_span(out, s->sv); /* the last line has no line end */
	s->of->add_fields(s, out);
}

/* The last line has a line end too. */
static void add_account_string(
	const struct sas *s, struct span account, int version, struct buf *out)
{
	const struct span lines[] = { account, s->sp, s->ss, s->srt, s->st, s->se, s->sip, s->spr,
		s->sv };

	add_lines(out, lines, ARRAY_LEN(lines));
	if (version_has(version, VERSION_SAS_ENCRYPTION))
		add_line(out, s->ses);
}

enum version_rule sas_since(const struct sas *s)
{
	if (sas_is_account(s))
		return VERSION_ACCOUNT_SAS;
	return sas_is_delegated(s) ? s->of->delegation : s->of->since;
}

enum err sas_string_to_sign(const struct sas *s, struct span account, struct buf *out)
{
	bool of_account = sas_is_account(s);
	int version = version_parse(s->sv);

	if (!version_has(version, sas_since(s)) || !one_line_each(s))
		return ERR_INVALID_INPUT;
	if (of_account)
		add_account_string(s, account, version, out);
	else
		add_service_string(s, account, version, out);
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}

enum err sas_sign(const struct sas *s, struct span account, struct span key, struct buf *out)
{
	struct buf text = BUF_INIT(SAS_STRING_LIMIT);
	uint8_t code[32];
	enum err e = sas_string_to_sign(s, account, &text);

	if (e == ERR_OK) {
		crypto_hmac_sha256(key, buf_span(&text), code);
		base64_encode(span_make(code, sizeof(code)), out);
		e = buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
	}
	buf_fini(&text);
	return e;
}
