/* SPDX-License-Identifier: MIT */
#include "cloudstore/merge.h"

#include "cloudstore/core.h"

#define KEY_LIMIT ((size_t)8 << 10)
#define GONE_LIMIT ((size_t)256 << 20)
#define MEMORY_MAX ((size_t)4 << 20) /* of puts that wait */

void merge_begin(struct merge *m, struct store *shadow, uint64_t dir, struct span from)
{
	*m = (struct merge){ .shadow = shadow,
		.dir = dir,
		.next = BUF_INIT(KEY_LIMIT),
		.gone = BUF_INIT(GONE_LIMIT) };
	buf_add_span(&m->next, from);
}

void merge_fini(struct merge *m)
{
	arena_fini(&m->memory);
	buf_fini(&m->next);
	buf_fini(&m->gone);
}

static enum err apply(struct merge *m, struct change *changes, size_t n)
{
	struct err_detail why = { 0 };
	enum err e = store_apply(m->shadow, changes, n, false, &why);
	if (e == ERR_OK)
		changes_fini(changes, n);
	return e == ERR_GONE ? ERR_NOT_FOUND : e;
}

static enum err flush(struct merge *m)
{
	enum err e = m->nputs > 0 ? apply(m, m->puts, m->nputs) : ERR_OK;
	m->nputs = 0;
	arena_reset(&m->memory);
	return e;
}

static enum err remove_item(struct merge *m, uint64_t id)
{
	struct change c = { .op = CHANGE_DELETE,
		.flags = CHANGE_RECURSIVE,
		.at = { .id = id },
		.version = cloudstore_new_version(m->shadow),
		.attrs = ATTRS_UNSET };
	enum err e = apply(m, &c, 1);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* ---- what the shadow has ---- */

struct passing {
	struct merge *m;
	struct span key; /* p NULL: the end */
	uint64_t id;     /* of the child with this key */
	int64_t version;
};

/* The service knows neither names that wait for a document nor empty directories. */
static bool is_local(const struct item *it)
{
	return item_is_empty_row(it) || (it->kind == ITEM_PARTITION && it->flags & ITEM_MADE);
}

static bool pass(void *arg, const struct item *it)
{
	struct passing *p = arg;
	int c = p->key.p != NULL ? span_cmp(it->key, p->key) : -1;
	if (c < 0 && !is_local(it))
		buf_add(&p->m->gone, &it->id, sizeof(it->id));
	if (c == 0) {
		p->id = it->id;
		p->version = it->version;
	}
	return c < 0;
}

static enum err pass_to(struct passing *p)
{
	struct merge *m = p->m;
	enum err e = store_list(m->shadow, NULL, m->dir, CLASS_KEYED, buf_span(&m->next), true,
		WANT_ATTRS, pass, p);
	return e == ERR_OK ? buf_full(&m->gone) : e;
}

/* ---- what the service has ---- */

void merge_skip(struct merge *m, struct span key)
{
	buf_clear(&m->next);
	buf_add_span(&m->next, key);
}

enum err merge_name(struct merge *m, struct span key, int64_t *ret_version)
{
	struct passing p = { .m = m, .key = key.n > 0 ? key : SPAN_LIT("") };
	if (span_cmp(key, buf_span(&m->next)) < 0)
		return ERR_NOT_SUPPORTED; /* no service of tables lists them so */
	enum err e = pass_to(&p);
	*ret_version = p.version;
	m->named = p.id;
	buf_clear(&m->next);
	buf_add_span(&m->next, key);
	buf_add_char(&m->next, 0);
	return e == ERR_OK ? buf_full(&m->next) : e;
}

enum err merge_put(struct merge *m, struct span key, const struct change *put)
{
	struct change *c = &m->puts[m->nputs];
	*c = *put;
	c->op = CHANGE_PUT;
	c->at = (struct item_ref){ .parent = m->dir, .class = CLASS_KEYED, .key = key };
	c->attrs = ATTRS_UNSET;
	if (c->version == 0)
		c->version = cloudstore_new_version(m->shadow);
	bool body = put->body.p != NULL, name = put->name.p != NULL;
	c->at.key = arena_copy(&m->memory, key);
	if (body)
		c->body = arena_copy(&m->memory, put->body);
	if (name)
		c->name = arena_copy(&m->memory, put->name);
	if (c->at.key.p == NULL || (body && c->body.p == NULL) || (name && c->name.p == NULL))
		return ERR_NO_MEMORY;
	m->nputs++;
	bool full = m->nputs == MERGE_PUTS || arena_holds(&m->memory) > MEMORY_MAX;
	return full ? flush(m) : ERR_OK;
}

enum err merge_forget(struct merge *m, struct span key)
{
	struct item it;
	enum err e = store_child(m->shadow, NULL, m->dir, CLASS_KEYED, key, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND)
		return ERR_OK;
	if (e != ERR_OK)
		return e;
	if (!is_local(&it))
		buf_add(&m->gone, &it.id, sizeof(it.id));
	item_fini(&it);
	return buf_full(&m->gone);
}

enum err merge_drop(struct merge *m)
{
	return remove_item(m, m->named);
}

static bool found(void *arg, const struct item *it)
{
	(void)it;
	*(bool *)arg = true;
	return false;
}

static bool is_table(struct merge *m, uint64_t id)
{
	struct item it;
	bool is =
		store_get(m->shadow, NULL, id, WANT_ATTRS, &it) == ERR_OK && it.kind == ITEM_TABLE;
	item_fini(&it);
	return is;
}

static bool note_partition(void *arg, const struct item *it)
{
	struct buf *ids = arg;
	buf_add(ids, &it->id, sizeof(it->id));
	return buf_ok(ids);
}

/* Looks for ordinary files in the directory, and in its partitions if it is a table. */
static enum err has_files(struct merge *m, uint64_t id, bool *ret)
{
	struct buf ids = BUF_INIT(GONE_LIMIT);
	enum err e = ERR_OK;
	buf_add(&ids, &id, sizeof(id));
	if (is_table(m, id))
		e = store_list(m->shadow, NULL, id, CLASS_KEYED, (struct span){ 0 }, false,
			WANT_KEYS, note_partition, &ids);
	if (e == ERR_OK)
		e = buf_full(&ids);
	for (size_t at = 0; e == ERR_OK && !*ret && at < ids.len; at += sizeof(id)) {
		memcpy(&id, ids.data + at, sizeof(id));
		e = store_list(m->shadow, NULL, id, CLASS_NAMED, (struct span){ 0 }, false,
			WANT_KEYS, found, ret);
	}
	buf_fini(&ids);
	return e;
}

/* Ordinary files keep their directory.
 * Last, so that a partition whose rows are all others stays the same directory. */
static enum err remove_gone(struct merge *m)
{
	enum err e = ERR_OK;
	uint64_t id;
	for (size_t at = 0; e == ERR_OK && at < m->gone.len; at += sizeof(id)) {
		bool files = false;
		memcpy(&id, m->gone.data + at, sizeof(id));
		e = has_files(m, id, &files);
		if (e == ERR_OK && !files)
			e = remove_item(m, id);
	}
	return e;
}

enum err merge_end(struct merge *m, bool to_end)
{
	struct passing p = { .m = m };
	enum err e = to_end ? pass_to(&p) : ERR_OK;
	if (e == ERR_OK)
		e = flush(m);
	return e == ERR_OK ? remove_gone(m) : e;
}
