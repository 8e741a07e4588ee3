/* SPDX-License-Identifier: MIT
 * rename(2) of an ordinary file onto a virtual node that takes over its content: an import. */
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"
#include "fs/requests/refusal.h"
#include "fs/requests/task.h"
#include "fs/tree/handle.h"
#include "fs/tree/names.h"
#include "fs/write/look.h"

/* The item that is renamed onto the node. */
static enum err take_file(struct task *t, struct resolved_name *from, struct item *file)
{
	struct fs *fs = t->call.fs;
	enum err e = name_resolve(fs->store, t->nid, t->bytes, from, NULL);
	if (name_means_nothing(e))
		return ERR_NOT_FOUND;
	if (e == ERR_OK && from->control != 0)
		return refuse_control(&t->call.detail);
	if (e == ERR_OK)
		e = name_look(fs, from, WANT_ATTRS, file);
	if (e == ERR_OK && file->kind != ITEM_FILE)
		return err_set(&t->call.detail, ERR_NOT_PERMITTED,
			"Only an ordinary file can be renamed onto the name: what is in it is "
			"imported.");
	if (e != ERR_OK)
		return e;
	e = vnode_ops_of(fs, t->onto)->replace(fs, t->onto, file, &t->vcall, &t->call.noted);
	const struct dentry at = name_dentry(from, ITEM_FILE);
	return e == ERR_OK ? file_unlink(fs, &at, file->id, &t->call.detail) : e;
}

/* The kernel keeps the file's node under the new name. */
static void run_replace(struct task *t)
{
	struct fs *fs = t->call.fs;
	struct resolved_name from = { 0 };
	struct item file = { 0 };
	notify_wait_for_none();
	enum err e = take_file(t, &from, &file);
	if (e == ERR_OK) {
		notify_old_node(fs->notifier, nid_of(&file));
		notify_name_soon(
			fs->notifier, nid_make(nid_id(t->onto), 0), span_of(t->call.to_name));
	}
	item_fini(&file);
	resolved_name_fini(&from);
	reply_err(&t->call, e);
}

bool virtual_replace(struct fuse_call *c, uint64_t dir, const char *name, uint64_t nid)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	if (ops->replace == NULL)
		return false;
	struct task *t = task_named(c, run_replace, dir, name);
	if (t != NULL) {
		t->onto = nid;
		task_dispatch_viewed(t, VPOOL_CHANGE);
	}
	return true;
}
