/* SPDX-License-Identifier: MIT
 * The table of request handlers, which libfuse calls. */
#include "fs/requests/ops.h"

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
	/* Other machines notify nobody: the kernel drops the pages of a file whose size or time of
	 * change it finds moved, which it asks for before each read. */
	if (fs->shared) {
		conn->want &= ~(unsigned)FUSE_CAP_EXPLICIT_INVAL_DATA;
		conn->want |= conn->capable & FUSE_CAP_AUTO_INVAL_DATA;
	}
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
	.poll = op_poll,
	.lseek = op_lseek,
	.fallocate = op_fallocate,
};
