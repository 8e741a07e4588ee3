/* SPDX-License-Identifier: MIT
 * A filesystem in memory: what a FUSE filesystem costs when it does nothing.  The yardstick for
 * the mount: the same library, flags and timeouts as fs/session/session.c and fs/requests/, the
 * same tree, but in memory (memtree.h).
 *
 *   memfs [--rows=N] [--bytes=B] [--partitions=P] [--counts=FILE] [--readers=R] DIR
 *
 * Begins with N files /bench/rows/pPPPP/rowNNNNNNN.json of B bytes, in P directories.  R threads
 * read requests.  One is the default and the cheapest: the kernel wakes waiting readers in turn,
 * and their caches are cold.  Serves in the foreground until it is unmounted.  SIGUSR1 writes the
 * number of requests of each kind since the last time into FILE. */
#include "memtree.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CACHE_SECONDS 3600.0

/* ---- counting ---- */

/* clang-format off */
#define KINDS(X) \
	X(LOOKUP, "lookup") X(GETATTR, "getattr") X(SETATTR, "setattr") X(OPEN, "open") \
	X(CREATE, "create") X(READ, "read") X(WRITE, "write") X(FLUSH, "flush") X(FSYNC, "fsync") \
	X(RELEASE, "release") X(OPENDIR, "opendir") X(READDIR, "readdir") \
	X(READDIRPLUS, "readdirplus") X(MKDIR, "mkdir") X(RMDIR, "rmdir") X(UNLINK, "unlink") \
	X(RENAME, "rename") X(XATTR, "xattr") X(OTHER, "other")
/* clang-format on */

enum kind {
#define X(symbol_, name_) K_##symbol_,
	KINDS(X)
#undef X
	K_COUNT_
};

static const char *const kind_names[K_COUNT_] = {
#define X(symbol_, name_) name_,
	KINDS(X)
#undef X
};

static atomic_ulong counts[K_COUNT_];
static char counts_path[4096], counts_new[4100];

static void count(enum kind k)
{
	atomic_fetch_add_explicit(&counts[k], 1, memory_order_relaxed);
}

/* The file appears complete. */
static void write_counts(void)
{
	FILE *f = counts_path[0] != 0 ? fopen(counts_new, "we") : NULL;
	if (f == NULL)
		return;
	for (int k = 0; k < K_COUNT_; k++)
		fprintf(f, "%s %lu\n", kind_names[k], atomic_exchange(&counts[k], 0));
	if (fclose(f) == 0)
		(void)rename(counts_new, counts_path);
}

static void *wait_for_signals(void *arg)
{
	int number;
	while (sigwait(arg, &number) == 0)
		write_counts();
	return NULL;
}

static struct fuse_entry_param entry_of(uint32_t i)
{
	struct fuse_entry_param e = { .ino = i, .generation = 1 };
	e.attr_timeout = e.entry_timeout = CACHE_SECONDS;
	if (i != 0)
		tree_stat(i, &e.attr);
	return e;
}

/* ---- names ---- */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	count(K_LOOKUP);
	pthread_rwlock_rdlock(&tree_lock);
	struct fuse_entry_param e = entry_of(tree_find((uint32_t)parent, name));
	pthread_rwlock_unlock(&tree_lock);
	fuse_reply_entry(req, &e);
}

static void op_forget(fuse_req_t req, fuse_ino_t nid, uint64_t n)
{
	(void)nid;
	(void)n;
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets)
{
	(void)n;
	(void)forgets;
	fuse_reply_none(req);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	count(K_MKDIR);
	(void)mode;
	pthread_rwlock_wrlock(&tree_lock);
	uint32_t i = tree_find((uint32_t)parent, name) == 0
		? tree_make((uint32_t)parent, name, true)
		: 0;
	struct fuse_entry_param e = entry_of(i);
	pthread_rwlock_unlock(&tree_lock);
	if (i != 0)
		fuse_reply_entry(req, &e);
	else
		fuse_reply_err(req, EEXIST);
}

static void remove_name(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	int code = ENOENT;
	pthread_rwlock_wrlock(&tree_lock);
	uint32_t i = tree_find((uint32_t)parent, name);
	if (i != 0)
		code = tree_is_empty(&tree_nodes[i]) ? 0 : ENOTEMPTY;
	if (code == 0)
		tree_take_name(i);
	pthread_rwlock_unlock(&tree_lock);
	fuse_reply_err(req, code);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	count(K_UNLINK);
	remove_name(req, parent, name);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	count(K_RMDIR);
	remove_name(req, parent, name);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags)
{
	int code = ENOENT;
	count(K_RENAME);
	pthread_rwlock_wrlock(&tree_lock);
	uint32_t i = tree_find((uint32_t)parent, name);
	uint32_t over = tree_find((uint32_t)new_parent, new_name);
	if (flags != 0)
		code = EINVAL;
	else if (i != 0)
		code = 0;
	if (code == 0 && i != over) {
		if (over != 0)
			tree_take_name(over);
		tree_take_name(i);
		code = tree_put_name(i, (uint32_t)new_parent, new_name) ? 0 : ENOMEM;
	}
	pthread_rwlock_unlock(&tree_lock);
	fuse_reply_err(req, code);
}

/* ---- attributes ---- */

static void op_getattr(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct stat st;
	count(K_GETATTR);
	(void)fi;
	pthread_rwlock_rdlock(&tree_lock);
	tree_stat((uint32_t)nid, &st);
	pthread_rwlock_unlock(&tree_lock);
	fuse_reply_attr(req, &st, CACHE_SECONDS);
}

static void op_setattr(
	fuse_req_t req, fuse_ino_t nid, struct stat *st, int to_set, struct fuse_file_info *fi)
{
	struct node *n = &tree_nodes[nid];
	bool done = true;
	count(K_SETATTR);
	(void)fi;
	pthread_rwlock_wrlock(&tree_lock);
	if ((to_set & FUSE_SET_ATTR_SIZE) != 0)
		done = tree_set_size(n, (size_t)st->st_size);
	if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0)
		clock_gettime(CLOCK_REALTIME, &n->mtime);
	else if ((to_set & FUSE_SET_ATTR_MTIME) != 0)
		n->mtime = st->st_mtim;
	tree_stat((uint32_t)nid, st);
	pthread_rwlock_unlock(&tree_lock);
	if (done)
		fuse_reply_attr(req, st, CACHE_SECONDS);
	else
		fuse_reply_err(req, ENOMEM);
}

static void op_access(fuse_req_t req, fuse_ino_t nid, int mask)
{
	count(K_GETATTR);
	(void)nid;
	(void)mask;
	fuse_reply_err(req, 0);
}

/* There are attributes, so that the kernel has to ask; but none of this name. */
static void op_getxattr(fuse_req_t req, fuse_ino_t nid, const char *name, size_t size)
{
	count(K_XATTR);
	(void)nid;
	(void)size;
	fuse_reply_err(req, strncmp(name, "system.posix_acl", 16) == 0 ? EOPNOTSUPP : ENODATA);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t nid, size_t size)
{
	count(K_XATTR);
	(void)nid;
	if (size == 0)
		fuse_reply_xattr(req, 0);
	else
		fuse_reply_buf(req, NULL, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t nid)
{
	const struct statvfs st = { .f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255 };
	count(K_OTHER);
	(void)nid;
	fuse_reply_statfs(req, &st);
}

/* ---- files ---- */

/* As rowfs answers: no FLUSH for readers, direct I/O for handles that only write. */
static void set_open_flags(struct fuse_file_info *fi)
{
	bool writes = (fi->flags & O_ACCMODE) != O_RDONLY;
	fi->direct_io = (fi->flags & O_ACCMODE) == O_WRONLY;
	fi->keep_cache = !writes;
	fi->noflush = !writes;
}

static void op_open(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	count(K_OPEN);
	if ((fi->flags & O_TRUNC) != 0) {
		pthread_rwlock_wrlock(&tree_lock);
		tree_nodes[nid].size = 0;
		pthread_rwlock_unlock(&tree_lock);
	}
	set_open_flags(fi);
	fuse_reply_open(req, fi);
}

static void op_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	count(K_CREATE);
	(void)mode;
	pthread_rwlock_wrlock(&tree_lock);
	uint32_t i = tree_find((uint32_t)parent, name);
	int code = i != 0 && (fi->flags & O_EXCL) != 0 ? EEXIST : 0;
	if (i == 0 && (i = tree_make((uint32_t)parent, name, false)) == 0)
		code = ENOSPC;
	struct fuse_entry_param e = entry_of(i);
	pthread_rwlock_unlock(&tree_lock);
	set_open_flags(fi);
	if (code == 0)
		fuse_reply_create(req, &e, fi);
	else
		fuse_reply_err(req, code);
}

static void op_read(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	const struct node *n = &tree_nodes[nid];
	count(K_READ);
	(void)fi;
	pthread_rwlock_rdlock(&tree_lock);
	size_t left = (uint64_t)offset < n->size ? n->size - (size_t)offset : 0;
	fuse_reply_buf(req, left > 0 ? n->body + offset : NULL, left < size ? left : size);
	pthread_rwlock_unlock(&tree_lock);
}

static void op_write(fuse_req_t req, fuse_ino_t nid, const char *bytes, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	struct node *n = &tree_nodes[nid];
	count(K_WRITE);
	(void)fi;
	pthread_rwlock_wrlock(&tree_lock);
	bool done = tree_own_body(n, (size_t)offset + size);
	if (done) {
		memcpy(n->body + offset, bytes, size);
		clock_gettime(CLOCK_REALTIME, &n->mtime);
	}
	pthread_rwlock_unlock(&tree_lock);
	if (done)
		fuse_reply_write(req, size);
	else
		fuse_reply_err(req, ENOSPC);
}

static void op_flush(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	count(K_FLUSH);
	(void)nid;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void op_release(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	count(K_RELEASE);
	(void)nid;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void op_fsync(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi)
{
	count(K_FSYNC);
	(void)nid;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

/* ---- directories ---- */

static void op_opendir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	count(K_OPENDIR);
	(void)nid;
	fuse_reply_open(req, fi);
}

static size_t add_entry(fuse_req_t req, char *p, size_t room, bool plus, const char *name,
	uint32_t i, bool dots, off_t next)
{
	if (!plus) {
		struct stat st = { .st_ino = i,
			.st_mode = tree_nodes[i].is_dir ? S_IFDIR : S_IFREG };
		return fuse_add_direntry(req, p, room, name, &st, next);
	}
	struct fuse_entry_param e = entry_of(i);
	if (dots)
		e.ino = 0;
	return fuse_add_direntry_plus(req, p, room, name, &e, next);
}

/* Offsets: 1, 2 after the dots, then slot + 3. */
static void read_dir(fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, bool plus)
{
	char *bytes = malloc(size);
	size_t len = 0, n = 0;
	if (bytes == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	pthread_rwlock_rdlock(&tree_lock);
	const struct node *dir = &tree_nodes[nid];
	for (off_t at = offset; at < (off_t)dir->n_children + 2; at++) {
		uint32_t child = at < 2 ? (uint32_t)nid : dir->children[at - 2];
		if (child == 0)
			continue;
		const char *name = at == 0 ? "." : at == 1 ? ".." : tree_nodes[child].name;
		n = add_entry(req, bytes + len, size - len, plus, name, child, at < 2, at + 1);
		if (n > size - len)
			break;
		len += n;
	}
	pthread_rwlock_unlock(&tree_lock);
	fuse_reply_buf(req, bytes, len);
	free(bytes);
}

static void op_readdir(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	count(K_READDIR);
	(void)fi;
	read_dir(req, nid, size, offset, false);
}

static void op_readdirplus(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	count(K_READDIRPLUS);
	(void)fi;
	read_dir(req, nid, size, offset, true);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	count(K_RELEASE);
	(void)nid;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void op_flock(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi, int operation)
{
	count(K_OTHER);
	(void)nid;
	(void)fi;
	(void)operation;
	fuse_reply_err(req, 0);
}

/* ---- the session ---- */

static void op_init(void *arg, struct fuse_conn_info *conn)
{
	(void)arg;
	conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE |
		FUSE_CAP_POSIX_ACL | FUSE_CAP_POSIX_LOCKS);
	conn->want |= conn->capable &
		(FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_FLOCK_LOCKS |
			FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
			FUSE_CAP_PARALLEL_DIROPS);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.access = op_access,
	.setattr = op_setattr,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.rename = op_rename,
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
	.statfs = op_statfs,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.create = op_create,
	.flock = op_flock,
};

/* libfuse's loop for one thread takes no lock and starts no thread. */
static int run_loop(struct fuse_session *session, unsigned readers)
{
	if (readers == 1)
		return fuse_session_loop(session);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	if (config == NULL)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(config, readers);
	int code = fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	return code;
}

static int serve(const char *dir, unsigned readers)
{
	char program[] = "memfs", option[] = "-osubtype=memfs,fsname=memfs";
	char *argv[] = { program, option, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(2, argv);
	struct fuse_session *session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	fuse_opt_free_args(&args);
	if (session == NULL || fuse_set_signal_handlers(session) != 0 ||
		fuse_session_mount(session, dir) != 0)
		return 1;
	int code = run_loop(session, readers);
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return code < 0 ? 1 : 0;
}

static bool start_counting(void)
{
	static sigset_t set;
	pthread_t thread;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 &&
		pthread_create(&thread, NULL, wait_for_signals, &set) == 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rows", required_argument, NULL, 'r' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "partitions", required_argument, NULL, 'p' },
		{ "counts", required_argument, NULL, 'c' },
		{ "readers", required_argument, NULL, 't' }, { 0 } };
	unsigned long rows = 0, bytes = 300, partitions = 1, readers = 1;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'r')
			rows = strtoul(optarg, NULL, 10);
		else if (c == 'b')
			bytes = strtoul(optarg, NULL, 10);
		else if (c == 'p')
			partitions = strtoul(optarg, NULL, 10);
		else if (c == 't')
			readers = strtoul(optarg, NULL, 10);
		else if (c == 'c')
			snprintf(counts_path, sizeof(counts_path), "%s", optarg);
		else
			return 2;
	}
	if (optind != argc - 1 || partitions == 0 || rows > UINT32_MAX || readers == 0) {
		fprintf(stderr,
			"usage: memfs [--rows=N] [--bytes=B] [--partitions=P] [--counts=FILE] "
			"[--readers=R] DIR\n");
		return 2;
	}
	snprintf(counts_new, sizeof(counts_new), "%s.new", counts_path);
	if (!start_counting() || !tree_fill((uint32_t)rows, (uint32_t)bytes, (uint32_t)partitions))
		return 1;
	return serve(argv[optind], (unsigned)readers);
}
