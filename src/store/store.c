/* SPDX-License-Identifier: MIT
 * What callers of a store use: each call goes to the engine by its table, after the
 * checks that no engine should have to repeat. */
#include "store/store.h"

#include "base/lock.h"
#include "model/limits.h"

#include <stdlib.h>
#include <string.h>

void item_fini(struct item *it)
{
	if (!it)
		return;
	free(it->mem);
	memset(it, 0, sizeof(*it));
}

static char *place_span(char *p, struct span *s)
{
	if (!s->p)
		return p;
	if (s->n > 0)
		memcpy(p, s->p, s->n);
	p[s->n] = 0;
	s->p = p;
	return p + s->n + 1;
}

enum err item_copy(struct item *to, const struct item *from)
{
	char *mem = malloc(from->key.n + from->name.n + from->body.n + 3);
	if (!mem)
		return ERR_NO_MEMORY;
	*to = *from;
	to->mem = mem;
	char *p = place_span(mem, &to->key);
	p = place_span(p, &to->name);
	(void)place_span(p, &to->body);
	return ERR_OK;
}

void changes_fini(struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		item_fini(&changes[i].now);
		item_fini(&changes[i].old);
		item_fini(&changes[i].left);
		changes[i].made_partition = false;
	}
}

bool item_may_hold(enum item_kind parent, enum item_kind child)
{
	switch (parent) {
	case ITEM_ACCOUNT:
		return child == ITEM_TABLE || child == ITEM_FILE || child == ITEM_FOLDER ||
			child == ITEM_QUEUE || child == ITEM_CONTAINER;
	case ITEM_TABLE:
		return child == ITEM_PARTITION || child == ITEM_FILE || child == ITEM_FOLDER;
	case ITEM_PARTITION:
		return child == ITEM_ROW || child == ITEM_FILE || child == ITEM_FOLDER;
	case ITEM_FOLDER: /* STORE_ROOT is one */
		return child == ITEM_FILE || child == ITEM_FOLDER || child == ITEM_ACCOUNT ||
			child == ITEM_EXTENT;
	case ITEM_QUEUE:
		return child == ITEM_MESSAGE;
	case ITEM_CONTAINER:
		return child == ITEM_BLOB;
	case ITEM_BLOB:
		return child == ITEM_EXTENT || child == ITEM_PIECE;
	case ITEM_EXTENT:
		return child == ITEM_PIECE;
	case ITEM_NONE:
	case ITEM_ROW:
	case ITEM_FILE:
	case ITEM_MESSAGE:
	case ITEM_PIECE:
		break;
	}
	return false;
}

enum err store_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->get(s, v, id, want, ret);
}

enum err store_child(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->child(s, v, parent, class, key, want, ret);
}

/* Remembers the last key, from which the next call of the engine goes on. */
struct lister {
	struct store *s;
	struct store_view *v;
	uint64_t parent;
	enum item_class class;
	unsigned want;
	store_skip_fn skip; /* NULL: a listing */
	store_list_fn fn;
	void *arg;
	size_t n;
	char last[LIMIT_KEY_BYTES];
};

static bool remember(void *arg, const struct item *it)
{
	struct lister *l = arg;
	l->n = it->key.n;
	if (l->n <= sizeof(l->last))
		memcpy(l->last, it->key.p, l->n);
	return l->fn(l->arg, it);
}

static bool ask_to_skip(void *arg, const struct item *it)
{
	const struct lister *l = arg;
	return l->skip(l->arg, it);
}

static enum err list_some(struct lister *l, struct span after, bool inclusive, bool *ret_more)
{
	const struct store_ops *ops = l->s->ops;
	*ret_more = false;
	if (l->skip != NULL && ops->scan != NULL)
		return ops->scan(l->s, l->v, l->parent, l->class, after, inclusive, ask_to_skip,
			remember, l, ret_more);
	return ops->list(
		l->s, l->v, l->parent, l->class, after, inclusive, l->want, remember, l, ret_more);
}

static enum err list_all(struct lister *l, struct span after, bool inclusive)
{
	lock_assert_above(RANK_STORE_CALL);
	bool more;
	enum err e = list_some(l, after, inclusive, &more);
	while (e == ERR_OK && more) {
		/* The engine reads `after` while remember() overwrites l->last. */
		char after_this[LIMIT_KEY_BYTES];
		if (l->n > sizeof(after_this))
			return ERR_CORRUPT;
		memcpy(after_this, l->last, l->n);
		e = list_some(l, span_make(after_this, l->n), false, &more);
	}
	return e;
}

enum err store_list(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, unsigned want, store_list_fn fn, void *arg)
{
	struct lister l = { s, v, parent, class, want, .fn = fn, .arg = arg };
	return list_all(&l, after, inclusive);
}

enum err store_scan(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, store_skip_fn skip, store_list_fn fn, void *arg)
{
	struct lister l = { s, v, parent, class, WANT_BODY, .skip = skip, .fn = fn, .arg = arg };
	return list_all(&l, after, inclusive);
}

enum err store_find(struct store *s, const struct store_find *q, store_find_fn fn, void *arg,
	struct store_found *ret)
{
	*ret = (struct store_found){ .next_pk = BUF_INIT(LIMIT_KEY_BYTES + 2),
		.next_rk = BUF_INIT(LIMIT_KEY_BYTES + 2) };
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->find ? s->ops->find(s, q, fn, arg, ret) : ERR_NOT_SUPPORTED;
}

enum err store_file_read(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->file_read(s, v, id, offset, out, n, ret_n);
}

static void clear_results(struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memset(&changes[i].now, 0, sizeof(changes[i].now));
		memset(&changes[i].old, 0, sizeof(changes[i].old));
		memset(&changes[i].left, 0, sizeof(changes[i].left));
		changes[i].made_partition = false;
	}
}

enum err store_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	lock_assert_above(RANK_STORE_CALL);
	clear_results(changes, n);
	return s->ops->apply(s, changes, n, durable, reterr);
}

enum err store_room(struct store *s, uint64_t bytes, struct err_detail *reterr)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->room(s, bytes, reterr);
}

enum err store_sync(struct store *s)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->sync(s);
}

int64_t store_version_floor(struct store *s)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->version_floor(s);
}

enum err store_view_open(struct store *s, struct store_view **ret)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->view_open(s, false, ret);
}

enum err store_view_hold(struct store *s, struct store_view **ret)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->view_open(s, true, ret);
}

void store_view_close(struct store *s, struct store_view *v)
{
	lock_assert_above(RANK_STORE_CALL);
	if (v)
		s->ops->view_close(s, v);
}

void store_info(struct store *s, struct store_info *ret)
{
	lock_assert_above(RANK_STORE_CALL);
	memset(ret, 0, sizeof(*ret));
	s->ops->info(s, ret);
}

enum err store_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->check(s, fn, progress, arg);
}

enum err store_copy(struct store *s, struct store_view *v, int fd, store_copy_fn fn, void *arg)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->copy ? s->ops->copy(s, v, fd, fn, arg) : ERR_NOT_SUPPORTED;
}

enum err store_compact(struct store *s, store_copy_fn fn, void *arg, struct err_detail *reterr)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->compact ? s->ops->compact(s, fn, arg, reterr) : ERR_NOT_SUPPORTED;
}

void store_listen(struct store *s, store_external_fn fn, void *arg)
{
	if (s->ops->listen)
		s->ops->listen(s, fn, arg);
}

void store_note_put(struct store *s, int64_t version, struct span note)
{
	lock_assert_above(RANK_STORE_CALL);
	if (s->ops->note_put)
		s->ops->note_put(s, version, note);
}

enum err store_note_get(struct store *s, struct buf *ret)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->note_get ? s->ops->note_get(s, ret) : ERR_NOT_FOUND;
}

enum err store_feed_keep(struct store *s, int64_t now, struct err_detail *reterr)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->feed_keep ? s->ops->feed_keep(s, now, reterr)
				 : err_set(reterr, ERR_NOT_SUPPORTED,
					   "A store in a cluster keeps no feed of changes.");
}

enum err store_feed_read(
	struct store *s, const struct store_feed_position *after, store_feed_fn fn, void *arg)
{
	lock_assert_above(RANK_STORE_CALL);
	return s->ops->feed_read ? s->ops->feed_read(s, after, fn, arg) : ERR_NOT_SUPPORTED;
}

void store_give_back(struct store *s)
{
	lock_assert_above(RANK_STORE_CALL);
	if (s->ops->give_back)
		s->ops->give_back(s);
}

void store_close(struct store *s)
{
	lock_assert_above(RANK_STORE_CALL);
	if (s)
		s->ops->close(s);
}
