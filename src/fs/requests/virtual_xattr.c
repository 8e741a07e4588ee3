/* SPDX-License-Identifier: MIT
 * Extended attributes of virtual nodes (fs/core/virtual.h): user.rowfs.* and user.meta.*. */
#include "fs/refused/reason.h"
#include "fs/requests/virtual.h"

#include <string.h>

enum err virtual_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	const struct vnode_ops *ops = vnode_ops_of(fs, nid);
	struct vplace at = { 0 };
	if (strcmp(name, "error") != 0)
		return ops->xattr_get != NULL ? ops->xattr_get(fs, nid_base(nid), name, out)
					      : ERR_NO_ATTRIBUTE;
	ops->place(fs, nid_base(nid), (struct span){ 0 }, &at);
	return reasons_get(fs->reasons, at.dir, at.name, at.inside, out) ? ERR_OK
									 : ERR_NO_ATTRIBUTE;
}

static void run_xattr_set(struct task *t)
{
	const char *name = t->bytes;
	struct span value = span_make(name + strlen(name) + 1, t->size);
	virtual_refuse(&t->call, t->nid,
		vnode_ops_of(t->call.fs, t->nid)
			->xattr_set(t->call.fs, nid_base(t->nid), name, value, &t->vcall));
}

void virtual_xattr_set(struct fuse_call *c, uint64_t nid, const char *name, struct span value)
{
	struct task *t = NULL;
	if (vnode_ops_of(c->fs, nid)->xattr_set == NULL)
		virtual_refuse_change(c, nid);
	else if ((t = task_with_value(c, run_xattr_set, nid, name, value)) != NULL)
		task_dispatch(t, VPOOL_CHANGE);
}

void virtual_xattr_remove(struct fuse_call *c, uint64_t nid, const char *name)
{
	(void)name;
	virtual_refuse_change(c, nid);
}

/* ---- user.meta.* ---- */

enum err virtual_meta_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	const struct vnode_ops *ops = vnode_ops_of(fs, nid);
	return ops->meta_get != NULL ? ops->meta_get(fs, nid_base(nid), name, out)
				     : ERR_NO_ATTRIBUTE;
}

static void set_meta(struct task *t, const struct span *value)
{
	const struct vnode_ops *ops = vnode_ops_of(t->call.fs, t->nid);
	virtual_refuse(&t->call, t->nid,
		ops->meta_set(t->call.fs, nid_base(t->nid), t->bytes, value, &t->vcall));
}

static void run_meta_set(struct task *t)
{
	struct span value = span_make(t->bytes + strlen(t->bytes) + 1, t->size);
	set_meta(t, &value);
}

static void run_meta_remove(struct task *t)
{
	set_meta(t, NULL);
}

void virtual_meta_set(struct fuse_call *c, uint64_t nid, const char *name, const struct span *value)
{
	struct task *t = NULL;
	if (vnode_ops_of(c->fs, nid)->meta_set == NULL)
		reply_err(c, value != NULL ? ERR_NOT_SUPPORTED : ERR_NO_ATTRIBUTE);
	else if ((t = task_with_value(c, value != NULL ? run_meta_set : run_meta_remove, nid, name,
			  value != NULL ? *value : SPAN_LIT(""))) != NULL)
		task_dispatch(t, VPOOL_CHANGE);
}

enum err virtual_xattr_names(struct fs *fs, uint64_t nid, struct buf *out)
{
	const struct vnode_ops *ops = vnode_ops_of(fs, nid);
	return ops->xattr_names != NULL ? ops->xattr_names(fs, nid_base(nid), out) : ERR_OK;
}
