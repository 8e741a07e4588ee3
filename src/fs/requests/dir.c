/* SPDX-License-Identifier: MIT
 * Directories: opendir, readdir, readdirplus. */
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/refused/rejected.h"
#include "fs/requests/ops.h"
#include "fs/requests/syncs.h"
#include "fs/tree/listing.h"
#include "fs/tree/trash_dir.h"
#include "fs/write/stages.h"

#include <errno.h>
#include <stdlib.h>

void op_opendir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_OPENDIR, nid, NULL);
	if (!may_open(&c))
		return;
	if (vnode_ops_of(c.fs, nid) != NULL) {
		virtual_opendir(&c, nid, fi);
		return;
	}
	if (nid == STORE_TRASH)
		trash_dir_tidy(c.fs);
	if (nid == STORE_REJECTED)
		rejected_retry(c.fs);
	struct listing *l = NULL;
	enum err e = listing_new(c.fs, NULL, 0, nid_id(nid), &l);
	struct handle *h = NULL;
	if (e == ERR_OK && (h = handle_new(c.fs, HANDLE_DIR, nid, call_thread(&c))) == NULL) {
		listing_free(c.fs, l);
		e = ERR_NO_MEMORY;
	}
	if (e != ERR_OK) {
		reply_err(&c, e);
		return;
	}
	h->listing = l;
	fi->fh = (uintptr_t)h;
	reply_elsewhere(&c);
	if (fuse_reply_open(req, fi) == -ENOENT)
		handle_unref(c.fs, h);
}

void op_releasedir(fuse_req_t req, fuse_ino_t nid, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_RELEASE, nid, NULL);
	if (handle_of(fi)->kind == HANDLE_VIRTUAL_DIR) {
		virtual_release(&c, fi);
		return;
	}
	handle_unref(c.fs, handle_of(fi));
	reply_err(&c, ERR_OK);
}

static void read_page(
	struct fuse_call *c, size_t size, off_t offset, struct fuse_file_info *fi, bool plus)
{
	if (handle_of(fi)->kind == HANDLE_VIRTUAL_DIR) {
		virtual_readdir(c, size, offset, fi, plus);
		return;
	}
	struct dir_page p = { .req = c->req, .size = size, .plus = plus, .bytes = malloc(size) };
	enum err e = ERR_NO_MEMORY;
	p.in_set = idset_count(c->fs->in_sets, nid_id(handle_of(fi)->nid)) != 0;
	/* Writers who have not committed, and all doors, may change what is listed. */
	idset_mark(c->fs->seen, nid_id(handle_of(fi)->nid));
	stages_expose(c->fs, c->fs->stages, nid_id(handle_of(fi)->nid), NULL);
	/* Before the store is read; until the end, which is asked for after the last page. */
	if (plus)
		handle_links(c->fs, handle_of(fi), true);
	if (p.bytes != NULL)
		e = listing_read(c->fs, NULL, handle_of(fi)->listing, fuse_req_ctx(c->req)->uid,
			offset, !plus, dir_page_add, &p);
	if (p.len == 0)
		handle_links(c->fs, handle_of(fi), false);
	if (e == ERR_OK || p.len > 0)
		reply_bytes(c, p.bytes, p.len);
	else
		reply_err(c, e);
	free(p.bytes);
}

void op_readdir(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_READDIR, nid, NULL);
	read_page(&c, size, offset, fi, false);
}

void op_readdirplus(
	fuse_req_t req, fuse_ino_t nid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_READDIRPLUS, nid, NULL);
	read_page(&c, size, offset, fi, true);
}

void op_fsyncdir(fuse_req_t req, fuse_ino_t nid, int datasync, struct fuse_file_info *fi)
{
	struct fuse_call c = call_begin(req, OP_FSYNC, nid, NULL);
	syncs_reply(&c);
}
