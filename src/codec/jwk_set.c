/* SPDX-License-Identifier: MIT
 * A token chooses among the keys by `kid` only.  Its `alg` chooses nothing: a token must not be
 * able to have an RSA key used as the secret of an HMAC, or to be taken without a signature. */
#include "codec/jwk_set.h"

#include "base/buf.h"
#include "base/crypto.h"
#include "base/public_key.h"
#include "codec/json_read.h"

#include <stdlib.h>

struct jwk {
	struct span kid, issuer; /* borrowed from the set's text */
	const char *alg;
	struct public_key *key;
};

struct jwk_set {
	struct json_t *text;
	struct jwk keys[JWK_SET_KEYS];
	size_t n;
};

/* ---- reading ---- */

static enum err bad_key(size_t i, const char *why, struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT, "key %zu %s", i + 1, why);
}

/* Decodes a number of the key.  A member that is absent counts as empty. */
static bool read_bytes(const struct json_t *key, const char *name, struct buf *out)
{
	*out = BUF_INIT(JWK_SET_LIMIT);
	struct span text = json_read_text(key, name);
	return text.p != NULL && base64url_decode(text, out);
}

static enum err read_numbers(const struct json_t *key, bool rsa, struct jwk *ret)
{
	struct buf a, b;
	bool ok = read_bytes(key, rsa ? "n" : "x", &a);
	ok = read_bytes(key, rsa ? "e" : "y", &b) && ok;
	enum err e = !buf_ok(&a) || !buf_ok(&b) ? ERR_NO_MEMORY
		: !ok                           ? ERR_INVALID_INPUT
		: rsa ? public_key_rsa(buf_span(&a), buf_span(&b), &ret->key)
		      : public_key_p256(buf_span(&a), buf_span(&b), &ret->key);
	buf_fini(&a);
	buf_fini(&b);
	return e;
}

/* Returns the algorithm of the key's kind; NULL if it is for something else. */
static const char *algorithm(const struct json_t *key)
{
	struct span kind = json_read_text(key, "kty"), use = json_read_text(key, "use");
	struct span alg = json_read_text(key, "alg");
	const char *ret = span_is(kind, "RSA")                                        ? "RS256"
		: span_is(kind, "EC") && span_is(json_read_text(key, "crv"), "P-256") ? "ES256"
										      : NULL;
	if (ret == NULL || (use.p != NULL && !span_is(use, "sig")))
		return NULL;
	return alg.p == NULL || span_is(alg, ret) ? ret : NULL;
}

static bool known(const struct jwk_set *s, struct span kid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->keys[i].kid.p != NULL && kid.p != NULL && span_eq(s->keys[i].kid, kid))
			return true;
	return false;
}

static enum err add_key(struct jwk_set *s, size_t i, struct err_detail *detail)
{
	const struct json_t *key = json_read_object(s->text, "keys", i);
	if (key == NULL)
		return bad_key(i, "is no object", detail);
	struct jwk *k = &s->keys[s->n];
	k->alg = algorithm(key);
	if (k->alg == NULL)
		return ERR_OK;
	k->kid = json_read_text(key, "kid");
	/* The owner of the file may know better than the publisher of the key. */
	k->issuer = json_read_text(json_read_has(s->text, "issuer") ? s->text : key, "issuer");
	if (known(s, k->kid))
		return bad_key(i, "has the kid of an earlier one", detail);
	enum err e = read_numbers(key, k->alg[0] == 'R', k);
	s->n += e == ERR_OK;
	return e == ERR_INVALID_INPUT
		? bad_key(i,
			  "is damaged; RSA keys have 'n' of 2048 to 8192 bits and 'e', keys of P-256 "
			  "have 'x' and 'y'",
			  detail)
		: e;
}

static enum err add_keys(struct jwk_set *s, struct err_detail *detail)
{
	size_t n = json_read_count(s->text, "keys");
	enum err e = ERR_OK;
	if (n > JWK_SET_KEYS)
		return err_set(detail, ERR_INVALID_INPUT, "it has more than %d keys", JWK_SET_KEYS);
	for (size_t i = 0; i < n && e == ERR_OK; i++)
		e = add_key(s, i, detail);
	if (e == ERR_OK && s->n == 0)
		e = err_set(detail, ERR_INVALID_INPUT,
			"it has no key ('keys') for signatures by RSA or P-256");
	return e;
}

enum err jwk_set_read(struct span text, struct jwk_set **ret, struct err_detail *detail)
{
	struct jwk_set *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return ERR_NO_MEMORY;
	enum err e = json_read(text, JWK_SET_DEPTH, &s->text);
	if (e == ERR_INVALID_INPUT)
		e = err_set(detail, e, "it is no JSON object, or a member stands twice");
	if (e == ERR_OK)
		e = add_keys(s, detail);
	if (e == ERR_OK)
		*ret = s;
	else
		jwk_set_free(s);
	return e;
}

const struct json_t *jwk_set_file(const struct jwk_set *s)
{
	return s->text;
}

void jwk_set_free(struct jwk_set *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++)
		public_key_free(s->keys[i].key);
	json_read_free(s->text);
	free(s);
}

/* ---- checking ---- */

static const struct jwk *find(const struct jwk_set *s, struct span kid)
{
	if (kid.p == NULL)
		return s->n == 1 ? &s->keys[0] : NULL;
	for (size_t i = 0; i < s->n; i++)
		if (s->keys[i].kid.p != NULL && span_eq(s->keys[i].kid, kid))
			return &s->keys[i];
	return NULL;
}

enum err jwk_set_verify(const struct jwk_set *s, const struct jwt *t, struct span *ret_issuer,
	struct err_detail *detail)
{
	const struct jwk *k = find(s, json_read_text(t->header, "kid"));
	if (k == NULL)
		return err_set(detail, ERR_AUTH_FAILED,
			"Signature validation failed. No key has the token's key id (kid).");
	if (!span_is(json_read_text(t->header, "alg"), k->alg))
		return err_set(detail, ERR_AUTH_FAILED,
			"Signature validation failed. The algorithm (alg) of this key is %s.",
			k->alg);
	*ret_issuer = k->issuer;
	enum err e = public_key_verify(k->key, t->signed_text, buf_span(&t->signature));
	return e == ERR_AUTH_FAILED
		? err_set(detail, e, "Signature validation failed. Signature verification failed.")
		: e;
}
