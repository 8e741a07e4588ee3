/* SPDX-License-Identifier: MIT */
#include "fs/marks.h"

#include <stdlib.h>
#include <string.h>

struct mark {
	uint64_t id;
	enum item_class class;
	size_t key_len;
	char *key;
};

static void drop(struct marks *m, size_t n)
{
	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		free(m->v[i].key);
	memmove(m->v, m->v + n, (m->n - n) * sizeof(*m->v));
	m->n -= n;
}

void marks_fini(struct marks *m)
{
	drop(m, m->n);
	free(m->v);
	*m = (struct marks){ 0 };
}

enum err marks_add(struct marks *m, uint64_t id, enum item_class class, struct span key)
{
	if (m->n == m->cap) {
		size_t cap = m->cap == 0 ? 256 : m->cap * 2;
		struct mark *v = reallocarray(m->v, cap, sizeof(*v));
		if (v == NULL)
			return ERR_NO_MEMORY;
		m->v = v;
		m->cap = cap;
	}
	char *copy = malloc(key.n + 1);
	if (copy == NULL)
		return ERR_NO_MEMORY;
	memcpy(copy, key.p, key.n);
	m->v[m->n++] = (struct mark){ id, class, key.n, copy };
	return ERR_OK;
}

bool marks_find(
	const struct marks *m, uint64_t id, enum item_class *ret_class, struct span *ret_key)
{
	for (size_t i = m->n; i > 0; i--) {
		const struct mark *mark = &m->v[i - 1];
		if (mark->id != id)
			continue;
		*ret_class = mark->class;
		*ret_key = span_make(mark->key, mark->key_len);
		return true;
	}
	return false;
}

void marks_next_reply(struct marks *m, bool goes_on)
{
	if (m->n == 0)
		return;
	drop(m, goes_on ? m->previous : m->n);
	m->previous = m->n;
}
