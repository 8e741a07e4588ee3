/* SPDX-License-Identifier: MIT
 * KIND_ROW: the committed version of a row, and the empty file that waits for its document.  KIND_OLD:
 * a version that was replaced or removed.  Both are read from a pinned content.  A writer is sent to
 * look the name up once more, which gives it a node of its own. */
#include "fs/cache/ahead.h"
#include "fs/cache/pages.h"
#include "fs/requests/kinds.h"
#include "service/core/admission.h"

/* ---- open ---- */

/* Whether the partition of a row is over its target (service/core/heat.h): then the request was
 * answered.  n 0: it is only asked. */
static bool is_throttled(struct fuse_call *c, const struct item *row, enum heat_kind kind, size_t n)
{
	if (row->kind != ITEM_ROW)
		return false;
	enum err e = admission_in_id(c->fs->service, row->parent, kind, n, &c->detail);
	if (e == ERR_OK)
		return false;
	refuse_throttled(c, e);
	return true;
}

/* Takes over one pin of the content.  The thread's walk ends here. */
static void open_content(
	struct fuse_call *c, const struct content *content, struct fuse_file_info *fi)
{
	retries_clear(c->fs, c->fs->retries, call_thread(c));
	if (is_throttled(c, &content->item, HEAT_READ, 1)) {
		contents_unpin(c->fs->contents, content);
		return;
	}
	struct handle *h = open_handle(c, KIND_ROW, content->nid, fi);
	if (h == NULL) {
		contents_unpin(c->fs->contents, content);
		reply_err(c, ERR_NO_MEMORY);
		return;
	}
	h->content = content;
	/* The content of a node never changes; but the empty file may become an ordinary one. */
	fi->direct_io = content->item.kind == ITEM_FILE;
	fi->keep_cache = !fi->direct_io;
	fi->noflush = may_skip_flush(c->fs->locks, fi);
	struct fs *fs = c->fs;
	ahead_opened(fs->ahead);
	bool given = !fi->direct_io && pages_give(fs, content);
	handle_ref(h);
	reply_open(c, h, fi);
	if (given)
		ahead_read(fs, &content->item);
	handle_unref(fs, h);
}

/* now: the item, of whatever version; NULL: it has gone. */
static void send_writer(struct fuse_call *c, struct node *n, const struct item *now)
{
	struct fs *fs = c->fs;
	if (now != NULL && is_throttled(c, now, HEAT_CHANGED, 0)) /* counted by staged_open() */
		return;
	refuse_old(c, retries_refuse(fs, fs->retries, call_thread(c), n->nid, now, RETRY_WRITE));
}

static void row_open(struct fuse_call *c, struct node *n, struct fuse_file_info *fi)
{
	const struct content *content = n->content;
	if (open_writes(fi)) {
		send_writer(c, n, &n->item);
		return;
	}
	open_ends_speculation(c, fi);
	n->content = NULL;
	if (content != NULL || contents_put(c->fs->contents, &n->item, &content) == ERR_OK)
		open_content(c, content, fi);
	else
		reply_err(c, ERR_NO_MEMORY);
}

static void old_open(struct fuse_call *c, struct node *n, struct fuse_file_info *fi)
{
	const struct item *now = node_item(n);
	const struct content *content = NULL;
	open_ends_speculation(c, fi);
	if (!open_writes(fi)) {
		content = old_version(c, n->nid, now, RETRY_READ);
	} else {
		/* A listing under way may bring its name once more. */
		contents_retire(c->fs->contents, n->nid);
		send_writer(c, n, now);
	}
	if (content != NULL)
		open_content(c, content, fi);
}

/* ---- an open row ---- */

static void row_read(struct fuse_call *c, struct handle *h, size_t size, off_t offset)
{
	const struct content *content = h->content;
	struct fs *fs = c->fs;
	reply_slice(c, content->item.body, size, offset);
	pages_gone(content);
	if (offset == 0)
		ahead_read(fs, &content->item);
}

static void row_fini(struct fs *fs, struct handle *h)
{
	contents_unpin(fs->contents, h->content);
}

const struct kind_ops kind_row = {
	.open = row_open,
	.attributes = item_attributes,
	.set = item_set,
	.read = row_read,
	.write = refuse_write,
	.flush = flush_nothing,
	.sync = sync_store,
	.release = release_now,
	.fini = row_fini,
};

/* Its handles are those of rows. */
const struct kind_ops kind_old = {
	.open = old_open,
	.attributes = old_attributes,
	.set = old_set,
};
