/* SPDX-License-Identifier: MIT
 * statfs, extended attributes, and the requests that are always refused. */
#include "fs/requests/kinds.h"
#include "fs/requests/xattr.h"

#include <errno.h>
#include <sys/statvfs.h>

/* Among blobs there is what blob-space leaves, and no more than the disk has. */
static void limit_to_blobs(const struct store_info *info, struct statvfs *st)
{
	if (info->piece_limit == UINT64_MAX)
		return;
	uint64_t used = info->piece_bytes, all = info->piece_limit / st->f_frsize;
	uint64_t left = used < info->piece_limit ? (info->piece_limit - used) / st->f_frsize : 0;
	st->f_blocks = all;
	st->f_bfree = left < st->f_bfree ? left : st->f_bfree;
	st->f_bavail = left < st->f_bavail ? left : st->f_bavail;
}

void op_statfs(fuse_req_t req, fuse_ino_t nid)
{
	struct fuse_call c = call_begin(req, OP_OTHER, nid, NULL);
	struct statvfs st;
	struct store_info info;
	store_info(c.fs->store, &info);
	if (info.remote) {
		st = (struct statvfs){ .f_bsize = 4096, .f_frsize = 4096 };
		st.f_blocks = info.remote_bytes / 4096;
		st.f_bfree = st.f_bavail = info.remote_free / 4096;
	} else if (statvfs(c.fs->store_path, &st) != 0) {
		c.title = "statfs";
		reply_err(&c, err_from_errno(errno));
		return;
	}
	if (nid_kind(nid) == NID_KIND_BLOB)
		limit_to_blobs(&info, &st);
	st.f_namemax = LIMIT_FILE_NAME_BYTES;
	call_done(&c, 0);
	fuse_reply_statfs(req, &st);
}

static void refuse_kind(
	fuse_req_t req, const char *title, uint64_t parent, const char *name, const char *instead)
{
	struct fuse_call c = call_begin(req, OP_OTHER, parent, name);
	c.title = title;
	reply_err(&c, err_set(&c.detail, ERR_NOT_PERMITTED, "%s", instead));
}

void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	refuse_kind(req, "symlink", parent, name,
		"There are no symbolic links in a mount: copy the file (cp -L follows links).");
}

void op_link(fuse_req_t req, fuse_ino_t nid, fuse_ino_t parent, const char *name)
{
	(void)nid;
	refuse_kind(req, "link", parent, name,
		"There are no hard links in a mount: copy the file (cp), or move it (mv).");
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	struct fs *fs = fuse_req_userdata(req);
	const struct kind_ops *kind = kind_by_id(fs, parent);
	(void)device;
	if (!S_ISREG(mode) || kind->mknod == NULL) {
		refuse_kind(req, "mknod", parent, name,
			"There are no devices, sockets and pipes in a mount; files are made by opening them.");
		return;
	}
	struct fuse_call c = call_begin(req, OP_OTHER, parent, name);
	c.title = "mknod";
	kind->mknod(&c, parent, name);
}

/* ---- extended attributes ---- */

/* ERR_NO_ATTRIBUTE: no node has such a one. */
static enum err get_xattr(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	const struct kind_ops *kind = kind_by_id(fs, nid);
	const char *meta = xattr_meta_name(name);
	if (xattr_is_ours(name))
		return kind->xattr_get(fs, nid, xattr_behind_prefix(name), out);
	if (meta != NULL && kind->meta_get != NULL)
		return kind->meta_get(fs, nid, meta, out);
	bool acl = strncmp(name, "system.posix_acl", 16) == 0;
	return acl ? ERR_NOT_SUPPORTED : ERR_NO_ATTRIBUTE;
}

/* Answers getxattr and listxattr; size 0: the caller asks how long the value is. */
static void reply_value(struct fuse_call *c, enum err e, const struct buf *value, size_t size)
{
	fuse_req_t req = c->req;
	if (e == ERR_OK && !buf_ok(value))
		e = buf_full(value);
	if (e == ERR_OK && size != 0 && value->len > size)
		e = ERR_RANGE;
	if (e != ERR_OK) {
		reply_err(c, e);
	} else if (size == 0) {
		call_done(c, 0);
		fuse_reply_xattr(req, value->len);
	} else {
		reply_bytes(c, value->data, value->len);
	}
}

void op_getxattr(fuse_req_t req, fuse_ino_t nid, const char *name, size_t size)
{
	struct fuse_call c = call_begin(req, OP_XATTR, nid, NULL);
	c.title = "getxattr";
	struct buf value = BUF_INIT(65536);
	enum err e = get_xattr(c.fs, nid, name, &value);
	reply_value(&c, e, &value, size);
	buf_fini(&value);
}

void op_setxattr(
	fuse_req_t req, fuse_ino_t nid, const char *name, const char *value, size_t size, int flags)
{
	struct fuse_call c = call_begin(req, OP_XATTR, nid, NULL);
	(void)flags;
	struct span text = span_make(value, size);
	const struct kind_ops *kind = kind_by_id(c.fs, nid);
	const char *meta = xattr_meta_name(name);
	c.title = "setxattr";
	if (meta != NULL && kind->meta_set != NULL)
		kind->meta_set(&c, nid, meta, &text);
	else if (!xattr_is_ours(name))
		reply_err(&c, ERR_NOT_SUPPORTED);
	else
		kind->xattr_set(&c, nid, xattr_behind_prefix(name), text);
}

void op_removexattr(fuse_req_t req, fuse_ino_t nid, const char *name)
{
	struct fuse_call c = call_begin(req, OP_XATTR, nid, NULL);
	const struct kind_ops *kind = kind_by_id(c.fs, nid);
	const char *meta = xattr_meta_name(name);
	c.title = "removexattr";
	if (meta != NULL && kind->meta_set != NULL)
		kind->meta_set(&c, nid, meta, NULL);
	else if (!xattr_is_ours(name))
		reply_err(&c, ERR_NO_ATTRIBUTE);
	else
		kind->xattr_remove(&c, nid, xattr_behind_prefix(name));
}

void op_listxattr(fuse_req_t req, fuse_ino_t nid, size_t size)
{
	struct fuse_call c = call_begin(req, OP_XATTR, nid, NULL);
	const struct kind_ops *kind = kind_by_id(c.fs, nid);
	struct buf names = BUF_INIT(65536);
	c.title = "listxattr";
	enum err e = kind->xattr_names != NULL ? kind->xattr_names(c.fs, nid, &names) : ERR_OK;
	reply_value(&c, e, &names, size);
	buf_fini(&names);
}
