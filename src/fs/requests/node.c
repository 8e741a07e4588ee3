/* SPDX-License-Identifier: MIT
 * Which kind of node a request comes to, and what it may see of a version that is not the current one. */
#include "fs/requests/kinds.h"

static enum kind kind_of_item(struct store *store, uint64_t nid, const struct item *it)
{
	if (nid_of(it) != nid)
		return KIND_OLD;
	if (item_is_dir(it->kind))
		return KIND_DIR;
	/* A row takes the place of an empty file that waits for its document.  So its readers pin its content,
	 * like those of a row. */
	return it->kind == ITEM_FILE && !item_waits_for_document(store, it) ? KIND_FILE : KIND_ROW;
}

/* Between a commit and its event the store is asked.  A thread that has seen the new version by a look-up
 * must not get the old one by a name that a listing under way brought back. */
static const struct content *recent(struct fs *fs, uint64_t nid)
{
	return service_is_changing(fs->service) ? NULL : contents_pin(fs->contents, nid);
}

bool node_find(struct fuse_call *c, uint64_t nid, enum retry_what what, struct node *ret)
{
	struct fs *fs = c->fs;
	*ret = (struct node){ .nid = nid, .kind = KIND_ROW };
	if (vnode_ops_of(fs, nid) != NULL) {
		ret->kind = KIND_VIRTUAL;
	} else if (nid_is_staged(nid)) {
		ret->kind = KIND_STAGED;
		ret->stage = stages_get(fs->stages, nid);
	} else if (what != RETRY_READ || (ret->content = recent(fs, nid)) == NULL) {
		enum err e = store_get(fs->store, NULL, nid_id(nid),
			what == RETRY_READ ? WANT_BODY : WANT_ATTRS, &ret->item);
		if (e != ERR_OK && e != ERR_NOT_FOUND) {
			reply_err(c, e);
			return false;
		}
		ret->kind = e == ERR_OK ? kind_of_item(fs->store, nid, &ret->item) : KIND_OLD;
	}
	return true;
}

void node_fini(struct fs *fs, struct node *n)
{
	if (n->stage != NULL)
		stages_unref(fs, fs->stages, n->stage);
	contents_unpin(fs->contents, n->content);
	item_fini(&n->item);
}

void refuse_old(struct fuse_call *c, enum retry_state state)
{
	if (state == RETRY_NONE) {
		reply_again(c);
		return;
	}
	retries_clear(c->fs, c->fs->retries, call_thread(c));
	reply_err(c, ERR_GONE);
}

const struct content *old_version(
	struct fuse_call *c, uint64_t nid, const struct item *now, enum retry_what what)
{
	struct fs *fs = c->fs;
	service_wait_retained(fs->service);
	const struct content *content = contents_pin_old(fs->contents, nid);
	const struct item *named = now == NULL && content != NULL ? &content->item : now;
	enum retry_state state = retries_refuse(fs, fs->retries, call_thread(c), nid, named, what);
	if (state != RETRY_SECOND) {
		contents_unpin(fs->contents, content);
		content = state == RETRY_LINK ? contents_look(fs->contents, nid) : NULL;
	}
	/* A listing under way may bring its name once more. */
	if (state == RETRY_NONE && what == RETRY_READ)
		contents_retire(fs->contents, nid);
	if (content == NULL)
		refuse_old(c, what == RETRY_STAT ? RETRY_NONE : state);
	return content;
}
