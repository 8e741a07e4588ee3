/* SPDX-License-Identifier: MIT */
#include "service/blobs/pages.h"

#include "service/blobs/upload.h"

#include <string.h>

/* The number in a key of extent_key(). */
static bool read_key(struct span key, uint32_t *ret)
{
	uint32_t v = 0;
	for (size_t i = 0; i < key.n; i++) {
		char c = key.p[i];
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret = v;
	return key.n == EXTENT_KEY_CHARS;
}

static bool read_piece(const struct item *it, struct page_piece *ret)
{
	ret->mask = (uint8_t)it->flags;
	return it->kind == ITEM_PIECE && read_key(it->key, &ret->number) && ret->mask != 0 &&
		it->size == BLOB_PAGE_BYTES * (unsigned)__builtin_popcount(ret->mask);
}

/* Where page i stands in the body. */
static size_t place_in_body(uint8_t mask, unsigned i)
{
	return BLOB_PAGE_BYTES * (unsigned)__builtin_popcount(mask & ((1u << i) - 1));
}

/* ---- going over pieces ---- */

struct walk {
	uint32_t last;
	bool any;
	enum err error;
	/* Return false to stop. */
	bool (*on_piece)(struct walk *w, const struct page_piece *p, const struct item *it);
	void *arg;
};

static bool on_item(void *arg, const struct item *it)
{
	struct walk *w = arg;
	struct page_piece p;
	if (!read_piece(it, &p)) {
		w->error = ERR_CORRUPT;
		return false;
	}
	w->any = true;
	return p.number <= w->last && w->on_piece(w, &p, it);
}

static enum err walk(struct store *s, struct store_view *v, uint64_t extent, uint32_t first,
	unsigned want, struct walk *w)
{
	char key[EXTENT_KEY_CHARS + 1];
	enum err e = store_list(
		s, v, extent, CLASS_BLOB, extent_key(first, key), true, want, on_item, w);
	return e == ERR_OK ? w->error : e;
}

/* Where nothing was found, the extent itself may be gone. */
static enum err if_gone(struct service *s, uint64_t extent, const struct walk *w, enum err e)
{
	struct item it = { 0 };
	if (e != ERR_OK || w->any)
		return e;
	e = store_get(service_store(s), NULL, extent, WANT_ATTRS, &it);
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* ---- reading ---- */

struct reading {
	uint64_t offset;
	char *out;
	size_t n;
};

static void take_page(const struct reading *r, uint64_t at, const char *page)
{
	uint64_t from = at > r->offset ? at : r->offset, end = r->offset + r->n;
	uint64_t to = at + BLOB_PAGE_BYTES < end ? at + BLOB_PAGE_BYTES : end;
	if (from < to)
		memcpy(r->out + (from - r->offset), page + (from - at), (size_t)(to - from));
}

static bool take_piece(struct walk *w, const struct page_piece *p, const struct item *it)
{
	if (it->body.n != it->size) {
		w->error = ERR_CORRUPT;
		return false;
	}
	for (unsigned i = 0; i < PAGES_OF_PIECE; i++)
		if (p->mask & 1u << i)
			take_page(w->arg, p->number * PAGES_PIECE_BYTES + i * BLOB_PAGE_BYTES,
				it->body.p + place_in_body(p->mask, i));
	return true;
}

enum err pages_read(struct service *s, uint64_t extent, uint64_t offset, char *out, size_t n)
{
	struct reading r = { offset, out, n };
	if (n == 0)
		return ERR_OK;
	struct walk w = { .last = (uint32_t)((offset + n - 1) / PAGES_PIECE_BYTES),
		.on_piece = take_piece,
		.arg = &r };
	memset(out, 0, n);
	enum err e = walk(service_store(s), NULL, extent, (uint32_t)(offset / PAGES_PIECE_BYTES),
		WANT_BODY, &w);
	return if_gone(s, extent, &w, e);
}

enum err pages_load(struct service *s, uint64_t extent, uint32_t number,
	char out[PAGES_PIECE_BYTES], uint8_t *ret_mask)
{
	char key[EXTENT_KEY_CHARS + 1];
	struct page_piece p = { 0 };
	struct item it = { 0 };
	struct reading r = { number * PAGES_PIECE_BYTES, out, PAGES_PIECE_BYTES };
	struct walk w = { .arg = &r };
	*ret_mask = 0;
	enum err e = store_child(service_store(s), NULL, extent, CLASS_BLOB,
		extent_key(number, key), WANT_BODY, &it);
	if (e == ERR_OK && !read_piece(&it, &p))
		e = ERR_CORRUPT;
	if (e == ERR_OK && take_piece(&w, &p, &it))
		*ret_mask = p.mask;
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_OK : e == ERR_OK ? w.error : e;
}

/* ---- ranges ---- */

struct ranges {
	uint64_t from, end, left;
	page_range_fn fn;
	void *arg;
	uint64_t first, after; /* the range that may go on; first == after: none */
	uint64_t next;
};

/* Gives away the range that is complete. */
static bool give_range(struct ranges *r)
{
	bool more = r->first == r->after || r->fn(r->arg, r->first, r->after - 1);
	r->left -= r->first != r->after;
	r->first = r->after;
	return more;
}

static bool add_range(struct ranges *r, uint64_t first, uint64_t after)
{
	first = first > r->from ? first : r->from;
	after = after < r->end ? after : r->end;
	if (first >= after)
		return true;
	if (r->first != r->after && r->after == first) {
		r->after = after;
		return true;
	}
	bool more = give_range(r);
	if (!more || r->left == 0) {
		r->next = first;
		return false;
	}
	r->first = first;
	r->after = after;
	return true;
}

static bool range_piece(struct walk *w, const struct page_piece *p, const struct item *it)
{
	uint64_t at = p->number * PAGES_PIECE_BYTES;
	(void)it;
	if (p->mask == 0xff)
		return add_range(w->arg, at, at + PAGES_PIECE_BYTES);
	for (unsigned i = 0; i < PAGES_OF_PIECE; i++)
		if (p->mask & 1u << i &&
			!add_range(
				w->arg, at + i * BLOB_PAGE_BYTES, at + (i + 1) * BLOB_PAGE_BYTES))
			return false;
	return true;
}

enum err pages_list(struct service *s, uint64_t extent, uint64_t from, uint64_t end, uint64_t max,
	page_range_fn fn, void *arg, uint64_t *ret_next)
{
	struct ranges r = { from, end, max, fn, arg, 0, 0, end };
	*ret_next = end;
	if (from >= end)
		return ERR_OK;
	struct walk w = { .last = (uint32_t)((end - 1) / PAGES_PIECE_BYTES),
		.on_piece = range_piece,
		.arg = &r };
	enum err e = walk(service_store(s), NULL, extent, (uint32_t)(from / PAGES_PIECE_BYTES),
		WANT_ATTRS, &w);
	if (e == ERR_OK)
		(void)give_range(&r);
	*ret_next = r.next;
	return if_gone(s, extent, &w, e);
}

/* ---- pieces ---- */

struct finding {
	struct page_piece *to;
	size_t n, max;
};

static bool find_piece(struct walk *w, const struct page_piece *p, const struct item *it)
{
	struct finding *f = w->arg;
	(void)it;
	if (f->n == f->max)
		return false;
	f->to[f->n++] = *p;
	return f->n < f->max;
}

enum err pages_find(struct service *s, uint64_t extent, uint32_t first, uint32_t last, size_t max,
	struct page_piece *ret, size_t *ret_n)
{
	struct finding f = { ret, 0, max };
	struct walk w = { .last = last, .on_piece = find_piece, .arg = &f };
	enum err e = walk(service_store(s), NULL, extent, first, WANT_ATTRS, &w);
	*ret_n = f.n;
	return e;
}

/* ---- checking ---- */

struct checking {
	uint64_t size, pages;
	bool beyond;
};

static bool check_piece(struct walk *w, const struct page_piece *p, const struct item *it)
{
	struct checking *c = w->arg;
	uint64_t last = p->number * PAGES_PIECE_BYTES +
		(32 - (unsigned)__builtin_clz(p->mask)) * BLOB_PAGE_BYTES;
	(void)it;
	c->pages += (unsigned)__builtin_popcount(p->mask);
	c->beyond = c->beyond || last > c->size;
	return true;
}

enum err pages_check(struct store *s, struct store_view *v, uint64_t extent, uint64_t size,
	uint64_t *ret_pages, const char **ret_wrong)
{
	struct checking c = { .size = size };
	struct walk w = { .last = UINT32_MAX, .on_piece = check_piece, .arg = &c };
	enum err e = walk(s, v, extent, 0, WANT_ATTRS, &w);
	*ret_pages = c.pages;
	*ret_wrong = e == ERR_CORRUPT ? "a piece of its pages is no such piece"
		: c.beyond            ? "it has pages behind its end"
				      : NULL;
	return e == ERR_CORRUPT ? ERR_OK : e;
}
