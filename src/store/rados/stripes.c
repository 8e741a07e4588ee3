/* SPDX-License-Identifier: MIT
 * Contents of ordinary files. */
#include "store/rados/stripes.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 512

enum err names_add(struct names *n, const char *name)
{
	enum err e = rstore_grow(&n->v, n->n, &n->cap, sizeof(*n->v));
	if (e == ERR_OK)
		memcpy(n->v[n->n++], name, strlen(name) + 1);
	return e;
}

static enum err read_token(
	struct rstore *s, uint64_t dir, uint64_t id, uint64_t nr, char out[TOKEN_LEN + 1])
{
	char object[RIO_NAME_MAX], *mem;
	struct buf key = BUF_INIT(KEYS_MAX);
	name_dir(object, dir);
	key_stripe(&key, id, nr);
	struct rio_value v = { .key = buf_span(&key) };
	enum err e = buf_full(&key);
	if (e != ERR_OK)
		return e;
	e = rio_get(&s->io, object, &v, 1, &mem);
	out[0] = 0;
	if (e == ERR_OK && v.val.p && v.val.n == TOKEN_LEN)
		memcpy(out, v.val.p, TOKEN_LEN + 1);
	free(mem);
	buf_fini(&key);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* The stripe as this set knows it. */
static enum err get(struct rstore *s, struct stripes *st, uint64_t dir, uint64_t id, uint64_t nr,
	struct stripe **ret)
{
	for (size_t i = 0; i < st->n; i++) {
		if (st->v[i].id == id && st->v[i].nr == nr) {
			*ret = &st->v[i];
			return ERR_OK;
		}
	}
	enum err e = rstore_grow(&st->v, st->n, &st->cap, sizeof(*st->v));
	if (e != ERR_OK)
		return e;
	struct stripe *x = &st->v[st->n];
	*x = (struct stripe){ .id = id, .nr = nr };
	if (dir != 0)
		e = read_token(s, dir, id, nr, x->token);
	if (e == ERR_OK) {
		st->n++;
		*ret = x;
	}
	return e;
}

/* Its first `keep` bytes, to be written into. */
static enum err load(struct rstore *s, struct stripe *x, uint64_t keep)
{
	char object[RIO_NAME_MAX];
	if (!x->data) {
		x->data = calloc(1, STRIPE_BYTES);
		x->n = 0;
		if (!x->data)
			return ERR_NO_MEMORY;
		if (*x->token && !x->gone && keep > 0) {
			name_stripe(object, x->id, x->nr, x->token);
			enum err e = rio_read(&s->io, object, 0, x->data, STRIPE_BYTES, &x->n);
			if (e != ERR_OK)
				return e == ERR_NOT_FOUND ? ERR_CORRUPT : e;
		}
	}
	if (x->n > keep) {
		memset(x->data + keep, 0, x->n - keep);
		x->n = keep;
	}
	x->gone = false;
	return ERR_OK;
}

static void let_go(struct stripe *x)
{
	free(x->data);
	x->data = NULL;
	x->n = 0;
	x->gone = true;
}

/* Stripes behind the new end go, and the last one is cut. */
static enum err cut(struct rstore *s, struct stripes *st, uint64_t dir, uint64_t id, uint64_t was,
	uint64_t size)
{
	struct stripe *x;
	for (uint64_t nr = (size + STRIPE_BYTES - 1) / STRIPE_BYTES; nr * STRIPE_BYTES < was;
		nr++) {
		enum err e = get(s, st, dir, id, nr, &x);
		if (e != ERR_OK)
			return e;
		let_go(x);
	}
	if (size >= was || size % STRIPE_BYTES == 0)
		return ERR_OK;
	enum err e = get(s, st, dir, id, size / STRIPE_BYTES, &x);
	if (e != ERR_OK || (!x->data && (!*x->token || x->gone)))
		return e;
	return load(s, x, size % STRIPE_BYTES);
}

enum err stripes_write(struct rstore *s, struct stripes *st, uint64_t dir, uint64_t id, bool fresh,
	uint64_t was, uint64_t size, uint64_t offset, struct span bytes)
{
	enum err e = ERR_OK;
	for (size_t i = 0; fresh && i < st->n; i++) {
		if (st->v[i].id == id)
			let_go(&st->v[i]);
	}
	if (!fresh)
		e = cut(s, st, dir, id, was, size);
	while (e == ERR_OK && bytes.n > 0) {
		uint64_t from = offset % STRIPE_BYTES;
		size_t part =
			STRIPE_BYTES - from < bytes.n ? (size_t)(STRIPE_BYTES - from) : bytes.n;
		struct stripe *x;
		e = get(s, st, fresh ? 0 : dir, id, offset / STRIPE_BYTES, &x);
		if (e == ERR_OK)
			e = load(s, x, part == STRIPE_BYTES ? 0 : STRIPE_BYTES);
		if (e != ERR_OK)
			break;
		memcpy(x->data + from, bytes.p, part);
		if (from + part > x->n)
			x->n = (size_t)(from + part);
		offset += part;
		bytes = span_make(bytes.p + part, bytes.n - part);
	}
	return e;
}

enum err stripes_save(struct rstore *s, struct stripes *st, uint64_t id, struct rio_edit *edit,
	struct rio_batch *b, struct names *made, struct names *litter)
{
	for (size_t i = 0; i < st->n; i++) {
		struct stripe *x = &st->v[i];
		char object[RIO_NAME_MAX], token[TOKEN_LEN + 1];
		struct buf key = BUF_INIT(KEYS_MAX);
		if (x->id != id || (!x->data && !x->gone))
			continue;
		enum err e = ERR_OK;
		if (*x->token) {
			name_stripe(object, id, x->nr, x->token);
			e = names_add(litter, object);
		}
		key_stripe(&key, id, x->nr);
		if (e == ERR_OK)
			e = buf_full(&key);
		if (e == ERR_OK && x->gone) {
			rio_edit_remove(edit, buf_span(&key));
		} else if (e == ERR_OK) {
			rstore_token(s, token);
			name_stripe(object, id, x->nr, token);
			e = names_add(made, object);
			rio_edit_set(edit, buf_span(&key), span_of(token));
			rio_batch_put(b, &s->io, object, span_make(x->data, x->n));
		}
		buf_fini(&key);
		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static enum err drop_page(
	const struct rio_page *page, uint64_t id, struct rio_edit *edit, struct names *litter)
{
	for (size_t i = 0; i < page->n; i++) {
		char object[RIO_NAME_MAX];
		const struct rio_value *v = &page->v[i];
		if (v->val.n != TOKEN_LEN)
			return ERR_CORRUPT;
		name_stripe(object, id, strtoull(v->key.p + KEY_STRIPES_LEN, NULL, 16), v->val.p);
		enum err e = names_add(litter, object);
		if (e != ERR_OK)
			return e;
		rio_edit_remove(edit, v->key);
	}
	return ERR_OK;
}

enum err stripes_drop(
	struct rstore *s, uint64_t dir, uint64_t id, struct rio_edit *edit, struct names *litter)
{
	char object[RIO_NAME_MAX], prefix[KEY_STRIPES_LEN + 1];
	struct buf key = BUF_INIT(KEYS_MAX);
	key_stripe(&key, id, 0);
	enum err e = buf_full(&key);
	bool more = e == ERR_OK;
	if (more) {
		memcpy(prefix, key.data, KEY_STRIPES_LEN);
		prefix[KEY_STRIPES_LEN] = 0;
		buf_clear(&key);
		buf_add_char(&key, 0);
	}
	name_dir(object, dir);
	while (e == ERR_OK && more) {
		struct rio_page page;
		e = rio_list(&s->io, object, NULL, 0, key.data, prefix, PAGE, &page);
		if (e == ERR_OK)
			e = drop_page(&page, id, edit, litter);
		if (e == ERR_OK)
			e = rio_page_next(&page, &key, &more);
		rio_page_fini(&page);
	}
	buf_fini(&key);
	return e;
}

void stripes_fini(struct stripes *st)
{
	for (size_t i = 0; i < st->n; i++)
		free(st->v[i].data);
	free(st->v);
	memset(st, 0, sizeof(*st));
}
