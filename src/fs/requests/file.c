/* SPDX-License-Identifier: MIT
 * KIND_FILE: ordinary files, which are read and written in place. */
#include "base/may_block.h"
#include "base/workers.h"
#include "fs/cache/notify.h"
#include "fs/core/idset.h"
#include "fs/requests/kinds.h"
#include "fs/requests/refusal.h"
#include "fs/requests/syncs.h"
#include "fs/tree/attr.h"
#include "fs/tree/trash_dir.h"
#include "service/tree/tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- open ---- */

/* False: it was answered. */
static bool cut_file(struct fuse_call *c, uint64_t id)
{
	struct item now = { 0 };
	enum err e = tree_file_resize(c->fs->service, id, 0, &now);
	item_fini(&now);
	if (e != ERR_OK)
		reply_err(c, e == ERR_INVALID_INPUT ? ERR_GONE : e); /* a row by now */
	return e == ERR_OK;
}

static void open_as_it_is(
	struct fuse_call *c, const struct item *file, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct handle *h = open_handle(c, KIND_FILE, nid, fi);
	if (h == NULL) {
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	/* Counted as open from now on: who removes it later lets us keep it.  It may have been
	 * removed just before, or be about to. */
	while (idset_count(c->fs->leaving, file->id) > 0) {
		may_block(BLOCK_SURE);
		usleep(1000);
	}
	struct item still = { 0 };
	enum err e = store_get(c->fs->store, NULL, file->id, WANT_ATTRS, &still);
	if (e == ERR_OK && nid_of(&still) != nid)
		e = ERR_GONE; /* it became a row, and that was replaced */
	item_fini(&still);
	if (e != ERR_OK) {
		handle_unref(c->fs, h);
		reply_err(c, e == ERR_NOT_FOUND ? ERR_GONE : e);
		return;
	}
	retries_clear(c->fs, c->fs->retries, call_thread(c));
	fi->keep_cache = !c->fs->shared;
	fi->noflush = may_skip_flush(c->fs->locks, fi);
	reply_open(c, h, fi);
}

struct cut_job {
	struct job job; /* first */
	struct fuse_call call;
	struct item file; /* its id and generation */
	struct fuse_file_info fi;
};

static void run_cut(struct job *job)
{
	struct cut_job *j = (struct cut_job *)job;
	uint64_t nid = nid_of(&j->file);
	notify_inode_now(j->call.fs->notifier, nid);
	if (cut_file(&j->call, j->file.id))
		open_as_it_is(&j->call, &j->file, nid, &j->fi);
	free(j);
}

/* Has a worker cut the file behind writes of a mapping that are still on their way.  The kernel waits
 * for them before truncate(2), but not before O_TRUNC: they would give the file bytes again.  Returns
 * false if no worker can. */
static bool cut_behind_writes(
	struct fuse_call *c, const struct item *file, const struct fuse_file_info *fi)
{
	struct cut_job *j = malloc(sizeof(*j));
	if (j == NULL)
		return false;
	*j = (struct cut_job){ .job.run = run_cut, .call = *c, .fi = *fi };
	j->file =
		(struct item){ .id = file->id, .generation = file->generation, .kind = ITEM_FILE };
	if (workers_submit(c->fs->pools[VPOOL_CHANGE], &j->job))
		return true;
	free(j);
	return false;
}

static void file_open(struct fuse_call *c, struct node *n, struct fuse_file_info *fi)
{
	const struct item *file = &n->item;
	bool cuts = (fi->flags & O_TRUNC) != 0 && file->size != 0;
	if (trash_dir_has(file) && open_writes(fi)) {
		reply_err(c, refuse_in_trash(&c->detail));
		return;
	}
	open_ends_speculation(c, fi);
	if (cuts && handles_of_file(c->fs, n->nid) && cut_behind_writes(c, file, fi))
		return;
	if (!cuts || cut_file(c, file->id))
		open_as_it_is(c, file, n->nid, fi);
}

/* ---- read and write ---- */

/* The file became a row under its reader: the node's bytes stay what they were. */
static void read_converted(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	struct item row = { 0 };
	const struct content *content = NULL, *kept = h->content;
	enum err e = kept != NULL ? ERR_OK
				  : store_get(c->fs->store, NULL, nid_id(h->nid), WANT_BODY, &row);
	bool is_row = e == ERR_OK && row.kind == ITEM_ROW && nid_of(&row) == h->nid;
	if (kept == NULL && !is_row) {
		service_wait_retained(c->fs->service);
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
static enum err check_node(
	struct store *store, const struct handle *h, bool writes, uint64_t *ret_size)
{
	struct item now = { 0 };
	enum err e = store_get(store, NULL, nid_id(h->nid), WANT_ATTRS, &now);
	if (e == ERR_NOT_FOUND ||
		(e == ERR_OK &&
			(now.kind != ITEM_FILE || nid_of(&now) != h->nid ||
				(writes && item_waits_for_document(store, &now)))))
		e = ERR_GONE;
	*ret_size = now.size;
	item_fini(&now);
	return e;
}

static void file_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	char *bytes = malloc(size > 0 ? size : 1);
	size_t n = 0;
	uint64_t total;
	enum err e = bytes == NULL ? ERR_NO_MEMORY : check_node(c->fs->store, h, false, &total);
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

static enum err write_bytes(struct handle *h, struct fs *fs, off_t offset, struct span bytes)
{
	struct item now = { 0 };
	uint64_t id = nid_id(h->nid), before;
	enum err e = check_node(fs->store, h, true, &before);
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

static void file_write(struct fuse_call *c, struct handle *h, struct span bytes, off_t offset)
{
	struct fs *fs = c->fs;
	enum err e = write_bytes(h, fs, offset, bytes);
	if (e == ERR_OK)
		reply_written(c, bytes.n);
	else
		reply_err(c, e);
	/* A mapping may have changed the kernel's pages of what is a row by now. */
	if (e == ERR_GONE)
		notify_inode_soon(fs->notifier, h->nid);
}

static void file_fini(struct fs *fs, struct handle *h)
{
	contents_unpin(fs->contents, h->content);
}

const struct kind_ops kind_file = {
	.open = file_open,
	.attributes = item_attributes,
	.set = item_set,
	.read = file_read,
	.write = file_write,
	.flush = flush_nothing,
	.sync = sync_store,
	.release = release_now,
	.fini = file_fini,
};
