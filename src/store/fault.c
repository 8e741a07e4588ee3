/* SPDX-License-Identifier: MIT
 * A layer over another engine that fails on demand, so that tests can walk through every
 * call that an operation makes.  "After" faults answer an error for a change set that was
 * applied: the outcome a caller cannot know. */
#include "base/lock.h"
#include "store/engines.h"

#include <stdlib.h>

struct fault_store {
	struct store base;
	struct store *inner;
	struct mutex lock; /* guards what follows */
	unsigned mask, countdown;
	enum err error;
};

static struct fault_store *of(struct store *s)
{
	return (struct fault_store *)s;
}

/* ERR_OK: this call goes through. */
static enum err strike(struct store *s, unsigned kind)
{
	struct fault_store *f = of(s);
	enum err e = ERR_OK;
	mutex_lock(&f->lock);
	if (f->mask & kind && f->countdown > 0 && --f->countdown == 0) {
		e = f->error;
		f->countdown = f->mask & FAULT_STAYS ? 1 : 0;
	}
	mutex_unlock(&f->lock);
	return e;
}

static enum err fault_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	enum err e = strike(s, FAULT_READS);
	return e != ERR_OK ? e : store_get(of(s)->inner, v, id, want, ret);
}

static enum err fault_child(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	enum err e = strike(s, FAULT_READS);
	return e != ERR_OK ? e : store_child(of(s)->inner, v, parent, class, key, want, ret);
}

static enum err fault_list(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	enum err e = strike(s, FAULT_READS);
	if (e != ERR_OK)
		return e;
	struct store *inner = of(s)->inner;
	return inner->ops->list(inner, v, parent, class, after, inclusive, want, fn, arg, ret_more);
}

static enum err fault_find(struct store *s, const struct store_find *q, store_find_fn fn, void *arg,
	struct store_found *ret)
{
	enum err e = strike(s, FAULT_READS);
	return e != ERR_OK ? e : store_find(of(s)->inner, q, fn, arg, ret);
}

static enum err fault_file_read(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n)
{
	enum err e = strike(s, FAULT_READS);
	return e != ERR_OK ? e : store_file_read(of(s)->inner, v, id, offset, out, n, ret_n);
}

static enum err fault_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	enum err e = strike(s, FAULT_APPLY_BEFORE);
	if (e != ERR_OK)
		return err_set(reterr, e, "injected before the change set");
	e = store_apply(of(s)->inner, changes, n, durable, reterr);
	if (e != ERR_OK)
		return e;
	e = strike(s, FAULT_APPLY_AFTER);
	if (e != ERR_OK) {
		changes_fini(changes, n);
		return err_set(reterr, e, "injected after the change set");
	}
	return ERR_OK;
}

static enum err fault_room(struct store *s, uint64_t bytes, struct err_detail *reterr)
{
	return store_room(of(s)->inner, bytes, reterr);
}

static enum err fault_sync(struct store *s)
{
	return store_sync(of(s)->inner);
}

static int64_t fault_version_floor(struct store *s)
{
	return store_version_floor(of(s)->inner);
}

static enum err fault_view_open(struct store *s, bool held, struct store_view **ret)
{
	enum err e = strike(s, FAULT_READS);
	struct store *inner = of(s)->inner;
	return e != ERR_OK ? e : inner->ops->view_open(inner, held, ret);
}

static void fault_view_close(struct store *s, struct store_view *v)
{
	store_view_close(of(s)->inner, v);
}

static void fault_info(struct store *s, struct store_info *ret)
{
	store_info(of(s)->inner, ret);
}

static enum err fault_check(
	struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	return store_check(of(s)->inner, fn, progress, arg);
}

static enum err fault_copy(
	struct store *s, struct store_view *v, int fd, store_copy_fn fn, void *arg)
{
	return store_copy(of(s)->inner, v, fd, fn, arg);
}

static void fault_listen(struct store *s, store_external_fn fn, void *arg)
{
	store_listen(of(s)->inner, fn, arg);
}

static enum err fault_feed_keep(struct store *s, int64_t now, struct err_detail *reterr)
{
	enum err e = strike(s, FAULT_APPLY_BEFORE);
	return e != ERR_OK ? e : store_feed_keep(of(s)->inner, now, reterr);
}

static enum err fault_feed_read(
	struct store *s, const struct store_feed_position *after, store_feed_fn fn, void *arg)
{
	enum err e = strike(s, FAULT_READS);
	return e != ERR_OK ? e : store_feed_read(of(s)->inner, after, fn, arg);
}

static void fault_close(struct store *s)
{
	store_close(of(s)->inner);
	mutex_destroy(&of(s)->lock);
	free(s);
}

static const struct store_ops ops = {
	.name = "fault",
	.get = fault_get,
	.child = fault_child,
	.list = fault_list,
	.find = fault_find,
	.file_read = fault_file_read,
	.apply = fault_apply,
	.room = fault_room,
	.sync = fault_sync,
	.version_floor = fault_version_floor,
	.view_open = fault_view_open,
	.view_close = fault_view_close,
	.info = fault_info,
	.check = fault_check,
	.copy = fault_copy,
	.listen = fault_listen,
	.feed_keep = fault_feed_keep,
	.feed_read = fault_feed_read,
	.close = fault_close,
};

enum err store_open_fault(struct store *inner, struct store **ret)
{
	struct fault_store *f = calloc(1, sizeof(*f));
	if (!f)
		return ERR_NO_MEMORY;
	f->base.ops = &ops;
	f->inner = inner;
	mutex_init(&f->lock, RANK_STORE_FAULT);
	*ret = &f->base;
	return ERR_OK;
}

void store_fault_arm(struct store *fault, unsigned mask, unsigned k, enum err error)
{
	struct fault_store *f = of(fault);
	mutex_lock(&f->lock);
	f->mask = mask;
	f->countdown = k;
	f->error = error;
	mutex_unlock(&f->lock);
}
