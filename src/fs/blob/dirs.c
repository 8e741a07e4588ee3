/* SPDX-License-Identifier: MIT
 * The paths stand in one sorted array. */
#include "fs/blob/dirs.h"

#include "base/lock.h"

#include <stdlib.h>

struct path {
	uint64_t container;
	struct span text; /* owned */
};

struct blob_dirs {
	struct mutex lock;
	size_t n; /* guarded by lock, as all below */
	struct path paths[BLOB_DIRS_MAX];
};

struct blob_dirs *blob_dirs_new(void)
{
	struct blob_dirs *t = calloc(1, sizeof(*t));
	if (t != NULL && mutex_init(&t->lock, RANK_BLOB_DIRS) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

static void path_free(struct path *p)
{
	free((char *)(uintptr_t)p->text.p);
}

void blob_dirs_free(struct blob_dirs *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->n; i++)
		path_free(&t->paths[i]);
	mutex_destroy(&t->lock);
	free(t);
}

/* The first path that is not before this one. */
static size_t find(const struct blob_dirs *t, uint64_t container, struct span text)
{
	size_t from = 0, to = t->n;
	while (from < to) {
		size_t mid = (from + to) / 2;
		const struct path *p = &t->paths[mid];
		bool before = p->container != container ? p->container < container
							: span_cmp(p->text, text) < 0;
		if (before)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static bool is_at(const struct blob_dirs *t, size_t i, uint64_t container)
{
	return i < t->n && t->paths[i].container == container;
}

static enum err add_at(struct blob_dirs *t, size_t i, uint64_t container, struct span text)
{
	char *copy = t->n < BLOB_DIRS_MAX ? malloc(text.n) : NULL;
	if (copy == NULL)
		return t->n < BLOB_DIRS_MAX ? ERR_NO_MEMORY : ERR_NO_SPACE;
	memcpy(copy, text.p, text.n);
	memmove(&t->paths[i + 1], &t->paths[i], (t->n - i) * sizeof(t->paths[0]));
	t->paths[i] = (struct path){ container, span_make(copy, text.n) };
	t->n++;
	return ERR_OK;
}

enum err blob_dirs_add(struct blob_dirs *t, uint64_t container, struct span text)
{
	mutex_lock(&t->lock);
	size_t i = find(t, container, text);
	bool there = is_at(t, i, container) && span_eq(t->paths[i].text, text);
	enum err e = there ? ERR_OK : add_at(t, i, container, text);
	mutex_unlock(&t->lock);
	return e;
}

static void remove_locked(struct blob_dirs *t, uint64_t container, struct span text)
{
	lock_assert_held(&t->lock);
	size_t i = find(t, container, text);
	if (!is_at(t, i, container) || !span_eq(t->paths[i].text, text))
		return;
	path_free(&t->paths[i]);
	t->n--;
	memmove(&t->paths[i], &t->paths[i + 1], (t->n - i) * sizeof(t->paths[0]));
}

void blob_dirs_remove(struct blob_dirs *t, uint64_t container, struct span text)
{
	mutex_lock(&t->lock);
	remove_locked(t, container, text);
	mutex_unlock(&t->lock);
}

void blob_dirs_filled(struct blob_dirs *t, uint64_t container, struct span blob)
{
	mutex_lock(&t->lock);
	for (size_t i = 0; t->n > 0 && i < blob.n; i++)
		if (blob.p[i] == '/')
			remove_locked(t, container, span_make(blob.p, i + 1));
	mutex_unlock(&t->lock);
}

bool blob_dirs_next(struct blob_dirs *t, uint64_t container, struct span prefix, struct span after,
	struct buf *ret)
{
	bool found = false;
	mutex_lock(&t->lock);
	for (size_t i = find(t, container, span_cmp(after, prefix) > 0 ? after : prefix);
		!found && is_at(t, i, container) && span_starts(t->paths[i].text, prefix); i++) {
		struct span rest = t->paths[i].text;
		rest = span_make(rest.p + prefix.n, rest.n - prefix.n);
		size_t n = rest.n > 0 ? span_find(rest, SPAN_LIT("/")) : 0;
		found = rest.n > 0 &&
			span_cmp(span_make(t->paths[i].text.p, prefix.n + n + 1), after) > 0;
		if (found)
			buf_add(ret, t->paths[i].text.p, prefix.n + n + 1);
	}
	mutex_unlock(&t->lock);
	return found;
}

bool blob_dirs_any(struct blob_dirs *t, uint64_t container, struct span prefix)
{
	mutex_lock(&t->lock);
	size_t i = find(t, container, prefix);
	bool any = is_at(t, i, container) && span_starts(t->paths[i].text, prefix);
	mutex_unlock(&t->lock);
	return any;
}
