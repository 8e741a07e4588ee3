/* SPDX-License-Identifier: MIT
 * The body of an account's item has lines of text: "key1=BASE64", "key2=BASE64" and, if they were
 * ever set, "properties=BASE64" "queue-properties=BASE64" and "blob-properties=BASE64" with the service properties.  Unknown
 * lines are refused: the next change would lose them.  Keys are wiped from memory after use. */
#include "service/core/account_secrets.h"

#include "base/crypto.h"

#include <string.h>

#define KEY_BYTES_MAX (LIMIT_ACCOUNT_KEY_BYTES * 2)

static const struct span field[2] = { SPAN_LIT("key1="), SPAN_LIT("key2=") };
static const struct span properties_field[ACCOUNT_SERVICES_] = {
	[ACCOUNT_TABLES] = SPAN_LIT("properties="),
	[ACCOUNT_QUEUES] = SPAN_LIT("queue-properties="),
	[ACCOUNT_BLOBS] = SPAN_LIT("blob-properties="),
};

void account_keys_fresh(struct account_keys *k, int which)
{
	crypto_random(k->key[which], LIMIT_ACCOUNT_KEY_BYTES);
	k->len[which] = LIMIT_ACCOUNT_KEY_BYTES;
}

static void add_line(struct buf *out, struct span name, struct span bytes)
{
	buf_add_span(out, name);
	base64_encode(bytes, out);
	buf_add_char(out, '\n');
}

enum err account_secrets_write(const struct account_secrets *a, struct buf *out)
{
	for (int i = 0; i < 2; i++)
		add_line(out, field[i], span_make(a->keys.key[i], a->keys.len[i]));
	for (int i = 0; i < ACCOUNT_SERVICES_; i++)
		if (a->properties[i].len > 0)
			add_line(out, properties_field[i], buf_span(&a->properties[i]));
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}

static bool parse_key(struct span text, struct account_keys *ret, int which)
{
	char room[KEY_BYTES_MAX + 1];
	struct buf bytes = { .data = room, .cap = sizeof(room), .limit = sizeof(room) - 1 };
	bool ok = base64_decode(text, &bytes) && bytes.len > 0;
	if (ok) {
		memcpy(ret->key[which], bytes.data, bytes.len);
		ret->len[which] = bytes.len;
	}
	explicit_bzero(room, sizeof(room));
	return ok;
}

/* Takes "name=TEXT\n" from the front of *body. */
static bool take_line(struct span *body, struct span name, struct span *ret)
{
	const char *end = body->n == 0 ? NULL : memchr(body->p, '\n', body->n);
	if (end == NULL || !span_starts(*body, name))
		return false;
	size_t line = (size_t)(end - body->p);
	*ret = span_make(body->p + name.n, line - name.n);
	*body = span_make(end + 1, body->n - line - 1);
	return true;
}

/* Takes the line of one service's properties, if it is there.  ret must be an empty buffer. */
static enum err parse_properties(struct span *body, struct span name, struct buf *ret)
{
	struct span text;
	if (!take_line(body, name, &text))
		return ERR_OK;
	if (text.n == 0 || text.n / 4 * 3 > ret->limit)
		return ERR_CORRUPT;
	if (!buf_reserve(ret, text.n / 4 * 3))
		return ERR_NO_MEMORY;
	return base64_decode(text, ret) ? ERR_OK : ERR_CORRUPT;
}

static enum err parse(struct span body, struct account_secrets *ret)
{
	struct span text;
	for (int i = 0; i < 2; i++) {
		if (!take_line(&body, field[i], &text) || !parse_key(text, &ret->keys, i))
			return ERR_CORRUPT;
	}
	enum err e = ERR_OK;
	for (int i = 0; i < ACCOUNT_SERVICES_ && e == ERR_OK; i++)
		e = parse_properties(&body, properties_field[i], &ret->properties[i]);
	return e == ERR_OK && body.n > 0 ? ERR_CORRUPT : e;
}

enum err account_fresh_body(struct buf *out)
{
	struct account_secrets a = { 0 };
	account_keys_fresh(&a.keys, 0);
	account_keys_fresh(&a.keys, 1);
	enum err e = account_secrets_write(&a, out);
	account_secrets_fini(&a);
	return e;
}

enum err account_secrets_read(struct span body, struct account_secrets *ret)
{
	/* Two more bytes for base64's padding. */
	*ret = (struct account_secrets){ 0 };
	for (int i = 0; i < ACCOUNT_SERVICES_; i++)
		ret->properties[i] = BUF_INIT(ACCOUNT_PROPERTIES_MAX + 2);
	enum err e = parse(body, ret);
	if (e != ERR_OK)
		account_secrets_fini(ret);
	return e;
}

void account_secrets_fini(struct account_secrets *a)
{
	for (int i = 0; i < ACCOUNT_SERVICES_; i++)
		buf_fini(&a->properties[i]);
	explicit_bzero(a, sizeof(*a));
}
