/* SPDX-License-Identifier: MIT */
#include "codec/jwt.h"

#include "base/crypto.h"
#include "codec/json_read.h"

static enum err bad(const char *why, struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT, "The token %s.", why);
}

/* Cuts the text up to the next dot off. */
static bool take_part(struct span *rest, struct span *ret)
{
	const char *dot = rest->n > 0 ? memchr(rest->p, '.', rest->n) : NULL;
	if (dot == NULL)
		return false;
	*ret = span_make(rest->p, (size_t)(dot - rest->p));
	*rest = span_make(dot + 1, rest->n - ret->n - 1);
	return true;
}

static enum err read_object(
	struct span part, const char *why, struct json_t **ret, struct err_detail *detail)
{
	struct buf text = BUF_INIT(JWT_LIMIT);
	enum err e = ERR_INVALID_INPUT;
	if (base64url_decode(part, &text))
		e = json_read(buf_span(&text), JWT_DEPTH, ret);
	if (!buf_ok(&text))
		e = ERR_NO_MEMORY;
	buf_fini(&text);
	return e == ERR_INVALID_INPUT ? bad(why, detail) : e;
}

static enum err read_signature(struct span part, struct buf *ret, struct err_detail *detail)
{
	*ret = BUF_INIT(JWT_LIMIT);
	if (base64url_decode(part, ret))
		return ERR_OK;
	return buf_ok(ret) ? bad("has a signature that is not base64url", detail) : ERR_NO_MEMORY;
}

enum err jwt_read(struct span token, struct jwt *ret, struct err_detail *detail)
{
	struct span header, claims, rest = token;
	*ret = (struct jwt){ 0 };
	if (token.n > JWT_LIMIT)
		return bad("is longer than 16 KiB", detail);
	if (!take_part(&rest, &header) || !take_part(&rest, &claims) ||
		(rest.n > 0 && memchr(rest.p, '.', rest.n) != NULL))
		return bad("has not three parts with dots between them", detail);
	ret->signed_text = span_make(token.p, header.n + 1 + claims.n);
	enum err e = read_object(
		header, "has a header that is no JSON object of base64url", &ret->header, detail);
	if (e == ERR_OK && json_read_has(ret->header, "crit"))
		e = bad("has critical extensions (crit), which rowfs does not know", detail);
	if (e == ERR_OK)
		e = read_object(claims, "has claims that are no JSON object of base64url",
			&ret->claims, detail);
	if (e == ERR_OK)
		e = read_signature(rest, &ret->signature, detail);
	if (e != ERR_OK)
		jwt_fini(ret);
	return e;
}

void jwt_fini(struct jwt *t)
{
	json_read_free(t->header);
	json_read_free(t->claims);
	buf_fini(&t->signature);
	*t = (struct jwt){ 0 };
}
