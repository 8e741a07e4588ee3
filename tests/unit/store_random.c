/* SPDX-License-Identifier: MIT
 * Random change sets, given to an engine and to the in-memory oracle: same errors, same
 * results, same tree.  Names are few, so that everything collides with everything.  Ids are the
 * oracle's here; what the engine calls them is learned from results and listings. */
#include "check.h"
#include "store/engines.h"
#include "store_contract.h"

#include <stdlib.h>

#define SPAN_NONE ((struct span){ NULL, 0 })
#define IDS_MAX 400
#define SET_MAX 6
#define TWINS_MAX 20000

struct twin {
	uint64_t oracle, ours;
};

struct pair {
	struct store *ours, *oracle;
	uint64_t seed;
	int64_t clock;
	uint64_t ids[IDS_MAX]; /* seen so far, newest overwrite oldest */
	unsigned nids;
	struct item picked[SET_MAX * 12]; /* what the change set at work borrows keys from */
	unsigned npicked;
	unsigned differences, applied;
	struct twin twins[TWINS_MAX];
	unsigned ntwins;
};

static unsigned roll(struct pair *p, unsigned n)
{
	p->seed = p->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(p->seed >> 33) % n;
}

static void differ(struct pair *p, const char *what, const char *detail)
{
	printf("# differs: %s %s\n", what, detail);
	p->differences++;
}

/* What our engine calls it. */
static uint64_t ours_of(struct pair *p, uint64_t id)
{
	for (unsigned i = p->ntwins; i-- > 0;) {
		if (p->twins[i].oracle == id)
			return p->twins[i].ours;
	}
	return id;
}

/* An id of each side for one item: the first time that is learned. */
static bool same_id(struct pair *p, uint64_t ours, uint64_t oracle)
{
	if (ours < STORE_ID_FIRST || oracle < STORE_ID_FIRST)
		return ours == oracle;
	for (unsigned i = p->ntwins; i-- > 0;) {
		if (p->twins[i].oracle == oracle || p->twins[i].ours == ours)
			return p->twins[i].oracle == oracle && p->twins[i].ours == ours;
	}
	if (p->ntwins < TWINS_MAX)
		p->twins[p->ntwins++] = (struct twin){ oracle, ours };
	return true;
}

static void see(struct pair *p, uint64_t id)
{
	for (unsigned i = 0; i < p->nids && i < IDS_MAX; i++) {
		if (p->ids[i] == id)
			return;
	}
	p->ids[p->nids++ % IDS_MAX] = id;
}

static uint64_t any_id(struct pair *p)
{
	unsigned n = p->nids < IDS_MAX ? p->nids : IDS_MAX;
	/* Mostly what is young: the old is gone. */
	if (roll(p, 3) > 0 && p->nids > 12)
		return p->ids[(p->nids - 1 - roll(p, 12)) % IDS_MAX];
	return p->ids[roll(p, n)];
}

/* An item that is there, by the oracle; NULL after some tries. */
static const struct item *any_item(struct pair *p, enum item_kind child)
{
	for (unsigned i = 0; i < 12 && p->npicked < ARRAY_LEN(p->picked); i++) {
		struct item *it = &p->picked[p->npicked];
		if (store_get(p->oracle, NULL, any_id(p), WANT_ATTRS, it) != ERR_OK)
			continue;
		bool fits = child == ITEM_NONE ? it->id > STORE_ID_FIRST
					       : item_may_hold(it->kind, child);
		if (fits && (child != ITEM_ACCOUNT || it->id == STORE_ROOT)) {
			p->npicked++;
			return it;
		}
		item_fini(it);
	}
	return NULL;
}

static struct span any_key(struct pair *p)
{
	static const char *const keys[] = { "", "a", "b", "c", "d", "x\xc3\xa9", "zz" };
	return span_of(keys[roll(p, ARRAY_LEN(keys))]);
}

static char filler[40000];

static struct span any_body(struct pair *p)
{
	static const unsigned sizes[] = { 0, 1, 3, 40, 300, 3071, 3072, 3073, 5000, 17000, 33000 };
	unsigned n = sizes[roll(p, ARRAY_LEN(sizes))];
	return span_make(filler + roll(p, 5000), n);
}

static void any_place(struct pair *p, struct item_ref *at)
{
	*at = (struct item_ref){ .parent = any_id(p), .key = any_key(p) };
	static const enum item_class classes[] = { CLASS_KEYED, CLASS_KEYED, CLASS_KEYED,
		CLASS_NAMED, CLASS_NAMED, CLASS_QUEUE, CLASS_BLOB };
	at->class = classes[roll(p, ARRAY_LEN(classes))];
	unsigned how = roll(p, 10);
	if (how < 3) {
		at->has_pk = true;
		at->pk = any_key(p);
	} else if (how < 5) {
		at->id = any_id(p);
	}
}

/* Where something is. */
static void there(struct pair *p, struct item_ref *at)
{
	const struct item *it = roll(p, 8) ? any_item(p, ITEM_NONE) : NULL;
	if (!it) {
		any_place(p, at);
		return;
	}
	*at = (struct item_ref){ .parent = it->parent, .class = it->class, .key = it->key };
	if (roll(p, 3) == 0)
		at->id = it->id;
}

/* Where a new one of this kind could be. */
static void room(struct pair *p, enum item_kind kind, struct item_ref *at)
{
	const struct item *dir = NULL;
	any_place(p, at);
	if (roll(p, 8) == 0)
		return;
	at->id = 0;
	at->has_pk = (kind == ITEM_ROW || kind == ITEM_FILE) && roll(p, 3) == 0;
	at->pk = any_key(p);
	at->class = kind == ITEM_FOLDER || (kind == ITEM_FILE && roll(p, 3)) ? CLASS_NAMED
									     : CLASS_KEYED;
	if (kind == ITEM_QUEUE || kind == ITEM_MESSAGE)
		at->class = CLASS_QUEUE;
	if (kind >= ITEM_CONTAINER)
		at->class = CLASS_BLOB;
	dir = any_item(p, at->has_pk ? ITEM_PARTITION : kind);
	if (dir && (!at->has_pk || dir->kind == ITEM_TABLE))
		at->parent = dir->id;
	else
		at->has_pk = false;
}

static void any_attrs(struct pair *p, struct attrs *a)
{
	*a = ATTRS_UNSET;
	if (roll(p, 3) > 0)
		return;
	if (roll(p, 2))
		a->mode = MODE_SET(roll(p, 512));
	if (roll(p, 2))
		a->uid = roll(p, 3);
	if (roll(p, 2))
		a->mtime_ns = (int64_t)roll(p, 1000) - 500;
	if (roll(p, 2))
		a->ctime_ns = roll(p, 1000);
}

static void any_put(struct pair *p, struct change *c)
{
	c->kind = (enum item_kind)(1 + roll(p, 12));
	if (roll(p, 2))
		c->kind = ITEM_ROW;
	/* Where nothing can hold it, first what can. */
	if (c->kind == ITEM_PIECE && roll(p, 4) && !any_item(p, ITEM_PIECE))
		c->kind = ITEM_EXTENT;
	if (c->kind == ITEM_EXTENT && !any_item(p, ITEM_EXTENT))
		c->kind = ITEM_BLOB;
	if (c->kind == ITEM_BLOB && !any_item(p, ITEM_BLOB))
		c->kind = ITEM_CONTAINER;
	if (c->kind == ITEM_CONTAINER && !any_item(p, ITEM_CONTAINER))
		c->kind = ITEM_ACCOUNT;
	if (c->kind == ITEM_MESSAGE && roll(p, 4) && !any_item(p, ITEM_MESSAGE))
		c->kind = ITEM_QUEUE;
	if (c->kind == ITEM_QUEUE && !any_item(p, ITEM_QUEUE))
		c->kind = ITEM_ACCOUNT;
	if (c->kind >= ITEM_ROW && c->kind <= ITEM_FOLDER && roll(p, 4) && !any_item(p, ITEM_ROW))
		c->kind = ITEM_PARTITION;
	if (c->kind == ITEM_PARTITION && !any_item(p, ITEM_PARTITION))
		c->kind = ITEM_TABLE;
	if (c->kind == ITEM_TABLE && !any_item(p, ITEM_TABLE))
		c->kind = ITEM_ACCOUNT;
	room(p, c->kind, &c->at);
	c->name = roll(p, 2) ? SPAN_LIT("Name") : SPAN_NONE;
	c->item_flags = roll(p, 4);
	c->body = any_body(p);
	any_attrs(p, &c->attrs);
}

static enum item_kind kind_at(struct pair *p, const struct item_ref *at)
{
	struct item it = { 0 };
	if (at->id && store_get(p->oracle, NULL, at->id, WANT_ATTRS, &it) != ERR_OK)
		it.kind = ITEM_NONE;
	else if (!at->id &&
		store_child(p->oracle, NULL, at->parent, at->class, at->key, WANT_ATTRS, &it) !=
			ERR_OK)
		it.kind = ITEM_NONE;
	enum item_kind kind = it.kind;
	item_fini(&it);
	return kind;
}

static void any_move(struct pair *p, struct change *c)
{
	static const enum item_kind kinds[] = { ITEM_NONE, ITEM_NONE, ITEM_ROW, ITEM_FILE,
		ITEM_PARTITION, ITEM_FOLDER };
	enum item_kind kind = kind_at(p, &c->at);
	if (roll(p, 3) == 0 && (kind == ITEM_FILE || kind == ITEM_ROW))
		c->to_kind = kind == ITEM_FILE ? ITEM_ROW : ITEM_FILE;
	else if (roll(p, 3) == 0 && kind == ITEM_FOLDER)
		c->to_kind = ITEM_PARTITION;
	else if (roll(p, 8) == 0)
		c->to_kind = kinds[roll(p, ARRAY_LEN(kinds))];
	if (roll(p, 3))
		room(p, c->to_kind ? c->to_kind : kind, &c->to);
	else
		there(p, &c->to);
	if ((c->to_kind == ITEM_ROW && roll(p, 8)) || roll(p, 8) == 0)
		c->body = any_body(p);
	c->item_flags = roll(p, 2) * ITEM_KEYS_INSIDE;
	if (roll(p, 5) == 0)
		c->flags |= CHANGE_NO_REPLACE;
	if (roll(p, 4) == 0) {
		c->flags |= CHANGE_EXCHANGE;
		c->other_kind = kinds[roll(p, ARRAY_LEN(kinds))];
		if (c->other_kind == ITEM_ROW)
			c->other_body = any_body(p);
	}
	if (roll(p, 4) == 0)
		c->name = SPAN_LIT("Other");
}

static void any_change(struct pair *p, struct change *c)
{
	static const enum change_op ops[] = { CHANGE_PUT, CHANGE_PUT, CHANGE_PUT, CHANGE_PUT,
		CHANGE_DELETE, CHANGE_MOVE, CHANGE_MOVE, CHANGE_MOVE, CHANGE_ATTRS, CHANGE_WRITE,
		CHANGE_WRITE, CHANGE_RESIZE };
	*c = (struct change){ .op = ops[roll(p, ARRAY_LEN(ops))], .version = p->clock };
	there(p, &c->at);
	if (roll(p, 30) == 0)
		c->version = p->clock - (int64_t)roll(p, 20);
	if (roll(p, 5) == 0) {
		c->cond = (enum change_cond)roll(p, 5);
		c->cond_version =
			roll(p, 2) ? p->clock - 1 - (int64_t)roll(p, 5) : (int64_t)any_id(p);
	}
	if (roll(p, 2))
		c->flags |= CHANGE_WANT_OLD;
	if (roll(p, 4) == 0)
		c->flags |= CHANGE_KEEP_DIR;
	if (c->op == CHANGE_DELETE && roll(p, 20) == 0)
		c->flags |= CHANGE_RECURSIVE;
	if (c->op == CHANGE_DELETE && (roll(p, 10) == 0 || kind_at(p, &c->at) == ITEM_ROW)) {
		c->flags |= CHANGE_TO_FILE;
		room(p, ITEM_FILE, &c->to);
	}
	if (c->op == CHANGE_PUT)
		any_put(p, c);
	if (c->op == CHANGE_MOVE)
		any_move(p, c);
	if (c->op == CHANGE_ATTRS) {
		any_attrs(p, &c->attrs);
		c->attrs.if_match = (int64_t)roll(p, 4) - 2;
		c->set_mask = roll(p, 128);
		c->item_flags = roll(p, 2);
	}
	if (c->op == CHANGE_WRITE || c->op == CHANGE_RESIZE) {
		static const unsigned ranges[] = { 60000, 4000, 400 };
		c->offset = roll(p, 2) ? roll(p, ranges[roll(p, 3)]) : 16384 * roll(p, 4);
		c->body = any_body(p);
	}
}

static bool same_item(struct pair *p, const struct item *a, const struct item *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == ITEM_NONE)
		return true;
	if (!a->body.p != !b->body.p)
		return false;
	return same_id(p, a->id, b->id) && same_id(p, a->parent, b->parent) &&
		a->class == b->class && a->flags == b->flags && a->generation == b->generation &&
		a->version == b->version && a->born == b->born && a->size == b->size &&
		memcmp(&a->attrs.mode, &b->attrs.mode, 12) == 0 &&
		a->attrs.mtime_ns == b->attrs.mtime_ns && a->attrs.ctime_ns == b->attrs.ctime_ns &&
		a->attrs.if_match == b->attrs.if_match && span_eq(a->key, b->key) &&
		span_eq(a->name, b->name) && span_eq(a->body, b->body);
}

static void print_item(const char *who, const struct item *it)
{
	printf("# %s: id %" PRIu64 " parent %" PRIu64
	       " kind %d class %d flags %x generation %" PRIu64 " version %" PRId64 " size %" PRIu64
	       " mtime %" PRId64 " ctime %" PRId64
	       " mode %x uid %u key '%.*s' name '%.*s' body %zu%s\n",
		who, it->id, it->parent, (int)it->kind, (int)it->class, it->flags, it->generation,
		it->version, it->size, it->attrs.mtime_ns, it->attrs.ctime_ns, it->attrs.mode,
		it->attrs.uid, (int)it->key.n, it->key.p ? it->key.p : "", (int)it->name.n,
		it->name.p ? it->name.p : "", it->body.n, it->body.p ? "" : " (none)");
}

static void compare_items(
	struct pair *p, const char *what, const struct item *a, const struct item *b)
{
	if (same_item(p, a, b))
		return;
	differ(p, what, "");
	print_item("ours  ", a);
	print_item("oracle", b);
}

static void compare_results(
	struct pair *p, const struct change *a, const struct change *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		compare_items(p, "now", &a[i].now, &b[i].now);
		compare_items(p, "old", &a[i].old, &b[i].old);
		compare_items(p, "left", &a[i].left, &b[i].left);
		if (a[i].made_partition != b[i].made_partition)
			differ(p, "made_partition", "");
		if (p->differences)
			printf("# change %zu of %zu: op %d flags %x\n", i, n, (int)a[i].op,
				a[i].flags);
		if (a[i].now.kind != ITEM_NONE && a[i].op != CHANGE_DELETE) {
			see(p, b[i].now.id);
			see(p, b[i].now.parent);
		}
	}
}

static void step(struct pair *p)
{
	struct change ours[SET_MAX], oracle[SET_MAX];
	struct err_detail d1 = { 0 }, d2 = { 0 };
	size_t n = roll(p, 3) ? 1 : 1 + roll(p, SET_MAX);
	p->clock += 1 + (int64_t)roll(p, 3);
	for (size_t i = 0; i < n; i++)
		any_change(p, &oracle[i]);
	memcpy(ours, oracle, sizeof(oracle[0]) * n);
	for (size_t i = 0; i < n; i++) {
		struct change *c = &ours[i];
		c->at.id = ours_of(p, c->at.id);
		c->at.parent = ours_of(p, c->at.parent);
		c->to.id = ours_of(p, c->to.id);
		c->to.parent = ours_of(p, c->to.parent);
		if (c->cond == COND_ID)
			c->cond_version = (int64_t)ours_of(p, (uint64_t)c->cond_version);
	}
	enum err e1 = store_apply(p->ours, ours, n, roll(p, 50) == 0, &d1);
	enum err e2 = store_apply(p->oracle, oracle, n, false, &d2);
	if (e1 != e2 || d1.op != d2.op) {
		differ(p, err_symbol(e1), err_symbol(e2));
		printf("# of op %d (%zu), oracle's %d (%zu) of %zu; flags %x to_kind %d kind %d\n",
			(int)ours[d1.op].op, d1.op, (int)oracle[d2.op].op, d2.op, n,
			ours[d1.op].flags, (int)ours[d1.op].to_kind, (int)ours[d1.op].kind);
	}
	compare_results(p, ours, oracle, n);
	p->applied += e1 == ERR_OK;
	for (; p->npicked > 0; p->npicked--)
		item_fini(&p->picked[p->npicked - 1]);
	changes_fini(ours, n);
	changes_fini(oracle, n);
}

/* ---- the whole tree ---- */

struct listing {
	struct item v[600];
	unsigned n;
};

static bool take(void *arg, const struct item *it)
{
	struct listing *l = arg;
	return l->n < ARRAY_LEN(l->v) && item_copy(&l->v[l->n++], it) == ERR_OK;
}

static void compare_content(struct pair *p, uint64_t id)
{
	static char a[200000], b[200000];
	size_t n = 0, m = 0;
	uint64_t offset = roll(p, 2) ? 0 : roll(p, 40000);
	size_t len = roll(p, 2) ? sizeof(a) : roll(p, 40000);
	enum err e1 = store_file_read(p->ours, NULL, ours_of(p, id), offset, a, len, &n);
	enum err e2 = store_file_read(p->oracle, NULL, id, offset, b, len, &m);
	if (e1 != e2 || n != m || memcmp(a, b, n) != 0)
		differ(p, "file content", "");
}

static void compare_get(struct pair *p, uint64_t id)
{
	struct item a = { 0 }, b = { 0 };
	enum err e1 = store_get(p->ours, NULL, ours_of(p, id), WANT_BODY, &a);
	enum err e2 = store_get(p->oracle, NULL, id, WANT_BODY, &b);
	if (e1 != e2)
		differ(p, "get", err_symbol(e1));
	compare_items(p, "get", &a, &b);
	item_fini(&a);
	item_fini(&b);
}

static void compare_dir(struct pair *p, uint64_t id, uint64_t *todo, unsigned *ntodo)
{
	for (int class = CLASS_KEYED; class <= CLASS_BLOB; class ++) {
		static struct listing a, b;
		a.n = b.n = 0;
		struct span after = roll(p, 3) ? SPAN_NONE : any_key(p);
		bool all = !after.p, inclusive = roll(p, 2);
		unsigned want = roll(p, 2) ? WANT_BODY : WANT_ATTRS;
		CHECK_ERR(store_list(p->ours, NULL, ours_of(p, id), (enum item_class) class, after,
				  inclusive, want, take, &a),
			ERR_OK);
		CHECK_ERR(store_list(p->oracle, NULL, id, (enum item_class) class, after, inclusive,
				  want, take, &b),
			ERR_OK);
		if (a.n != b.n)
			differ(p, "number of children", "");
		for (unsigned i = 0; i < a.n && i < b.n; i++) {
			compare_items(p, "child", &a.v[i], &b.v[i]);
			if (a.v[i].kind == ITEM_FILE)
				compare_content(p, b.v[i].id);
			if (all && item_is_dir(a.v[i].kind) && *ntodo < IDS_MAX)
				todo[(*ntodo)++] = b.v[i].id;
		}
		for (unsigned i = 0; i < a.n; i++)
			item_fini(&a.v[i]);
		for (unsigned i = 0; i < b.n; i++)
			item_fini(&b.v[i]);
	}
}

static void compare_all(struct pair *p)
{
	uint64_t todo[IDS_MAX] = { STORE_ROOT, STORE_REJECTED, STORE_TRASH };
	unsigned n = 3;
	struct store_info a, b;
	for (unsigned i = 0; i < n; i++)
		compare_dir(p, todo[i], todo, &n);
	for (unsigned i = 0; i < p->nids && i < IDS_MAX; i++)
		compare_get(p, p->ids[i]);
	store_info(p->ours, &a);
	store_info(p->oracle, &b);
	if (a.file_bytes != b.file_bytes)
		differ(p, "file_bytes", "");
	if (a.piece_bytes != b.piece_bytes && !a.remote)
		differ(p, "piece_bytes", "");
	if (store_version_floor(p->ours) < store_version_floor(p->oracle))
		differ(p, "version_floor", "is too low");
}

static bool print_finding(void *arg, const char *finding)
{
	(void)arg;
	printf("# check: %s\n", finding);
	return true;
}

unsigned contract_random(const struct contract_engine *engine, unsigned seed, unsigned sets)
{
	static struct pair p;
	p = (struct pair){ .seed = seed, .clock = 1000 };
	struct store_info info;
	for (size_t i = 0; i < sizeof(filler); i++)
		filler[i] = (char)('a' + (i * 7 + i / 251) % 26);
	p.ours = engine->open();
	if (!p.ours)
		return 1;
	store_info(p.ours, &info);
	if (store_open_memory_with(info.abilities, &p.oracle) != ERR_OK)
		return 1;
	engine->limits(p.ours, 90000, 300000);
	store_set_file_limits(p.oracle, 90000, 300000);
	see(&p, STORE_ROOT);
	see(&p, STORE_TRASH);
	for (unsigned i = 0; i < sets && p.differences == 0; i++) {
		step(&p);
		if (i % 25 == 24)
			compare_all(&p);
		if (engine->reopen && i % 400 == 399) {
			if (store_check(p.ours, print_finding, NULL, NULL) != ERR_OK)
				differ(&p, "check", "");
			p.ours = engine->reopen(p.ours);
			if (!p.ours)
				return p.differences + 1;
			engine->limits(p.ours, 90000, 300000);
			compare_all(&p);
		}
	}
	compare_all(&p);
	if (p.applied < sets / 8)
		differ(&p, "too few change sets went through", "");
	if (p.differences)
		printf("# seed %u, %u of %u change sets applied\n", seed, p.applied, sets);
	store_close(p.ours);
	store_close(p.oracle);
	return p.differences;
}
