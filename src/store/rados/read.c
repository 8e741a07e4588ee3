/* SPDX-License-Identifier: MIT
 * The reads of the engine.  There are no views: each answer is of the moment of one read, and a
 * page of a listing is of one moment. */
#include "model/limits.h"
#include "store/rados/core.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 128
#define PAGE_BYTES ((uint64_t)4 << 20) /* of bodies that are objects of their own */
#define PAGE_TRIES 30
#define TRIES 8

static enum err give(struct rstore *s, struct found *f, unsigned want, struct item *ret)
{
	struct item *it = &f->r.it;
	enum err e = ERR_OK;
	if (!rules_wants_body(want, it))
		it->body = (struct span){ NULL, 0 };
	else if (!it->body.p)
		e = find_body(s, f);
	it->flags &= ITEM_FLAGS_PUBLIC;
	return e == ERR_OK ? item_copy(ret, it) : e;
}

enum err rados_get(
	struct store *st, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	struct rstore *s = rstore_of(st);
	enum err e = ERR_NOT_FOUND;
	(void)v;
	for (unsigned i = 0; i < TRIES; i++) {
		struct found f;
		e = find_id(s, id, &f);
		if (e != ERR_OK)
			return e;
		e = give(s, &f, want, ret);
		found_fini(&f);
		if (e != ERR_NOT_FOUND) /* its body was replaced meanwhile */
			break;
	}
	return e;
}

enum err rados_child(struct store *st, struct store_view *v, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret)
{
	struct rstore *s = rstore_of(st);
	enum err e = ERR_NOT_FOUND;
	(void)v;
	for (unsigned i = 0; parent && i < TRIES; i++) {
		struct found f;
		e = find_child(s, parent, class, key, &f);
		if (e != ERR_OK)
			return e;
		e = give(s, &f, want, ret);
		found_fini(&f);
		if (e != ERR_NOT_FOUND)
			break;
	}
	return e;
}

/* ---- listings ---- */

/* A page of a directory.  It is of one moment, and so are the bodies that are objects of their own:
 * when one of them was replaced meanwhile, the page is read again. */
struct listing {
	struct rstore *s;
	uint64_t parent;
	enum item_class class;
	unsigned want;
	struct rio_page page;
	struct found *found; /* of each entry of the page */
	size_t n;            /* of the entries that are given */
};

static bool is_token(const struct rio_value *v)
{
	return span_is(v->key, KEY_TOKEN);
}

static struct span entry_key(const struct rio_value *v)
{
	return span_make(v->key.p + 1, v->key.n - 1);
}

static void listing_fini(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		found_fini(&l->found[i]);
	free(l->found);
	rio_page_fini(&l->page);
}

/* Takes the body over from an earlier reading of the page: such an object never changes. */
static void reuse_body(struct found *f, struct listing *old)
{
	for (size_t i = 0; i < old->n && !f->body; i++) {
		struct found *o = &old->found[i];
		if (!o->body || o->r.it.id != f->r.it.id || strcmp(o->r.token, f->r.token) != 0)
			continue;
		f->body = o->body;
		f->r.it.body = span_make(f->body, f->r.it.size);
		o->body = NULL;
	}
}

/* ERR_NOT_FOUND: the body was replaced since the page was read. */
static enum err load_entry(
	struct listing *l, const struct rio_value *v, struct found *f, struct listing *old)
{
	enum err e = is_token(v) ? ERR_OK : record_decode(v->val, &f->r);
	if (is_token(v) || e != ERR_OK || f->r.link)
		return e;
	f->r.it.parent = l->parent;
	f->r.it.class = l->class;
	f->r.it.key = entry_key(v);
	if (!*f->r.token || !rules_wants_body(l->want, &f->r.it))
		return ERR_OK;
	reuse_body(f, old);
	return f->body ? ERR_OK : find_body(l->s, f);
}

/* Loads entries until their bodies have PAGE_BYTES.  ERR_GONE: a body was replaced. */
static enum err load(struct listing *l, struct listing *old)
{
	uint64_t bytes = 0;
	bool replaced = false;
	l->found = calloc(l->page.n + 1, sizeof(*l->found));
	if (!l->found)
		return ERR_NO_MEMORY;
	while (l->n < l->page.n && bytes < PAGE_BYTES) {
		struct found *f = &l->found[l->n];
		enum err e = load_entry(l, &l->page.v[l->n++], f, old);
		if (e != ERR_OK && e != ERR_NOT_FOUND)
			return e;
		replaced |= e == ERR_NOT_FOUND;
		bytes += f->body ? f->r.it.size : 0;
	}
	return replaced ? ERR_GONE : ERR_OK;
}

/* Reads the page, with what an earlier reading has loaded. */
static enum err read_page(struct listing *l, struct span after, bool inclusive)
{
	struct listing old = *l;
	char object[RIO_NAME_MAX], prefix[2] = { class_letter(l->class) };
	struct buf start = BUF_INIT(KEYS_MAX);
	l->page = (struct rio_page){ 0 };
	l->found = NULL;
	l->n = 0;
	name_dir(object, l->parent);
	key_place(&start, l->class, after.p ? after : SPAN_LIT(""));
	buf_add_char(&start, 0);
	enum err e = buf_full(&start);
	if (e == ERR_OK) {
		/* Nothing given: the first key may be empty. */
		bool first = !after.p || inclusive;
		struct span keys[] = { span_make(start.data, start.len - 1), SPAN_LIT(KEY_TOKEN) };
		e = rio_list(&l->s->io, object, first ? keys : keys + 1, first ? 2 : 1, start.data,
			prefix, PAGE, &l->page);
	}
	buf_fini(&start);
	if (e == ERR_OK)
		e = load(l, &old);
	listing_fini(&old);
	return e;
}

/* A directory's own object is read unless its key will do. */
static enum err give_entry(
	struct listing *l, const struct rio_value *v, struct found *f, struct item *ret)
{
	if (!f->r.link)
		return give(l->s, f, l->want, ret);
	struct span key = entry_key(v);
	enum err e = ERR_OK;
	if (!(l->want & WANT_KEYS)) {
		e = find_dir(l->s, f->r.it.id, f);
	} else {
		f->r.it.parent = l->parent;
		f->r.it.class = l->class;
		f->r.it.key = key;
	}
	if (e == ERR_OK)
		e = give(l->s, f, l->want, ret);
	if (e == ERR_NOT_FOUND) /* it changed since the page was read */
		e = rados_child(&l->s->base, NULL, l->parent, l->class, key, l->want, ret);
	return e;
}

static enum err give_page(struct listing *l, store_list_fn fn, void *arg, bool *ret_stop)
{
	for (size_t i = 0; i < l->n && !*ret_stop; i++) {
		struct item it;
		if (is_token(&l->page.v[i]))
			continue;
		enum err e = give_entry(l, &l->page.v[i], &l->found[i], &it);
		if (e == ERR_NOT_FOUND)
			continue;
		if (e != ERR_OK)
			return e;
		*ret_stop = !fn(arg, &it);
		item_fini(&it);
	}
	return ERR_OK;
}

/* The token stands among the first two entries. */
static bool is_dead(const struct rio_page *page)
{
	for (size_t i = 0; i < page->n && i < 2; i++) {
		if (is_token(&page->v[i]))
			return page->v[i].val.n > 0 && page->v[i].val.p[0] == TOKEN_DEAD;
	}
	return true;
}

enum err rados_list(struct store *st, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, unsigned want, store_list_fn fn, void *arg,
	bool *ret_more)
{
	struct listing l = { .s = rstore_of(st), .parent = parent, .class = class, .want = want };
	bool gone, stop = false;
	(void)v;
	*ret_more = false;
	enum err e = find_gone(l.s, parent, &gone);
	if (e != ERR_OK || gone || !parent)
		return e;
	e = ERR_GONE;
	for (unsigned i = 0; e == ERR_GONE && i < PAGE_TRIES; i++)
		e = read_page(&l, after, inclusive);
	if (e == ERR_OK && !is_dead(&l.page)) {
		e = give_page(&l, fn, arg, &stop);
		*ret_more = (l.page.more || l.n < l.page.n) && !stop;
	}
	listing_fini(&l);
	return e == ERR_NOT_FOUND ? ERR_OK : e == ERR_GONE ? ERR_THROTTLED : e;
}

/* ---- ordinary files ---- */

/* The file's record and the tokens of its stripes at one moment; v[0] is the record's. */
static enum err read_stripes(struct rstore *s, struct found *f, uint64_t first, size_t n,
	struct rio_value *v, char **ret_mem)
{
	char object[RIO_NAME_MAX];
	struct item *it = &f->r.it;
	struct buf keys = BUF_INIT(KEYS_MAX);
	key_place(&keys, it->class, it->key);
	size_t record = keys.len;
	for (size_t i = 0; i < n; i++)
		key_stripe(&keys, it->id, first + i);
	enum err e = buf_full(&keys);
	if (e == ERR_OK) {
		size_t each = KEY_STRIPES_LEN + 8;
		v[0].key = span_make(keys.data, record);
		for (size_t i = 0; i < n; i++)
			v[i + 1].key = span_make(keys.data + record + i * each, each);
		name_dir(object, it->parent);
		e = rio_get(&s->io, object, v, n + 1, ret_mem);
	}
	buf_fini(&keys);
	return e;
}

static enum err read_one(struct rstore *s, uint64_t id, uint64_t stripe, struct span token,
	uint64_t from, char *out, size_t n)
{
	char object[RIO_NAME_MAX], text[TOKEN_LEN + 1];
	size_t got = 0;
	memset(out, 0, n);
	if (!token.p)
		return ERR_OK;
	if (token.n != TOKEN_LEN)
		return ERR_CORRUPT;
	memcpy(text, token.p, TOKEN_LEN);
	text[TOKEN_LEN] = 0;
	name_stripe(object, id, stripe, text);
	enum err e = rio_read(&s->io, object, from, out, n, &got);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

static enum err read_bytes(
	struct rstore *s, struct found *f, uint64_t offset, char *out, size_t n, size_t *ret_n)
{
	uint64_t first = offset / STRIPE_BYTES, last = (offset + n - 1) / STRIPE_BYTES;
	struct rio_value *v = calloc(last - first + 2, sizeof(*v));
	struct record r;
	char *mem = NULL;
	if (!v)
		return ERR_NO_MEMORY;
	enum err e = read_stripes(s, f, first, (size_t)(last - first + 1), v, &mem);
	if (e == ERR_OK)
		e = v[0].val.p ? record_decode(v[0].val, &r) : ERR_GONE;
	if (e == ERR_OK && (r.it.id != f->r.it.id || r.it.kind != ITEM_FILE))
		e = ERR_GONE;
	if (e == ERR_OK) {
		*ret_n = offset >= r.it.size     ? 0
			: r.it.size - offset < n ? (size_t)(r.it.size - offset)
						 : n;
		n = *ret_n;
	}
	while (e == ERR_OK && n > 0) {
		uint64_t stripe = offset / STRIPE_BYTES, from = offset % STRIPE_BYTES;
		size_t part = STRIPE_BYTES - from < n ? (size_t)(STRIPE_BYTES - from) : n;
		e = read_one(s, r.it.id, stripe, v[stripe - first + 1].val, from, out, part);
		offset += part;
		out += part;
		n -= part;
	}
	free(v);
	free(mem);
	return e;
}

enum err rados_file_read(struct store *st, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n)
{
	struct rstore *s = rstore_of(st);
	enum err e = ERR_NOT_FOUND;
	(void)v;
	*ret_n = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		struct found f;
		e = find_id(s, id, &f);
		if (e != ERR_OK)
			return e;
		if (f.r.it.kind != ITEM_FILE)
			e = item_is_dir(f.r.it.kind) ? ERR_IS_A_DIRECTORY : ERR_INVALID_INPUT;
		else if (n > 0 && offset < LIMIT_FILE_BYTES)
			e = read_bytes(s, &f, offset, out, n, ret_n);
		found_fini(&f);
		if (e != ERR_GONE)
			return e;
	}
	return ERR_THROTTLED;
}
