/* SPDX-License-Identifier: MIT
 * Checks a store from both ends: every directory against its children, and every object of the
 * namespace against the directory that should name it.  An object that nobody names is what a
 * daemon left when it died: it is removed, and is no finding. */
#include "store/rados/core.h"
#include "store/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 512

struct checker {
	struct rstore *s;
	store_check_fn fn;
	void *arg;
	bool found, stopped;
	uint64_t litter;
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

static enum err check_dir(struct checker *c, uint64_t id, uint64_t parent, unsigned depth);

static enum err check_child(struct checker *c, uint64_t dir, const struct rio_value *v,
	struct counts *n, unsigned depth)
{
	struct record r;
	struct found f;
	if (record_decode(v->val, &r) != ERR_OK) {
		tell(c, "directory %llu: an entry cannot be read", (unsigned long long)dir);
		return ERR_OK;
	}
	n->children++;
	if (r.link)
		return check_dir(c, r.it.id, dir, depth + 1);
	n->items++;
	if (r.it.version > c->s->version_high)
		tell(c, "item %llu is later than the store", (unsigned long long)r.it.id);
	enum err e = find_id(c->s, r.it.id, &f);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && f.r.it.parent != dir))
		tell(c, "item %llu is not found by its id", (unsigned long long)r.it.id);
	if (e == ERR_OK) {
		e = find_body(c->s, &f);
		if (e == ERR_NOT_FOUND || e == ERR_CORRUPT)
			tell(c, "item %llu has lost its body", (unsigned long long)r.it.id);
		found_fini(&f);
	}
	return e == ERR_NOT_FOUND || e == ERR_CORRUPT ? ERR_OK : e;
}

static enum err check_page(struct checker *c, uint64_t dir, const struct rio_page *page,
	struct counts *n, unsigned depth)
{
	for (size_t i = 0; i < page->n && !c->stopped; i++) {
		char kind = page->v[i].key.p[0];
		enum err e = ERR_OK;
		if (strchr(CLASS_LETTERS, kind))
			e = check_child(c, dir, &page->v[i], n, depth);
		n->ids += kind == 'i';
		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static enum err check_entries(struct checker *c, uint64_t id, struct counts *n, unsigned depth)
{
	char object[RIO_NAME_MAX];
	struct buf after = BUF_INIT(KEYS_MAX);
	enum err e = ERR_OK;
	bool more = true;
	name_dir(object, id);
	buf_add_char(&after, 0);
	while (e == ERR_OK && more && !c->stopped) {
		struct rio_page page;
		struct span none = { NULL, 0 };
		e = rio_list(&c->s->io, object, none, after.data, "", PAGE, &page);
		if (e == ERR_OK)
			e = check_page(c, id, &page, n, depth);
		more = page.more && page.n > 0;
		if (e == ERR_OK && more) {
			buf_clear(&after);
			buf_add_span(&after, page.v[page.n - 1].key);
			buf_add_char(&after, 0);
			e = buf_full(&after);
		}
		rio_page_fini(&page);
	}
	buf_fini(&after);
	return e;
}

static enum err check_dir(struct checker *c, uint64_t id, uint64_t parent, unsigned depth)
{
	struct found f;
	struct counts n = { 0, 0, 0 };
	enum err e = find_dir(c->s, id, &f);
	if (e == ERR_NOT_FOUND || e == ERR_CORRUPT) {
		tell(c, "directory %llu has no object that can be read", (unsigned long long)id);
		return ERR_OK;
	}
	if (e != ERR_OK)
		return e;
	if (f.r.it.id != id || f.r.it.parent != parent)
		tell(c, "directory %llu stands in another one", (unsigned long long)id);
	uint64_t size = f.r.it.size;
	found_fini(&f);
	e = check_entries(c, id, &n, depth);
	/* The fixed ones count nothing that is theirs alone. */
	if (e == ERR_OK && !c->stopped && n.children != size)
		tell(c, "directory %llu counts %llu children and has %llu", (unsigned long long)id,
			(unsigned long long)size, (unsigned long long)n.children);
	if (e == ERR_OK && !c->stopped && n.items != n.ids)
		tell(c, "directory %llu has %llu items and %llu ids", (unsigned long long)id,
			(unsigned long long)n.items, (unsigned long long)n.ids);
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

static enum err check_object(struct checker *c, const char *name)
{
	unsigned long long id, nr;
	char token[TOKEN_LEN + 1] = "";
	bool named = true;
	enum err e = ERR_OK;
	if (sscanf(name, "d.%10llx", &id) == 1)
		e = names_dir(c->s, id, &named);
	else if (sscanf(name, "b.%10llx.%32s", &id, token) == 2)
		e = names_body(c->s, id, token, &named);
	else if (sscanf(name, "c.%10llx.%8llx.%32s", &id, &nr, token) == 3)
		e = names_stripe(c->s, id, nr, token, &named);
	else if (strcmp(name, STORE_OBJECT) != 0 && strncmp(name, "ids.", 4) != 0)
		tell(c, "object %s is none of a store", name);
	if (e == ERR_OK && !named) {
		struct rio_batch b = { 0 };
		rio_batch_remove(&b, &c->s->io, name);
		e = rio_batch_wait(&b);
		c->litter++;
	}
	return e;
}

static enum err check_objects(struct checker *c)
{
	rados_list_ctx_t list;
	const char *name;
	enum err e = rio_error(&c->s->io, rados_nobjects_list_open(c->s->io.io, &list));
	if (e != ERR_OK)
		return e;
	int code = 0;
	while (e == ERR_OK && !c->stopped &&
		(code = rados_nobjects_list_next(list, &name, NULL, NULL)) == 0)
		e = check_object(c, name);
	rados_nobjects_list_close(list);
	return e == ERR_OK && code < 0 && code != -ENOENT ? rio_error(&c->s->io, code) : e;
}

enum err rados_check(struct store *st, store_check_fn fn, store_progress_fn progress, void *arg)
{
	struct checker c = { .s = rstore_of(st), .fn = fn, .arg = arg };
	enum err e = ERR_OK;
	mutex_lock(&c.s->writer); /* nothing is half made meanwhile */
	for (uint64_t id = STORE_ROOT; e == ERR_OK && id <= STORE_ORPHANS; id++)
		e = check_dir(&c, id, 0, 0);
	if (e == ERR_OK)
		e = check_objects(&c);
	mutex_unlock(&c.s->writer);
	if (progress)
		progress(arg, 1, 1);
	return e == ERR_OK && c.found ? ERR_CORRUPT : e;
}
