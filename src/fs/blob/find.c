/* SPDX-License-Identifier: MIT */
#include "fs/blob/find.h"

#include "fs/blob/room.h"
#include "service/blobs/blobs.h"
#include "service/blobs/snapshot_key.h"

#define LONG_PAGE 1000

enum err blob_dir_find(struct blob_nodes *nodes, uint64_t nid, struct blob_dir *ret)
{
	*ret = (struct blob_dir){ .container = nid_id(nid), .prefix = SPAN_LIT("") };
	if (blob_node_class_of(nid) == BLOB_NODE_CONTAINER)
		return ERR_OK;
	if (blob_node_class_of(nid) != BLOB_NODE_KNOWN)
		return ERR_NOT_A_DIRECTORY;
	const struct blob_node *n = blob_nodes_get(nodes, nid);
	if (n == NULL)
		return ERR_GONE;
	if (n->kind != BLOB_NODE_DIR && n->kind != BLOB_NODE_SNAPSHOTS) {
		blob_nodes_unref(nodes, n);
		return ERR_NOT_A_DIRECTORY;
	}
	*ret = (struct blob_dir){ n->container, n->name, n->kind == BLOB_NODE_SNAPSHOTS, n };
	return ERR_OK;
}

enum err blob_dir_of(struct blob_nodes *nodes, uint64_t nid, struct blob_dir *ret)
{
	enum err e = blob_dir_find(nodes, nid, ret);
	if (e != ERR_OK || !ret->snapshots)
		return e;
	blob_dir_fini(nodes, ret);
	return ERR_READ_ONLY;
}

void blob_dir_fini(struct blob_nodes *nodes, struct blob_dir *d)
{
	blob_nodes_unref(nodes, d->node);
}

void blob_found_fini(struct blob_found *f)
{
	if (!f->is_dir && f->stage == 0)
		blob_info_fini(&f->blob);
	buf_fini(&f->name);
}

static bool on_any(void *arg, const struct blob_listed *b)
{
	(void)b;
	*(bool *)arg = true;
	return false;
}

enum err blob_prefix_any(struct fs *fs, uint64_t container, struct span prefix, bool *ret)
{
	const struct blob_listing how = {
		.prefix = prefix, .delimiter = SPAN_LIT(""), .marker = SPAN_LIT(""), .max = 1
	};
	struct buf next = BUF_INIT(BLOB_NAME_BYTES + 2);
	*ret = false;
	enum err e = blob_list(fs->service, container, &how, on_any, ret, &next);
	buf_fini(&next);
	return e;
}

/* ---- a component that only its hash tells ---- */

struct search {
	const struct blob_component *component;
	size_t prefix; /* bytes of the directory's path */
	struct buf *name;
	bool found;
};

static bool on_long(void *arg, const struct blob_listed *b)
{
	struct search *s = arg;
	struct span rest = span_make(b->name.p + s->prefix, b->name.n - s->prefix - b->is_prefix);
	if (!blob_component_is(s->component, rest))
		return true;
	buf_clear(s->name);
	buf_add(s->name, b->name.p, b->name.n - b->is_prefix);
	s->found = true;
	return false;
}

/* Sets the whole name by a listing of those that begin so. */
static enum err find_long(struct fs *fs, const struct blob_dir *dir,
	const struct blob_component *component, struct buf *name)
{
	struct buf begins = BUF_INIT(2 * BLOB_NAME_BYTES), next = BUF_INIT(BLOB_NAME_BYTES + 2),
		   from = next;
	struct search s = { .component = component, .prefix = dir->prefix.n, .name = name };
	enum err e = ERR_OK;
	buf_add_span(&begins, buf_span(name));
	do {
		const struct blob_listing how = { .prefix = buf_span(&begins),
			.delimiter = SPAN_LIT("/"),
			.marker = from.len > 0 ? buf_span(&from) : SPAN_LIT(""),
			.max = LONG_PAGE };
		buf_clear(&next);
		e = blob_list(fs->service, dir->container, &how, on_long, &s, &next);
		buf_clear(&from);
		buf_add_span(&from, buf_span(&next));
	} while (e == ERR_OK && !s.found && next.len > 0);
	buf_fini(&begins);
	buf_fini(&next);
	buf_fini(&from);
	return e == ERR_OK && !s.found ? ERR_NOT_FOUND : e;
}

/* ---- a name ---- */

static enum err whole_name(struct fs *fs, const struct blob_dir *dir,
	const struct blob_component *component, struct buf *name)
{
	buf_add_span(name, dir->prefix);
	buf_add(name, component->text, component->n);
	if (!buf_ok(name))
		return ERR_NO_MEMORY;
	return component->hash[0] != '\0' ? find_long(fs, dir, component, name) : ERR_OK;
}

static enum err find_stage(struct fs *fs, const struct blob_dir *dir, struct blob_found *ret)
{
	struct blob_stage *s =
		blob_stage_named(fs->blobs->stages, dir->container, buf_span(&ret->name));
	if (s == NULL)
		return ERR_NOT_FOUND;
	ret->stage = blob_stage_number(s);
	blob_stage_unref(fs->blobs->stages, s);
	return ERR_OK;
}

/* A directory comes before a blob of the same name, whose own name is another one. */
static enum err find(struct fs *fs, const struct blob_dir *dir,
	const struct blob_component *component, struct blob_found *ret)
{
	enum err e = ERR_OK;
	if (!component->is_file) {
		buf_add_char(&ret->name, '/');
		e = buf_ok(&ret->name)
			? blob_prefix_any(fs, dir->container, buf_span(&ret->name), &ret->is_dir)
			: ERR_NO_MEMORY;
		ret->is_dir = ret->is_dir ||
			(e == ERR_OK &&
				blob_dirs_any(
					fs->blobs->dirs, dir->container, buf_span(&ret->name)));
		if (e != ERR_OK || ret->is_dir)
			return e;
		ret->name.data[--ret->name.len] = '\0';
	}
	e = blob_find(fs->service, dir->container, buf_span(&ret->name), &ret->blob);
	return e == ERR_BLOB_NOT_FOUND ? find_stage(fs, dir, ret) : e;
}

enum err blob_name_find(
	struct fs *fs, const struct blob_dir *dir, struct span shown, struct blob_found *ret)
{
	struct blob_component component;
	*ret = (struct blob_found){ .name = BUF_INIT(2 * BLOB_NAME_BYTES) };
	if (!blob_component_read(shown, &component))
		return ERR_NAME_INVALID;
	enum err e = whole_name(fs, dir, &component, &ret->name);
	if (e == ERR_OK)
		e = find(fs, dir, &component, ret);
	if (e != ERR_OK)
		buf_fini(&ret->name);
	return e;
}

enum err blob_snapshot_find(
	struct fs *fs, const struct blob_dir *dir, struct span shown, struct blob_found *ret)
{
	struct blob_component component;
	struct span name, time;
	if (!blob_component_split_snapshot(shown, &name, &time) ||
		!blob_component_read(name, &component) || component.is_file)
		return ERR_NOT_FOUND;
	component.suffix = shown.n - name.n;
	*ret = (struct blob_found){ .name = BUF_INIT(2 * BLOB_NAME_BYTES) };
	enum err e = whole_name(fs, dir, &component, &ret->name);
	buf_add_char(&ret->name, SNAPSHOT_MARK);
	buf_add_span(&ret->name, time);
	if (e == ERR_OK && !buf_ok(&ret->name))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = blob_find(fs->service, dir->container, buf_span(&ret->name), &ret->blob);
	if (e != ERR_OK)
		buf_fini(&ret->name);
	return e == ERR_BLOB_NOT_FOUND ? ERR_NOT_FOUND : e;
}

enum err blob_name_new(const struct blob_dir *dir, struct span shown, struct buf *out)
{
	struct blob_component component;
	if (!blob_component_read(shown, &component) || component.hash[0] != '\0')
		return ERR_NAME_INVALID;
	buf_add_span(out, dir->prefix);
	buf_add(out, component.text, component.n);
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}
