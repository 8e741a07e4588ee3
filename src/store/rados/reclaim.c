/* SPDX-License-Identifier: MIT
 * What is left of a removed directory goes: its objects and those below it, in pages.  The name is
 * free before, and nobody finds anything in it by id. */
#include "store/rados/core.h"

#include <stdlib.h>

#define PAGE 512

enum err reclaim_begin(struct rstore *s, uint64_t dir)
{
	mutex_lock(&s->lock);
	enum err e = rstore_grow(&s->dying, s->ndying, &s->cap_dying, sizeof(*s->dying));
	if (e == ERR_OK) {
		s->dying[s->ndying++] = dir;
		atomic_store(&s->any_dying, s->ndying);
	}
	mutex_unlock(&s->lock);
	return e;
}

static void end(struct rstore *s, uint64_t dir)
{
	mutex_lock(&s->lock);
	for (size_t i = 0; i < s->ndying; i++) {
		if (s->dying[i] == dir)
			s->dying[i--] = s->dying[--s->ndying];
	}
	atomic_store(&s->any_dying, s->ndying);
	mutex_unlock(&s->lock);
}

static enum err empty(struct rstore *s, uint64_t dir, bool files);

static enum err drop_entry(
	struct rstore *s, const struct rio_value *v, bool files, struct rio_batch *b)
{
	char object[RIO_NAME_MAX], id[11] = "", token[TOKEN_LEN + 1] = "";
	struct record r;
	if (v->key.p[0] == 's' && v->key.n == KEY_STRIPES_LEN + 8 && v->val.n == TOKEN_LEN) {
		memcpy(id, v->key.p + 1, 10);
		memcpy(token, v->val.p, TOKEN_LEN);
		name_stripe(object, strtoull(id, NULL, 16),
			strtoull(v->key.p + KEY_STRIPES_LEN, NULL, 16), token);
		rio_batch_remove(b, &s->io, object);
	}
	if (!strchr(CLASS_LETTERS, v->key.p[0]))
		return ERR_OK;
	enum err e = record_decode(v->val, &r);
	if (e != ERR_OK)
		return ERR_OK; /* check() tells; here it goes */
	if (r.link)
		return empty(s, r.it.id, files);
	if (*r.token) {
		name_body(object, r.it.id, r.token);
		rio_batch_remove(b, &s->io, object);
	}
	if (r.it.kind == ITEM_FILE && files) {
		mutex_lock(&s->lock);
		s->file_bytes -= r.it.size < s->file_bytes ? r.it.size : s->file_bytes;
		mutex_unlock(&s->lock);
	}
	return ERR_OK;
}

/* The object goes last: whoever comes later, after a death, finds the way down. */
static enum err empty(struct rstore *s, uint64_t dir, bool files)
{
	char object[RIO_NAME_MAX];
	struct rio_batch b = { 0 };
	struct rio_page page = { 0 };
	struct buf after = BUF_INIT(KEYS_MAX);
	enum err e = ERR_OK;
	bool more = true;
	name_dir(object, dir);
	buf_add_char(&after, 0);
	while (e == ERR_OK && more) {
		struct span none = { NULL, 0 };
		e = rio_list(&s->io, object, none, after.data, "", PAGE, &page);
		for (size_t i = 0; e == ERR_OK && i < page.n; i++)
			e = drop_entry(s, &page.v[i], files, &b);
		more = page.more && page.n > 0;
		if (e == ERR_OK && more) {
			buf_clear(&after);
			buf_add_span(&after, page.v[page.n - 1].key);
			buf_add_char(&after, 0);
			e = buf_full(&after);
		}
		rio_page_fini(&page);
		enum err waited = rio_batch_wait(&b);
		if (e == ERR_OK)
			e = waited;
	}
	buf_fini(&after);
	if (e == ERR_OK) {
		rio_batch_remove(&b, &s->io, object);
		e = rio_batch_wait(&b);
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err reclaim_tree(struct rstore *s, uint64_t dir, bool files)
{
	enum err e = empty(s, dir, files);
	if (e == ERR_OK)
		end(s, dir);
	return e;
}
