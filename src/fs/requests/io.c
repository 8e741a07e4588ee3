/* SPDX-License-Identifier: MIT
 * read, write, flush (close) and fsync. */
#include "base/lock.h"
#include "base/workers.h"
#include "fs/cache/ahead.h"
#include "fs/cache/notify.h"
#include "fs/cache/pages.h"
#include "fs/core/nid.h"
#include "fs/requests/ops.h"
#include "fs/requests/syncs.h"
#include "fs/tree/attr.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- read ---- */

static void reply_slice(struct fuse_call *c, struct span all, size_t size, off_t offset)
{
	if ((size_t)offset >= all.n) {
		reply_bytes(c, NULL, 0);
		return;
	}
	size_t left = all.n - (size_t)offset;
	reply_bytes(c, all.p + offset, size < left ? size : left);
}

static void read_stage(struct fuse_call *c, struct stage *s, size_t size, off_t offset)
{
	struct buf out = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	stage_read(s, (uint64_t)offset, size, &out);
	if (buf_ok(&out))
		reply_bytes(c, out.data, out.len);
	else
		reply_err(c, ERR_NO_MEMORY);
	buf_fini(&out);
}

/* The file became a row under its reader: the node's bytes stay what they were. */
static void read_converted(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	struct item row = { 0 };
	const struct content *content = NULL, *kept = h->content;
	enum err e = kept != NULL ? ERR_OK
				  : store_get(c->fs->store, NULL, nid_id(h->nid), WANT_BODY, &row);
	bool is_row = e == ERR_OK && row.kind == ITEM_ROW && nid_of(&row) == h->nid;
	if (kept == NULL && !is_row) {
		service_wait_kept(c->fs->service);
		content = contents_pin_old(c->fs->contents, h->nid);
	}
	if (kept != NULL)
		reply_slice(c, kept->item.body, size, offset);
	else if (is_row)
		reply_slice(c, row.body, size, offset);
	else if (content != NULL)
		reply_slice(c, content->item.body, size, offset);
	else
		reply_err(c, e == ERR_OK || e == ERR_NOT_FOUND ? ERR_GONE : e);
	contents_unpin(c->fs->contents, content);
	item_fini(&row);
}

/* Whether the ordinary file is the handle's node still.  It may have become a row; and where
 * that became a file again, others have its pages under another node.  What waits under a row's name
 * is written as a document, or not at all.  ERR_GONE. */
static enum err check_node(struct fs *fs, const struct handle *h, bool writes, uint64_t *ret_size)
{
	struct item now = { 0 };
	enum err e = store_get(fs->store, NULL, nid_id(h->nid), WANT_ATTRS, &now);
	if (e == ERR_NOT_FOUND ||
		(e == ERR_OK &&
			(now.kind != ITEM_FILE || nid_of(&now) != h->nid ||
				(writes && item_is_waiting(fs, &now)))))
		e = ERR_GONE;
	*ret_size = now.size;
	item_fini(&now);
	return e;
}

static void read_file(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	char *bytes = malloc(size > 0 ? size : 1);
	size_t n = 0;
	uint64_t total;
	enum err e = bytes == NULL ? ERR_NO_MEMORY : check_node(c->fs, h, false, &total);
	if (e == ERR_OK)
		e = store_file_read(
			c->fs->store, NULL, nid_id(h->nid), (uint64_t)offset, bytes, size, &n);
	if (e == ERR_OK)
		reply_bytes(c, bytes, n);
	else if (e == ERR_GONE || e == ERR_NOT_FOUND || e == ERR_INVALID_INPUT)
		read_converted(c, h, size, offset);
	else
		reply_err(c, e);
	free(bytes);
}

void op_read(fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_READ, nid, NULL);
	struct handle *h = handle_of(fi);
	if (h->kind == HANDLE_VIRTUAL) {
		virtual_read(&c, size, offset, fi);
		return;
	}
	const struct content *content;
	handle_ref(h);
	switch (h->kind) {
	case HANDLE_ROW:
		content = h->content;
		reply_slice(&c, content->item.body, size, offset);
		pages_gone(content);
		if (offset == 0)
			ahead_read(c.fs, &content->item);
		break;
	case HANDLE_STAGE:
		read_stage(&c, h->stage, size, offset);
		break;
	case HANDLE_FILE:
		read_file(&c, h, size, offset);
		break;
	case HANDLE_DIR:
	case HANDLE_VIRTUAL:
	case HANDLE_VIRTUAL_DIR:
		reply_err(&c, ERR_IS_A_DIRECTORY);
		break;
	}
	handle_unref(c.fs, h);
}

/* ---- write ---- */

static enum err write_file(struct handle *h, struct fs *fs, off_t offset, struct span bytes)
{
	struct item now = { 0 };
	uint64_t id = nid_id(h->nid), before;
	enum err e = check_node(fs, h, true, &before);
	bool grows = e == ERR_OK && (uint64_t)offset + bytes.n > before;
	if (grows)
		attr_resize_begins(fs, id, before);
	if (e == ERR_OK)
		e = tree_file_write(fs->service, id, (uint64_t)offset, bytes, &now);
	if (grows)
		attr_resize_ends(fs, id, before);
	item_fini(&now);
	return e == ERR_NOT_FOUND || e == ERR_INVALID_INPUT ? ERR_GONE : e;
}

void op_write(fuse_req_t req, fuse_ino_t nid, const char *bytes, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_WRITE, nid, NULL);
	struct handle *h = handle_of(fi);
	enum err e = ERR_NOT_PERMITTED;
	if (h->kind == HANDLE_VIRTUAL) {
		virtual_write(&c, bytes, size, offset, fi);
		return;
	}
	c.noted = h->kind == HANDLE_STAGE; /* by the stage */
	if (h->kind == HANDLE_STAGE)
		e = stage_write(c.fs, h->stage, (uint64_t)offset, span_make(bytes, size));
	else if (h->kind == HANDLE_FILE)
		e = write_file(h, c.fs, offset, span_make(bytes, size));
	struct fs *fs = c.fs;
	if (e != ERR_OK) {
		/* A mapping may have changed the kernel's pages of what is a row by now. */
		bool mapped = h->kind == HANDLE_FILE && e == ERR_GONE;
		reply_err(&c, e);
		if (mapped)
			notify_inode_soon(fs->notifier, nid);
		return;
	}
	reply_elsewhere(&c);
	fuse_reply_write(req, size);
}

/* ---- close ---- */

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

/* Whether a close is the opener's own.  Where the opener is no more, whoever still holds
 * the file stands in for it. */
static bool closes_for_opener(const struct handle *h, pid_t closer)
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

void op_flush(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_FLUSH, nid, NULL);
	struct handle *h = handle_of(fi);
	if (h->kind == HANDLE_VIRTUAL && h->writes && closes_for_opener(h, call_thread(&c))) {
		virtual_close(&c, fi);
		return;
	}
	if (h->kind != HANDLE_STAGE || !h->writes) {
		unlock_closed(c.fs, h, fi->lock_owner);
		reply_err(&c, ERR_OK);
		return;
	}
	c.noted = true; /* by the stage */
	enum err e = stage_flush(c.fs, h->stage, closes_for_opener(h, call_thread(&c)));
	unlock_closed(c.fs, h, fi->lock_owner); /* who gets the lock next finds what was written */
	if (e == ERR_OK)
		reply_after_commit(&c, h->stage);
	else
		reply_err(&c, e);
}

struct fsync_job {
	struct job job; /* first */
	struct fuse_call call;
	struct stale stale;
};

/* How long the name is waited for: see reply_fsync(). */
#define FSYNC_NAME_MS 1000

static void run_fsync(struct job *job)
{
	struct fsync_job *j = (struct fsync_job *)job;
	notify_name_within(
		j->call.fs->notifier, j->stale.dir_nid, span_of(j->stale.name), FSYNC_NAME_MS);
	syncs_reply(&j->call);
	free(j);
}

/* The kernel holds the inode's lock.  By name nobody but the writer comes to a stage's own node, so
 * who holds the name's directory waits for no such lock: the name goes first, as at a close.  But a
 * link(2) of the descriptor does wait for it, with the directory it is to be in held: then the name
 * goes after the answer. */
static void reply_fsync(struct fuse_call *c, const struct handle *h)
{
	struct fs *fs = c->fs;
	struct fsync_job *j = malloc(sizeof(*j));
	if (j != NULL) {
		*j = (struct fsync_job){ .job.run = run_fsync, .call = *c };
		stage_take_stale(h->stage, &j->stale);
		if (j->stale.any && workers_submit(fs->lanes[VLANE_CHANGE], &j->job))
			return;
		if (j->stale.any)
			notify_name_soon(fs->notifier, j->stale.dir_nid, span_of(j->stale.name));
		free(j);
	} else {
		drop_stale_locked(fs, h->stage);
	}
	syncs_reply(c);
}

void op_fsync(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_FSYNC, nid, NULL);
	struct handle *h = handle_of(fi);
	if (h != NULL && h->kind == HANDLE_VIRTUAL) {
		virtual_sync(&c, fi);
		return;
	}
	if (h == NULL || h->kind != HANDLE_STAGE) {
		syncs_reply(&c);
		return;
	}
	enum err e = stage_fsync(c.fs, h->stage);
	c.noted = e != ERR_OK; /* by the stage */
	if (e == ERR_OK)
		reply_fsync(&c, h);
	else
		reply_err(&c, e);
}
