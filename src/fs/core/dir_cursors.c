/* SPDX-License-Identifier: MIT
 * Each reply has its cursors and the bytes of their keys in two arrays, which are used again: an
 * entry costs no allocation. */
#include "fs/core/dir_cursors.h"

#include <stdlib.h>
#include <string.h>

struct dir_cursor {
	uint64_t id;
	enum item_class class;
	size_t at, len; /* its key, in the bytes */
};

void dir_cursors_fini(struct dir_cursors *m)
{
	for (size_t i = 0; i < 2; i++) {
		free(m->of[i].v);
		free(m->of[i].bytes);
	}
	*m = (struct dir_cursors){ 0 };
}

size_t dir_cursors_holds(const struct dir_cursors *m)
{
	size_t n = 0;
	for (size_t i = 0; i < 2; i++)
		n += m->of[i].cap * sizeof(m->of[i].v[0]) + m->of[i].bytes_cap;
	return n;
}

static bool grow(struct dir_cursors_reply *r, size_t len)
{
	if (r->n == r->cap) {
		size_t cap = r->cap == 0 ? 256 : r->cap * 2;
		struct dir_cursor *v = reallocarray(r->v, cap, sizeof(*v));
		if (v == NULL)
			return false;
		r->v = v;
		r->cap = cap;
	}
	if (r->bytes_cap - r->len > len) /* never NULL: that would be no key */
		return true;
	size_t cap = 2 * r->bytes_cap + len + 4096;
	char *bytes = realloc(r->bytes, cap);
	if (bytes == NULL)
		return false;
	r->bytes = bytes;
	r->bytes_cap = cap;
	return true;
}

enum err dir_cursors_add(struct dir_cursors *m, uint64_t id, enum item_class class, struct span key)
{
	struct dir_cursors_reply *r = &m->of[m->now];
	if ((r->n == r->cap || r->bytes_cap - r->len <= key.n) && (m->fixed || !grow(r, key.n)))
		return ERR_NO_MEMORY;
	r->v[r->n++] = (struct dir_cursor){ id, class, r->len, key.n };
	if (key.n > 0)
		memcpy(r->bytes + r->len, key.p, key.n);
	r->len += key.n;
	return ERR_OK;
}

static const struct dir_cursor *find(const struct dir_cursors_reply *r, uint64_t id)
{
	for (size_t i = r->n; i > 0; i--)
		if (r->v[i - 1].id == id)
			return &r->v[i - 1];
	return NULL;
}

bool dir_cursors_find(
	const struct dir_cursors *m, uint64_t id, enum item_class *ret_class, struct span *ret_key)
{
	const struct dir_cursors_reply *r = &m->of[m->now];
	const struct dir_cursor *mark = find(r, id);
	if (mark == NULL) {
		r = &m->of[!m->now];
		mark = find(r, id);
	}
	if (mark == NULL)
		return false;
	*ret_class = mark->class;
	*ret_key = span_make(r->bytes + mark->at, mark->len);
	return true;
}

void dir_cursors_next_reply(struct dir_cursors *m, bool goes_on)
{
	if (m->of[m->now].n > 0 && goes_on)
		m->now = !m->now;
	else if (!goes_on)
		m->of[!m->now].n = m->of[!m->now].len = 0;
	m->of[m->now].n = m->of[m->now].len = 0;
}
