/* SPDX-License-Identifier: MIT
 * Change sets.  plan.c works one out on those items that it names; this file loads them, and writes
 * the difference: first objects that nobody names yet, then one operation on one directory, which
 * is the commit, then removals.  A death in between leaves objects that nobody names, and no half
 * set. */
#include "base/log.h"
#include "store/plan.h"
#include "store/rados/core.h"
#include "store/rados/stripes.h"
#include "store/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 4              /* of sets whose directory changed meanwhile */
#define SENDS 3              /* of an operation without an answer, each after OP_SECONDS */
#define FLOOR_AHEAD 10000000 /* ticks: 1 s */

struct seal { /* the token of a directory's object when this set first read it */
	uint64_t dir;
	char token[TOKEN_LEN + 1];
};

struct big { /* a body that is an object of its own */
	uint64_t id;
	char token[TOKEN_LEN + 1];
};

struct dir_edit { /* what happens to one directory's object */
	uint64_t dir;
	struct rio_edit edit;
};

struct work {
	struct plan plan;
	struct rstore *s;
	struct state *base; /* what was loaded, as it was */
	struct seal *seals;
	size_t nseals, cap_seals;
	struct big *bigs;
	size_t nbigs, cap_bigs;
	struct stripes stripes;

	struct dir_edit *edits;
	size_t nedits, cap_edits;
	struct rio_batch batch;
	struct names made, litter;
	uint64_t *left; /* removed directories */
	size_t nleft, cap_left;
};

/* ---- loading ---- */

static enum err note_seal(struct work *w, const struct found *f)
{
	for (size_t i = 0; i < w->nseals; i++) {
		if (w->seals[i].dir == f->dir)
			return strcmp(w->seals[i].token, f->seal) == 0 ? ERR_OK : ERR_BUSY;
	}
	enum err e = rstore_grow(&w->seals, w->nseals, &w->cap_seals, sizeof(*w->seals));
	if (e == ERR_OK) {
		struct seal *x = &w->seals[w->nseals++];
		x->dir = f->dir;
		memcpy(x->token, f->seal, sizeof(x->token));
	}
	return e;
}

static enum err note_big(struct work *w, const struct found *f)
{
	if (!*f->r.token)
		return ERR_OK;
	enum err e = rstore_grow(&w->bigs, w->nbigs, &w->cap_bigs, sizeof(*w->bigs));
	if (e == ERR_OK) {
		struct big *b = &w->bigs[w->nbigs++];
		b->id = f->r.it.id;
		memcpy(b->token, f->r.token, sizeof(b->token));
	}
	return e;
}

static const char *big_token(const struct work *w, uint64_t id)
{
	for (size_t i = 0; i < w->nbigs; i++) {
		if (w->bigs[i].id == id)
			return w->bigs[i].token;
	}
	return NULL;
}

static enum err take_in(struct work *w, struct found *f)
{
	enum err e = note_seal(w, f);
	if (state_by_id(w->base, f->r.it.id))
		return e; /* and it may have been changed, or removed, by this set */
	if (e == ERR_OK)
		e = note_big(w, f);
	if (e == ERR_OK)
		e = find_body(w->s, f);
	if (e == ERR_OK)
		e = state_insert(w->base, &f->r.it, NULL);
	if (e == ERR_OK)
		e = state_share(w->plan.s, state_by_id(w->base, f->r.it.id));
	return e == ERR_NOT_FOUND ? ERR_BUSY : e;
}

static enum err load_id(struct plan *p, uint64_t id)
{
	struct work *w = (struct work *)p;
	struct found f;
	if (state_by_id(w->base, id))
		return ERR_OK;
	enum err e = find_id(w->s, id, &f);
	if (e == ERR_OK)
		e = take_in(w, &f);
	else if (e == ERR_NOT_FOUND)
		e = ERR_OK;
	found_fini(&f);
	return e;
}

static enum err load_child(struct plan *p, uint64_t parent, enum item_class class, struct span key)
{
	struct work *w = (struct work *)p;
	struct found f;
	if (state_child(w->base, parent, class, key))
		return ERR_OK;
	enum err e = find_child(w->s, parent, class, key, &f);
	if (e == ERR_OK)
		e = take_in(w, &f);
	else if (e == ERR_NOT_FOUND)
		e = ERR_OK;
	found_fini(&f);
	return e;
}

static enum err take_id(struct plan *p, const struct item *it, uint64_t *ret)
{
	struct work *w = (struct work *)p;
	return ids_take(w->s, item_is_dir(it->kind) ? 0 : it->parent, ret);
}

static enum err content(struct plan *p, const struct item *was, uint64_t id, uint64_t size,
	uint64_t offset, struct span bytes, char **ret_data)
{
	struct work *w = (struct work *)p;
	*ret_data = NULL;
	return stripes_write(w->s, &w->stripes, was ? was->parent : 0, id, !was,
		was ? was->size : 0, size, offset, bytes);
}

static const struct plan_ops ops = { load_id, load_child, take_id, content };

/* ---- the difference ---- */

static struct rio_edit *edit_of(struct work *w, uint64_t dir)
{
	for (size_t i = 0; i < w->nedits; i++) {
		if (w->edits[i].dir == dir)
			return &w->edits[i].edit;
	}
	if (rstore_grow(&w->edits, w->nedits, &w->cap_edits, sizeof(*w->edits)) != ERR_OK)
		return NULL;
	w->edits[w->nedits] = (struct dir_edit){ .dir = dir };
	return &w->edits[w->nedits++].edit;
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

static enum err removed(struct work *w, const struct item *it)
{
	enum err e = item_is_dir(it->kind) ? leave_dir(w, it->id) : ERR_OK;
	/* What stood in a directory that went goes with its object. */
	if (e != ERR_OK || !is_there(w->plan.s, it->parent))
		return e;
	struct rio_edit *edit = edit_of(w, it->parent);
	if (!edit)
		return ERR_NO_MEMORY;
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
	if (!edit)
		return ERR_NO_MEMORY;
	record_header(&b, it);
	enum err e = buf_full(&b);
	if (e == ERR_OK)
		rio_edit_set(edit, SPAN_LIT(KEY_HEADER), buf_span(&b));
	buf_clear(&b);
	edit = e == ERR_OK && made ? edit_of(w, it->parent) : NULL;
	if (!edit) {
		buf_fini(&b);
		return made && e == ERR_OK ? ERR_NO_MEMORY : e;
	}
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
	struct rio_edit *edit = edit_of(w, it->parent);
	if (!edit)
		return ERR_NO_MEMORY;
	enum err e = ERR_OK;
	bool moved = was && (was->class != it->class || !span_eq(was->key, it->key));
	if (moved)
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

static enum err difference(struct work *w)
{
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < w->base->n; i++) {
		if (!state_by_id(w->plan.s, w->base->v[i]->it.id))
			e = removed(w, &w->base->v[i]->it);
	}
	for (size_t i = 0; e == ERR_OK && i < w->plan.s->n; i++) {
		struct node *now = w->plan.s->v[i], *was = state_by_id(w->base, now->it.id);
		if (was != now)
			e = saved(w, was ? &was->it : NULL, &now->it);
	}
	for (size_t i = 0; e == ERR_OK && i < w->nedits; i++)
		e = w->edits[i].edit.failed ? ERR_NO_MEMORY : ERR_OK;
	return e;
}

/* ---- the commit ---- */

static const char *seal_of(const struct work *w, uint64_t dir)
{
	for (size_t i = 0; i < w->nseals; i++) {
		if (w->seals[i].dir == dir)
			return w->seals[i].token;
	}
	return NULL;
}

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

/* An operation without an answer: 0: it was done; -ECANCELED: another one was; -EAGAIN: none. */
static int outcome(struct work *w, const char *object, const char *before, const char *after)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT(KEY_TOKEN) };
	enum err e = rio_get(&w->s->io, object, &v, 1, &mem);
	int code = -ETIMEDOUT;
	if (e == ERR_OK && v.val.p)
		code = span_is(v.val, after) ? 0 : span_is(v.val, before) ? -EAGAIN : -ECANCELED;
	else if (e == ERR_OK || e == ERR_NOT_FOUND)
		code = -ECANCELED;
	free(mem);
	return code;
}

/* The token makes a late twin harmless: it asks for what is there no more. */
static enum err send_set(struct work *w, struct dir_edit *d)
{
	char object[RIO_NAME_MAX], token[TOKEN_LEN + 1];
	const char *before = seal_of(w, d->dir);
	if (!before)
		return ERR_CORRUPT;
	rstore_token(w->s, token);
	rio_edit_set(&d->edit, SPAN_LIT(KEY_TOKEN), span_of(token));
	name_dir(object, d->dir);
	struct rio_guard guard = { .key = SPAN_LIT(KEY_TOKEN), .is = span_of(before) };
	int code = -EAGAIN;
	bool lost = false;
	for (unsigned i = 0; i < SENDS && (code == -EAGAIN || code == -ETIMEDOUT); i++) {
		code = rio_write(&w->s->io, object, &d->edit, guard);
		lost = lost || code == -ETIMEDOUT;
		if (lost && code != 0)
			code = outcome(w, object, before, token);
	}
	if (code == -ECANCELED && !lost)
		return ERR_BUSY;
	if (code == -ETIMEDOUT || code == -EAGAIN || code == -ECANCELED)
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
	int64_t high = 0;
	for (size_t i = 0; i < n; i++) {
		if (changes[i].op != CHANGE_ATTRS && changes[i].version > high)
			high = changes[i].version;
	}
	enum err e = ERR_OK;
	if (high > s->reserved) {
		e = owner_note(s, high + FLOOR_AHEAD);
		if (e == ERR_OK)
			s->reserved = high + FLOOR_AHEAD;
	}
	mutex_lock(&s->lock);
	if (e == ERR_OK && high > s->version_high)
		s->version_high = high;
	mutex_unlock(&s->lock);
	return e;
}

static enum err commit(struct work *w, size_t n)
{
	struct rstore *s = w->s;
	struct dir_edit *d = NULL;
	enum err e = difference(w);
	if (e == ERR_OK)
		e = make_dirs(w, &d);
	if (e == ERR_OK)
		e = keep_floor(s, w->plan.set, n);
	ids_flush(s, &w->batch);
	enum err made = rio_batch_wait(&w->batch);
	if (made == ERR_OK)
		ids_flushed(s);
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
	s->file_bytes = w->plan.file_bytes;
	s->commits++;
	s->changes += n;
	mutex_unlock(&s->lock);
	for (size_t i = 0; i < w->nleft; i++)
		(void)reclaim_begin(s, w->left[i]);
	return ERR_OK;
}

/* ---- a change set ---- */

static void work_fini(struct work *w)
{
	for (size_t i = 0; i < w->nedits; i++)
		rio_edit_fini(&w->edits[i].edit);
	item_fini(&w->plan.unit);
	stripes_fini(&w->stripes);
	state_unref(w->base);
	state_unref(w->plan.s);
	free(w->edits);
	free(w->seals);
	free(w->bigs);
	free(w->made.v);
	free(w->litter.v);
	free(w->left);
}

static enum err try_set(struct work *w, struct change *changes, size_t n, size_t *ret_blame)
{
	struct plan *p = &w->plan;
	mutex_lock(&w->s->lock);
	p->file_bytes = w->s->file_bytes;
	mutex_unlock(&w->s->lock);
	p->ops = &ops;
	p->limit_file = w->s->limit_file;
	p->limit_files = w->s->limit_files;
	p->set = changes;
	enum err e = state_copy(NULL, &w->base);
	if (e == ERR_OK)
		e = state_copy(NULL, &p->s);
	for (p->at = 0; e == ERR_OK && p->at < n; p->at++) {
		e = plan_change(p, &changes[p->at]);
		*ret_blame = p->at;
	}
	return e == ERR_OK ? commit(w, n) : e;
}

/* What the set removed, without a lock: nobody finds it any more. */
static void clean_up(struct work *w)
{
	sweep(w->s, &w->litter);
	for (size_t i = 0; i < w->nleft; i++) {
		bool emptied = false; /* by this set, item by item */
		for (size_t k = 0; k < w->base->n; k++)
			emptied = emptied || w->base->v[k]->it.parent == w->left[i];
		if (reclaim_tree(w->s, w->left[i], !emptied) != ERR_OK)
			log_warning("a removed directory could not be emptied");
	}
}

enum err rados_apply(
	struct store *st, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	struct rstore *s = rstore_of(st);
	size_t blame = 0;
	(void)durable; /* what the cluster acknowledged is on disk */
	if (n == 0)
		return ERR_OK;
	if (s->read_only)
		return err_set(reterr, ERR_READ_ONLY, NULL);
	enum err e = ERR_BUSY;
	for (unsigned i = 0; i < TRIES && e == ERR_BUSY; i++) {
		struct work w = { .s = s };
		mutex_lock(&s->writer);
		e = try_set(&w, changes, n, &blame);
		mutex_unlock(&s->writer);
		if (e == ERR_OK)
			clean_up(&w);
		else
			changes_fini(changes, n);
		work_fini(&w);
	}
	if (e != ERR_OK && reterr) {
		memset(reterr, 0, sizeof(*reterr));
		reterr->op = blame;
	}
	return e == ERR_BUSY ? ERR_THROTTLED : e;
}
