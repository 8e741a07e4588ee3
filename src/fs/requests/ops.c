/* SPDX-License-Identifier: MIT
 * The table of request handlers, the replies, and the requests that are always refused. */
#include "fs/requests/ops.h"

#include "base/clock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/requests/refusal.h"
#include "fs/requests/xattr.h"
#include "fs/virtual/stats.h"

#include <errno.h>
#include <sys/statvfs.h>

/* ---- replies ---- */

struct call call_begin(fuse_req_t req, enum op op, uint64_t nid, const char *name)
{
	struct fs *fs = fuse_req_userdata(req);
	atomic_fetch_add(&fs->in_flight, 1);
	bool opened = op == OP_READ || op == OP_WRITE || op == OP_FLUSH || op == OP_FSYNC ||
		op == OP_READDIR || op == OP_READDIRPLUS || op == OP_RELEASE;
	return (struct call){ .fs = fs,
		.req = req,
		.op = op,
		.start_us = clock_mono_us(),
		.nid = nid,
		.name = name,
		.opened = opened };
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

static void reply_errno(struct call *c, int code)
{
	done(c, code);
	fuse_reply_err(c->req, code);
}

void note_refusal(struct call *c, enum err e, const char *rejected)
{
#define X(symbol_, name_) [OP_##symbol_] = name_,
	static const char *const calls[OP_COUNT_] = { OP_LIST(X) };
#undef X
	char component[COMPONENT_MAX];
	const char *text = refusal_text(e);
	const char *title = c->op == OP_FLUSH ? "close" : calls[c->op];
	struct refusal r = { .call = c->title != NULL ? c->title : title,
		.error = e,
		.detail = &c->detail,
		.rejected = rejected[0] != 0 ? rejected : NULL };
	if (c->detail.text[0] == 0 && text != NULL)
		(void)err_set(&c->detail, e, "%s", text);
	/* The line tells where a name should have come, but of damage what could not be moved. */
	bool twice = c->to_name != NULL;
	bool to_first = twice && e != ERR_CORRUPT;
	for (int i = 0; i < 1 + twice; i++) {
		bool to = to_first == (i == 0);
		refusal_place(
			c->fs, to ? c->to_nid : c->nid, to ? c->to_name : c->name, component, &r);
		r.quiet = i > 0;
		reasons_add(c->fs, &r);
	}
}

void reply_err(struct call *c, enum err e)
{
	int code = err_errno(e);
	if (!c->noted && refusal_is(e, c->opened))
		note_refusal(c, e, "");
	reply_errno(c, c->op == OP_FSYNC && code == EINVAL ? EIO : code);
}

void reply_again(struct call *c)
{
	reply_errno(c, ESTALE);
}

bool may_open(struct call *c)
{
	enum err e = held_may_open(c->fs, fuse_req_ctx(c->req)->uid, &c->detail);
	if (e != ERR_OK)
		reply_err(c, e);
	return e == ERR_OK;
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
		reply_err(c, ERR_OK);
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
	struct call c = call_begin(req, OP_OTHER, nid, NULL);
	struct statvfs st;
	(void)nid;
	if (statvfs(c.fs->store_path, &st) != 0) {
		c.title = "statfs";
		reply_err(&c, err_from_errno(errno));
		return;
	}
	st.f_namemax = LIMIT_FILE_NAME_BYTES;
	done(&c, 0);
	fuse_reply_statfs(req, &st);
}

static void refuse_kind(
	fuse_req_t req, const char *title, uint64_t parent, const char *name, const char *instead)
{
	struct call c = call_begin(req, OP_OTHER, parent, name);
	c.title = title;
	reply_err(&c, err_set(&c.detail, ERR_NOT_PERMITTED, "%s", instead));
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	refuse_kind(req, "symlink", parent, name,
		"There are no symbolic links in a mount: copy the file (cp -L follows links).");
}

static void op_link(fuse_req_t req, fuse_ino_t nid, fuse_ino_t parent, const char *name)
{
	(void)nid;
	refuse_kind(req, "link", parent, name,
		"There are no hard links in a mount: copy the file (cp), or move it (mv).");
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
	(void)mode, (void)device;
	refuse_kind(req, "mknod", parent, name,
		"There are no devices, sockets and pipes in a mount; files are made by opening them.");
}

/* ---- extended attributes ---- */

void op_getxattr(fuse_req_t req, fuse_ino_t nid, const char *name, size_t size)
{
	struct call c = call_begin(req, OP_XATTR, nid, NULL);
	c.title = "getxattr";
	if (!xattr_is_ours(name)) {
		bool acl = strncmp(name, "system.posix_acl", 16) == 0;
		reply_err(&c, acl ? ERR_NOT_SUPPORTED : ERR_NO_ATTRIBUTE);
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
	struct call c = call_begin(req, OP_XATTR, nid, NULL);
	(void)flags;
	struct span text = span_make(value, size);
	c.title = "setxattr";
	if (!xattr_is_ours(name))
		reply_err(&c, ERR_NOT_SUPPORTED);
	else if (vnode_ops_of(nid) != NULL)
		virtual_setxattr(&c, nid, xattr_behind_prefix(name), text);
	else
		reply_err(&c, xattr_set(c.fs, nid, name, text, &c.detail));
}

void op_removexattr(fuse_req_t req, fuse_ino_t nid, const char *name)
{
	struct call c = call_begin(req, OP_XATTR, nid, NULL);
	c.title = "removexattr";
	if (virtual_refuses(&c, nid))
		return;
	reply_err(&c,
		xattr_is_ours(name) ? xattr_remove(c.fs, nid, name, &c.detail) : ERR_NO_ATTRIBUTE);
}

void op_listxattr(fuse_req_t req, fuse_ino_t nid, size_t size)
{
	struct call c = call_begin(req, OP_XATTR, nid, NULL);
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
