/* SPDX-License-Identifier: MIT */
#include "fs/query/rows.h"

#include "base/clock.h"
#include "base/lock.h"
#include "codec/entity_json.h"
#include "model/filename.h"

#include <stdlib.h>
#include <string.h>

/* Where the bound of `top` takes longer than that to find, changes do not move it for a
 * multiple of that time: each lookup beside a busy writer would cost as much otherwise. */
#define TOP_CHEAP_US 10000
#define TOP_REST 8

/* ---- a query in pages ---- */

struct pages {
	struct fs *fs;
	const struct caller *call;
	struct query q;
	query_row_fn fn;
	void *arg;
	bool stopped; /* by fn, or at the end */
};

static bool on_row(void *arg, const struct query_row *row)
{
	struct pages *p = arg;
	p->stopped = !p->fn(p->arg, row);
	return !p->stopped;
}

/* Until fn answers false, or all rows were handed out, or the caller gave up. */
static enum err run_pages(struct pages *p)
{
	p->q.requester = requester_of(p->call);
	struct query_end end = { 0 };
	struct buf pk = { 0 }, rk = { 0 };
	enum err e;
	do {
		p->q.deadline_us = clock_mono_us() + QUERY_PAGE_US;
		e = query_run(p->fs->service, NULL, &p->q, on_row, p, &end);
		buf_fini(&pk);
		buf_fini(&rk);
		pk = end.next_pk;
		rk = end.next_rk;
		p->q.from_pk = buf_span(&pk);
		p->q.from_rk = buf_span(&rk);
		p->stopped = p->stopped || !end.more;
		if (e == ERR_OK && !p->stopped && caller_interrupted(p->call))
			e = ERR_CANCELLED;
	} while (e == ERR_OK && !p->stopped);
	buf_fini(&pk);
	buf_fini(&rk);
	return e;
}

/* ---- top ---- */

struct counting {
	struct query_bound *bound;
	uint64_t left;
};

static bool count_row(void *arg, const struct query_row *row)
{
	struct counting *c = arg;
	if (--c->left > 0)
		return true;
	buf_add_span(&c->bound->pk, row->pk);
	buf_add_span(&c->bound->rk, row->rk);
	c->bound->found = true;
	return false;
}

/* What one sees is nobody else's.  NULL: memory is out. */
static struct query_bound *bound_of(struct query_top *top, const struct requester *v)
{
	if (v == NULL)
		return &top->all;
	if (top->requester != NULL && requester_same(top->requester, v))
		return &top->part;
	if (top->requester == NULL)
		top->requester = malloc(sizeof(*v));
	if (top->requester == NULL)
		return NULL;
	*top->requester = *v;
	top->part.changes = 0;
	return &top->part;
}

static enum err find_bound(struct fs *fs, struct query_node *options, const struct caller *call,
	struct query_bound *bound)
{
	uint64_t changes = atomic_load(&fs->changes) + 1, begin = clock_mono_us();
	if (!fs->shared && bound->changes == changes)
		return ERR_OK;
	if (bound->changes != 0 && begin < bound->good_until_us)
		return ERR_OK;
	struct counting c = { .bound = bound, .left = options->query.top };
	struct pages p = { .fs = fs, .call = call, .fn = count_row, .arg = &c };
	p.q = (struct query){
		.table_id = options->table_id, .filter = &options->query.filter, .top = c.left
	};
	bound->changes = 0;
	bound->found = false;
	buf_clear(&bound->pk);
	buf_clear(&bound->rk);
	/* A place of its own also for an empty key. */
	bool room = buf_reserve(&bound->pk, 1) && buf_reserve(&bound->rk, 1);
	enum err e = room ? run_pages(&p) : ERR_NO_MEMORY;
	if (e == ERR_OK && !(buf_ok(&bound->pk) && buf_ok(&bound->rk)))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK) {
		uint64_t end = clock_mono_us(), took = end - begin;
		bound->changes = changes;
		bound->good_until_us = took > TOP_CHEAP_US ? end + TOP_REST * took : 0;
	}
	return e;
}

/* ---- limits ---- */

static enum err between(const struct span *pk, const struct span *rk, struct key_ranges *ret)
{
	const struct span none = { 0 };
	return key_ranges_between(*pk, rk != NULL ? *rk : none, *pk, rk != NULL ? *rk : none, ret);
}

static enum err cut_at_top(struct fs *fs, struct query_node *options, const struct caller *call,
	struct query_limit *ret)
{
	const struct span none = { 0 };
	struct query_top *top = &options->top;
	struct key_ranges cut = { 0 };
	mutex_lock(&top->lock);
	struct query_bound *bound = bound_of(top, call->requester);
	enum err e = bound != NULL ? find_bound(fs, options, call, bound) : ERR_NO_MEMORY;
	bool found = e == ERR_OK && bound->found;
	if (found)
		e = key_ranges_between(
			none, none, buf_span(&bound->pk), buf_span(&bound->rk), &cut);
	mutex_unlock(&top->lock);
	if (e == ERR_OK && found && ret->any) {
		ret->ranges = cut;
		ret->any = false;
		return ERR_OK;
	}
	if (e == ERR_OK && found)
		e = key_ranges_intersect(&ret->ranges, &cut);
	key_ranges_fini(&cut);
	return e;
}

enum err query_limit_find(struct fs *fs, struct query_node *options, const struct span *pk,
	const struct span *rk, const struct caller *call, struct query_limit *ret)
{
	*ret = (struct query_limit){ .any = pk == NULL };
	enum err e = pk != NULL ? between(pk, rk, &ret->ranges) : ERR_OK;
	if (e == ERR_OK && options->query.top != 0)
		e = cut_at_top(fs, options, call, ret);
	return e;
}

/* ---- rows ---- */

struct taking {
	struct item *item;
	enum err e;
};

static bool take_row(void *arg, const struct query_row *row)
{
	struct taking *t = arg;
	t->e = item_copy(t->item, row->item);
	return false;
}

enum err query_first_row(struct fs *fs, struct query_node *options, const struct query_limit *limit,
	const struct caller *call, struct item *ret)
{
	struct taking t = { .item = ret, .e = ERR_NOT_FOUND };
	struct pages p = { .fs = fs, .call = call, .fn = take_row, .arg = &t };
	p.q = (struct query){ .table_id = options->table_id,
		.filter = &options->query.filter,
		.limit = limit->any ? NULL : &limit->ranges };
	enum err e = run_pages(&p);
	return e != ERR_OK ? e : t.e;
}

enum err query_row_text(const struct query_node *options, const struct item *row, struct span pk,
	struct span rk, struct buf *out)
{
	const struct selection *select = &options->query.select;
	if (select->all) {
		buf_add_span(out, row->body);
		return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
	}
	struct entity whole = { 0 };
	struct property *props = calloc(select->n + 1, sizeof(*props));
	enum err e = props != NULL ? ERR_OK : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = entity_json_decode(row->body, ENTITY_JSON_FILE, &whole, NULL, NULL);
	if (e == ERR_OK) {
		struct entity part = { .pk = pk, .rk = rk, .has_pk = true, .has_rk = true };
		part.timestamp = row->version;
		part.props = props;
		part.nprops = selection_apply(select, &whole, props);
		bool inside = filename_is_long(pk, FILENAME_PARTITION) ||
			filename_is_long(rk, FILENAME_ROW);
		unsigned flags = ENTITY_JSON_NEWLINE;
		if (inside || selection_holds(select, SPAN_LIT("PartitionKey")))
			flags |= ENTITY_JSON_PK;
		if (inside || selection_holds(select, SPAN_LIT("RowKey")))
			flags |= ENTITY_JSON_RK;
		if (selection_holds(select, SPAN_LIT("Timestamp")))
			flags |= ENTITY_JSON_TIMESTAMP;
		entity_json_encode(&part, flags, out);
		e = buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
	} else if (e != ERR_NO_MEMORY) {
		e = ERR_CORRUPT;
	}
	free(props);
	entity_fini(&whole);
	return e;
}
