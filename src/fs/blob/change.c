/* SPDX-License-Identifier: MIT */
#include "fs/blob/change.h"

#include "fs/blob/pages.h"
#include "fs/blob/room.h"
#include "fs/blob/show.h"
#include "fs/blob/stage.h"
#include "model/metadata.h"
#include "model/names.h"
#include "service/blobs/blob_move.h"
#include "service/blobs/blobs.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"

#include <stdio.h>

static const struct blob_conditions no_conditions = { 0 };

static enum err not_there(enum err e)
{
	return e == ERR_BLOB_NOT_FOUND || e == ERR_CONTAINER_NOT_FOUND ? ERR_NOT_FOUND : e;
}

/* The last name of a directory was removed: the directory stays until it is removed itself. */
static void keep_dir(struct fs *fs, uint64_t container, struct span dir)
{
	bool any = true;
	if (dir.n > 0 && blob_prefix_any(fs, container, dir, &any) == ERR_OK && !any)
		(void)blob_dirs_add(fs->blobs->dirs, container, dir);
}

/* ---- removal ---- */

static enum err unlink_in(
	struct fs *fs, const struct blob_dir *dir, struct span name, struct err_detail *detail)
{
	struct blob_found found;
	enum err e = blob_name_find(fs, dir, name, &found);
	if (e != ERR_OK)
		return e;
	struct span whole = buf_span(&found.name);
	if (found.is_dir) {
		blob_found_fini(&found);
		return ERR_IS_A_DIRECTORY;
	}
	blob_stages_lock_names(fs->blobs->stages);
	e = not_there(blob_delete(fs->service, ORIGIN_MOUNT, dir->container, whole, SNAPSHOTS_NONE,
		&no_conditions, detail));
	if (e == ERR_NOT_FOUND && found.stage != 0) /* it was not committed yet */
		e = ERR_OK;
	if (e == ERR_OK) {
		blob_stages_removed(fs->blobs->stages, dir->container, whole);
		keep_dir(fs, dir->container, dir->prefix);
	}
	blob_stages_unlock_names(fs->blobs->stages);
	blob_found_fini(&found);
	return e;
}

enum err blob_unlink(struct fs *fs, uint64_t nid, struct span name, const struct caller *call)
{
	struct blob_dir dir;
	enum err e = blob_dir_of(fs->blobs->nodes, nid, &dir);
	if (e != ERR_OK)
		return e == ERR_NOT_A_DIRECTORY ? ERR_NOT_PERMITTED : e;
	e = unlink_in(fs, &dir, name, call->detail);
	blob_dir_fini(fs->blobs->nodes, &dir);
	return e;
}

/* ---- directories ---- */

static enum err make_dir(struct fs *fs, const struct blob_dir *dir, struct span name,
	struct err_detail *detail, struct ventry *ret)
{
	struct blob_found found;
	enum err e = blob_name_find(fs, dir, name, &found);
	if (e == ERR_OK) {
		blob_found_fini(&found);
		return ERR_NAME_EXISTS;
	}
	if (e != ERR_NOT_FOUND)
		return e;
	found = (struct blob_found){ .name = BUF_INIT(2 * BLOB_NAME_BYTES), .is_dir = true };
	e = blob_name_new(dir, name, &found.name);
	if (e == ERR_OK)
		e = blob_name_check(buf_span(&found.name), detail);
	buf_add_char(&found.name, '/');
	if (e == ERR_OK && !buf_ok(&found.name))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = blob_dirs_add(fs->blobs->dirs, dir->container, buf_span(&found.name));
	if (e == ERR_NO_SPACE)
		e = err_set(detail, e, "The mount remembers %d directories without blobs at most.",
			BLOB_DIRS_MAX);
	if (e == ERR_OK)
		e = blob_entry(fs, dir->container, &found, ret);
	blob_found_fini(&found);
	return e;
}

enum err blob_mkdir(struct fs *fs, uint64_t nid, struct span name, const struct caller *call,
	struct ventry *ret)
{
	struct blob_dir dir;
	if (service_is_read_only(fs->service))
		return ERR_READ_ONLY;
	enum err e = blob_dir_of(fs->blobs->nodes, nid, &dir);
	if (e != ERR_OK)
		return e;
	e = make_dir(fs, &dir, name, call->detail, ret);
	blob_dir_fini(fs->blobs->nodes, &dir);
	return e;
}

static enum err remove_dir(struct fs *fs, uint64_t container, struct span path)
{
	struct buf child = BUF_INIT(2 * BLOB_NAME_BYTES);
	bool any = false;
	enum err e = blob_prefix_any(fs, container, path, &any);
	if (e == ERR_OK && !any)
		any = blob_dirs_next(fs->blobs->dirs, container, path, path, &child);
	buf_fini(&child);
	if (e == ERR_OK && any)
		return ERR_NOT_EMPTY;
	if (e == ERR_OK) {
		blob_dirs_remove(fs->blobs->dirs, container, path);
		blob_nodes_removed(fs->blobs->nodes, container, path);
	}
	return e;
}

enum err blob_rmdir(struct fs *fs, uint64_t nid, struct span name, const struct caller *call)
{
	struct blob_dir dir;
	struct blob_found found;
	(void)call;
	enum err e = blob_dir_of(fs->blobs->nodes, nid, &dir);
	if (e != ERR_OK)
		return e;
	e = blob_name_find(fs, &dir, name, &found);
	if (e == ERR_OK) {
		e = found.is_dir ? remove_dir(fs, dir.container, buf_span(&found.name))
				 : ERR_NOT_A_DIRECTORY;
		if (e == ERR_OK)
			keep_dir(fs, dir.container, dir.prefix);
		blob_found_fini(&found);
	}
	blob_dir_fini(fs->blobs->nodes, &dir);
	return e;
}

/* ---- rename ---- */

/* Commits the staged write, if there is one. */
static enum err commit_stage(struct fs *fs, uint64_t number, struct err_detail *detail)
{
	struct blob_stage *s = blob_stage_get(fs->blobs->stages, number);
	if (s == NULL)
		return ERR_OK;
	enum err e = blob_stage_commit(fs, s, false, detail);
	blob_stage_unref(fs->blobs->stages, s);
	return e;
}

static enum err move_blob(struct fs *fs, const struct blob_dir *from, const struct blob_dir *to,
	const struct blob_found *found, const struct vmove *move, struct err_detail *detail)
{
	struct blob_found there;
	struct buf name = BUF_INIT(2 * BLOB_NAME_BYTES);
	enum err e = blob_name_find(fs, to, move->to_name, &there);
	if (e == ERR_OK) {
		if (there.is_dir)
			e = ERR_IS_A_DIRECTORY;
		else if ((move->flags & RENAME_NOREPLACE) != 0)
			e = ERR_NAME_EXISTS;
		blob_found_fini(&there);
	} else if (e == ERR_NOT_FOUND) {
		e = ERR_OK;
	}
	if (e == ERR_OK)
		e = blob_name_new(to, move->to_name, &name);
	if (e == ERR_OK && found->stage != 0)
		e = commit_stage(fs, found->stage, detail);
	struct span was = buf_span(&found->name), now = buf_span(&name);
	if (e != ERR_OK || (from->container == to->container && span_eq(was, now))) {
		buf_fini(&name);
		return e;
	}
	blob_stages_lock_names(fs->blobs->stages);
	e = blob_move(fs->service, ORIGIN_MOUNT, (struct blob_name){ from->container, was },
		(struct blob_name){ to->container, now }, (move->flags & RENAME_NOREPLACE) != 0,
		detail);
	if (e == ERR_OK) {
		blob_stages_removed(fs->blobs->stages, to->container, now);
		blob_stages_moved(fs->blobs->stages, from->container, was, to->container, now);
		blob_dirs_filled(fs->blobs->dirs, to->container, now);
		keep_dir(fs, from->container, from->prefix);
	}
	blob_stages_unlock_names(fs->blobs->stages);
	buf_fini(&name);
	return not_there(e);
}

static enum err rename_in(struct fs *fs, const struct blob_dir *from, const struct blob_dir *to,
	const struct vmove *move, struct err_detail *detail)
{
	struct blob_found found;
	enum err e = blob_name_find(fs, from, move->name, &found);
	if (e != ERR_OK)
		return e;
	/* mv(1) copies a directory, blob by blob. */
	e = found.is_dir ? ERR_CROSS_DEVICE : move_blob(fs, from, to, &found, move, detail);
	blob_found_fini(&found);
	return e;
}

enum err blob_rename(struct fs *fs, const struct vmove *move, const struct caller *call)
{
	struct blob_dir from, to;
	if ((move->flags & ~(unsigned)RENAME_NOREPLACE) != 0)
		return err_set(call->detail, ERR_INVALID_INPUT,
			"rename of a blob knows the flag NOREPLACE only.");
	if (nid_kind(move->from) != NID_KIND_BLOB || nid_kind(move->to) != NID_KIND_BLOB)
		return ERR_CROSS_DEVICE;
	enum err e = blob_dir_of(fs->blobs->nodes, move->from, &from);
	if (e != ERR_OK)
		return e == ERR_NOT_A_DIRECTORY ? ERR_CROSS_DEVICE : e;
	e = blob_dir_of(fs->blobs->nodes, move->to, &to);
	if (e == ERR_OK) {
		e = rename_in(fs, &from, &to, move, call->detail);
		blob_dir_fini(fs->blobs->nodes, &to);
	} else if (e == ERR_NOT_A_DIRECTORY) {
		e = ERR_CROSS_DEVICE;
	}
	blob_dir_fini(fs->blobs->nodes, &from);
	return e;
}

/* ---- attributes ---- */

/* Of a node that is a stage: commits it.  On ERR_OK blob_info_fini() ends *ret. */
static enum err committed(
	struct fs *fs, const struct blob_node *n, struct blob_info *ret, struct err_detail *detail)
{
	if (snapshot_key_is(n->name))
		return err_set(detail, ERR_READ_ONLY, "A snapshot cannot be changed.");
	if (n->kind != BLOB_NODE_STAGE)
		return blob_of_node(fs, n, ret);
	enum err e = commit_stage(fs, (uint64_t)n->version, detail);
	if (e == ERR_OK)
		e = blob_find(fs->service, n->container, n->name, ret);
	return e == ERR_BLOB_NOT_FOUND ? ERR_GONE : e;
}

/* The metadata with one pair changed, or removed (value NULL). */
static enum err edit_metadata(struct span old, const char *name, const struct span *value,
	struct buf *out, struct err_detail *detail)
{
	struct metadata_pair pair;
	bool found = false;
	enum err e = ERR_OK;
	while (e == ERR_OK && metadata_next(&old, &pair)) {
		bool is = span_is(pair.name, name);
		found = found || is;
		if (!is)
			e = metadata_add(out, pair.name, pair.value, detail);
	}
	if (e == ERR_OK && value != NULL)
		e = metadata_add(out, span_of(name), *value, detail);
	return e == ERR_OK && value == NULL && !found ? ERR_NO_ATTRIBUTE : e;
}

static enum err set_on_container(struct fs *fs, uint64_t id, const char *name,
	const struct span *value, struct err_detail *detail)
{
	struct item it = { 0 };
	struct collection c = { 0 };
	struct buf text = BUF_INIT(BLOB_RECORD_LIMIT);
	int64_t etag;
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_OK)
		e = container_find(fs->service, it.parent, it.key, &c);
	if (e == ERR_OK) {
		e = edit_metadata(c.metadata, name, value, &text, detail);
		struct span now = text.len > 0 ? buf_span(&text) : SPAN_LIT("");
		const struct collection_edit to = { .metadata = &now };
		if (e == ERR_OK)
			e = collection_set(fs->service, ORIGIN_MOUNT, &collection_container, id,
				&to, &etag, detail);
		collection_fini(&c);
	}
	buf_fini(&text);
	item_fini(&it);
	return e == ERR_NOT_FOUND || e == ERR_CONTAINER_NOT_FOUND ? ERR_GONE : e;
}

static enum err set_on_blob(struct fs *fs, const struct blob_node *n, const char *name,
	const struct span *value, struct err_detail *detail)
{
	struct blob_info b;
	struct buf text = BUF_INIT(BLOB_RECORD_LIMIT);
	int64_t etag;
	enum err e = committed(fs, n, &b, detail);
	if (e != ERR_OK)
		return e == ERR_IS_A_DIRECTORY ? ERR_NOT_SUPPORTED : e;
	e = edit_metadata(b.record.metadata, name, value, &text, detail);
	const struct blob_conditions only = { .match = b.record.etag };
	if (e == ERR_OK)
		e = blob_set_metadata(fs->service, ORIGIN_MOUNT, n->container, n->name,
			text.len > 0 ? buf_span(&text) : SPAN_LIT(""), &only, &etag, detail);
	if (e == ERR_OK)
		blob_nodes_edited(fs->blobs->nodes, n->nid, etag);
	buf_fini(&text);
	blob_info_fini(&b);
	return e == ERR_BLOB_NOT_FOUND ? ERR_GONE : e;
}

enum err blob_meta_set(struct fs *fs, uint64_t nid, const char *name, const struct span *value,
	const struct caller *call)
{
	if (blob_node_class_of(nid) == BLOB_NODE_CONTAINER)
		return set_on_container(fs, nid_id(nid), name, value, call->detail);
	if (blob_node_class_of(nid) != BLOB_NODE_KNOWN)
		return ERR_NOT_SUPPORTED;
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	enum err e = n != NULL ? set_on_blob(fs, n, name, value, call->detail) : ERR_GONE;
	blob_nodes_unref(fs->blobs->nodes, n);
	return e;
}

/* The type of a blob can be set while the blob is empty. */
static enum err set_type(
	struct fs *fs, const struct blob_node *n, struct span value, struct err_detail *detail)
{
	bool page = span_is(value, "page");
	struct blob_stage *s = n->kind == BLOB_NODE_STAGE
		? blob_stage_get(fs->blobs->stages, (uint64_t)n->version)
		: NULL;
	struct blob_info b;
	uint64_t extent;
	enum err e = s != NULL && page ? blob_stage_make_pages(fs, s, detail) : ERR_BLOB_TYPE;
	if (s != NULL)
		blob_stage_unref(fs->blobs->stages, s);
	if (e != ERR_BLOB_TYPE)
		return e;
	e = committed(fs, n, &b, detail);
	if (e != ERR_OK)
		return e;
	bool is_page = b.record.type == BLOB_PAGES, is_block = b.record.type == BLOB_BLOCK;
	blob_stages_lock_names(fs->blobs->stages);
	if ((page && is_page) || (span_is(value, "block") && is_block))
		e = ERR_OK;
	else if (!page || !is_block || b.record.size > 0)
		e = err_set(detail, ERR_BLOB_TYPE,
			"An empty blob of blocks can become a \"page\" blob, no other.");
	else
		e = blob_pages_create(fs, n->container, n->name, &b.record, &extent, detail);
	blob_stages_unlock_names(fs->blobs->stages);
	blob_info_fini(&b);
	return e;
}

static enum err set_property(struct fs *fs, const struct blob_node *n, const char *name,
	struct span value, struct err_detail *detail)
{
	struct blob_info b;
	int64_t etag;
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
			return err_set(
				detail, ERR_INVALID_INPUT, "A property has no control characters.");
	enum err e = committed(fs, n, &b, detail);
	if (e != ERR_OK)
		return e == ERR_IS_A_DIRECTORY ? ERR_NOT_PERMITTED : e;
	struct blob_properties to = b.record.properties;
	const struct blob_conditions only = { .match = b.record.etag };
	e = blob_property_set(&to, name, value)
		? blob_set_properties(fs->service, ORIGIN_MOUNT, n->container, n->name, &to, &only,
			  &etag, detail)
		: ERR_NOT_PERMITTED;
	if (e == ERR_OK)
		blob_nodes_edited(fs->blobs->nodes, n->nid, etag);
	blob_info_fini(&b);
	return e == ERR_BLOB_NOT_FOUND ? ERR_GONE : e;
}

enum err blob_xattr_set(
	struct fs *fs, uint64_t nid, const char *name, struct span value, const struct caller *call)
{
	if (blob_node_class_of(nid) != BLOB_NODE_KNOWN)
		return ERR_NOT_PERMITTED;
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	enum err e = n == NULL                   ? ERR_GONE
		: strcmp(name, "blob_type") == 0 ? set_type(fs, n, value, call->detail)
						 : set_property(fs, n, name, value, call->detail);
	blob_nodes_unref(fs->blobs->nodes, n);
	return e;
}

/* ---- size ---- */

/* ftruncate(2) is one change of the descriptor's stage; truncate(2) by path is a commit. */
static enum err resize_node(
	struct fs *fs, const struct blob_node *n, uint64_t size, struct err_detail *detail)
{
	struct blob_stage *s;
	bool by_path = n->kind == BLOB_NODE_BLOCK;
	const struct blob_pages p = { n->container, n->name, (uint64_t)n->version };
	if (n->kind == BLOB_NODE_DIR || n->kind == BLOB_NODE_SNAPSHOTS)
		return ERR_IS_A_DIRECTORY;
	if (snapshot_key_is(n->name))
		return err_set(detail, ERR_READ_ONLY, "A snapshot cannot be changed.");
	uint64_t number = by_path ? blob_stages_number(fs->blobs->stages) : (uint64_t)n->version;
	if (n->kind == BLOB_NODE_PAGES)
		return blob_pages_resize(fs, &p, size, detail);
	enum err e = blob_stage_open(fs, n->container, n->name, number, &s);
	if (e != ERR_OK)
		return e;
	e = blob_stage_resize(fs, s, size, detail);
	if (e == ERR_OK && by_path)
		e = blob_stage_commit(fs, s, false, detail);
	blob_stage_unref(fs->blobs->stages, s);
	return e;
}

enum err blob_resize(struct fs *fs, uint64_t nid, uint64_t size, const struct caller *call)
{
	if (blob_node_class_of(nid) != BLOB_NODE_KNOWN)
		return ERR_IS_A_DIRECTORY;
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	enum err e = n != NULL ? resize_node(fs, n, size, call->detail) : ERR_GONE;
	blob_nodes_unref(fs->blobs->nodes, n);
	return e;
}
