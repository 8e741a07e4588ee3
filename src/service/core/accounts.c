/* SPDX-License-Identifier: MIT
 * Keys are wiped from memory after use. */
#include "service/core/accounts.h"

#include "model/names.h"
#include "service/core/lookup_cache.h"

#include <string.h>

#define BODY_LIMIT \
	(ACCOUNT_SERVICES_ * ACCOUNT_PROPERTIES_MAX * 4 / 3 + 4096) /* base64, and the keys */
#define KEY_BYTES_MIN 16
#define KEY_BYTES_MAX (LIMIT_ACCOUNT_KEY_BYTES * 2)
#define CHANGE_TRIES 16

static struct item_ref place_of(struct span name)
{
	return (struct item_ref){ .parent = STORE_ROOT, .class = CLASS_KEYED, .key = name };
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
	const struct account_secrets *secrets, enum change_cond cond, int64_t cond_version,
	struct err_detail *detail)
{
	size_t properties = 0;
	for (int i = 0; i < ACCOUNT_SERVICES_; i++)
		properties += secrets->properties[i].len;
	struct buf body = BUF_INIT(BODY_LIMIT);
	/* Reserves all memory first: growing the buffer would leave copies behind. */
	enum err e = buf_reserve(&body, 1024 + properties / 3 * 4) ? ERR_OK : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = account_secrets_write(secrets, &body);
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

	struct account_secrets fresh = { 0 };
	account_keys_fresh(&fresh.keys, 0);
	account_keys_fresh(&fresh.keys, 1);
	if (given != NULL) {
		memcpy(fresh.keys.key[0], given->p, given->n);
		fresh.keys.len[0] = given->n;
	}
	e = put(s, origin, name, &fresh, COND_ABSENT, 0, detail);
	if (e == ERR_OK && ret != NULL)
		*ret = fresh.keys;
	account_secrets_fini(&fresh);
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
	if (lookup_cache_account(service_lookup_cache(s), name, ret, &moment))
		return ERR_OK;
	enum err e = read_secrets(s, name, ret, &version);
	if (e == ERR_OK)
		lookup_cache_account_is(service_lookup_cache(s), name, ret, moment);
	return e;
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
			e = put(s, origin, name, &a, COND_VERSION, version, detail);
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
	account_keys_fresh(&a->keys, r->which);
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
	enum account_service which;
	account_change_fn fn;
	void *arg;
};

static enum err change_properties(void *arg, struct account_secrets *a)
{
	struct properties_change *p = arg;
	struct buf text = BUF_INIT(ACCOUNT_PROPERTIES_MAX);
	enum err e = p->fn(p->arg, buf_span(&a->properties[p->which]), &text);
	if (e == ERR_OK && !buf_ok(&text))
		e = ERR_NO_MEMORY;
	if (e != ERR_OK) {
		buf_fini(&text);
		return e;
	}
	buf_fini(&a->properties[p->which]);
	a->properties[p->which] = text;
	return ERR_OK;
}

enum err account_properties_change(struct service *s, enum origin origin, struct span name,
	enum account_service which, account_change_fn change, void *arg, struct err_detail *detail)
{
	struct properties_change p = { which, change, arg };
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
