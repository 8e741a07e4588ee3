/* SPDX-License-Identifier: MIT
 * A name in .blob is a container, and a name below it a blob or a part of the names of blobs.  REST
 * changes blobs too, so the kernel keeps no name of them. */
#include "fs/blob/tree.h"

#include "fs/blob/change.h"
#include "fs/blob/dir.h"
#include "fs/blob/find.h"
#include "fs/blob/pages.h"
#include "fs/blob/read_file.h"
#include "fs/blob/room.h"
#include "fs/blob/show.h"
#include "fs/blob/write_file.h"
#include "fs/core/idset.h"
#include "model/names.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"

#include <fcntl.h>

#define ONLY_CONTAINERS "Containers are here: mkdir makes one, and files in it are blobs."

static bool is_root(uint64_t nid)
{
	return blob_node_class_of(nid) == BLOB_NODE_ROOT;
}

/* ---- names ---- */

static enum err find_container(struct fs *fs, uint64_t root, struct span name, uint64_t *ret)
{
	enum err e = container_id(fs->service, nid_id(root), name, ret);
	return e == ERR_CONTAINER_NOT_FOUND ? ERR_NOT_FOUND : e;
}

static enum err find_in(
	struct fs *fs, const struct blob_dir *dir, struct span name, struct blob_found *ret)
{
	return dir->snapshots ? blob_snapshot_find(fs, dir, name, ret)
			      : blob_name_find(fs, dir, name, ret);
}

static enum err lookup_in(struct fs *fs, uint64_t nid, struct span name, const struct caller *call,
	struct ventry *ret)
{
	struct blob_dir dir;
	struct blob_found found;
	enum err e = blob_dir_find(fs->blobs->nodes, nid, &dir);
	if (e != ERR_OK)
		return e;
	if (!dir.snapshots && span_is(name, BLOB_SNAPSHOTS)) {
		e = blob_snapshots_entry(fs, &dir, ret);
		blob_dir_fini(fs->blobs->nodes, &dir);
		return e;
	}
	e = find_in(fs, &dir, name, &found);
	uint64_t number = e == ERR_OK && !found.is_dir && found.stage == 0
		? blob_stages_wants(
			  fs->blobs->stages, call->thread, dir.container, buf_span(&found.name))
		: 0;
	if (number != 0) {
		blob_info_fini(&found.blob);
		found.stage = number;
	}
	if (e == ERR_OK) {
		e = blob_entry(fs, dir.container, &found, ret);
		blob_found_fini(&found);
	}
	blob_dir_fini(fs->blobs->nodes, &dir);
	return e == ERR_NAME_INVALID ? ERR_NOT_FOUND : e;
}

static enum err blobs_lookup(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	uint64_t id;
	if (!is_root(dir))
		return lookup_in(fs, dir, name, call, ret);
	enum err e = find_container(fs, dir, name, &id);
	return e == ERR_OK ? blob_container_entry(fs, id, ret) : e;
}

static enum err blobs_mkdir(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct collection c = { .name = name, .metadata = SPAN_LIT(""), .policies = SPAN_LIT("") };
	uint64_t id;
	if (!is_root(dir))
		return blob_mkdir(fs, dir, name, call, ret);
	enum err e = collection_create(
		fs->service, ORIGIN_MOUNT, &collection_container, nid_id(dir), &c, call->detail);
	if (e != ERR_OK)
		return e == ERR_ACCOUNT_NOT_FOUND ? ERR_GONE : e;
	e = find_container(fs, dir, name, &id);
	return e == ERR_OK ? blob_container_entry(fs, id, ret) : e;
}

static bool on_child(void *arg, const struct item *it)
{
	(void)it;
	*(bool *)arg = true;
	return false;
}

/* .blob is always there, and is listed while something is in it.  So an empty one is there again when
 * it was removed. */
static enum err rmdir_root(struct fs *fs, uint64_t root)
{
	bool any = false;
	enum err e = store_list(fs->store, NULL, nid_id(root), CLASS_BLOB, (struct span){ 0 },
		false, WANT_KEYS, on_child, &any);
	if (e == ERR_OK && any)
		e = ERR_NOT_EMPTY;
	if (e == ERR_OK)
		(void)idset_add(fs->removals, root, 1);
	return e;
}

static enum err check_lease(void *service, const struct collection *c)
{
	return lease_check_write(&c->lease, SPAN_LIT(""), service_now(service));
}

static enum err blobs_rmdir(
	struct fs *fs, uint64_t dir, struct span name, const struct caller *call)
{
	uint64_t id;
	if (!is_root(dir))
		return blob_rmdir(fs, dir, name, call);
	if (name.n == 0)
		return rmdir_root(fs, dir);
	enum err e = find_container(fs, dir, name, &id);
	if (e != ERR_OK)
		return e;
	e = collection_delete(fs->service, ORIGIN_MOUNT, &collection_container, id, check_lease,
		fs->service, true, call->detail);
	return e == ERR_CONTAINER_NOT_FOUND ? ERR_NOT_FOUND : e;
}

static void blobs_forget(struct fs *fs, uint64_t nid, uint64_t n)
{
	if (blob_node_class_of(nid) == BLOB_NODE_KNOWN)
		blob_nodes_forget(fs->blobs->nodes, nid, n);
}

/* ---- open ---- */

static enum err open_to_read(struct fs *fs, const struct blob_node *n, struct vfile **ret)
{
	struct blob_info blob;
	struct blob_stage *s;
	if (n->kind != BLOB_NODE_STAGE) {
		enum err e = blob_of_node(fs, n, &blob);
		return e == ERR_OK ? read_file_open(fs, n->container, &blob, O_RDONLY, ret) : e;
	}
	s = blob_stage_get(fs->blobs->stages, (uint64_t)n->version);
	if (s == NULL)
		return ERR_GONE;
	enum err e =
		write_file_open(fs, n->container, n->name, (uint64_t)n->version, O_RDONLY, ret);
	blob_stage_unref(fs->blobs->stages, s);
	return e;
}

static enum err open_pages(struct fs *fs, const struct blob_node *n, int flags,
	const struct caller *call, struct vfile **ret)
{
	const struct blob_pages p = { n->container, n->name, (uint64_t)n->version };
	struct blob_info b;
	enum err e = blob_of_node(fs, n, &b);
	if (e != ERR_OK)
		return e;
	e = lease_check_write(&b.record.lease, SPAN_LIT(""), service_now(fs->service));
	if (e == ERR_OK && (flags & O_TRUNC) != 0)
		e = blob_pages_resize(fs, &p, 0, call->detail);
	if (e == ERR_OK)
		return read_file_open(fs, n->container, &b, flags, ret);
	blob_info_fini(&b);
	return e;
}

/* A version is not written: the thread looks the name up again, and gets a stage. */
static enum err open_to_write(struct fs *fs, const struct blob_node *n, int flags,
	const struct caller *call, struct vfile **ret)
{
	if (service_is_read_only(fs->service))
		return ERR_READ_ONLY;
	if (snapshot_key_is(n->name))
		return err_set(call->detail, ERR_READ_ONLY, "A snapshot cannot be changed.");
	switch (n->kind) {
	case BLOB_NODE_DIR:
	case BLOB_NODE_SNAPSHOTS:
		return ERR_IS_A_DIRECTORY;
	case BLOB_NODE_PAGES:
		return open_pages(fs, n, flags, call, ret);
	case BLOB_NODE_BLOCK:
		blob_stages_expect(fs->blobs->stages, call->thread, n->container, n->name);
		return ERR_GONE;
	case BLOB_NODE_STAGE:
		break;
	}
	return write_file_open(fs, n->container, n->name, (uint64_t)n->version, flags, ret);
}

static enum err blobs_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	bool reads = (flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY;
	if (blob_node_class_of(nid) != BLOB_NODE_KNOWN)
		return ERR_IS_A_DIRECTORY;
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	enum err e = n == NULL ? ERR_GONE
		: reads        ? open_to_read(fs, n, ret)
			       : open_to_write(fs, n, flags, call, ret);
	blob_nodes_unref(fs->blobs->nodes, n);
	return e;
}

/* A new name, or one that is there by now: a staged write of it. */
static enum err create_in(struct fs *fs, const struct blob_dir *dir, struct span name, int flags,
	const struct caller *call, struct ventry *ret, struct vfile **ret_file)
{
	struct blob_found found;
	enum err e = blob_name_find(fs, dir, name, &found);
	bool is_dir = e == ERR_OK && found.is_dir;
	uint64_t number = e == ERR_OK ? found.stage : 0;
	if (e == ERR_OK)
		blob_found_fini(&found);
	if (e == ERR_OK && (is_dir || (flags & O_EXCL) != 0))
		return is_dir ? ERR_IS_A_DIRECTORY : ERR_NAME_EXISTS;
	if (e != ERR_OK && e != ERR_NOT_FOUND)
		return e;
	if (number == 0)
		number = blob_stages_number(fs->blobs->stages);
	found = (struct blob_found){ .name = BUF_INIT(2 * BLOB_NAME_BYTES), .stage = number };
	e = blob_name_new(dir, name, &found.name);
	if (e == ERR_OK)
		e = blob_name_check(buf_span(&found.name), call->detail);
	if (e == ERR_OK)
		e = write_file_open(fs, dir->container, buf_span(&found.name), number,
			flags | O_CREAT, ret_file);
	if (e == ERR_OK) {
		e = blob_entry(fs, dir->container, &found, ret);
		if (e != ERR_OK)
			vfile_drop(*ret_file);
	}
	blob_found_fini(&found);
	return e;
}

static enum err blobs_create(struct fs *fs, uint64_t nid, struct span name, int flags,
	const struct caller *call, struct ventry *ret, struct vfile **ret_file)
{
	struct blob_dir dir;
	enum err e = blob_dir_of(fs->blobs->nodes, nid, &dir);
	if (e != ERR_OK)
		return e == ERR_NOT_A_DIRECTORY
			? err_set(call->detail, ERR_NOT_PERMITTED, ONLY_CONTAINERS)
			: e;
	e = create_in(fs, &dir, name, flags, call, ret, ret_file);
	blob_dir_fini(fs->blobs->nodes, &dir);
	return e;
}

/* tar makes a file whose attributes it restores in this way. */
static enum err blobs_mknod(struct fs *fs, uint64_t nid, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct vfile *f = NULL;
	enum err e = blobs_create(fs, nid, name, O_WRONLY | O_CREAT | O_EXCL, call, ret, &f);
	if (e == ERR_OK) {
		e = f->ops->close(f, call);
		vfile_drop(f);
		blobs_forget(fs, ret->nid, 1); /* of the staged write */
	}
	return e == ERR_OK ? blobs_lookup(fs, nid, name, call, ret) : e;
}

static enum err blobs_opendir(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret)
{
	(void)call;
	return blob_dir_open(fs, nid, ret);
}

/* ---- reasons ---- */

static void place_known(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	const struct blob_node *n = blob_nodes_get(fs->blobs->nodes, nid);
	if (n == NULL)
		return;
	size_t room = sizeof(ret->text) - 1;
	size_t len = n->name.n < room ? n->name.n : room;
	size_t more = name.n < room - len ? name.n : room - len;
	memcpy(ret->text, n->name.p, len);
	if (more > 0)
		memcpy(ret->text + len, name.p, more);
	ret->dir = n->container;
	ret->name = span_make(ret->text, len + more);
	blob_nodes_unref(fs->blobs->nodes, n);
}

static void blobs_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	struct item it = { 0 };
	ret->dir = nid_id(nid);
	ret->name = name;
	if (blob_node_class_of(nid) == BLOB_NODE_KNOWN) {
		place_known(fs, nid, name, ret);
	} else if (is_root(nid)) {
		ret->name = SPAN_LIT(".blob");
	} else if (name.p == NULL) {
		ret->inside = nid_id(nid);
		ret->name = SPAN_LIT(".blob");
		if (store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &it) == ERR_OK)
			ret->dir = it.parent;
		item_fini(&it);
	}
}

static const struct vnode_ops blobs_ops = {
	.pool = VPOOL_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.why = ONLY_CONTAINERS,
	.takes_attrs = true,
	.stat = blob_stat,
	.lookup = blobs_lookup,
	.opendir = blobs_opendir,
	.open = blobs_open,
	.mkdir = blobs_mkdir,
	.rmdir = blobs_rmdir,
	.create = blobs_create,
	.mknod = blobs_mknod,
	.unlink = blob_unlink,
	.rename = blob_rename,
	.resize = blob_resize,
	.forget = blobs_forget,
	.xattr_set = blob_xattr_set,
	.meta_set = blob_meta_set,
	.xattr_get = blob_fact,
	.meta_get = blob_meta,
	.xattr_names = blob_attribute_names,
	.place = blobs_place,
};

const struct vnode_ops *blob_ops_of(uint64_t nid)
{
	(void)nid;
	return &blobs_ops;
}
