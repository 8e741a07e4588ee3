/* SPDX-License-Identifier: MIT
 * Accounts.  The body of an account item holds its secrets as two lines of text,
 * "key1=BASE64" and "key2=BASE64"; lines that this version does not know are refused
 * rather than lost at the next regenerate.  Keys are wiped from our own memory. */
#include "service/accounts.h"

#include "base/crypto.h"
#include "model/names.h"

#include <string.h>

#define BODY_LIMIT 4096
#define KEY_BYTES_MIN 16
#define KEY_BYTES_MAX (LIMIT_ACCOUNT_KEY_BYTES * 2)
#define REGENERATE_TRIES 16

static const struct span field[2] = { SPAN_LIT("key1="), SPAN_LIT("key2=") };

static void wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->cap);
	buf_fini(b);
}

static void fresh(struct account_keys *k, int which)
{
	crypto_random(k->key[which], LIMIT_ACCOUNT_KEY_BYTES);
	k->len[which] = LIMIT_ACCOUNT_KEY_BYTES;
}

static enum err format(const struct account_keys *k, struct buf *out)
{
	for (int i = 0; i < 2; i++) {
		buf_add_span(out, field[i]);
		base64_encode(span_make(k->key[i], k->len[i]), out);
		buf_add_char(out, '\n');
	}
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}

static bool parse_key(struct span text, struct account_keys *ret, int which)
{
	struct buf bytes = BUF_INIT(KEY_BYTES_MAX);
	bool ok = base64_decode(text, &bytes) && buf_ok(&bytes) && bytes.len > 0;
	if (ok) {
		memcpy(ret->key[which], bytes.data, bytes.len);
		ret->len[which] = bytes.len;
	}
	wipe(&bytes);
	return ok;
}

static enum err parse(struct span body, struct account_keys *ret)
{
	for (int i = 0; i < 2; i++) {
		const char *end = body.n == 0 ? NULL : memchr(body.p, '\n', body.n);
		if (end == NULL || !span_starts(body, field[i]))
			return ERR_CORRUPT;
		size_t line = (size_t)(end - body.p);
		struct span text = span_make(body.p + field[i].n, line - field[i].n);
		if (!parse_key(text, ret, i))
			return ERR_CORRUPT;
		body = span_make(end + 1, body.n - line - 1);
	}
	return body.n == 0 ? ERR_OK : ERR_CORRUPT;
}

enum err account_fresh_body(struct buf *out)
{
	struct account_keys keys;
	fresh(&keys, 0);
	fresh(&keys, 1);
	enum err e = format(&keys, out);
	explicit_bzero(&keys, sizeof(keys));
	return e;
}

static struct place place_of(struct span name)
{
	return (struct place){ .parent = STORE_ROOT, .class = CLASS_KEYED, .key = name };
}

/* Writes the keys; cond says whether the account is made or changed. */
static enum err put(struct service *s, enum origin origin, struct span name,
	const struct account_keys *keys, enum change_cond cond, int64_t cond_version,
	struct err_detail *detail)
{
	struct buf body = BUF_INIT(BODY_LIMIT);
	enum err e = format(keys, &body);
	if (e == ERR_OK) {
		struct change c = { .op = CHANGE_PUT,
			.at = place_of(name),
			.cond = cond,
			.cond_version = cond_version,
			.kind = ITEM_ACCOUNT,
			.item_flags = ITEM_MADE,
			.body = buf_span(&body),
			.attrs = ATTRS_UNSET };
		e = service_apply(s, origin, &c, 1, true, detail);
		changes_fini(&c, 1);
	}
	wipe(&body);
	return e;
}

enum err account_create(struct service *s, enum origin origin, struct span name,
	const struct span *given, struct account_keys *ret, struct err_detail *detail)
{
	enum err e = account_name_check(name, detail);
	if (e != ERR_OK)
		return e;
	if (given != NULL && (given->n < KEY_BYTES_MIN || given->n > KEY_BYTES_MAX))
		return err_set(detail, ERR_INVALID_INPUT,
			"an account key is %d to %d bytes, not %zu", KEY_BYTES_MIN, KEY_BYTES_MAX,
			given->n);

	struct account_keys keys;
	fresh(&keys, 0);
	fresh(&keys, 1);
	if (given != NULL) {
		memcpy(keys.key[0], given->p, given->n);
		keys.len[0] = given->n;
	}
	e = put(s, origin, name, &keys, COND_ABSENT, 0, detail);
	if (e == ERR_OK && ret != NULL)
		*ret = keys;
	explicit_bzero(&keys, sizeof(keys));
	return e;
}

static enum err find(struct service *s, struct span name, unsigned want, struct item *ret)
{
	enum err e = store_child(service_store(s), NULL, STORE_ROOT, CLASS_KEYED, name, want, ret);
	return e == ERR_NOT_FOUND ? ERR_ACCOUNT_NOT_FOUND : e;
}

enum err account_find(struct service *s, struct span name, struct item *ret)
{
	return find(s, name, WANT_ATTRS, ret);
}

static enum err read_keys(
	struct service *s, struct span name, struct account_keys *ret, int64_t *ret_version)
{
	struct item it = { 0 };
	enum err e = find(s, name, WANT_BODY, &it);
	if (e != ERR_OK)
		return e;
	e = parse(it.body, ret);
	*ret_version = it.version;
	item_fini(&it);
	return e;
}

enum err account_keys_get(struct service *s, struct span name, struct account_keys *ret)
{
	int64_t version;
	return read_keys(s, name, ret, &version);
}

enum err account_key_regenerate(struct service *s, enum origin origin, struct span name, int which,
	struct account_keys *ret, struct err_detail *detail)
{
	BUG_ON(which != 0 && which != 1);
	struct account_keys keys;
	enum err e = ERR_OK;
	for (int tries = 0; tries < REGENERATE_TRIES; tries++) {
		int64_t version;
		e = read_keys(s, name, &keys, &version);
		if (e != ERR_OK)
			break;
		fresh(&keys, which);
		e = put(s, origin, name, &keys, COND_VERSION, version, detail);
		if (e != ERR_CONDITION_NOT_MET)
			break;
	}
	if (e == ERR_OK && ret != NULL)
		*ret = keys;
	explicit_bzero(&keys, sizeof(keys));
	return e == ERR_NOT_FOUND ? ERR_ACCOUNT_NOT_FOUND : e;
}

enum err account_remove(struct service *s, enum origin origin, struct span name, bool recursive,
	struct err_detail *detail)
{
	struct change c = { .op = CHANGE_DELETE,
		.flags = recursive ? CHANGE_RECURSIVE : 0,
		.at = place_of(name),
		.cond = COND_PRESENT,
		.attrs = ATTRS_UNSET };
	enum err e = service_apply(s, origin, &c, 1, true, detail);
	changes_fini(&c, 1);
	return e == ERR_NOT_FOUND ? ERR_ACCOUNT_NOT_FOUND : e;
}
