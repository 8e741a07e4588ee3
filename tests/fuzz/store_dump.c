/* SPDX-License-Identifier: MIT */
#include "store_dump.h"

struct listing {
	struct store_dump *dump;
	struct store *store;
	struct store_view *view;
	struct buf *out;
	uint64_t files[64], sizes[64];
	size_t nfiles;
};

static void add_dir(struct store_dump *d, uint64_t id)
{
	if (d->n == STORE_DUMP_DIRS)
		return;
	d->dirs[d->n].id = id;
	d->dirs[d->n].e = ERR_OK;
	d->dirs[d->n++].text = BUF_INIT((size_t)1 << 24);
}

static bool on_item(void *arg, const struct item *it)
{
	struct listing *l = arg;
	struct buf *out = l->out;
	buf_addf(out, "%llu %d %d %u %llu %lld %llu ", (unsigned long long)it->id, (int)it->kind,
		(int)it->class, it->flags, (unsigned long long)it->generation,
		(long long)it->version, (unsigned long long)it->size);
	buf_addf(out, "%x %x %x %lld %lld ", it->attrs.mode, it->attrs.uid, it->attrs.gid,
		(long long)it->attrs.mtime_ns, (long long)it->attrs.ctime_ns);
	buf_add_span(out, it->key);
	buf_add_char(out, ' ');
	buf_add_span(out, it->name);
	buf_add_char(out, ' ');
	buf_add_span(out, it->body.p == NULL ? SPAN_LIT("") : it->body);
	buf_add_char(out, '\n');
	if (it->kind == ITEM_FILE && l->nfiles < 64) {
		l->files[l->nfiles] = it->id;
		l->sizes[l->nfiles++] = it->size;
	}
	if (it->kind != ITEM_FILE && it->kind != ITEM_ROW)
		add_dir(l->dump, it->id);
	return l->dump->n < STORE_DUMP_DIRS && out->len < ((size_t)1 << 22);
}

static enum err add_file(struct listing *l, size_t i)
{
	char piece[4096];
	uint64_t at = 0;
	size_t n = 0;
	enum err e;
	buf_addf(l->out, "content of %llu: ", (unsigned long long)l->files[i]);
	do {
		e = store_file_read(l->store, l->view, l->files[i], at, piece, sizeof(piece), &n);
		if (e == ERR_OK)
			buf_add(l->out, piece, n);
		at += n;
	} while (e == ERR_OK && n > 0 && at < ((uint64_t)1 << 20));
	buf_add_char(l->out, '\n');
	return e;
}

static enum err list_dir(struct listing *l, uint64_t id)
{
	enum err e = ERR_OK;
	for (enum item_class c = CLASS_KEYED; e == ERR_OK && c <= CLASS_NAMED; c++)
		e = store_list(
			l->store, l->view, id, c, (struct span){ 0 }, false, WANT_BODY, on_item, l);
	for (size_t i = 0; e == ERR_OK && i < l->nfiles; i++)
		e = add_file(l, i);
	return e;
}

enum err store_dump(struct store *s, struct store_dump *d)
{
	struct store_view *v;
	enum err e = store_view_open(s, &v), ret = ERR_OK;
	d->n = 0;
	if (e != ERR_OK)
		return e;
	for (uint64_t id = STORE_ROOT; id <= STORE_ORPHANS; id++)
		add_dir(d, id);
	for (size_t i = 0; i < d->n; i++) {
		struct listing l = { d, s, v, &d->dirs[i].text, { 0 }, { 0 }, 0 };
		e = list_dir(&l, d->dirs[i].id);
		d->dirs[i].e = e;
		if (e != ERR_OK)
			ret = e;
	}
	store_view_close(s, v);
	return ret;
}

void store_dump_fini(struct store_dump *d)
{
	for (size_t i = 0; i < d->n; i++)
		buf_fini(&d->dirs[i].text);
	d->n = 0;
}

bool store_dump_agrees(const struct store_dump *got, const struct store_dump *state)
{
	for (size_t i = 0; i < got->n; i++) {
		size_t k = 0;
		if (got->dirs[i].e != ERR_OK)
			continue;
		while (k < state->n && state->dirs[k].id != got->dirs[i].id)
			k++;
		if (k == state->n ||
			!span_eq(buf_span(&got->dirs[i].text), buf_span(&state->dirs[k].text)))
			return false;
	}
	return true;
}
