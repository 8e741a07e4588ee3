/* SPDX-License-Identifier: MIT
 * A SAS allows what both its permissions and the roles of the user allow.  The SAS does not name
 * the roles, and nothing is stored.  So the roles are part of what the key is made of, and a
 * signature is compared with those of the keys for each set of roles.  There are 32 sets at most,
 * which takes a fraction of a millisecond. */
#include "rest/core/delegation.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "codec/xml.h"
#include "model/access_policy.h"
#include "rest/core/rest_service.h"
#include "rest/rest.h"

#include <stdio.h>
#include <string.h>

#define TEXT_LIMIT ((size_t)64 << 10) /* of the fields of a key; a URL is not longer */
#define KEY_BYTES 32

/* The fields of a key, as the SAS spells them. */
struct key_fields {
	struct span object, tenant, start, expiry, service, version;
};

/* No text of another kind that an account key signs begins in this way.  No field has a line break.
 */
static enum err make_text(const char *account, const struct key_fields *k, struct buf *out)
{
	const struct span lines[] = { k->object, k->tenant, k->start, k->expiry, k->service,
		k->version };
	buf_addf(out, "rowfs user delegation key\n%s\n", account);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		buf_add_span(out, lines[i]);
		buf_add_char(out, '\n');
	}
	return buf_full(out);
}

static void make_key(const struct account_keys *keys, size_t which, struct span text,
	uint32_t roles, uint8_t out[KEY_BYTES])
{
	uint8_t base[KEY_BYTES];
	char set[16];
	int n = snprintf(set, sizeof(set), "%u", (unsigned)roles);
	crypto_hmac_sha256(span_make(keys->key[which], keys->len[which]), text, base);
	crypto_hmac_sha256(span_make(base, sizeof(base)), span_make(set, (size_t)n), out);
	explicit_bzero(base, sizeof(base));
}

/* ---- checking ---- */

static bool signed_by(const struct account_keys *keys, size_t which, struct span fields,
	uint32_t roles, struct span text, const uint8_t signature[SIGNATURE_BYTES])
{
	struct account_keys one = { .len = { KEY_BYTES } };
	make_key(keys, which, fields, roles, one.key[0]);
	bool found = signature_matches(&one, text, signature);
	explicit_bzero(&one, sizeof(one));
	return found;
}

static bool find_roles(const struct access_facts *f, struct span fields, struct span text,
	const uint8_t signature[SIGNATURE_BYTES], uint32_t *ret_roles)
{
	const struct account_keys *keys = &f->keys->keys;
	for (size_t i = 0; i < ARRAY_LEN(keys->key); i++) {
		/* Anybody could make the keys of an empty key. */
		if (keys->len[i] == 0)
			continue;
		uint32_t roles = roles_next(0, f->rest->letter);
		for (; roles != 0; roles = roles_next(roles, f->rest->letter)) {
			if (!signed_by(keys, i, fields, roles, text, signature))
				continue;
			*ret_roles = roles;
			return true;
		}
	}
	return false;
}

bool delegation_signed(const struct access_facts *f, const struct sas *s, struct span text,
	const uint8_t signature[SIGNATURE_BYTES], uint32_t *ret_roles)
{
	const struct key_fields k = { s->skoid, s->sktid, s->skt, s->ske, s->sks, s->skv };
	struct buf fields = BUF_INIT(TEXT_LIMIT);
	bool found = f->request->oauth != NULL &&
		make_text(f->url->account, &k, &fields) == ERR_OK &&
		find_roles(f, buf_span(&fields), text, signature, ret_roles);
	buf_fini(&fields);
	return found;
}

uint32_t delegation_letters(uint32_t roles, char service)
{
	struct grants g = roles_grants(roles, service);
	return g.objects | (g.containers & PERMISSION('l'));
}

/* ---- Get User Delegation Key ---- */

static enum err read_time(
	const struct xml_node *node, int64_t absent, int64_t *ret, struct err_detail *detail)
{
	struct span text;
	*ret = absent;
	if (node == NULL)
		return ERR_OK;
	enum err e = xml_text(node, &text, detail);
	if (e != ERR_OK)
		return e;
	return policy_time_parse(text, ret) ? ERR_OK
					    : err_set(detail, ERR_XML_VALUE, "'%.*s' is no time.",
						      text.n < 64 ? (int)text.n : 64, text.p);
}

static enum err read_body(struct request_context *c, int64_t *ret_start, int64_t *ret_expiry)
{
	static const struct xml_field fields[] = { { "Start", false }, { "Expiry", true },
		{ "DelegatedUserTid", false }, { 0 } };
	const struct xml_node *found[ARRAY_LEN(fields) - 1];
	struct xml_node *root;
	int64_t now = clock_ticks();
	enum err e = xml_parse(c->request->body, c->arena, &root, &c->detail);
	if (e == ERR_OK && !span_is(root->name, "KeyInfo"))
		e = err_set(&c->detail, ERR_XML_INVALID, "The body is a <KeyInfo>.");
	if (e == ERR_OK)
		e = xml_fields(root, fields, found, &c->detail);
	if (e == ERR_OK && found[2] != NULL)
		e = err_set(&c->detail, ERR_NOT_SUPPORTED, "A key is for no other user.");
	if (e == ERR_OK)
		e = read_time(found[0], now, ret_start, &c->detail);
	if (e == ERR_OK)
		e = read_time(found[1], now, ret_expiry, &c->detail);
	if (e == ERR_OK &&
		(*ret_expiry <= now || *ret_expiry <= *ret_start ||
			*ret_expiry > now + DELEGATION_DAYS * 24 * 3600 * TICKS_PER_SECOND))
		e = err_set(&c->detail, ERR_XML_VALUE,
			"The expiry is behind the start, and at most %d days from now.",
			DELEGATION_DAYS);
	return e;
}

/* In whole seconds, since the SDKs write the time again without a fraction. */
static struct span write_time(int64_t ticks, char out[CLOCK_TEXT_MAX])
{
	int n = clock_format(ticks - ticks % TICKS_PER_SECOND, out);
	return span_make(out, (size_t)n);
}

static void write_response(
	const struct key_fields *k, const uint8_t key[KEY_BYTES], struct buf *out)
{
	buf_add_str(out, XML_DECLARATION "<UserDelegationKey>");
	xml_add_element(out, "SignedOid", k->object);
	xml_add_element(out, "SignedTid", k->tenant);
	xml_add_element(out, "SignedStart", k->start);
	xml_add_element(out, "SignedExpiry", k->expiry);
	xml_add_element(out, "SignedService", k->service);
	xml_add_element(out, "SignedVersion", k->version);
	buf_add_str(out, "<Value>");
	base64_encode(span_make(key, KEY_BYTES), out);
	buf_add_str(out, "</Value></UserDelegationKey>");
}

static enum err give_key(struct request_context *c, int64_t start, int64_t expiry, struct buf *out)
{
	const struct bearer *b = &c->access.bearer;
	const struct account_keys *keys = &c->secrets.keys;
	char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX], version[16];
	struct buf text = BUF_INIT(TEXT_LIMIT);
	uint8_t key[KEY_BYTES];
	int n = snprintf(version, sizeof(version), "%04d-%02d-%02d", c->version / 10000,
		c->version / 100 % 100, c->version % 100);
	const struct key_fields k = { span_of(b->object),
		span_of(b->tenant[0] != '\0' ? b->tenant : REST_TENANT_DEFAULT),
		write_time(start, from), write_time(expiry, to), span_make(c->rest->name, 1),
		span_make(version, (size_t)n) };
	enum err e = make_text(c->url.account, &k, &text);
	if (e == ERR_OK) {
		make_key(keys, keys->len[0] > 0 ? 0 : 1, buf_span(&text), b->grants.roles, key);
		write_response(&k, key, out);
		explicit_bzero(key, sizeof(key));
	}
	buf_fini(&text);
	return e;
}

enum err op_get_delegation_key(struct request_context *c, struct response *r)
{
	int64_t start, expiry;
	if (c->access.bearer.object[0] == '\0')
		return err_set(&c->detail, ERR_NOT_PERMITTED,
			"The token has no object id (oid) of at most 64 letters, digits and hyphens.");
	enum err e = read_body(c, &start, &expiry);
	if (e == ERR_OK)
		e = give_key(c, start, expiry, &r->body);
	if (e != ERR_OK)
		return e;
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return buf_ok(&r->body) ? ERR_OK : ERR_NO_MEMORY;
}
