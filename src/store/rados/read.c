/* SPDX-License-Identifier: MIT
 * The reads of the engine.  There are no views: each answer is of the moment of one read, and a
 * page of a listing is of one moment. */
#include "model/limits.h"
#include "store/rados/core.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 128
#define TRIES 8

static enum err give(struct rstore *s, struct found *f, unsigned want, struct item *ret)
{
	struct item *it = &f->r.it;
	enum err e = ERR_OK;
	if (!rules_wants_body(want, it))
		it->body = (struct span){ NULL, 0 };
	else
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

/* One entry of a page: a directory's own object is read unless its key will do. */
static enum err list_one(struct rstore *s, uint64_t parent, enum item_class class,
	const struct rio_value *v, unsigned want, struct item *ret)
{
	struct span key = span_make(v->key.p + 1, v->key.n - 1);
	struct found f = { 0 };
	enum err e = record_decode(v->val, &f.r);
	if (e != ERR_OK)
		return e;
	if (f.r.link && !(want & WANT_KEYS)) {
		e = find_dir(s, f.r.it.id, &f);
	} else {
		f.r.it.parent = parent;
		f.r.it.class = class;
		f.r.it.key = key;
	}
	if (e == ERR_OK)
		e = give(s, &f, want, ret);
	found_fini(&f);
	if (e == ERR_NOT_FOUND) /* it, or its body, changed since the page was read */
		e = rados_child(&s->base, NULL, parent, class, key, want, ret);
	return e;
}

static bool is_token(const struct rio_value *v)
{
	return span_is(v->key, KEY_TOKEN);
}

static enum err list_page(struct rstore *s, uint64_t parent, enum item_class class,
	const struct rio_page *page, unsigned want, store_list_fn fn, void *arg, bool *ret_stop)
{
	for (size_t i = 0; i < page->n && !*ret_stop; i++) {
		struct item it;
		if (is_token(&page->v[i]))
			continue;
		enum err e = list_one(s, parent, class, &page->v[i], want, &it);
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
	struct rstore *s = rstore_of(st);
	char object[RIO_NAME_MAX], prefix[2] = { class_letter(class) };
	struct buf start = BUF_INIT(KEYS_MAX);
	bool gone, stop = false;
	struct rio_page page;
	(void)v;
	*ret_more = false;
	enum err e = find_gone(s, parent, &gone);
	if (e != ERR_OK || gone || !parent)
		return e;
	name_dir(object, parent);
	key_place(&start, class, after.p ? after : SPAN_LIT(""));
	buf_add_char(&start, 0);
	e = buf_full(&start);
	if (e == ERR_OK) {
		/* Nothing given: the first key may be empty. */
		bool first = !after.p || inclusive;
		struct span keys[] = { span_make(start.data, start.len - 1), SPAN_LIT(KEY_TOKEN) };
		e = rio_list(&s->io, object, first ? keys : keys + 1, first ? 2 : 1, start.data,
			prefix, PAGE, &page);
	}
	buf_fini(&start);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	if (!is_dead(&page)) {
		e = list_page(s, parent, class, &page, want, fn, arg, &stop);
		*ret_more = page.more && !stop;
	}
	rio_page_fini(&page);
	return e;
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
