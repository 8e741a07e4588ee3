/* SPDX-License-Identifier: MIT
 * Writes the difference that a change set makes: first objects that nobody names yet, then one
 * operation on one directory, which is the commit, then removals.  A death in between leaves
 * objects that nobody names, and no half set. */
#include "base/log.h"
#include "store/rados/work.h"
#include "store/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENDS 3              /* of an operation without an answer, each after OP_SECONDS */
#define FLOOR_AHEAD 10000000 /* ticks: 1 s */

/* ---- the difference ---- */

static const char *big_token(const struct work *w, uint64_t id)
{
	for (size_t i = 0; i < w->nbigs; i++) {
		if (w->bigs[i].id == id)
			return w->bigs[i].token;
	}
	return NULL;
}

static struct dir_edit *dir_edit_of(struct work *w, uint64_t dir)
{
	for (size_t i = 0; i < w->nedits; i++) {
		if (w->edits[i].dir == dir)
			return &w->edits[i];
	}
	if (rstore_grow(&w->edits, w->nedits, &w->cap_edits, sizeof(*w->edits)) != ERR_OK)
		return NULL;
	w->edits[w->nedits] = (struct dir_edit){ .dir = dir };
	return &w->edits[w->nedits++];
}

static struct rio_edit *edit_of(struct work *w, uint64_t dir)
{
	struct dir_edit *d = dir_edit_of(w, dir);
	return d ? &d->edit : NULL;
}

static const struct seal *seal_of(const struct work *w, uint64_t dir)
{
	for (size_t i = 0; i < w->nseals; i++) {
		if (w->seals[i].dir == dir)
			return &w->seals[i];
	}
	return NULL;
}

/* The time of a name never goes back, also where its item went and came back. */
static enum err above(const struct work *w, const struct item *it)
{
	const struct seal *s = seal_of(w, it->parent);
	return s && it->version <= s->above ? ERR_STALE_VERSION : ERR_OK;
}

static bool is_there(const struct state *st, uint64_t dir)
{
	return state_by_id(st, dir) != NULL;
}

static enum err drop_body(struct work *w, uint64_t id)
{
	char object[RIO_NAME_MAX];
	const char *token = big_token(w, id);
	if (!token)
		return ERR_OK;
	name_body(object, id, token);
	return names_add(&w->litter, object);
}

static enum err set_header(struct rio_edit *e, const struct item *it)
{
	struct buf b = BUF_INIT(KEYS_MAX);
	record_header(&b, it);
	enum err err = buf_full(&b);
	if (err == ERR_OK)
		rio_edit_set(e, SPAN_LIT(KEY_HEADER), buf_span(&b));
	buf_fini(&b);
	return err;
}

static enum err set_at(struct rio_edit *e, enum item_class class, struct span key, struct buf *val)
{
	struct buf place = BUF_INIT(KEYS_MAX);
	key_place(&place, class, key);
	enum err err = buf_full(&place);
	if (err == ERR_OK)
		err = buf_full(val);
	if (err == ERR_OK)
		rio_edit_set(e, buf_span(&place), buf_span(val));
	buf_fini(&place);
	buf_fini(val);
	return err;
}

static enum err remove_at(struct rio_edit *e, enum item_class class, struct span key)
{
	struct buf place = BUF_INIT(KEYS_MAX);
	key_place(&place, class, key);
	enum err err = buf_full(&place);
	if (err == ERR_OK)
		rio_edit_remove(e, buf_span(&place));
	buf_fini(&place);
	return err;
}

static enum err set_id(struct rio_edit *e, const struct item *it)
{
	struct buf key = BUF_INIT(KEYS_MAX), place = BUF_INIT(KEYS_MAX);
	key_id(&key, it->id);
	key_place(&place, it->class, it->key);
	enum err err = buf_full(&key);
	if (err == ERR_OK)
		err = buf_full(&place);
	if (err == ERR_OK)
		rio_edit_set(e, buf_span(&key), buf_span(&place));
	buf_fini(&key);
	buf_fini(&place);
	return err;
}

static enum err gone_id(struct rio_edit *e, uint64_t id)
{
	struct buf key = BUF_INIT(KEYS_MAX);
	key_id(&key, id);
	enum err err = buf_full(&key);
	if (err == ERR_OK)
		rio_edit_remove(e, buf_span(&key));
	buf_fini(&key);
	return err;
}

static enum err leave_dir(struct work *w, uint64_t id)
{
	enum err e = rstore_grow(&w->left, w->nleft, &w->cap_left, sizeof(*w->left));
	if (e == ERR_OK)
		w->left[w->nleft++] = id;
	return e;
}

static int64_t last_version(const struct change *changes, size_t n)
{
	int64_t high = 0;
	for (size_t i = 0; i < n; i++) {
		if (changes[i].op != CHANGE_ATTRS && changes[i].version > high)
			high = changes[i].version;
	}
	return high;
}

/* Its header tells bury() of which version its end is. */
static enum err ended(struct work *w, struct item it)
{
	struct rio_edit *edit = edit_of(w, it.id);
	it.version = last_version(w->plan.set, w->plan.at);
	return edit ? set_header(edit, &it) : ERR_NO_MEMORY;
}

static enum err removed(struct work *w, const struct item *it)
{
	enum err e = item_is_dir(it->kind) ? leave_dir(w, it->id) : ERR_OK;
	if (e == ERR_OK && it->id == w->dead)
		return ended(w, *it);
	/* What stood in a directory that went goes with its object. */
	if (e != ERR_OK || (!is_there(w->plan.s, it->parent) && it->parent != w->dead))
		return e;
	struct dir_edit *d = dir_edit_of(w, it->parent);
	struct rio_edit *edit = d ? &d->edit : NULL;
	if (!edit)
		return ERR_NO_MEMORY;
	d->removes = true;
	e = remove_at(edit, it->class, it->key);
	if (e != ERR_OK || item_is_dir(it->kind))
		return e;
	e = gone_id(edit, it->id);
	if (e == ERR_OK)
		e = drop_body(w, it->id);
	if (e == ERR_OK && it->kind == ITEM_FILE)
		e = stripes_drop(w->s, it->parent, it->id, edit, &w->litter);
	return e;
}

/* A header has all of a directory; its parent's entry only says that it is there. */
static enum err saved_dir(struct work *w, const struct item *it, bool made)
{
	struct buf b = BUF_INIT(KEYS_MAX);
	struct rio_edit *edit = edit_of(w, it->id);
	enum err e = edit ? set_header(edit, it) : ERR_NO_MEMORY;
	if (e != ERR_OK || !made)
		return e;
	/* What was in it before it went and came back was not later than that. */
	const struct seal *parent = seal_of(w, it->parent);
	rstore_set_above(edit, parent ? parent->above : 0);
	e = above(w, it);
	edit = edit_of(w, it->parent);
	if (e != ERR_OK || !edit)
		return e != ERR_OK ? e : ERR_NO_MEMORY;
	record_link(&b, it->id, it->kind);
	return set_at(edit, it->class, it->key, &b);
}

/* *ret_token: of the object that has the body; empty: the record has it. */
static enum err save_body(struct work *w, const struct item *was, const struct item *it,
	char ret_token[TOKEN_LEN + 1])
{
	const char *old = was ? big_token(w, it->id) : NULL;
	char object[RIO_NAME_MAX];
	ret_token[0] = 0;
	if (old && it->body.p && span_eq(was->body, it->body)) {
		memcpy(ret_token, old, TOKEN_LEN + 1);
		return ERR_OK;
	}
	enum err e = old ? drop_body(w, it->id) : ERR_OK;
	if (e != ERR_OK || !it->body.p || it->body.n <= STORE_SMALL_BODY)
		return e;
	rstore_token(w->s, ret_token);
	name_body(object, it->id, ret_token);
	e = names_add(&w->made, object);
	if (e == ERR_OK)
		rio_batch_put(&w->batch, &w->s->io, object, it->body);
	return e;
}

static enum err saved(struct work *w, const struct item *was, const struct item *it)
{
	char token[TOKEN_LEN + 1];
	struct buf b = BUF_INIT(KEYS_MAX);
	if (item_is_dir(it->kind))
		return saved_dir(w, it, !was);
	struct dir_edit *d = dir_edit_of(w, it->parent);
	struct rio_edit *edit = d ? &d->edit : NULL;
	if (!edit)
		return ERR_NO_MEMORY;
	bool moved = was && (was->class != it->class || !span_eq(was->key, it->key));
	d->removes = d->removes || moved;
	enum err e = !was || moved ? above(w, it) : ERR_OK;
	if (e == ERR_OK && moved)
		e = remove_at(edit, was->class, was->key);
	if (e == ERR_OK && was && was->kind == ITEM_FILE && it->kind != ITEM_FILE)
		e = stripes_drop(w->s, it->parent, it->id, edit, &w->litter);
	if (e == ERR_OK && it->kind == ITEM_FILE)
		e = stripes_save(w->s, &w->stripes, it->id, edit, &w->batch, &w->made, &w->litter);
	if (e == ERR_OK)
		e = save_body(w, was, it, token);
	if (e == ERR_OK) {
		record_item(&b, it, *token ? token : NULL);
		e = set_at(edit, it->class, it->key, &b);
	}
	if (e == ERR_OK && (!was || moved))
		e = set_id(edit, it);
	return e;
}

static uint64_t size_of(const struct node *n)
{
	return n ? n->it.size : 0;
}

/* The end of a directory is an operation on that one: its parent forgets it later. */
static bool counts(const struct work *w, const struct item *it)
{
	return !w->dead || it->id == w->dead || it->parent == w->dead;
}

/* Directories in a directory are half as many entries as rows. */
static bool is_too_large(const struct work *w, const struct node *was, const struct item *now)
{
	bool rows = now->kind != ITEM_TABLE && now->kind != ITEM_ACCOUNT;
	return now->size > w->s->limit_children * (rows ? 1 : 2) && now->size > size_of(was);
}

static enum err finish_edit(struct work *w, struct dir_edit *d)
{
	const struct node *n = state_by_id(w->plan.s, d->dir), *was = state_by_id(w->base, d->dir);
	if (n && is_too_large(w, was, &n->it))
		return ERR_PARTITION_TOO_LARGE;
	if (d->removes && n)
		rstore_set_above(&d->edit, n->it.version);
	return d->edit.failed ? ERR_NO_MEMORY : ERR_OK;
}

static void warn_if_large(const struct work *w, uint64_t dir)
{
	const struct node *n = state_by_id(w->plan.s, dir), *was = state_by_id(w->base, dir);
	if (n && n->it.size / CHILDREN_WARN > size_of(was) / CHILDREN_WARN)
		log_warning("a directory has %llu entries: its writers wait for seconds when Ceph "
			    "recovers it; rowfs stat names the largest partitions",
			(unsigned long long)n->it.size);
}

static enum err difference(struct work *w)
{
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < w->base->n; i++) {
		const struct item *it = &w->base->v[i]->it;
		if (counts(w, it) && !state_by_id(w->plan.s, it->id))
			e = removed(w, it);
	}
	for (size_t i = 0; e == ERR_OK && i < w->plan.s->n; i++) {
		struct node *now = w->plan.s->v[i], *was = state_by_id(w->base, now->it.id);
		if (was != now && counts(w, &now->it))
			e = saved(w, was ? &was->it : NULL, &now->it);
	}
	for (size_t i = 0; e == ERR_OK && i < w->nedits; i++)
		e = finish_edit(w, &w->edits[i]);
	return e;
}

/* ---- the commit ---- */

/* Makes new directories; *ret: the one that was there before. */
static enum err make_dirs(struct work *w, struct dir_edit **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < w->nedits; i++) {
		struct dir_edit *d = &w->edits[i];
		char object[RIO_NAME_MAX], token[TOKEN_LEN + 1];
		if (is_there(w->base, d->dir)) {
			if (*ret)
				return ERR_CROSS_DEVICE; /* not one operation */
			*ret = d;
			continue;
		}
		rstore_token(w->s, token);
		rio_edit_set(&d->edit, SPAN_LIT(KEY_TOKEN), span_of(token));
		name_dir(object, d->dir);
		enum err e = names_add(&w->made, object);
		if (e != ERR_OK)
			return e;
		rio_batch_write(&w->batch, &w->s->io, object, &d->edit, true);
	}
	return ERR_OK;
}

struct sent {
	char object[RIO_NAME_MAX], token[TOKEN_LEN + 1], last[LAST_LEN + 1];
	const char *before;
};

/* KEY_LAST after the set: its token, and those of the other writers. */
static void note_last(struct sent *x, const char *before)
{
	size_t n = TOKEN_LEN;
	memcpy(x->last, x->token, TOKEN_LEN);
	for (const char *p = before; *p && n < LAST_LEN; p += TOKEN_LEN) {
		if (memcmp(p, x->token, WRITER_LEN) == 0)
			continue;
		memcpy(x->last + n, p, TOKEN_LEN);
		n += TOKEN_LEN;
	}
	x->last[n] = 0;
}

/* An operation without an answer: 0: it was done; -ECANCELED: it was not, and never will be;
 * -EAGAIN: it was not yet; -ETIMEDOUT: not known.  Others may have changed the directory since. */
static int outcome(struct work *w, const struct sent *x)
{
	char *mem = NULL;
	struct rio_value v[] = { { .key = SPAN_LIT(KEY_LAST) }, { .key = SPAN_LIT(KEY_TOKEN) } };
	enum err e = rio_get(&w->s->io, x->object, v, 2, &mem);
	int code = -ETIMEDOUT;
	if (e == ERR_OK && v[0].val.p && strstr(v[0].val.p, x->token))
		code = 0;
	else if (e == ERR_OK && v[1].val.p && span_is(v[1].val, x->before))
		code = -EAGAIN;
	else if (e == ERR_OK && v[1].val.p && v[0].val.n < LAST_LEN)
		code = -ECANCELED; /* so many others that ours is forgotten: not known */
	free(mem);
	return code;
}

/* The token makes a late twin harmless: it asks for what is there no more. */
static enum err send_set(struct work *w, struct dir_edit *d)
{
	struct sent x;
	const struct seal *seal = seal_of(w, d->dir);
	if (!seal)
		return ERR_CORRUPT;
	x.before = seal->token;
	rstore_set_token(w->s, w->writer, x.token);
	if (d->dir == w->dead)
		x.token[0] = TOKEN_DEAD;
	note_last(&x, seal->last);
	rio_edit_set(&d->edit, SPAN_LIT(KEY_TOKEN), span_of(x.token));
	rio_edit_set(&d->edit, SPAN_LIT(KEY_LAST), span_of(x.last));
	name_dir(x.object, d->dir);
	struct rio_guard guard = { .key = SPAN_LIT(KEY_TOKEN), .is = span_of(x.before) };
	int code = -EAGAIN;
	bool lost = false;
	for (unsigned i = 0; i < SENDS && (code == -EAGAIN || code == -ETIMEDOUT); i++) {
		code = rio_write(&w->s->io, x.object, &d->edit, guard);
		lost = lost || code == -ETIMEDOUT;
		if (lost && code != 0)
			code = outcome(w, &x);
	}
	/* An object that is gone was that of a directory which another daemon removed. */
	if (code == -ECANCELED || (code == -ENOENT && !lost))
		return ERR_BUSY;
	if (code == -ETIMEDOUT || code == -EAGAIN)
		return ERR_OUTCOME_UNKNOWN;
	return rio_error(&w->s->io, code);
}

static void sweep(struct rstore *s, struct names *names)
{
	struct rio_batch b = { 0 };
	for (size_t i = 0; i < names->n; i++)
		rio_batch_remove(&b, &s->io, names->v[i]);
	if (rio_batch_wait(&b) != ERR_OK)
		log_warning("objects of removed items could not be removed; rowfs check does it");
}

static enum err keep_floor(struct rstore *s, const struct change *changes, size_t n)
{
	int64_t high = last_version(changes, n);
	mutex_lock(&s->lock);
	bool ahead = high > s->reserved;
	mutex_unlock(&s->lock);
	enum err e = ahead ? owner_note_floor(s, high + FLOOR_AHEAD) : ERR_OK;
	if (e == ERR_OK)
		rstore_saw(s, high);
	return e;
}

/* The directory whose end is what the set does, and what nobody may have filled meanwhile. */
static uint64_t dead_dir(struct work *w, size_t n)
{
	const struct change *c = w->plan.set;
	bool whole = n == 1 && c->op == CHANGE_DELETE && item_is_dir(c->now.kind);
	return whole && !(c->flags & CHANGE_RECURSIVE) ? c->now.id : w->plan.emptied;
}

enum err work_commit(struct work *w, size_t n)
{
	struct rstore *s = w->s;
	struct dir_edit *d = NULL;
	uint64_t last_ids;
	w->dead = dead_dir(w, n);
	enum err e = difference(w);
	if (e == ERR_OK)
		e = make_dirs(w, &d);
	if (e == ERR_OK)
		e = keep_floor(s, w->plan.set, n);
	ids_flush(s, &w->batch, &last_ids);
	enum err made = rio_batch_wait(&w->batch);
	if (made == ERR_OK)
		ids_flushed(s, last_ids);
	if (e == ERR_OK)
		e = made;
	if (e == ERR_OK && d)
		e = send_set(w, d);
	if (e != ERR_OK) {
		if (e != ERR_OUTCOME_UNKNOWN)
			sweep(s, &w->made);
		return e;
	}
	mutex_lock(&s->lock);
	s->file_bytes += w->plan.file_bytes - w->files_before;
	s->commits++;
	s->changes += n;
	mutex_unlock(&s->lock);
	if (d)
		warn_if_large(w, d->dir);
	for (size_t i = 0; i < w->nleft; i++)
		(void)reclaim_begin(s, w->left[i]);
	return ERR_OK;
}

static void bury_dead(struct work *w)
{
	const struct node *n = state_by_id(w->base, w->dead);
	struct buf place = BUF_INIT(KEYS_MAX);
	if (!n)
		return;
	key_place(&place, n->it.class, n->it.key);
	/* Until then the entry leads to a dead directory, which readers take for none. */
	if (!buf_ok(&place) || bury(w->s, n->it.parent, buf_span(&place), w->dead) != ERR_OK)
		log_warning("the entry of a removed directory could not be removed");
	buf_fini(&place);
}

void work_clean_up(struct work *w)
{
	if (w->dead)
		bury_dead(w);
	sweep(w->s, &w->litter);
	for (size_t i = 0; i < w->nleft; i++) {
		bool emptied = false; /* by this set, item by item */
		for (size_t k = 0; k < w->base->n; k++)
			emptied = emptied || w->base->v[k]->it.parent == w->left[i];
		if (reclaim_tree(w->s, w->left[i], !emptied) != ERR_OK)
			log_warning("a removed directory could not be emptied");
	}
}
