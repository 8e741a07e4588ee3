/* SPDX-License-Identifier: MIT
 * The engine: answers from the shadow, after the service confirmed that part of it. */
#include "base/interrupted.h"
#include "cloudstore/cloudstore.h"
#include "cloudstore/find.h"
#include "cloudstore/refresh.h"
#include "model/key.h"
#include "model/limits.h"

#include <stdlib.h>

static struct cloudstore *of(struct store *s)
{
	return (struct cloudstore *)s;
}

/* The shadow counts only what it was told of.  So no directory that the service has is empty. */
static void show(struct item *it)
{
	bool cloud =
		it->kind == ITEM_ACCOUNT || it->kind == ITEM_TABLE || it->kind == ITEM_PARTITION;
	if (cloud && it->size == 0)
		it->size = 1;
}

/* ---- reading ---- */

/* Confirms an item that is known by its id.  ERR_NOT_FOUND: its directory is gone. */
static enum err confirm(struct cloudstore *s, const struct item *it)
{
	struct item dir;
	if (it->kind == ITEM_TABLE)
		return refresh_tables(s);
	if (it->kind != ITEM_PARTITION && it->kind != ITEM_ROW)
		return ERR_OK;
	enum err e = store_get(s->shadow, NULL, it->parent, WANT_ATTRS, &dir);
	if (e == ERR_OK) {
		e = refresh_child(s, &dir, it->key);
		item_fini(&dir);
	}
	return e;
}

static enum err cloud_store_get(
	struct store *store, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	struct cloudstore *s = of(store);
	struct item known;
	(void)v;
	enum err e = store_get(s->shadow, NULL, id, WANT_ATTRS, &known);
	if (e != ERR_OK)
		return e;
	e = confirm(s, &known);
	item_fini(&known);
	if (e == ERR_OK)
		e = store_get(s->shadow, NULL, id, want, ret);
	if (e == ERR_OK)
		show(ret);
	return e;
}

/* Whether the service knows the children of this class. */
static bool is_cloud(enum item_class class, const struct item *dir)
{
	return class == CLASS_KEYED &&
		(dir->kind == ITEM_ACCOUNT || dir->kind == ITEM_TABLE ||
			dir->kind == ITEM_PARTITION);
}

static enum err cloud_store_child(struct store *store, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	struct cloudstore *s = of(store);
	struct item dir;
	(void)v;
	enum err e = store_get(s->shadow, NULL, parent, WANT_ATTRS, &dir);
	if (e != ERR_OK)
		return e;
	if (is_cloud(class, &dir))
		e = dir.kind == ITEM_ACCOUNT ? refresh_tables(s) : refresh_child(s, &dir, key);
	item_fini(&dir);
	if (e == ERR_OK)
		e = store_child(s->shadow, NULL, parent, class, key, want, ret);
	if (e == ERR_OK)
		show(ret);
	return e;
}

/* ---- listings ---- */

struct part {
	store_list_fn fn;
	void *arg;
	struct span to; /* the last key, unless to_end */
	bool to_end;
	bool stopped; /* by fn */
};

static bool give(void *arg, const struct item *it)
{
	struct part *p = arg;
	struct item shown = *it;
	if (!p->to_end && span_cmp(it->key, p->to) > 0)
		return false;
	show(&shown);
	p->stopped = !p->fn(p->arg, &shown);
	return !p->stopped;
}

/* Gives parts of the directory until fn stops: the caller goes on behind the last key that it was
 * given, and a part may have none. */
static enum err list_cloud(struct cloudstore *s, const struct item *dir, struct span from,
	unsigned want, struct part *p)
{
	struct buf at = BUF_INIT(LIMIT_KEY_BYTES + 2);
	bool end = false;
	enum err e = ERR_OK;
	buf_add_span(&at, from);
	while (e == ERR_OK && !end && !p->stopped) {
		struct refreshed part;
		e = refresh_listing(s, dir, buf_span(&at), &part);
		end = part.end;
		p->to = buf_span(&part.to);
		p->to_end = end;
		if (e == ERR_OK)
			e = store_list(s->shadow, NULL, dir->id, CLASS_KEYED, buf_span(&at), true,
				want, give, p);
		buf_clear(&at);
		buf_add_span(&at, buf_span(&part.to));
		buf_add_char(&at, 0);
		buf_fini(&part.to);
	}
	buf_fini(&at);
	return e;
}

static enum err list_dir(struct cloudstore *s, const struct item *dir, enum item_class class,
	struct span after, bool inclusive, unsigned want, struct part *p)
{
	if (is_cloud(class, dir) && dir->kind != ITEM_ACCOUNT) {
		struct buf from = BUF_INIT(LIMIT_KEY_BYTES + 2);
		buf_add_span(&from, after);
		if (after.p != NULL && !inclusive)
			buf_add_char(&from, 0);
		enum err e = list_cloud(s, dir, buf_span(&from), want, p);
		buf_fini(&from);
		return e;
	}
	enum err e = is_cloud(class, dir) ? refresh_tables(s) : ERR_OK;
	return e != ERR_OK
		? e
		: store_list(s->shadow, NULL, dir->id, class, after, inclusive, want, give, p);
}

static enum err cloud_store_list(struct store *store, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	struct cloudstore *s = of(store);
	struct part p = { .fn = fn, .arg = arg, .to_end = true };
	struct item dir;
	(void)v;
	*ret_more = false;
	enum err e = store_get(s->shadow, NULL, parent, WANT_ATTRS, &dir);
	if (e == ERR_OK) {
		e = list_dir(s, &dir, class, after, inclusive, want, &p);
		item_fini(&dir);
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err cloud_store_file_read(struct store *store, struct store_view *v, uint64_t id,
	uint64_t offset, void *out, size_t n, size_t *ret_n)
{
	(void)v;
	return store_file_read(of(store)->shadow, NULL, id, offset, out, n, ret_n);
}

/* ---- the rest ---- */

static enum err cloud_store_room(struct store *store, uint64_t bytes, struct err_detail *why)
{
	return store_room(of(store)->shadow, bytes, why);
}

static enum err cloud_store_sync(struct store *store)
{
	return store_sync(of(store)->shadow); /* ordinary files; the service has all else */
}

static int64_t cloud_store_version_floor(struct store *store)
{
	return store_version_floor(of(store)->shadow);
}

static enum err cloud_store_view_open(struct store *store, bool held, struct store_view **ret)
{
	(void)store;
	(void)held;
	*ret = NULL;
	return ERR_OK;
}

static void cloud_store_view_close(struct store *store, struct store_view *v)
{
	(void)store;
	(void)v;
}

static void cloud_store_info(struct store *store, struct store_info *ret)
{
	store_info(of(store)->shadow, ret);
	ret->abilities = STORE_SHARED | STORE_MOVES_IN_STEPS | STORE_FINDS;
	ret->traffic = &of(store)->traffic;
}

static enum err cloud_store_check(
	struct store *store, store_check_fn fn, store_progress_fn progress, void *arg)
{
	return store_check(of(store)->shadow, fn, progress, arg);
}

static void cloud_store_listen(struct store *store, store_external_fn fn, void *arg)
{
	(void)store;
	(void)fn;
	(void)arg;
}

static void free_store(struct cloudstore *s)
{
	for (size_t i = 0; i < CLOUDSTORE_STRIPES; i++) {
		rwlock_destroy(&s->tables[i]);
		mutex_destroy(&s->partitions[i]);
	}
	clients_fini(&s->clients);
	confirmed_free(s->confirmed);
	found_free(s->found);
	free(s);
}

static void cloud_store_close(struct store *store)
{
	store_close(of(store)->shadow);
	free_store(of(store));
}

static const struct store_ops ops = {
	.name = "cloud",
	.get = cloud_store_get,
	.child = cloud_store_child,
	.list = cloud_store_list,
	.find = cloudstore_find,
	.file_read = cloud_store_file_read,
	.apply = cloudstore_apply,
	.room = cloud_store_room,
	.sync = cloud_store_sync,
	.version_floor = cloud_store_version_floor,
	.view_open = cloud_store_view_open,
	.view_close = cloud_store_view_close,
	.info = cloud_store_info,
	.check = cloud_store_check,
	.listen = cloud_store_listen,
	.close = cloud_store_close,
};

/* A thread's own interruption ends its requests. */
static bool interrupted(void *arg)
{
	(void)arg;
	return thread_interrupted();
}

static enum err find_account(struct cloudstore *s)
{
	struct item account;
	struct span name = span_of(s->clients.at.account);
	enum err e =
		store_child(s->shadow, NULL, STORE_ROOT, CLASS_KEYED, name, WANT_ATTRS, &account);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_ACCOUNT_NOT_FOUND : e;
	s->account = account.id;
	item_fini(&account);
	return ERR_OK;
}

enum err cloudstore_open(struct store *shadow, const struct endpoint *at,
	const struct cloudstore_options *o, struct store **ret, struct err_detail *why)
{
	struct cloudstore *s = calloc(1, sizeof(*s));
	struct client *client;
	if (s == NULL)
		return ERR_NO_MEMORY;
	s->base.ops = &ops;
	s->shadow = shadow;
	struct client_options options = o->client;
	options.traffic = &s->traffic;
	options.cancelled = interrupted;
	options.finishes_changes = true;
	s->hard = o->hard;
	s->traffic.rps = o->rps;
	clients_init(&s->clients, at, &options);
	for (size_t i = 0; i < CLOUDSTORE_STRIPES; i++) {
		rwlock_init(&s->tables[i], RANK_CLOUD_TABLE);
		mutex_init(&s->partitions[i], RANK_CLOUD_PARTITION);
	}
	s->confirmed = confirmed_new((uint64_t)o->cache_ms * 1000);
	s->found = found_new((uint64_t)o->cache_ms * 1000);
	bool room = s->confirmed != NULL && s->found != NULL;
	enum err e = room ? find_account(s) : ERR_NO_MEMORY;
	/* Now, so that a build without libcurl is told at the mount. */
	if (e == ERR_OK)
		e = clients_take(&s->clients, &client, why);
	if (e != ERR_OK) {
		free_store(s);
		return e;
	}
	clients_give(&s->clients, client);
	*ret = &s->base;
	return ERR_OK;
}
