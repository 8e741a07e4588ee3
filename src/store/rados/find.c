/* SPDX-License-Identifier: MIT
 * Finding one item: by place, by id.  What is read of one object in one operation is of one
 * moment. */
#include "store/rados/core.h"

#include <stdlib.h>
#include <string.h>

#define TRIES 8 /* of reads that another change crossed */

void found_fini(struct found *f)
{
	free(f->mem);
	free(f->body);
	memset(f, 0, sizeof(*f));
}

/* What each read of a directory's object asks for besides, behind its own keys. */
static void ask_seal(struct rio_value v[FIND_SEALS])
{
	v[0] = (struct rio_value){ .key = SPAN_LIT(KEY_TOKEN) };
	v[1] = (struct rio_value){ .key = SPAN_LIT(KEY_ABOVE) };
	v[2] = (struct rio_value){ .key = SPAN_LIT(KEY_LAST) };
}

/* ERR_GONE: the directory is dead. */
static enum err note_seal(struct found *f, uint64_t dir, const struct rio_value v[FIND_SEALS])
{
	f->dir = dir;
	if (v[0].val.n != TOKEN_LEN || v[2].val.n > LAST_LEN)
		return ERR_CORRUPT;
	memcpy(f->seal, v[0].val.p, TOKEN_LEN);
	if (v[2].val.n > 0)
		memcpy(f->last, v[2].val.p, v[2].val.n);
	f->above = v[1].val.p ? (int64_t)strtoull(v[1].val.p, NULL, 16) : 0;
	return f->seal[0] == TOKEN_DEAD ? ERR_GONE : ERR_OK;
}

/* ERR_GONE: it is dead. */
static enum err read_dir(struct rstore *s, uint64_t id, struct found *f)
{
	char object[RIO_NAME_MAX];
	struct rio_value v[1 + FIND_SEALS] = { { .key = SPAN_LIT(KEY_HEADER) } };
	ask_seal(v + 1);
	name_dir(object, id);
	memset(f, 0, sizeof(*f));
	enum err e = rio_get(&s->io, object, v, 1 + FIND_SEALS, &f->mem);
	if (e == ERR_OK && !v[0].val.p)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = note_seal(f, id, v + 1);
	if (e == ERR_OK)
		e = record_decode(v[0].val, &f->r);
	if (e != ERR_OK)
		found_fini(f);
	return e;
}

enum err find_gone(struct rstore *s, uint64_t dir, bool *ret)
{
	*ret = false;
	while (atomic_load(&s->any_dying) > 0 && dir > STORE_ID_FIRST && !*ret) {
		mutex_lock(&s->lock);
		for (size_t i = 0; i < s->ndying; i++)
			*ret = *ret || s->dying[i] == dir;
		mutex_unlock(&s->lock);
		struct found f;
		enum err e = read_dir(s, dir, &f);
		if (e == ERR_NOT_FOUND || e == ERR_GONE)
			*ret = true;
		else if (e != ERR_OK)
			return e;
		dir = e == ERR_OK ? f.r.it.parent : 0;
		found_fini(&f);
	}
	return ERR_OK;
}

enum err find_dir(struct rstore *s, uint64_t id, struct found *f)
{
	bool gone;
	enum err e = find_gone(s, id, &gone);
	if (e != ERR_OK || gone) {
		memset(f, 0, sizeof(*f));
		return e != ERR_OK ? e : ERR_NOT_FOUND;
	}
	e = read_dir(s, id, f);
	return e == ERR_GONE ? ERR_NOT_FOUND : e;
}

/* `place`: class letter and key. */
static enum err read_place(struct rstore *s, uint64_t parent, struct span place, struct found *f)
{
	char object[RIO_NAME_MAX];
	struct rio_value v[1 + FIND_SEALS] = { { .key = place } };
	ask_seal(v + 1);
	name_dir(object, parent);
	memset(f, 0, sizeof(*f));
	enum err e = rio_get(&s->io, object, v, 1 + FIND_SEALS, &f->mem);
	if (e == ERR_OK && !v[0].val.p)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = note_seal(f, parent, v + 1);
	if (e == ERR_GONE)
		e = ERR_NOT_FOUND; /* what a dead directory holds is not there */
	if (e == ERR_OK)
		e = record_decode(v[0].val, &f->r);
	if (e != ERR_OK)
		found_fini(f);
	return e;
}

/* Gives it its place, whose bytes go behind those that were read. */
static enum err set_place(struct found *f, uint64_t parent, enum item_class class, struct span key)
{
	f->r.it.parent = parent;
	f->r.it.class = class;
	f->body = malloc(key.n + 1);
	if (!f->body)
		return ERR_NO_MEMORY;
	if (key.n > 0)
		memcpy(f->body, key.p, key.n);
	f->body[key.n] = 0;
	f->r.it.key = span_make(f->body, key.n);
	return ERR_OK;
}

/* From a directory's entry to the directory.  The daemon that removed a dead one may have died
 * before its entry went: so that goes here. */
static enum err follow(struct rstore *s, uint64_t parent, struct span place, struct found *f)
{
	uint64_t dir = f->r.it.id;
	found_fini(f);
	enum err e = read_dir(s, dir, f);
	if (e != ERR_GONE)
		return e;
	e = s->read_only ? ERR_OK : bury(s, parent, place, dir);
	return e == ERR_OK || e == ERR_BUSY ? ERR_NOT_FOUND : e;
}

static enum item_class class_of(char letter)
{
	const char *at = strchr(CLASS_LETTERS, letter);
	return at ? (enum item_class)(at - CLASS_LETTERS) : CLASS_QUEUE;
}

enum err find_place(struct rstore *s, uint64_t parent, struct span place, struct found *f)
{
	bool gone;
	memset(f, 0, sizeof(*f));
	enum err e = find_gone(s, parent, &gone);
	if (e == ERR_OK && gone)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = read_place(s, parent, place, f);
	if (e == ERR_OK && f->r.link)
		e = follow(s, parent, place, f);
	else if (e == ERR_OK)
		e = set_place(f, parent, class_of(place.p[0]), span_make(place.p + 1, place.n - 1));
	if (e != ERR_OK)
		found_fini(f);
	return e;
}

enum err find_child(
	struct rstore *s, uint64_t parent, enum item_class class, struct span key, struct found *f)
{
	struct buf place = BUF_INIT(KEYS_MAX);
	memset(f, 0, sizeof(*f));
	key_place(&place, class, key);
	enum err e = buf_full(&place);
	if (e == ERR_OK)
		e = find_place(s, parent, buf_span(&place), f);
	buf_fini(&place);
	return e;
}

/* One entry of a page that was read for many. */
static enum err take_child(const struct found *dir, uint64_t parent, enum item_class class,
	const struct rio_value *v, found_fn fn, void *arg)
{
	struct found f = { .dir = dir->dir, .above = dir->above };
	memcpy(f.seal, dir->seal, sizeof(f.seal));
	memcpy(f.last, dir->last, sizeof(f.last));
	enum err e = record_decode(v->val, &f.r);
	if (e == ERR_OK && f.r.link)
		e = ERR_CORRUPT;
	if (e == ERR_OK)
		e = set_place(&f, parent, class, span_make(v->key.p + 1, v->key.n - 1));
	if (e == ERR_OK)
		e = fn(arg, &f);
	found_fini(&f);
	return e;
}

enum err find_children(struct rstore *s, uint64_t parent, enum item_class class,
	struct rio_value *v, size_t n, found_fn fn, void *arg)
{
	struct found dir = { 0 };
	char object[RIO_NAME_MAX];
	bool gone;
	ask_seal(v + n);
	name_dir(object, parent);
	enum err e = find_gone(s, parent, &gone);
	if (e == ERR_OK && gone)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = rio_get(&s->io, object, v, n + FIND_SEALS, &dir.mem);
	if (e == ERR_OK)
		e = note_seal(&dir, parent, v + n);
	for (size_t i = 0; e == ERR_OK && i < n; i++)
		if (v[i].val.p)
			e = take_child(&dir, parent, class, &v[i], fn, arg);
	found_fini(&dir);
	return e == ERR_GONE ? ERR_NOT_FOUND : e;
}

static enum err find_in(struct rstore *s, uint64_t home, uint64_t id, struct found *f)
{
	char object[RIO_NAME_MAX], *mem;
	struct buf key = BUF_INIT(KEYS_MAX);
	memset(f, 0, sizeof(*f));
	name_dir(object, home);
	key_id(&key, id);
	struct rio_value v = { .key = buf_span(&key) };
	enum err e = buf_full(&key);
	if (e != ERR_OK)
		return e;
	e = rio_get(&s->io, object, &v, 1, &mem);
	if (e == ERR_OK && !v.val.p)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = v.val.n > 0 ? read_place(s, home, v.val, f) : ERR_CORRUPT;
	if (e == ERR_OK)
		e = set_place(f, home, class_of(v.val.p[0]), span_make(v.val.p + 1, v.val.n - 1));
	if (e == ERR_OK && (f->r.link || f->r.it.id != id))
		e = ERR_GONE; /* it was renamed between the two reads */
	else if (e == ERR_NOT_FOUND && v.val.p)
		e = ERR_GONE;
	free(mem);
	buf_fini(&key);
	if (e != ERR_OK)
		found_fini(f);
	return e;
}

enum err find_id(struct rstore *s, uint64_t id, struct found *f)
{
	uint64_t home;
	bool gone;
	memset(f, 0, sizeof(*f));
	enum err e = ids_home(s, id, &home);
	if (e != ERR_OK)
		return e;
	if (home == 0)
		return find_dir(s, id, f);
	e = find_gone(s, home, &gone);
	if (e != ERR_OK || gone)
		return e != ERR_OK ? e : ERR_NOT_FOUND;
	for (unsigned i = 0; i < TRIES; i++) {
		e = find_in(s, home, id, f);
		if (e != ERR_GONE)
			return e;
	}
	return ERR_NOT_FOUND;
}

enum err find_body(struct rstore *s, struct found *f)
{
	struct item *it = &f->r.it;
	char object[RIO_NAME_MAX];
	size_t got = 0, n = it->size;
	if (!*f->r.token)
		return ERR_OK;
	/* The key stands in the same memory. */
	char *mem = malloc(it->key.n + n + 2);
	if (!mem)
		return ERR_NO_MEMORY;
	name_body(object, it->id, f->r.token);
	enum err e = rio_read(&s->io, object, 0, mem, n, &got);
	if (e == ERR_OK && got != n)
		e = ERR_CORRUPT;
	if (e != ERR_OK) {
		free(mem);
		return e;
	}
	mem[n] = 0;
	it->body = span_make(mem, n);
	memcpy(mem + n + 1, it->key.p, it->key.n);
	it->key = span_make(mem + n + 1, it->key.n);
	free(f->body);
	f->body = mem;
	return ERR_OK;
}
