/* SPDX-License-Identifier: MIT
 * The in-memory engine: the oracle of the tests.  A change set works on a copy of the
 * state, which becomes the state if all went well; a view is a state that is kept. */
#include "store/mem/engine.h"

#include "base/lock.h"
#include "model/limits.h"
#include "store/engines.h"
#include "store/mem/apply.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>

struct store_view {
	struct state *state;
};

struct mem_store {
	struct store base;
	unsigned abilities;
	struct mutex lock; /* guards what follows */
	struct state *state;
	uint64_t next_id, file_bytes, limit_file, limit_files;
	int64_t version_high;
	uint64_t commits, changes, syncs;
};

static struct mem_store *of(struct store *s)
{
	return (struct mem_store *)s;
}

static struct state *now(struct store *s, struct store_view *v)
{
	if (v)
		return state_ref(v->state);
	mutex_lock(&of(s)->lock);
	struct state *st = state_ref(of(s)->state);
	mutex_unlock(&of(s)->lock);
	return st;
}

/* As callers may see it.  A caller that takes an estimate for a count must be far off. */
static struct item shown(struct store *s, const struct node *n, unsigned want)
{
	struct item it = n->it;
	it.flags &= ITEM_FLAGS_PUBLIC;
	if (item_is_dir(it.kind) && it.size > 0 && !(of(s)->abilities & STORE_COUNTS_EXACT))
		it.size = it.size * 3 + 1000;
	if (!rules_wants_body(want, &it))
		it.body = (struct span){ NULL, 0 };
	return it;
}

static enum err give(struct store *s, const struct node *n, unsigned want, struct item *ret)
{
	if (!n)
		return ERR_NOT_FOUND;
	struct item it = shown(s, n, want);
	return item_copy(ret, &it);
}

static enum err mem_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	struct state *st = now(s, v);
	enum err e = give(s, state_by_id(st, id), want, ret);
	state_unref(st);
	return e;
}

static enum err mem_child(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	struct state *st = now(s, v);
	enum err e = give(s, parent ? state_child(st, parent, class, key) : NULL, want, ret);
	state_unref(st);
	return e;
}

static enum err mem_list(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	/* A small bound, so that callers meet the going on. */
	enum {
		MAX = 7
	};
	struct state *st = now(s, v);
	size_t i = state_seek(st, parent, class, after);
	unsigned n = 0;
	*ret_more = false;
	for (; parent && i < st->n; i++) {
		struct item it = shown(s, st->v[i], want);
		if (it.parent != parent || it.class != class)
			break;
		if (after.p && !inclusive && span_eq(it.key, after))
			continue;
		if (n++ == MAX) {
			*ret_more = true;
			break;
		}
		if (!fn(arg, &it))
			break;
	}
	state_unref(st);
	return ERR_OK;
}

static enum err read_node(
	const struct node *n, uint64_t offset, void *out, size_t size, size_t *ret_n)
{
	if (!n)
		return ERR_NOT_FOUND;
	if (n->it.kind != ITEM_FILE)
		return item_is_dir(n->it.kind) ? ERR_IS_A_DIRECTORY : ERR_INVALID_INPUT;
	*ret_n = 0;
	if (offset >= n->it.size)
		return ERR_OK;
	*ret_n = n->it.size - offset < size ? (size_t)(n->it.size - offset) : size;
	memcpy(out, n->data + offset, *ret_n);
	return ERR_OK;
}

static enum err mem_file_read(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n)
{
	struct state *st = now(s, v);
	enum err e = read_node(state_by_id(st, id), offset, out, n, ret_n);
	state_unref(st);
	return e;
}

static enum err apply_locked(
	struct mem_store *m, struct change *changes, size_t n, struct err_detail *reterr)
{
	struct mem_work w = {
		.next_id = m->next_id,
		.file_bytes = m->file_bytes,
		.limit_file = m->limit_file,
		.limit_files = m->limit_files,
		.abilities = m->abilities,
		.set = changes,
	};
	int64_t high = m->version_high;
	enum err e = state_copy(m->state, &w.s);
	if (e != ERR_OK)
		return e;
	for (w.at = 0; e == ERR_OK && w.at < n; w.at++) {
		e = mem_apply_one(&w, &changes[w.at]);
		if (e != ERR_OK && reterr) {
			memset(reterr, 0, sizeof(*reterr));
			reterr->op = w.at;
		}
		if (changes[w.at].op != CHANGE_ATTRS && changes[w.at].version > high)
			high = changes[w.at].version;
	}
	item_fini(&w.unit);
	m->next_id = w.next_id;
	if (e != ERR_OK) {
		changes_fini(changes, n);
		state_unref(w.s);
		return e;
	}
	state_unref(m->state);
	m->state = w.s;
	m->file_bytes = w.file_bytes;
	m->version_high = high;
	m->commits++;
	m->changes += n;
	return ERR_OK;
}

static enum err mem_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	if (n == 0)
		return ERR_OK;
	mutex_lock(&of(s)->lock);
	enum err e = apply_locked(of(s), changes, n, reterr);
	of(s)->syncs += durable;
	mutex_unlock(&of(s)->lock);
	return e;
}

static enum err mem_room(struct store *s, uint64_t bytes, struct err_detail *reterr)
{
	(void)s;
	(void)bytes;
	return ERR_OK;
}

static enum err mem_sync(struct store *s)
{
	(void)s;
	return ERR_OK;
}

static int64_t mem_version_floor(struct store *s)
{
	mutex_lock(&of(s)->lock);
	int64_t high = of(s)->version_high;
	mutex_unlock(&of(s)->lock);
	return high;
}

static enum err mem_view_open(struct store *s, bool held, struct store_view **ret)
{
	(void)held; /* a view is in nobody's way here */
	*ret = NULL;
	if (!(of(s)->abilities & STORE_CAN_VIEW))
		return ERR_OK;
	struct store_view *v = malloc(sizeof(*v));
	if (!v)
		return ERR_NO_MEMORY;
	v->state = now(s, NULL);
	*ret = v;
	return ERR_OK;
}

static void mem_view_close(struct store *s, struct store_view *v)
{
	(void)s;
	state_unref(v->state);
	free(v);
}

static void mem_info(struct store *s, struct store_info *ret)
{
	struct mem_store *m = of(s);
	ret->abilities = m->abilities;
	mutex_lock(&m->lock);
	ret->file_bytes = m->file_bytes;
	ret->commits = ret->change_sets = ret->commit_sizes[0] = m->commits;
	ret->changes = m->changes;
	ret->syncs = m->syncs;
	mutex_unlock(&m->lock);
}

static enum err mem_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	(void)s;
	(void)fn;
	if (progress)
		progress(arg, 1, 1);
	return ERR_OK;
}

static void mem_close(struct store *s)
{
	state_unref(of(s)->state);
	mutex_destroy(&of(s)->lock);
	free(s);
}

static const struct store_ops ops = {
	.name = "memory",
	.get = mem_get,
	.child = mem_child,
	.list = mem_list,
	.file_read = mem_file_read,
	.apply = mem_apply,
	.room = mem_room,
	.sync = mem_sync,
	.version_floor = mem_version_floor,
	.view_open = mem_view_open,
	.view_close = mem_view_close,
	.info = mem_info,
	.check = mem_check,
	.close = mem_close,
};

static enum err add_fixed(struct state *st, uint64_t id, const char *key)
{
	struct item it = {
		.id = id,
		.kind = ITEM_FOLDER,
		.class = CLASS_NAMED,
		.flags = ITEM_MADE,
		.attrs = ATTRS_UNSET,
		.key = span_of(key),
		.name = SPAN_LIT(""),
	};
	return state_insert(st, &it, NULL);
}

enum err mem_store_open(unsigned abilities, struct store **ret)
{
	struct mem_store *m = calloc(1, sizeof(*m));
	if (!m)
		return ERR_NO_MEMORY;
	enum err e = state_copy(NULL, &m->state);
	if (e == ERR_OK)
		e = add_fixed(m->state, STORE_ROOT, "root");
	if (e == ERR_OK)
		e = add_fixed(m->state, STORE_REJECTED, "rejected");
	if (e == ERR_OK)
		e = add_fixed(m->state, STORE_TRASH, "trash");
	if (e == ERR_OK)
		e = add_fixed(m->state, STORE_ORPHANS, "orphans");
	if (e != ERR_OK) {
		state_unref(m->state);
		free(m);
		return e;
	}
	m->base.ops = &ops;
	m->abilities = abilities;
	m->next_id = STORE_ID_FIRST + 1;
	m->limit_file = LIMIT_FILE_BYTES;
	m->limit_files = LIMIT_FILES_BYTES;
	mutex_init(&m->lock, RANK_STORE_MEM);
	*ret = &m->base;
	return ERR_OK;
}

bool mem_store_set_file_limits(struct store *s, uint64_t one, uint64_t all)
{
	if (s->ops != &ops)
		return false;
	mutex_lock(&of(s)->lock);
	of(s)->limit_file = one;
	of(s)->limit_files = all;
	mutex_unlock(&of(s)->lock);
	return true;
}
