/* SPDX-License-Identifier: MIT
 * The table of request handlers, the replies, and the requests that are always refused. */
#include "fs/ops.h"

#include "base/clock.h"
#include "base/log.h"
#include "fs/nid.h"
#include "fs/notify.h"
#include "fs/reason.h"
#include "fs/stats.h"
#include "fs/xattr.h"

#include <errno.h>
#include <sys/statvfs.h>

/* ---- replies ---- */

struct call call_begin(fuse_req_t req, enum op op)
{
	struct fs *fs = fuse_req_userdata(req);
	atomic_fetch_add(&fs->in_flight, 1);
	return (struct call){ fs, req, op, clock_mono_us(), false, 0 };
}

pid_t call_thread(const struct call *c)
{
	return fuse_req_ctx(c->req)->pid;
}

static void done(struct call *c, int code)
{
	atomic_fetch_sub(&c->fs->in_flight, 1);
	stats_count(c->fs, c->op, clock_mono_us() - c->start_us, code);
}

bool may_open(struct call *c)
{
	if (held_may_open(c->fs, fuse_req_ctx(c->req)->uid))
		return true;
	unsigned uid = fuse_req_ctx(c->req)->uid;
	log_client(LOG_KIND_MOUNT, uid, "too much is open in the mount: user %u was refused", uid);
	reply_errno(c, ENFILE);
	return false;
}

void reply_errno(struct call *c, int code)
{
	done(c, code);
	fuse_reply_err(c->req, code);
}

void tell_damage(struct call *c, uint64_t nid, const char *name, enum err e)
{
#define X(symbol_, name_) [OP_##symbol_] = name_,
	static const char *const calls[OP_COUNT_] = { OP_LIST(X) };
#undef X
	char component[COMPONENT_MAX];
	struct item it = { 0 };
	struct refusal r = { .call = calls[c->op], .dir = nid_id(nid), .error = e };
	if (e != ERR_CORRUPT && e != ERR_IO)
		return;
	r.name = name != NULL ? span_of(name) : SPAN_LIT("");
	if (name == NULL && store_get(c->fs->store, NULL, nid_id(nid), WANT_ATTRS, &it) == ERR_OK &&
		it.id > STORE_ID_FIRST) {
		r.dir = it.parent;
		r.name = span_make(component, item_component(&it, component));
	}
	reasons_add(c->fs, &r);
	item_fini(&it);
}

void reply_err(struct call *c, enum err e)
{
	if (c->about != 0)
		tell_damage(c, c->about, NULL, e);
	reply_errno(c, err_errno(e));
}

void reply_attr(struct call *c, const struct stat *st, double timeout)
{
	done(c, 0);
	fuse_reply_attr(c->req, st, timeout);
}

void reply_node(struct call *c, uint64_t nid, const struct stat *st, double entry_timeout)
{
	struct fuse_entry_param e = { .ino = nid, .generation = 1, .attr = *st };
	e.attr_timeout = CACHE_SECONDS;
	e.entry_timeout = c->in_set ? 0 : entry_timeout;
	done(c, 0);
	fuse_reply_entry(c->req, &e);
}

void reply_no_entry(struct call *c)
{
	struct fuse_entry_param e = { .entry_timeout = c->in_set ? 0 : CACHE_SECONDS };
	done(c, 0);
	fuse_reply_entry(c->req, &e);
}

void reply_bytes(struct call *c, const char *p, size_t n)
{
	done(c, 0);
	fuse_reply_buf(c->req, p, n);
}

void reply_elsewhere(struct call *c)
{
	done(c, 0);
}

void reply_after_commit(struct call *c, struct stage *s)
{
	struct stale stale;
	stage_take_stale(s, &stale);
	if (!stale.any) {
		reply_errno(c, 0);
		return;
	}
	reply_elsewhere(c);
	notify_name_then_reply(c->fs->notifier, stale.dir_nid, span_of(stale.name), c->req);
}

void drop_stale_locked(struct fs *fs, struct stage *s)
{
	struct stale stale;
	stage_take_stale(s, &stale);
	if (stale.any && stale.nid != 0) {
		if (stale.content)
			notify_old_node(fs->notifier, stale.nid);
		else
			notify_attributes(fs->notifier, stale.nid);
	}
	if (stale.any)
		notify_name_soon(fs->notifier, stale.dir_nid, span_of(stale.name));
}

/* ---- what has no file of its own ---- */

void op_statfs(fuse_req_t req, fuse_ino_t nid)
{
	struct call c = call_begin(req, OP_OTHER);
	struct statvfs st;
	(void)nid;
	if (statvfs(c.fs->store_path, &st) != 0) {
		reply_errno(&c, errno);
		return;
	}
	st.f_namemax = LIMIT_FILE_NAME_BYTES;
	done(&c, 0);
	fuse_reply_statfs(req, &st);
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	struct call c = call_begin(req, OP_OTHER);
	reply_errno(&c, EPERM);
}

static void op_link(fuse_req_t req, fuse_ino_t nid, fuse_ino_t parent, const char *name)
{
	struct call c = call_begin(req, OP_OTHER);
	reply_errno(&c, EPERM);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	struct call c = call_begin(req, OP_OTHER);
	reply_errno(&c, EPERM);
}

/* ---- extended attributes ---- */

void op_getxattr(fuse_req_t req, fuse_ino_t nid, const char *name, size_t size)
{
	struct call c = call_begin(req, OP_XATTR);
	if (!xattr_is_ours(name)) {
		reply_errno(&c, strncmp(name, "system.posix_acl", 16) == 0 ? EOPNOTSUPP : ENODATA);
		return;
	}
	struct buf value = BUF_INIT(65536);
	enum err e = vnode_ops_of(nid) != NULL
		? virtual_xattr_get(c.fs, nid, xattr_behind_prefix(name), &value)
		: xattr_get(c.fs, nid, name, &value);
	if (e == ERR_OK && size != 0 && value.len > size)
		e = ERR_RANGE;
	if (e != ERR_OK) {
		reply_err(&c, e);
	} else if (size == 0) {
		done(&c, 0);
		fuse_reply_xattr(req, value.len);
	} else {
		reply_bytes(&c, value.data, value.len);
	}
	buf_fini(&value);
}

void op_setxattr(
	fuse_req_t req, fuse_ino_t nid, const char *name, const char *value, size_t size, int flags)
{
	struct call c = call_begin(req, OP_XATTR);
	(void)flags;
	struct span text = span_make(value, size);
	if (!xattr_is_ours(name))
		reply_errno(&c, EOPNOTSUPP);
	else if (vnode_ops_of(nid) != NULL)
		reply_err(&c, virtual_xattr_set(c.fs, nid, xattr_behind_prefix(name), text));
	else
		reply_err(&c, xattr_set(c.fs, nid, name, text));
}

void op_removexattr(fuse_req_t req, fuse_ino_t nid, const char *name)
{
	struct call c = call_begin(req, OP_XATTR);
	if (virtual_refuses(&c, nid))
		return;
	reply_err(&c, xattr_is_ours(name) ? xattr_remove(c.fs, nid, name) : ERR_NO_ATTRIBUTE);
}

void op_listxattr(fuse_req_t req, fuse_ino_t nid, size_t size)
{
	struct call c = call_begin(req, OP_XATTR);
	(void)nid;
	done(&c, 0);
	if (size == 0)
		fuse_reply_xattr(req, 0);
	else
		fuse_reply_buf(req, NULL, 0);
}

/* ---- the table ---- */

static void op_init(void *arg, struct fuse_conn_info *conn)
{
	struct fs *fs = arg;
	/* Only our own notifications say that a page or an attribute is out of date. */
	/* ... and pieces of one direct write come one after another: each moves the size. */
	conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE |
		FUSE_CAP_POSIX_ACL | FUSE_CAP_ASYNC_DIO | FUSE_CAP_SPLICE_READ);
	conn->want |= conn->capable &
		(FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_FLOCK_LOCKS |
			FUSE_CAP_POSIX_LOCKS | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
			FUSE_CAP_PARALLEL_DIROPS);
	if (fs->options.on_ready != NULL)
		fs->options.on_ready(fs->options.arg);
}

const struct fuse_lowlevel_ops fs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.access = op_access,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.fsyncdir = op_fsyncdir,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.create = op_create,
	.getlk = op_getlk,
	.setlk = op_setlk,
	.flock = op_flock,
};
