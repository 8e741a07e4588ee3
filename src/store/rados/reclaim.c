/* SPDX-License-Identifier: MIT
 * What is left of a removed directory goes: its objects and those below it, in pages.  The name is
 * free before, and nobody finds anything in it by id. */
#include "store/rados/core.h"

#include <errno.h>
#include <stdio.h>
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

/* From now on nobody makes anything in it.  What partitions hold goes with their objects. */
static enum err mark_dead(struct rstore *s, const char *object)
{
	char token[TOKEN_LEN + 1];
	struct rio_edit e = { 0 };
	rstore_token(s, token);
	token[0] = TOKEN_DEAD;
	rio_edit_set(&e, SPAN_LIT(KEY_TOKEN), span_of(token));
	int code = rio_write(&s->io, object, &e, (struct rio_guard){ .exists = true });
	rio_edit_fini(&e);
	return rio_error(&s->io, code);
}

/* The object goes last: so a later process, after a death, finds the way down. */
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
	e = mark_dead(s, object);
	while (e == ERR_OK && more) {
		e = rio_list(&s->io, object, NULL, 0, after.data, "", PAGE, &page);
		for (size_t i = 0; e == ERR_OK && i < page.n; i++)
			e = drop_entry(s, &page.v[i], files, &b);
		if (e == ERR_OK)
			e = rio_page_next(&page, &after, &more);
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

/* ---- the entry of a dead directory ---- */

static int64_t version_of(struct rstore *s, uint64_t dir)
{
	char object[RIO_NAME_MAX], *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT(KEY_HEADER) };
	struct record r;
	name_dir(object, dir);
	bool known = rio_get(&s->io, object, &v, 1, &mem) == ERR_OK && v.val.p &&
		record_decode(v.val, &r) == ERR_OK;
	int64_t version = known ? r.it.version : 0;
	free(mem);
	return version;
}

/* The parent without the entry: v has header and token. */
static int take_out(struct rstore *s, const char *object, struct span place, struct item *it,
	int64_t version, struct span token)
{
	char fresh[TOKEN_LEN + 1];
	struct buf header = BUF_INIT(KEYS_MAX);
	struct rio_edit e = { 0 };
	if (version > it->version)
		it->version = version;
	it->attrs.mtime_ns = it->attrs.ctime_ns = TIME_UNSET;
	it->size -= it->size > 0;
	rstore_token(s, fresh);
	record_header(&header, it);
	rio_edit_remove(&e, place);
	rio_edit_set(&e, SPAN_LIT(KEY_HEADER), buf_span(&header));
	rio_edit_set(&e, SPAN_LIT(KEY_TOKEN), span_of(fresh));
	rstore_set_above(&e, it->version);
	int code = buf_ok(&header)
		? rio_write(&s->io, object, &e,
			  (struct rio_guard){ .key = SPAN_LIT(KEY_TOKEN), .is = token })
		: -ENOMEM;
	rio_edit_fini(&e);
	buf_fini(&header);
	return code;
}

/* ERR_BUSY: another change of the parent was faster, or the answer was lost. */
static enum err try_bury(
	struct rstore *s, uint64_t parent, struct span place, uint64_t dir, int64_t version)
{
	char object[RIO_NAME_MAX], *mem = NULL;
	struct rio_value v[] = { { .key = place }, { .key = SPAN_LIT(KEY_HEADER) },
		{ .key = SPAN_LIT(KEY_TOKEN) } };
	struct record entry, header;
	name_dir(object, parent);
	enum err e = rio_get(&s->io, object, v, 3, &mem);
	bool stands = e == ERR_OK && v[0].val.p && record_decode(v[0].val, &entry) == ERR_OK &&
		entry.link && entry.it.id == dir;
	if (stands && (!v[1].val.p || record_decode(v[1].val, &header) != ERR_OK))
		e = ERR_CORRUPT;
	else if (stands && v[2].val.p && v[2].val.p[0] != TOKEN_DEAD) {
		int code = take_out(s, object, place, &header.it, version, v[2].val);
		e = code == -ECANCELED || code == -ETIMEDOUT ? ERR_BUSY : rio_error(&s->io, code);
	}
	free(mem);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err bury(struct rstore *s, uint64_t parent, struct span place, uint64_t dir)
{
	enum err e = ERR_BUSY;
	int64_t version = version_of(s, dir);
	for (unsigned i = 0; i < RSTORE_TRIES && e == ERR_BUSY; i++) {
		rstore_pause(i);
		e = try_bury(s, parent, place, dir, version);
	}
	return e;
}
