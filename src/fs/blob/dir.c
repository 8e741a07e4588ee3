/* SPDX-License-Identifier: MIT
 * A reply reads pages of names from the service, and shows each page when it is complete, because the
 * name of a blob depends on a directory that may follow it. */
#include "fs/blob/dir.h"

#include "fs/blob/find.h"
#include "fs/blob/room.h"
#include "fs/core/dir_cursors.h"
#include "fs/tree/open_quota.h"
#include "service/blobs/blobs.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"

#include <stdlib.h>

#define AFTER_DOT 1
#define AFTER_DOTDOT 2
#define PAGE 128
/* Names have no byte as low or as high as these. */
#define BEHIND_NAME '\x01'
#define BEHIND_PREFIX '\xff'

struct blob_vdir {
	struct vdir dir; /* first */
	uint64_t nid;
	struct blob_dir at; /* unless it is .blob */
	bool is_root;
	int64_t last; /* the last position that was given */
	struct dir_cursors cursors;
	size_t held; /* of them, as counted (open_quota.h) */
};

/* One page: names that end with a slash are directories. */
struct page {
	struct buf names;
	size_t at[PAGE], n;
	struct buf next; /* the name with which the next page begins; empty: none */
};

struct reply {
	struct blob_vdir *d;
	listing_fn fn;
	void *arg;
	struct page page;
	bool full;
};

static struct span name_of(const struct page *p, size_t i)
{
	size_t end = i + 1 < p->n ? p->at[i + 1] : p->names.len;
	return span_make(p->names.data + p->at[i], end - p->at[i]);
}

/* ---- one page ---- */

static bool add(struct page *p, struct span name)
{
	p->at[p->n++] = p->names.len;
	buf_add_span(&p->names, name);
	return buf_ok(&p->names);
}

static bool on_blob(void *arg, const struct blob_listed *b)
{
	return add(arg, b->name);
}

/* Takes the keys of snapshots alone. */
static bool on_snapshot(void *arg, const struct blob_listed *b)
{
	struct page *p = arg;
	if (b->is_prefix || b->snapshot.n == 0)
		return true;
	if (!add(p, b->name))
		return false;
	buf_add_char(&p->names, SNAPSHOT_MARK);
	buf_add_span(&p->names, b->snapshot);
	return buf_ok(&p->names);
}

static bool on_container(void *arg, const struct collection *c)
{
	struct page *p = arg;
	if (!add(p, c->name))
		return false;
	buf_add_char(&p->names, '/');
	return buf_ok(&p->names);
}

static enum err load(struct reply *r, struct span marker)
{
	struct service *s = r->d->dir.fs->service;
	struct page *p = &r->page;
	const struct blob_listing how = { .prefix = r->d->at.prefix,
		.delimiter = SPAN_LIT("/"),
		.marker = marker,
		.max = PAGE,
		.snapshots = r->d->at.snapshots };
	blob_fn fn = r->d->at.snapshots ? on_snapshot : on_blob;
	p->n = 0;
	buf_clear(&p->names);
	buf_clear(&p->next);
	enum err e = r->d->is_root ? collection_list(s, &collection_container, nid_id(r->d->nid),
					     SPAN_LIT(""), marker, PAGE, on_container, p, &p->next)
				   : blob_list(s, r->d->at.container, &how, fn, p, &p->next);
	return e == ERR_OK && !buf_ok(&p->names) ? ERR_NO_MEMORY : e;
}

/* ---- one name ---- */

/* Whether a directory has the name of the blob.  The name behind it tells, unless it sorts between the
 * two. */
static enum err is_beside_dir(struct reply *r, struct span name, struct span next, bool *ret)
{
	struct buf dir = BUF_INIT(2 * BLOB_NAME_BYTES);
	enum err e = ERR_OK;
	buf_add_span(&dir, name);
	buf_add_char(&dir, '/');
	if (!buf_ok(&dir))
		e = ERR_NO_MEMORY;
	else if (blob_dirs_any(r->d->dir.fs->blobs->dirs, r->d->at.container, buf_span(&dir)))
		*ret = true;
	else if (next.n == 0 || span_cmp(next, buf_span(&dir)) >= 0)
		*ret = next.n > 0 && span_starts(next, buf_span(&dir));
	else
		e = blob_prefix_any(r->d->dir.fs, r->d->at.container, buf_span(&dir), ret);
	buf_fini(&dir);
	return e;
}

/* Remembers where the entry was, by the first name that can follow it. */
static enum err mark(struct reply *r, struct span name, bool is_dir)
{
	struct buf key = BUF_INIT(2 * BLOB_NAME_BYTES);
	buf_add_span(&key, name);
	buf_add_char(&key, is_dir && !r->d->is_root ? BEHIND_PREFIX : BEHIND_NAME);
	enum err e = buf_ok(&key)
		? dir_cursors_add(&r->d->cursors, (uint64_t)r->d->last, CLASS_BLOB, buf_span(&key))
		: ERR_NO_MEMORY;
	buf_fini(&key);
	return e;
}

/* Appends the file's name of a blob, a snapshot or a directory. */
static enum err write_name(
	struct reply *r, struct span name, bool is_dir, struct span next, struct buf *out)
{
	const struct blob_dir *at = &r->d->at;
	bool beside = false;
	struct span own = span_make(name.p + at->prefix.n, name.n - at->prefix.n - is_dir), time;
	enum err e = is_dir || at->snapshots ? ERR_OK : is_beside_dir(r, name, next, &beside);
	if (at->snapshots) {
		snapshot_key_split(own, &own, &time);
		blob_component_write_snapshot(own, time, out);
	} else {
		blob_component_write(own, beside, out);
	}
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}

/* next: the name of a blob or directory behind it; n 0: there is none. */
static enum err show(struct reply *r, struct span name, struct span next)
{
	struct blob_vdir *d = r->d;
	bool is_dir = name.n > 0 && name.p[name.n - 1] == '/' && name.n > d->at.prefix.n;
	struct stat st = { .st_ino = blob_ino(d->at.container, name),
		.st_mode = is_dir ? S_IFDIR : S_IFREG };
	struct buf shown = BUF_INIT(4 * LIMIT_FILE_NAME_BYTES + BLOB_NAME_BYTES);
	enum err e = write_name(r, name, is_dir, next, &shown);
	if (e == ERR_OK && !r->fn(r->arg, shown.data, 0, &st, d->last + 1)) {
		r->full = true;
	} else if (e == ERR_OK) {
		d->last++;
		e = mark(r, span_make(name.p, name.n - (is_dir && d->is_root)), is_dir);
	}
	buf_fini(&shown);
	return e;
}

/* ---- a reply ---- */

static bool show_dots(struct reply *r, int64_t offset)
{
	struct stat st = { .st_ino = r->d->nid, .st_mode = S_IFDIR };
	return (offset >= AFTER_DOT || r->fn(r->arg, ".", 0, &st, AFTER_DOT)) &&
		(offset >= AFTER_DOTDOT || r->fn(r->arg, "..", 0, &st, AFTER_DOTDOT));
}

/* Shows the directories without blobs from *after to `until` (n 0: the end), and moves *after behind
 * them. */
static enum err show_empty(struct reply *r, struct buf *after, struct span until)
{
	const struct blob_vdir *d = r->d;
	struct buf dir = BUF_INIT(2 * BLOB_NAME_BYTES);
	enum err e = ERR_OK;
	while (e == ERR_OK && !r->full && !d->is_root && !d->at.snapshots &&
		blob_dirs_next(d->dir.fs->blobs->dirs, d->at.container, d->at.prefix,
			buf_span(after), &dir) &&
		(until.n == 0 || span_cmp(buf_span(&dir), until) < 0)) {
		e = show(r, buf_span(&dir), (struct span){ 0 });
		buf_clear(after);
		buf_add_span(after, buf_span(&dir));
		buf_add_char(after, BEHIND_PREFIX);
		buf_clear(&dir);
	}
	buf_fini(&dir);
	return e == ERR_OK && !buf_ok(after) ? ERR_NO_MEMORY : e;
}

static enum err show_page(struct reply *r, struct buf *after)
{
	const struct page *p = &r->page;
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && !r->full && i < p->n; i++) {
		struct span name = name_of(p, i);
		e = show_empty(r, after, name);
		if (e != ERR_OK || r->full)
			break;
		e = show(r, name, i + 1 < p->n ? name_of(p, i + 1) : buf_span(&p->next));
		buf_clear(after);
		buf_add_span(after, name);
		buf_add_char(after, name.p[name.n - 1] == '/' ? BEHIND_PREFIX : BEHIND_NAME);
	}
	return e == ERR_OK && !r->full && p->next.len == 0
		? show_empty(r, after, (struct span){ 0 })
		: e;
}

static enum err show_names(struct reply *r, struct span from)
{
	struct buf marker = BUF_INIT(2 * BLOB_NAME_BYTES), after = marker;
	enum err e = ERR_OK;
	buf_add_span(&marker, from);
	buf_add_span(&after, from);
	do {
		e = buf_ok(&marker) ? load(r, marker.len > 0 ? buf_span(&marker) : SPAN_LIT(""))
				    : ERR_NO_MEMORY;
		if (e == ERR_OK)
			e = show_page(r, &after);
		buf_clear(&marker);
		buf_add_span(&marker, buf_span(&r->page.next));
	} while (e == ERR_OK && !r->full && marker.len > 0);
	buf_fini(&marker);
	buf_fini(&after);
	return e;
}

/* Copies the name to go on from, since the cursors change. */
static enum err find_position(const struct blob_vdir *d, int64_t offset, struct buf *ret)
{
	enum item_class class;
	struct span key;
	if (offset <= AFTER_DOTDOT)
		return ERR_OK;
	if (!dir_cursors_find(&d->cursors, (uint64_t)offset, &class, &key))
		return ERR_INVALID_INPUT;
	buf_add_span(ret, key);
	return buf_ok(ret) ? ERR_OK : ERR_NO_MEMORY;
}

static enum err dir_read(
	struct vdir *dir, const struct caller *call, int64_t offset, listing_fn fn, void *arg)
{
	struct blob_vdir *d = (struct blob_vdir *)dir;
	struct buf from = BUF_INIT(2 * BLOB_NAME_BYTES);
	struct reply *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return ERR_NO_MEMORY;
	*r = (struct reply){ .d = d, .fn = fn, .arg = arg };
	r->page.names = BUF_INIT(PAGE * (BLOB_NAME_BYTES + 2));
	r->page.next = BUF_INIT(2 * BLOB_NAME_BYTES);
	enum err e = find_position(d, offset, &from);
	if (e == ERR_OK && show_dots(r, offset)) {
		dir_cursors_next_reply(&d->cursors, offset > AFTER_DOTDOT);
		d->cursors.fixed = !open_quota_may_grow(dir->fs, call->uid);
		e = show_names(r, buf_span(&from));
		open_quota_set(dir->fs->open_quota, &d->held, dir_cursors_holds(&d->cursors));
	}
	buf_fini(&from);
	buf_fini(&r->page.names);
	buf_fini(&r->page.next);
	free(r);
	return e;
}

static void dir_free(struct vdir *dir)
{
	struct blob_vdir *d = (struct blob_vdir *)dir;
	open_quota_set(dir->fs->open_quota, &d->held, 0);
	dir_cursors_fini(&d->cursors);
	blob_dir_fini(dir->fs->blobs->nodes, &d->at);
	free(d);
}

static const struct vdir_ops dir_ops = {
	.pool = VPOOL_SCAN,
	.read = dir_read,
	.free = dir_free,
};

enum err blob_dir_open(struct fs *fs, uint64_t nid, struct vdir **ret)
{
	struct blob_vdir *d = calloc(1, sizeof(*d));
	if (d == NULL)
		return ERR_NO_MEMORY;
	d->dir = (struct vdir){ .ops = &dir_ops, .fs = fs };
	d->nid = nid;
	d->is_root = blob_node_class_of(nid) == BLOB_NODE_ROOT;
	d->last = AFTER_DOTDOT;
	d->at.prefix = SPAN_LIT("");
	enum err e = d->is_root ? ERR_OK : blob_dir_find(fs->blobs->nodes, nid, &d->at);
	if (e != ERR_OK) {
		free(d);
		return e;
	}
	*ret = &d->dir;
	return ERR_OK;
}
