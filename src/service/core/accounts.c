/* SPDX-License-Identifier: MIT
 * The body of an account's item has lines of text: "key1=BASE64", "key2=BASE64" and, if they were
 * ever set, "properties=BASE64" with the service properties.  Unknown lines are refused: the next
 * change would lose them.  Keys are wiped from memory after use. */
#include "service/core/accounts.h"

#include "base/crypto.h"
#include "model/names.h"
#include "service/core/known.h"

#include <string.h>

#define PROPERTIES_MAX ((size_t)64 * 1024)         /* bytes of XML */
#define BODY_LIMIT (PROPERTIES_MAX * 4 / 3 + 4096) /* base64, and the keys */
#define KEY_BYTES_MIN 16
#define KEY_BYTES_MAX (LIMIT_ACCOUNT_KEY_BYTES * 2)
#define CHANGE_TRIES 16

static const struct span field[2] = { SPAN_LIT("key1="), SPAN_LIT("key2=") };
static const struct span properties_field = SPAN_LIT("properties=");

static void fresh(struct account_keys *k, int which)
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

static enum err format(const struct account_keys *k, struct span properties, struct buf *out)
{
	for (int i = 0; i < 2; i++)
		add_line(out, field[i], span_make(k->key[i], k->len[i]));
	if (properties.n > 0)
		add_line(out, properties_field, properties);
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

/* ret->properties must be an empty buffer. */
static enum err parse(struct span body, struct account_secrets *ret)
{
	struct span text;
	for (int i = 0; i < 2; i++) {
		if (!take_line(&body, field[i], &text) || !parse_key(text, &ret->keys, i))
			return ERR_CORRUPT;
	}
	if (body.n == 0)
		return ERR_OK;
	if (!take_line(&body, properties_field, &text) || body.n > 0 || text.n == 0)
		return ERR_CORRUPT;
	if (text.n / 4 * 3 > ret->properties.limit)
		return ERR_CORRUPT;
	if (!buf_reserve(&ret->properties, text.n / 4 * 3))
		return ERR_NO_MEMORY;
	return base64_decode(text, &ret->properties) ? ERR_OK : ERR_CORRUPT;
}

enum err account_fresh_body(struct buf *out)
{
	struct account_keys keys;
	fresh(&keys, 0);
	fresh(&keys, 1);
	enum err e = format(&keys, (struct span){ 0 }, out);
	explicit_bzero(&keys, sizeof(keys));
	return e;
}

static struct place place_of(struct span name)
{
	return (struct place){ .parent = STORE_ROOT, .class = CLASS_KEYED, .key = name };
}

/* Wipes an account's item, which contains keys. */
static void wipe_item(struct item *it)
{
	if (it->body.p != NULL)
		explicit_bzero((char *)it->mem + (it->body.p - (char *)it->mem), it->body.n);
	item_fini(it);
}

/* Writes the secrets.  cond says if the account must exist. */
static enum err put(struct service *s, enum origin origin, struct span name,
	const struct account_keys *keys, struct span properties, enum change_cond cond,
	int64_t cond_version, struct err_detail *detail)
{
	struct buf body = BUF_INIT(BODY_LIMIT);
	/* Reserves all memory first: growing the buffer would leave copies behind. */
	enum err e = buf_reserve(&body, 1024 + properties.n / 3 * 4) ? ERR_OK : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = format(keys, properties, &body);
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
		wipe_item(&c.old);
		changes_fini(&c, 1);
	}
	buf_wipe(&body);
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
	e = put(s, origin, name, &keys, (struct span){ 0 }, COND_ABSENT, 0, detail);
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

enum err account_secrets_read(struct span body, struct account_secrets *ret)
{
	/* Two more bytes for base64's padding. */
	*ret = (struct account_secrets){ .properties = BUF_INIT(PROPERTIES_MAX + 2) };
	enum err e = parse(body, ret);
	if (e != ERR_OK)
		account_secrets_fini(ret);
	return e;
}

static enum err read_secrets(
	struct service *s, struct span name, struct account_secrets *ret, int64_t *ret_version)
{
	struct item it = { 0 };
	*ret = (struct account_secrets){ 0 };
	enum err e = find(s, name, WANT_BODY, &it);
	if (e != ERR_OK)
		return e;
	e = account_secrets_read(it.body, ret);
	ret->id = it.id;
	*ret_version = it.version;
	wipe_item(&it);
	return e;
}

enum err account_secrets_get(struct service *s, struct span name, struct account_secrets *ret)
{
	int64_t version;
	uint64_t moment;
	if (known_account(service_known(s), name, ret, &moment))
		return ERR_OK;
	enum err e = read_secrets(s, name, ret, &version);
	if (e == ERR_OK)
		known_account_is(service_known(s), name, ret, moment);
	return e;
}

void account_secrets_fini(struct account_secrets *a)
{
	buf_fini(&a->properties);
	explicit_bzero(a, sizeof(*a));
}

enum err account_keys_get(struct service *s, struct span name, struct account_keys *ret)
{
	struct account_secrets secrets;
	enum err e = account_secrets_get(s, name, &secrets);
	if (e != ERR_OK)
		return e;
	*ret = secrets.keys;
	account_secrets_fini(&secrets);
	return ERR_OK;
}

/* Reads, changes and writes the secrets, and repeats that after a lost race.  An error of change()
 * ends it.  Changes of the account's tables change its version too, so repetitions are common. */
static enum err change_secrets(struct service *s, enum origin origin, struct span name,
	enum err (*change)(void *arg, struct account_secrets *a), void *arg,
	struct err_detail *detail)
{
	for (int tries = 0; tries < CHANGE_TRIES; tries++) {
		struct account_secrets a;
		int64_t version;
		enum err e = read_secrets(s, name, &a, &version);
		if (e != ERR_OK)
			return e;
		e = change(arg, &a);
		bool changed = e == ERR_OK;
		if (changed)
			e = put(s, origin, name, &a.keys, buf_span(&a.properties), COND_VERSION,
				version, detail);
		account_secrets_fini(&a);
		if (changed && e == ERR_NOT_FOUND)
			return ERR_ACCOUNT_NOT_FOUND;
		if (!changed || e != ERR_CONDITION_NOT_MET)
			return e;
	}
	return ERR_THROTTLED;
}

struct regenerate {
	int which;
	struct account_keys *ret;
};

static enum err fresh_key(void *arg, struct account_secrets *a)
{
	struct regenerate *r = arg;
	fresh(&a->keys, r->which);
	*r->ret = a->keys;
	return ERR_OK;
}

enum err account_key_regenerate(struct service *s, enum origin origin, struct span name, int which,
	struct account_keys *ret, struct err_detail *detail)
{
	BUG_ON(which != 0 && which != 1);
	struct account_keys keys;
	struct regenerate r = { which, &keys };
	enum err e = change_secrets(s, origin, name, fresh_key, &r, detail);
	if (e == ERR_OK && ret != NULL)
		*ret = keys;
	explicit_bzero(&keys, sizeof(keys));
	return e;
}

struct properties_change {
	account_change_fn fn;
	void *arg;
};

static enum err change_properties(void *arg, struct account_secrets *a)
{
	struct properties_change *p = arg;
	struct buf text = BUF_INIT(PROPERTIES_MAX);
	enum err e = p->fn(p->arg, buf_span(&a->properties), &text);
	if (e == ERR_OK && !buf_ok(&text))
		e = ERR_NO_MEMORY;
	if (e != ERR_OK) {
		buf_fini(&text);
		return e;
	}
	buf_fini(&a->properties);
	a->properties = text;
	return ERR_OK;
}

enum err account_properties_change(struct service *s, enum origin origin, struct span name,
	account_change_fn change, void *arg, struct err_detail *detail)
{
	struct properties_change p = { change, arg };
	return change_secrets(s, origin, name, change_properties, &p, detail);
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
	wipe_item(&c.old);
	changes_fini(&c, 1);
	return e == ERR_NOT_FOUND ? ERR_ACCOUNT_NOT_FOUND : e;
}
