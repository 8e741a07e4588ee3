/* SPDX-License-Identifier: MIT
 * The in-memory engine: the oracle of the tests.  A change set works on a copy of the
 * state, which becomes the state if all went well; a view is a state that is kept.  A store may
 * have several handles, as a store of a cluster has several processes. */
#include "store/mem/engine.h"

#include "base/lock.h"
#include "model/limits.h"
#include "store/engines.h"
#include "store/plan.h"
#include "store/rules.h"

#include <stdlib.h>
#include <string.h>

struct store_view {
	struct state *state;
};

/* Ids that one handle may give: those of a block of the store. */
struct mem_ids {
	uint64_t next, end;
	uint64_t *last_block; /* the end of the last block that any handle took */
};

struct mem_core {
	struct mutex lock; /* guards what follows */
	struct state *state;
	uint64_t last_block; /* of ids */
	uint64_t file_bytes, limit_file, limit_files;
	uint64_t piece_bytes, limit_pieces;
	int64_t version_high;
	uint64_t commits, changes, syncs;

	struct rwlock handles_lock; /* read: listeners are told; taken before `lock` */
	struct mem_store *handles;  /* guarded by handles_lock */
};

struct mem_store {
	struct store base;
	struct mem_core *core;
	unsigned abilities;
	struct mem_ids ids;            /* guarded by core->lock */
	store_external_fn on_external; /* guarded by core->handles_lock, as are the next two */
	void *external_arg;
	struct mem_store *next;
};

static struct mem_store *of(struct store *s)
{
	return (struct mem_store *)s;
}

static struct state *now(struct store *s, struct store_view *v)
{
	if (v)
		return state_ref(v->state);
	struct mem_core *c = of(s)->core;
	mutex_lock(&c->lock);
	struct state *st = state_ref(c->state);
	mutex_unlock(&c->lock);
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

struct mem_plan {
	struct plan plan;
	struct mem_ids *ids;
};

/* A small block, so that the tests meet its end and ids out of order. */
static enum err take_id(struct plan *p, const struct item *it, uint64_t *ret)
{
	enum {
		BLOCK = 16
	};
	(void)it;
	struct mem_ids *ids = ((struct mem_plan *)p)->ids;
	if (ids->next == ids->end) {
		ids->next = *ids->last_block;
		ids->end = *ids->last_block += BLOCK;
	}
	*ret = ids->next++;
	return ERR_OK;
}

static enum err content(struct plan *p, const struct item *was, uint64_t id, uint64_t size,
	uint64_t offset, struct span bytes, char **ret_data)
{
	const char *old = was ? state_by_id(p->s, id)->data : NULL;
	char *data = calloc(1, size + 1);
	if (!data)
		return ERR_NO_MEMORY;
	if (old)
		memcpy(data, old, was->size < size ? was->size : size);
	if (bytes.n > 0)
		memcpy(data + offset, bytes.p, bytes.n);
	*ret_data = data;
	return ERR_OK;
}

static const struct plan_ops plan_ops = { .take_id = take_id, .content = content };

static enum err apply_locked(
	struct mem_store *m, struct change *changes, size_t n, struct err_detail *reterr)
{
	struct mem_core *core = m->core;
	struct mem_plan mine = { .ids = &m->ids };
	struct plan *w = &mine.plan;
	*w = (struct plan){
		.ops = &plan_ops,
		.file_bytes = core->file_bytes,
		.limit_file = core->limit_file,
		.limit_files = core->limit_files,
		.piece_bytes = core->piece_bytes,
		.limit_pieces = core->limit_pieces,
		.abilities = m->abilities,
		.set = changes,
	};
	int64_t high = core->version_high;
	enum err e = state_copy(core->state, &w->s);
	if (e != ERR_OK)
		return e;
	for (w->at = 0; e == ERR_OK && w->at < n; w->at++) {
		e = plan_change(w, &changes[w->at]);
		if (e != ERR_OK && reterr) {
			memset(reterr, 0, sizeof(*reterr));
			reterr->op = w->at;
		}
		if (changes[w->at].op != CHANGE_ATTRS && changes[w->at].version > high)
			high = changes[w->at].version;
	}
	item_fini(&w->unit);
	if (e != ERR_OK) {
		changes_fini(changes, n);
		state_unref(w->s);
		return e;
	}
	state_unref(core->state);
	core->state = w->s;
	core->file_bytes = w->file_bytes;
	core->piece_bytes = w->piece_bytes;
	core->version_high = high;
	core->commits++;
	core->changes += n;
	return ERR_OK;
}

static bool is_heard(const struct mem_store *m, const struct mem_store *writer)
{
	return m != writer && m->on_external;
}

/* Whether anybody has to be told; then the old items are wanted. */
static bool wants_old(struct mem_store *writer, struct change *changes, size_t n)
{
	bool heard = false;
	for (const struct mem_store *m = writer->core->handles; m; m = m->next)
		heard = heard || is_heard(m, writer);
	for (size_t i = 0; heard && i < n; i++)
		changes[i].flags |= CHANGE_WANT_OLD;
	return heard;
}

static void tell(
	struct mem_store *writer, const struct change *changes, struct change *told, size_t n)
{
	memcpy(told, changes, n * sizeof(*told));
	for (size_t i = 0; i < n; i++)
		told[i].old.body = (struct span){ NULL, 0 };
	for (const struct mem_store *m = writer->core->handles; m; m = m->next)
		if (is_heard(m, writer))
			m->on_external(m->external_arg, told, n);
}

static enum err mem_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	if (n == 0)
		return ERR_OK;
	struct mem_core *core = of(s)->core;
	rwlock_rdlock(&core->handles_lock);
	bool heard = wants_old(of(s), changes, n);
	struct change *told = heard ? calloc(n, sizeof(*told)) : NULL;
	enum err e = heard && !told ? ERR_NO_MEMORY : ERR_OK;
	if (e == ERR_OK) {
		mutex_lock(&core->lock);
		e = apply_locked(of(s), changes, n, reterr);
		core->syncs += durable;
		mutex_unlock(&core->lock);
	}
	if (e == ERR_OK && heard)
		tell(of(s), changes, told, n);
	rwlock_unlock(&core->handles_lock);
	free(told);
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
	struct mem_core *core = of(s)->core;
	mutex_lock(&core->lock);
	int64_t high = core->version_high;
	mutex_unlock(&core->lock);
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
	struct mem_core *core = of(s)->core;
	ret->abilities = of(s)->abilities;
	mutex_lock(&core->lock);
	ret->file_bytes = core->file_bytes;
	ret->piece_bytes = core->piece_bytes;
	ret->piece_limit = core->limit_pieces;
	ret->commits = ret->change_sets = ret->commit_sizes[0] = core->commits;
	ret->changes = core->changes;
	ret->syncs = core->syncs;
	mutex_unlock(&core->lock);
}

static void mem_listen(struct store *s, store_external_fn fn, void *arg)
{
	rwlock_wrlock(&of(s)->core->handles_lock);
	of(s)->on_external = fn;
	of(s)->external_arg = arg;
	rwlock_unlock(&of(s)->core->handles_lock);
}

static enum err mem_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	(void)s;
	(void)fn;
	(void)progress;
	(void)arg;
	return ERR_OK;
}

static void core_free(struct mem_core *core)
{
	state_unref(core->state);
	mutex_destroy(&core->lock);
	rwlock_destroy(&core->handles_lock);
	free(core);
}

static void mem_close(struct store *s)
{
	struct mem_core *core = of(s)->core;
	rwlock_wrlock(&core->handles_lock);
	struct mem_store **at = &core->handles;
	while (*at != of(s))
		at = &(*at)->next;
	*at = of(s)->next;
	bool last = !core->handles;
	rwlock_unlock(&core->handles_lock);
	if (last)
		core_free(core);
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
	.listen = mem_listen,
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

static enum err core_new(struct mem_core **ret)
{
	struct mem_core *core = calloc(1, sizeof(*core));
	if (!core)
		return ERR_NO_MEMORY;
	mutex_init(&core->lock, RANK_STORE_MEM);
	rwlock_init(&core->handles_lock, RANK_STORE_HANDLES);
	core->last_block = STORE_ID_FIRST + 1;
	core->limit_file = LIMIT_FILE_BYTES;
	core->limit_files = LIMIT_FILES_BYTES;
	core->limit_pieces = UINT64_MAX;
	enum err e = state_copy(NULL, &core->state);
	if (e == ERR_OK)
		e = add_fixed(core->state, STORE_ROOT, "root");
	if (e == ERR_OK)
		e = add_fixed(core->state, STORE_REJECTED, "rejected");
	if (e == ERR_OK)
		e = add_fixed(core->state, STORE_TRASH, "trash");
	if (e == ERR_OK)
		e = add_fixed(core->state, STORE_ORPHANS, "orphans");
	if (e != ERR_OK) {
		core_free(core);
		return e;
	}
	*ret = core;
	return ERR_OK;
}

static enum err handle_new(struct mem_core *core, unsigned abilities, struct store **ret)
{
	struct mem_store *m = calloc(1, sizeof(*m));
	if (!m)
		return ERR_NO_MEMORY;
	m->base.ops = &ops;
	m->core = core;
	m->abilities = abilities;
	m->ids.last_block = &core->last_block;
	rwlock_wrlock(&core->handles_lock);
	m->next = core->handles;
	core->handles = m;
	rwlock_unlock(&core->handles_lock);
	*ret = &m->base;
	return ERR_OK;
}

enum err mem_store_open(unsigned abilities, struct store **ret)
{
	struct mem_core *core;
	enum err e = core_new(&core);
	if (e != ERR_OK)
		return e;
	e = handle_new(core, abilities, ret);
	if (e != ERR_OK)
		core_free(core);
	return e;
}

enum err mem_store_open_again(struct store *s, struct store **ret)
{
	return handle_new(of(s)->core, of(s)->abilities, ret);
}

bool mem_store_set_file_limits(struct store *s, uint64_t one, uint64_t all)
{
	if (s->ops != &ops)
		return false;
	struct mem_core *core = of(s)->core;
	mutex_lock(&core->lock);
	core->limit_file = one;
	core->limit_files = all;
	mutex_unlock(&core->lock);
	return true;
}

bool mem_store_set_piece_limit(struct store *s, uint64_t all)
{
	if (s->ops != &ops)
		return false;
	struct mem_core *core = of(s)->core;
	mutex_lock(&core->lock);
	core->limit_pieces = all;
	mutex_unlock(&core->lock);
	return true;
}
