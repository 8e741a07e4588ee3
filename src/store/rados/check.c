/* SPDX-License-Identifier: MIT
 * Checks a store from both ends: every directory against its children, and every object of the
 * namespace against the directory that should name it.  An object that nobody names is what a
 * daemon left when it died: it is removed, and is no finding.
 *
 * Other daemons may change the store meanwhile.  So a suspicion becomes a finding only when a second
 * look, at one moment, confirms it. */
#include "store/rados/core.h"
#include "store/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 512
#define COUNT_TRIES 16 /* of a directory that others change meanwhile */

struct checker {
	struct rstore *s;
	store_check_fn fn;
	store_progress_fn progress;
	void *arg;
	uint64_t objects; /* that were looked at */
	bool found, stopped;
	uint64_t litter;
	int64_t floor; /* as it was read last */
};

static void PRINTF_LIKE(2, 3) tell(struct checker *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->found = true;
	if (c->fn && !c->stopped)
		c->stopped = !c->fn(c->arg, text);
}

struct counts {
	uint64_t children, items, ids;
};

struct entry { /* of a directory, as it was listed */
	uint64_t dir;
	struct span place; /* class letter and key */
	struct record r;
};

/* Whether the entry still stands there. */
static enum err stands(struct checker *c, const struct entry *x, bool *ret)
{
	char object[RIO_NAME_MAX], *mem = NULL;
	struct rio_value v = { .key = x->place };
	struct record r;
	name_dir(object, x->dir);
	enum err e = rio_get(&c->s->io, object, &v, 1, &mem);
	*ret = e == ERR_OK && v.val.p && record_decode(v.val, &r) == ERR_OK &&
		r.it.id == x->r.it.id && r.it.version == x->r.it.version &&
		strcmp(r.token, x->r.token) == 0;
	free(mem);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err suspect(struct checker *c, const struct entry *x, const char *finding)
{
	bool still;
	enum err e = stands(c, x, &still);
	if (e == ERR_OK && still)
		tell(c, "%s %llu %s", x->r.link ? "directory" : "item",
			(unsigned long long)x->r.it.id, finding);
	return e;
}

static enum err check_dir(struct checker *c, uint64_t id, const struct entry *x);

/* Every version is below the floor that the cluster knew before it was used. */
static enum err check_version(struct checker *c, const struct entry *x)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT("floor") };
	if (x->r.it.version <= c->floor)
		return ERR_OK;
	enum err e = rio_get(&c->s->io, STORE_OBJECT, &v, 1, &mem);
	if (e == ERR_OK && v.val.p)
		c->floor = (int64_t)strtoull(v.val.p, NULL, 16);
	free(mem);
	if (e == ERR_OK && x->r.it.version > c->floor)
		tell(c, "item %llu is later than the store", (unsigned long long)x->r.it.id);
	return e;
}

static enum err check_item(struct checker *c, const struct entry *x)
{
	struct found f;
	enum err e = check_version(c, x);
	if (e != ERR_OK)
		return e;
	e = find_id(c->s, x->r.it.id, &f);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && f.r.it.parent != x->dir)) {
		found_fini(&f);
		return suspect(c, x, "is not found by its id");
	}
	if (e == ERR_OK)
		e = find_body(c->s, &f);
	if (e == ERR_NOT_FOUND || e == ERR_CORRUPT)
		e = suspect(c, x, "has lost its body");
	found_fini(&f);
	return e;
}

static enum err check_child(struct checker *c, uint64_t dir, const struct rio_value *v)
{
	struct entry x = { .dir = dir, .place = v->key };
	if (record_decode(v->val, &x.r) != ERR_OK) {
		tell(c, "directory %llu: an entry cannot be read", (unsigned long long)dir);
		return ERR_OK;
	}
	return x.r.link ? check_dir(c, x.r.it.id, &x) : check_item(c, &x);
}

static void count(struct counts *n, const struct rio_value *v)
{
	struct record r;
	n->ids += v->key.p[0] == 'i';
	if (strchr(CLASS_LETTERS, v->key.p[0]) == NULL)
		return;
	n->children++;
	n->items += record_decode(v->val, &r) == ERR_OK && !r.link;
}

/* Goes through the entries; counts them, and with `deep` checks each. */
static enum err walk(struct checker *c, uint64_t id, bool deep, struct counts *n)
{
	char object[RIO_NAME_MAX];
	struct buf after = BUF_INIT(KEYS_MAX);
	enum err e = ERR_OK;
	bool more = true;
	*n = (struct counts){ 0 };
	name_dir(object, id);
	buf_add_char(&after, 0);
	while (e == ERR_OK && more && !c->stopped) {
		struct rio_page page;
		e = rio_list(&c->s->io, object, NULL, 0, after.data, "", PAGE, &page);
		for (size_t i = 0; e == ERR_OK && i < page.n && !c->stopped; i++) {
			count(n, &page.v[i]);
			if (deep && strchr(CLASS_LETTERS, page.v[i].key.p[0]))
				e = check_child(c, id, &page.v[i]);
		}
		if (e == ERR_OK)
			e = rio_page_next(&page, &after, &more);
		rio_page_fini(&page);
	}
	buf_fini(&after);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static void compare(struct checker *c, uint64_t id, uint64_t size, const struct counts *n)
{
	if (n->children != size)
		tell(c, "directory %llu counts %llu children and has %llu", (unsigned long long)id,
			(unsigned long long)size, (unsigned long long)n->children);
	if (n->items != n->ids)
		tell(c, "directory %llu has %llu items and %llu ids", (unsigned long long)id,
			(unsigned long long)n->items, (unsigned long long)n->ids);
}

/* Counts again until nobody changed the directory meanwhile. */
static enum err recount(struct checker *c, uint64_t id)
{
	struct found before, after;
	struct counts n;
	enum err e = ERR_OK;
	for (unsigned i = 0; i < COUNT_TRIES && e == ERR_OK && !c->stopped; i++) {
		e = find_dir(c->s, id, &before);
		if (e != ERR_OK)
			break;
		e = walk(c, id, false, &n);
		bool same = e == ERR_OK && find_dir(c->s, id, &after) == ERR_OK &&
			strcmp(before.seal, after.seal) == 0;
		if (same)
			compare(c, id, before.r.it.size, &n);
		found_fini(&before);
		found_fini(&after);
		if (same)
			return e;
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* The entry of a directory that has no object.  A dead one goes here, as by any reader. */
static enum err no_object(struct checker *c, uint64_t id, const struct entry *x)
{
	struct found f;
	if (!x) {
		tell(c, "directory %llu has no object that can be read", (unsigned long long)id);
		return ERR_OK;
	}
	enum err e = find_place(c->s, x->dir, x->place, &f);
	found_fini(&f);
	if (e == ERR_NOT_FOUND || e == ERR_CORRUPT)
		e = suspect(c, x, "has no object that can be read");
	return e;
}

/* x: its entry; NULL: a fixed one. */
static enum err check_dir(struct checker *c, uint64_t id, const struct entry *x)
{
	struct found f = { 0 };
	struct counts n;
	enum err e = find_dir(c->s, id, &f);
	if (e == ERR_NOT_FOUND || e == ERR_CORRUPT)
		return no_object(c, id, x);
	if (e != ERR_OK)
		return e;
	if (f.r.it.id != id || f.r.it.parent != (x ? x->dir : 0))
		tell(c, "directory %llu stands in another one", (unsigned long long)id);
	e = walk(c, id, true, &n);
	/* What was above the lowest directory of a tree may have changed since. */
	if (e == ERR_OK && !c->stopped && (n.children != f.r.it.size || n.items != n.ids))
		e = recount(c, id);
	found_fini(&f);
	return e;
}

/* ---- objects ---- */

static enum err names_dir(struct rstore *s, uint64_t id, bool *ret)
{
	struct found f, link;
	*ret = id <= STORE_ID_FIRST;
	if (*ret)
		return ERR_OK;
	enum err e = find_dir(s, id, &f);
	if (e == ERR_OK)
		e = find_child(s, f.r.it.parent, f.r.it.class, f.r.it.key, &link);
	else
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	*ret = e == ERR_OK && link.r.it.id == id;
	if (e == ERR_OK)
		found_fini(&link);
	found_fini(&f);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err names_body(struct rstore *s, uint64_t id, const char *token, bool *ret)
{
	struct found f;
	enum err e = find_id(s, id, &f);
	*ret = e == ERR_OK && strcmp(f.r.token, token) == 0;
	if (e == ERR_OK)
		found_fini(&f);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err names_stripe(
	struct rstore *s, uint64_t id, uint64_t nr, const char *token, bool *ret)
{
	char object[RIO_NAME_MAX], *mem = NULL;
	struct found f;
	struct buf key = BUF_INIT(KEYS_MAX);
	enum err e = find_id(s, id, &f);
	*ret = false;
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	key_stripe(&key, id, nr);
	struct rio_value v = { .key = buf_span(&key) };
	e = buf_full(&key);
	name_dir(object, f.r.it.parent);
	if (e == ERR_OK)
		e = rio_get(&s->io, object, &v, 1, &mem);
	*ret = e == ERR_OK && v.val.p && span_is(v.val, token);
	free(mem);
	buf_fini(&key);
	found_fini(&f);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

struct object {
	const char *name;
	unsigned long long id, nr;
	char token[TOKEN_LEN + 1]; /* of a body or stripe */
};

/* Whether an item names it. */
static enum err is_named(struct checker *c, struct object *o, bool *ret)
{
	*ret = true;
	if (sscanf(o->name, "d.%10llx", &o->id) == 1)
		return names_dir(c->s, o->id, ret);
	if (sscanf(o->name, "b.%10llx.%32s", &o->id, o->token) == 2)
		return names_body(c->s, o->id, o->token, ret);
	if (sscanf(o->name, "c.%10llx.%8llx.%32s", &o->id, &o->nr, o->token) == 3)
		return names_stripe(c->s, o->id, o->nr, o->token, ret);
	if (strcmp(o->name, STORE_OBJECT) != 0 && strncmp(o->name, "ids.", 4) != 0)
		tell(c, "object %s is none of a store", o->name);
	return ERR_OK;
}

/* Whether the daemon that made it, and that alone may be about to name it, is no more. */
static enum err has_no_maker(struct checker *c, const struct object *o, bool *ret)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT(KEY_TOKEN), .val = span_of(o->token) };
	enum err e = *o->token ? ERR_OK : rio_get(&c->s->io, o->name, &v, 1, &mem);
	if (e == ERR_OK)
		e = owner_has_gone(c->s, v.val, ret);
	free(mem);
	return e;
}

static enum err check_object(struct checker *c, const char *name)
{
	struct object o = { .name = name };
	bool named, gone = false;
	if (c->progress)
		c->progress(c->arg, STORE_CHECK_ITEMS, ++c->objects, 0);
	enum err e = is_named(c, &o, &named);
	if (e == ERR_OK && !named)
		e = has_no_maker(c, &o, &gone);
	/* It may have named it, and gone, since we looked. */
	if (e == ERR_OK && gone)
		e = is_named(c, &o, &named);
	if (e == ERR_OK && gone && !named) {
		struct rio_batch b = { 0 };
		rio_batch_remove(&b, &c->s->io, name);
		e = rio_batch_wait(&b);
		c->litter++;
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err check_objects(struct checker *c)
{
	rados_list_ctx_t list;
	const char *name;
	enum err e = rio_error(&c->s->io, librados.nobjects_list_open(c->s->io.io, &list));
	if (e != ERR_OK)
		return e;
	int code = 0;
	while (e == ERR_OK && !c->stopped &&
		(code = librados.nobjects_list_next(list, &name, NULL, NULL)) == 0)
		e = check_object(c, name);
	librados.nobjects_list_close(list);
	return e == ERR_OK && code < 0 && code != -ENOENT ? rio_error(&c->s->io, code) : e;
}

enum err rados_check(struct store *st, store_check_fn fn, store_progress_fn progress, void *arg)
{
	struct checker c = { .s = rstore_of(st), .fn = fn, .progress = progress, .arg = arg };
	enum err e = ERR_OK;
	rwlock_wrlock(&c.s->sets); /* nothing is half made meanwhile */
	for (uint64_t id = STORE_ROOT; e == ERR_OK && id <= STORE_ORPHANS; id++)
		e = check_dir(&c, id, NULL);
	if (e == ERR_OK)
		e = check_objects(&c);
	rwlock_unlock(&c.s->sets);
	return e == ERR_OK && c.found ? ERR_CORRUPT : e;
}
