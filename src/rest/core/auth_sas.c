/* SPDX-License-Identifier: MIT
 * Account and service SAS (protocol sections 4.5 and 4.6).  The checks are, in this order: form,
 * signature, time, address, protocol.  Only a correctly signed token causes a read of the store. */
#include "base/clock.h"
#include "base/compiler.h"
#include "model/limits.h"
#include "model/versions.h"
#include "rest/core/auth.h"
#include "rest/core/delegation.h"
#include "rest/core/rest_service.h"
#include "rest/core/signature.h"

#define SHOWN 64

static int shown(struct span s)
{
	return s.n < SHOWN ? (int)s.n : SHOWN;
}

/* ---- form ---- */

static enum err missing(const char *name, struct err_detail *detail)
{
	return err_set(detail, ERR_AUTH_FAILED, "The token has no '%s'.", name);
}

static enum err check_account_fields(const struct sas *s, struct err_detail *detail)
{
	if (s->ss.n == 0)
		return missing("ss", detail);
	return s->srt.n == 0 ? missing("srt", detail) : ERR_OK;
}

/* Without tn, the URL names the resource. */
static enum err check_service_fields(const struct sas *s, struct err_detail *detail)
{
	if (s->of->resource != NULL && s->sr.n == 0)
		return missing("sr", detail);
	if (!s->of->names_resource)
		return ERR_OK;
	if (s->tn.n == 0)
		return missing("tn", detail);
	if (s->tn.n > LIMIT_TABLE_NAME_MAX)
		return err_set(detail, ERR_AUTH_FAILED, "The token's 'tn' is not a table name.");
	if (s->srk.p != NULL && s->spk.p == NULL)
		return missing("spk", detail);
	return s->erk.p != NULL && s->epk.p == NULL ? missing("epk", detail) : ERR_OK;
}

static enum err check_delegation_fields(const struct sas *s, struct err_detail *detail)
{
	const struct {
		const char *name;
		struct span value;
	} fields[] = { { "skoid", s->skoid }, { "sktid", s->sktid }, { "skt", s->skt },
		{ "ske", s->ske }, { "sks", s->sks }, { "skv", s->skv } };
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (fields[i].value.n == 0)
			return missing(fields[i].name, detail);
	return s->sks.n == 1 && s->sks.p[0] == s->of->name[0]
		? ERR_OK
		: err_set(detail, ERR_AUTH_FAILED, "The key (sks) is for another service.");
}

/* A newer version than this program knows is checked by the rules of the newest known one.  If they
 * differ, the signature does not match. */
static enum err check_form(const struct sas *s, struct err_detail *detail)
{
	bool of_account = sas_is_account(s);
	const char *stranger = sas_unsigned_field(s);

	if (s->sv.n == 0)
		return missing("sv", detail);
	if (!version_has(version_parse(s->sv), sas_since(s)))
		return err_set(detail, ERR_AUTH_FAILED,
			"The version '%.*s' (sv) does not support this kind of token.",
			shown(s->sv), s->sv.p);
	if (stranger != NULL)
		return err_set(detail, ERR_AUTH_FAILED,
			"A token of this kind and version does not sign '%s'.", stranger);
	if (of_account)
		return check_account_fields(s, detail);
	enum err e = sas_is_delegated(s) ? check_delegation_fields(s, detail) : ERR_OK;
	return e == ERR_OK ? check_service_fields(s, detail) : e;
}

static bool signs(const struct access_facts *f, const struct sas *s, struct span text,
	const uint8_t signature[SIGNATURE_BYTES], uint32_t *ret_roles)
{
	if (sas_is_delegated(s))
		return delegation_signed(f, s, text, signature, ret_roles);
	return signature_matches(&f->keys->keys, text, signature);
}

static enum err check_signature(const struct access_facts *f, const struct sas *s,
	uint32_t *ret_roles, struct err_detail *detail)
{
	struct buf text = BUF_INIT(SAS_STRING_LIMIT);
	uint8_t signature[SIGNATURE_BYTES];
	enum err e = sas_string_to_sign(s, span_of(f->url->account), &text);

	if (e == ERR_INVALID_INPUT)
		e = err_set(detail, ERR_AUTH_FAILED, "The token has a line break in a field.");
	else if (e == ERR_OK &&
		(!signature_parse(s->sig, signature) ||
			!signs(f, s, buf_span(&text), signature, ret_roles)))
		e = signature_mismatch(f->rest->name, buf_span(&text), detail);
	buf_fini(&text);
	return e;
}

/* ---- time, address, protocol ---- */

static enum err read_time(
	struct span text, const char *name, int64_t *ret, struct err_detail *detail)
{
	if (policy_time_parse(text, ret))
		return ERR_OK;
	return err_set(
		detail, ERR_AUTH_FAILED, "'%.*s' (%s) is no time.", shown(text), text.p, name);
}

static enum err check_times(const struct sas_terms *t, int64_t now, struct err_detail *detail)
{
	int64_t start = now, expiry;
	enum err e = t->start.n > 0 ? read_time(t->start, "st", &start, detail) : ERR_OK;

	if (e == ERR_OK)
		e = read_time(t->expiry, "se", &expiry, detail);
	if (e != ERR_OK)
		return e;
	if (now < start)
		return err_set(detail, ERR_AUTH_FAILED, "The token is not valid before '%.*s'.",
			shown(t->start), t->start.p);
	if (now >= expiry)
		return err_set(detail, ERR_AUTH_FAILED, "The token expired at '%.*s'.",
			shown(t->expiry), t->expiry.p);
	return ERR_OK;
}

/* The SAS cannot outlive its key. */
static enum err check_key_times(const struct sas *s, int64_t now, struct err_detail *detail)
{
	const struct sas_terms key = { .start = s->skt, .expiry = s->ske };
	return check_times(&key, now, detail);
}

static enum err check_ip(const struct sas *s, const struct peer *peer, struct err_detail *detail)
{
	struct sas_ip range;

	if (s->sip.n == 0)
		return ERR_OK;
	if (!sas_ip_parse(s->sip, &range))
		return err_set(detail, ERR_AUTH_FAILED,
			"'%.*s' (sip) is neither an address nor a range of them.", shown(s->sip),
			s->sip.p);
	if (peer->is_unix)
		return err_set(detail, ERR_SAS_IP, "A Unix socket has no address.");
	if (!sas_ip_holds(&range, peer->ip))
		return err_set(detail, ERR_SAS_IP, "The request came from %s.", peer->ip);
	return ERR_OK;
}

static enum err check_protocol(
	const struct sas *s, const struct peer *peer, struct err_detail *detail)
{
	if (s->spr.n == 0 || span_is(s->spr, "https,http"))
		return ERR_OK;
	if (!span_is(s->spr, "https"))
		return err_set(detail, ERR_AUTH_FAILED,
			"'%.*s' (spr) is neither 'https' nor 'https,http'.", shown(s->spr),
			s->spr.p);
	return peer->tls ? ERR_OK
			 : err_set(detail, ERR_SAS_PROTOCOL, "The token (spr) allows https only.");
}

/* ---- what it gives ---- */

static enum err read_letters(struct span text, const char *name, const char *allowed, uint32_t *ret,
	struct err_detail *detail)
{
	if (sas_letters(text, allowed, ret))
		return ERR_OK;
	return err_set(detail, ERR_AUTH_FAILED, "'%.*s' (%s) has an unknown letter.", shown(text),
		text.p, name);
}

static enum err give_account(const struct sas *s, const struct sas_terms *t, struct access *ret,
	struct err_detail *detail)
{
	/* Most letters belong to other services, which add new ones. */
	static const char any[] = "abcdefghijklmnopqrstuvwxyz";

	ret->kind = ACCESS_ACCOUNT_SAS;
	enum err e = read_letters(t->permissions, "sp", any, &ret->permissions, detail);
	if (e == ERR_OK)
		e = read_letters(s->ss, "ss", any, &ret->services, detail);
	return e == ERR_OK ? read_letters(s->srt, "srt", any, &ret->resource_types, detail) : e;
}

static enum err give_service(const struct sas *s, const struct sas_terms *t, struct access *ret,
	struct err_detail *detail)
{
	ret->kind = ACCESS_SERVICE_SAS;
	ret->container = sas_container(s);
	return read_letters(t->permissions, "sp", s->of->permissions, &ret->permissions, detail);
}

enum err auth_sas(const struct access_facts *f, const struct sas *s, struct access *ret,
	struct err_detail *detail)
{
	struct sas_terms t = { 0 };
	uint32_t roles = 0; /* of the user delegation key */
	enum err e = check_form(s, detail);

	if (e == ERR_OK)
		e = check_signature(f, s, &roles, detail);
	if (e == ERR_OK && sas_is_delegated(s))
		e = check_key_times(s, f->now, detail);
	if (e == ERR_OK)
		e = sas_terms_read(f->service, span_of(f->url->account), s, &t, detail);
	if (e == ERR_OK)
		e = check_times(&t, f->now, detail);
	if (e == ERR_OK)
		e = check_ip(s, f->request->peer, detail);
	if (e == ERR_OK)
		e = check_protocol(s, f->request->peer, detail);
	ret->version = version_parse(s->sv);
	if (e == ERR_OK)
		e = sas_is_account(s) ? give_account(s, &t, ret, detail)
				      : give_service(s, &t, ret, detail);
	if (e == ERR_OK && sas_is_delegated(s))
		ret->permissions &= delegation_letters(roles, f->rest->letter);
	sas_terms_fini(&t);
	return e;
}
