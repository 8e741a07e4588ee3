/* SPDX-License-Identifier: MIT
 * Each reply has its marks and the bytes of their keys in two arrays, which are used again: an
 * entry costs no allocation. */
#include "fs/core/marks.h"

#include <stdlib.h>
#include <string.h>

struct mark {
	uint64_t id;
	enum item_class class;
	size_t at, len; /* its key, in the bytes */
};

void marks_fini(struct marks *m)
{
	for (size_t i = 0; i < 2; i++) {
		free(m->of[i].v);
		free(m->of[i].bytes);
	}
	*m = (struct marks){ 0 };
}

size_t marks_holds(const struct marks *m)
{
	size_t n = 0;
	for (size_t i = 0; i < 2; i++)
		n += m->of[i].cap * sizeof(m->of[i].v[0]) + m->of[i].bytes_cap;
	return n;
}

static bool grow(struct marks_reply *r, size_t len)
{
	if (r->n == r->cap) {
		size_t cap = r->cap == 0 ? 256 : r->cap * 2;
		struct mark *v = reallocarray(r->v, cap, sizeof(*v));
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

enum err marks_add(struct marks *m, uint64_t id, enum item_class class, struct span key)
{
	struct marks_reply *r = &m->of[m->now];
	if ((r->n == r->cap || r->bytes_cap - r->len <= key.n) && (m->fixed || !grow(r, key.n)))
		return ERR_NO_MEMORY;
	r->v[r->n++] = (struct mark){ id, class, r->len, key.n };
	if (key.n > 0)
		memcpy(r->bytes + r->len, key.p, key.n);
	r->len += key.n;
	return ERR_OK;
}

static const struct mark *find(const struct marks_reply *r, uint64_t id)
{
	for (size_t i = r->n; i > 0; i--)
		if (r->v[i - 1].id == id)
			return &r->v[i - 1];
	return NULL;
}

bool marks_find(
	const struct marks *m, uint64_t id, enum item_class *ret_class, struct span *ret_key)
{
	const struct marks_reply *r = &m->of[m->now];
	const struct mark *mark = find(r, id);
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

void marks_next_reply(struct marks *m, bool goes_on)
{
	if (m->of[m->now].n > 0 && goes_on)
		m->now = !m->now;
	else if (!goes_on)
		m->of[!m->now].n = m->of[!m->now].len = 0;
	m->of[m->now].n = m->of[m->now].len = 0;
}
