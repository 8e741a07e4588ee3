/* SPDX-License-Identifier: MIT
 * read, write, flush (close) and fsync of open files: each is up to the handle's kind
 * (fs/requests/kinds.h).  Once the kernel has the reply it may close the file, so the request holds
 * the handle until the method returns. */
#include "fs/requests/kinds.h"
#include "fs/requests/syncs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void op_read(fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_READ, nid, NULL);
	c.fills_pages = fi->lock_owner == 0; /* read(2) tells whose it is, for its locks */
	struct handle *h = handle_of(fi);
	handle_ref(h);
	c.fs->kinds[h->kind]->read(&c, h, size, offset);
	handle_unref(c.fs, h);
}

void op_write(fuse_req_t req, fuse_ino_t nid, const char *bytes, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_WRITE, nid, NULL);
	struct handle *h = handle_of(fi);
	handle_ref(h);
	c.fs->kinds[h->kind]->write(&c, h, span_make(bytes, size), offset);
	handle_unref(c.fs, h);
}

void op_flush(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_FLUSH, nid, NULL);
	struct handle *h = handle_of(fi);
	handle_ref(h);
	c.fs->kinds[h->kind]->flush(&c, h, fi);
	handle_unref(c.fs, h);
}

void op_fsync(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_FSYNC, nid, NULL);
	struct handle *h = handle_of(fi);
	if (h == NULL) {
		syncs_reply(&c);
		return;
	}
	handle_ref(h);
	c.fs->kinds[h->kind]->sync(&c, h);
	handle_unref(c.fs, h);
}

/* ---- for the kinds ---- */

void reply_slice(struct fuse_call *c, struct span all, size_t size, off_t offset)
{
	if ((size_t)offset >= all.n) {
		reply_bytes(c, NULL, 0);
		return;
	}
	size_t left = all.n - (size_t)offset;
	reply_bytes(c, all.p + offset, size < left ? size : left);
}

void reply_written(struct fuse_call *c, size_t n)
{
	fuse_req_t req = c->req;
	reply_elsewhere(c);
	fuse_reply_write(req, n);
}

void refuse_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	(void)h, (void)size, (void)offset;
	reply_err(c, ERR_IS_A_DIRECTORY);
}

void refuse_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset)
{
	(void)h, (void)bytes, (void)offset;
	reply_err(c, ERR_NOT_PERMITTED);
}

void flush_nothing(struct fuse_call *c, struct handle *h, const struct fuse_file_info *fi)
{
	unlock_closed(c->fs, h, fi->lock_owner);
	reply_err(c, ERR_OK);
}

void sync_store(struct fuse_call *c, struct handle *h)
{
	(void)h;
	syncs_reply(c);
}

/* Asked of the kernel, since /proc may be mounted so that it does not show other users' processes. */
static bool is_in_process(pid_t process, pid_t tid)
{
	return syscall(SYS_tgkill, process, tid, 0) == 0 || errno != ESRCH;
}

/* The process of a thread; 0 if the thread is no more, or is not shown. */
static pid_t process_of(pid_t tid)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return 0;
	int tgid = 0;
	while (tgid == 0 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "Tgid:", 5) == 0)
			tgid = (int)strtol(line + 5, NULL, 10);
	(void)fclose(f);
	return tgid;
}

bool closes_for_opener(const struct handle *h, pid_t closer)
{
	pid_t opener = h->opener;
	if (closer == opener || opener == 0 || (kill(opener, 0) != 0 && errno == ESRCH))
		return true;
	if (closer == 0) /* of another PID namespace */
		return false;
	if (is_in_process(opener, opener))
		return is_in_process(opener, closer);
	if (is_in_process(closer, closer))
		return is_in_process(closer, opener);
	/* Of neither is it the process's first thread, whose number is the process's. */
	pid_t process = process_of(opener);
	return process == 0 || is_in_process(process, closer);
}
