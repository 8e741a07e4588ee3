/* SPDX-License-Identifier: MIT
 * Directories: opendir, readdir, readdirplus. */
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/refused/rejected.h"
#include "fs/requests/kinds.h"
#include "fs/requests/syncs.h"
#include "fs/tree/listing.h"
#include "fs/tree/trash_dir.h"
#include "fs/write/stages.h"

#include <errno.h>
#include <stdlib.h>

void op_opendir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_OPENDIR, nid, NULL);
	if (may_open(&c))
		kind_by_id(c.fs, nid)->opendir(&c, nid, fi);
}

void op_releasedir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_RELEASE, nid, NULL);
	c.fs->kinds[handle_of(fi)->kind]->release(&c, handle_of(fi));
}

void op_readdir(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_READDIR, nid, NULL);
	c.fs->kinds[handle_of(fi)->kind]->list(&c, handle_of(fi), size, offset, false);
}

void op_readdirplus(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_READDIRPLUS, nid, NULL);
	c.fs->kinds[handle_of(fi)->kind]->list(&c, handle_of(fi), size, offset, true);
}

void op_fsyncdir(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_FSYNC, nid, NULL);
	syncs_reply(&c);
}

static void dir_list(struct fuse_call *c, struct handle *h, size_t size, off_t offset, bool plus)
{
	struct dir_page p = { .fs = c->fs,
		.req = c->req,
		.size = size,
		.plus = plus,
		.keep_s = keep_seconds(c->fs),
		.bytes = malloc(size) };
	enum err e = ERR_NO_MEMORY;
	p.in_set = idset_count(c->fs->in_sets, nid_id(h->nid)) != 0;
	/* Writers who have not committed, and all front ends, may change what is listed. */
	idset_mark(c->fs->seen, nid_id(h->nid));
	stages_expose(c->fs, c->fs->stages, nid_id(h->nid), NULL);
	/* Before the store is read; until the end, which is asked for after the last page. */
	if (plus)
		handle_links(c->fs, h, true);
	if (p.bytes != NULL)
		e = listing_read(c->fs, NULL, h->listing, fuse_req_ctx(c->req)->uid, offset, !plus,
			dir_page_add, &p);
	if (p.len == 0)
		handle_links(c->fs, h, false);
	if (e == ERR_OK || p.len > 0)
		reply_bytes(c, p.bytes, p.len);
	else
		reply_err(c, e);
	free(p.bytes);
}

static void dir_opendir(struct fuse_call *c, uint64_t nid, struct fuse_file_info *fi)
{
	if (nid == STORE_TRASH)
		trash_dir_tidy(c->fs);
	if (nid == STORE_REJECTED)
		rejected_retry(c->fs);
	struct listing *l = NULL;
	enum err e = listing_new(c->fs, NULL, 0, nid_id(nid), &l);
	struct handle *h = NULL;
	if (e == ERR_OK && (h = handle_new(c->fs, KIND_DIR, nid, call_thread(c))) == NULL) {
		listing_free(c->fs->open_quota, l);
		e = ERR_NO_MEMORY;
	}
	if (e != ERR_OK) {
		reply_err(c, e);
		return;
	}
	h->listing = l;
	fi->fh = (uintptr_t)h;
	reply_elsewhere(c);
	if (fuse_reply_open(c->req, fi) == -ENOENT)
		handle_unref(c->fs, h);
}

static void dir_open(struct fuse_call *c, struct node *n, struct fuse_file_info *fi)
{
	(void)n, (void)fi;
	reply_err(c, ERR_IS_A_DIRECTORY);
}

static void dir_fini(struct fs *fs, struct handle *h)
{
	handle_links(fs, h, false);
	listing_free(fs->open_quota, h->listing);
}

const struct kind_ops kind_dir = {
	.lookup = item_lookup,
	.create = item_create,
	.mkdir = item_mkdir,
	.rmdir = item_rmdir,
	.unlink = item_unlink,
	.rename = item_rename,
	.opendir = dir_opendir,
	.xattr_get = item_xattr_get,
	.xattr_set = item_xattr_set,
	.xattr_remove = item_xattr_remove,
	.mode = item_mode,
	.born = item_born,
	.open = dir_open,
	.attributes = item_attributes,
	.set = item_set,
	.read = refuse_read,
	.write = refuse_write,
	.flush = flush_nothing,
	.sync = sync_store,
	.list = dir_list,
	.release = release_now,
	.fini = dir_fini,
};
