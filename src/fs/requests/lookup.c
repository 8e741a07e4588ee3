/* SPDX-License-Identifier: MIT
 * lookup: which node a name leads to, for whom; and what the kernel forgets. */
#include "fs/cache/ahead.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"
#include "fs/tree/attr.h"
#include "fs/write/look.h"
#include "fs/write/retries.h"
#include "fs/write/speculation.h"

/* A control file, or .rowfs: its name means the same for as long as its directory is; its
 * mode moves with the directory's. */
static void lookup_control(struct fuse_call *c, uint64_t nid)
{
	const struct vnode_ops *ops = vnode_ops_of(c->fs, nid);
	struct ventry entry = { .nid = nid, .lasting = true, .moment = ops->moments };
	enum err e = ops->stat(c->fs, nid, &entry.st);
	if (e == ERR_OK)
		reply_ventry(c, &entry);
	else
		reply_err(c, e);
}

static void reply_stage_node(struct fuse_call *c, struct stage *s)
{
	struct stat st;
	stage_stat(c->fs, s, &st);
	reply_node(c, s->nid, &st, 0);
}

static void reply_missing(struct fuse_call *c, const struct resolved_name *t)
{
	retries_missed(c->fs->retries, call_thread(c), t->dir.id, t->name);
	reply_no_entry(c);
}

/* Takes over *t and *item.  speculative: no open was refused before. */
static void give_stage(
	struct fuse_call *c, struct resolved_name *t, struct item *item, bool speculative)
{
	struct fs *fs = c->fs;
	struct stage *s = NULL;
	uint64_t dir_id = t->dir.id;
	enum err e = stage_new(fs, t, item, &s);
	item_fini(item);
	if (e != ERR_OK) {
		reply_err(c, e);
		return;
	}
	stages_add(fs->stages, s, speculative ? call_thread(c) : 0);
	/* A listing under way may still link a committed node to the name; one that begins from
	 * now on exposes what is in the table. */
	if (idset_count(fs->open_dirs, dir_id) > 0)
		atomic_store(&s->exposed, true);
	/* Before the reply: the open that follows it must find the retry complete.  In the retry the
	 * reference is, so the reply is made before. */
	struct stat st;
	uint64_t nid = s->nid;
	stage_stat(fs, s, &st);
	retries_set_stage(fs, fs->retries, call_thread(c), s);
	reply_node(c, nid, &st, 0);
}

/* The thread was told ESTALE by its open for writing: the name leads to a node of its own. */
static void lookup_for_writing(struct fuse_call *c, struct resolved_name *t, struct stage *given)
{
	struct fs *fs = c->fs;
	struct item item = { 0 };
	enum err e =
		resolved_name_item(fs->store, t, given != NULL ? WANT_ATTRS : WANT_BODY, &item);
	if (e == ERR_OK && given != NULL) {
		bool current = stage_is_current(given, &item);
		item_fini(&item);
		if (current) {
			reply_stage_node(c, given);
			return;
		}
		e = resolved_name_item(fs->store, t, WANT_BODY, &item);
	}
	if (e == ERR_NOT_FOUND) /* what somebody makes there is, and he must drop that it is not */
		e = name_look(fs, t, WANT_BODY, &item);
	if (e != ERR_OK) {
		/* The retry stays: the walk may find the name again at its second lookup. */
		if (e == ERR_NOT_FOUND)
			reply_missing(c, t);
		else
			reply_err(c, e);
		return;
	}
	/* It replaces a speculative one, so it is speculative too. */
	bool speculative =
		given != NULL && retries_is_speculative(fs->retries, call_thread(c), given);
	give_stage(c, t, &item, speculative);
}

/* A thread that overwrites one row after the other: it is not waited for its open to be refused.
 * True: it was answered. */
static bool lookup_speculatively(struct fuse_call *c, struct resolved_name *t)
{
	struct fs *fs = c->fs;
	struct item item = { 0 };
	pid_t tid = call_thread(c);
	if (t->dir.kind != ITEM_PARTITION || !speculation_is_due(fs->speculation, tid))
		return false;
	enum err e = resolved_name_item(fs->store, t, WANT_ATTRS, &item);
	bool row = e == ERR_OK && item.kind == ITEM_ROW;
	bool speculative = row && retries_speculate(fs, fs->retries, tid, t->dir.id, t->name);
	if (speculative)
		give_stage(c, t, &item, true);
	else if (row)
		speculation_stop(fs->speculation, tid);
	item_fini(&item);
	return speculative;
}

/* An empty row keeps its node when another machine gives it a document. */
static void drop_other_version(struct contents *contents, const struct item *now)
{
	const struct content *known = contents_pin_old(contents, nid_of(now));
	if (known != NULL && known->item.version != now->version)
		contents_drop(contents, known->nid);
	contents_unpin(contents, known);
}

/* With its document, where that will be opened next. */
static enum err look_up(struct fs *fs, struct resolved_name *t, struct item *ret)
{
	unsigned want = WANT_ATTRS;
	/* In shared mode a walk that begins anew is served what its look-up found, for another
	 * machine may replace the row over and over. */
	if (t->row_name && (fs->shared || ahead_expects_open(fs->ahead)))
		want = WANT_SMALL_BODY;
	return name_look(fs, t, want, ret);
}

void item_lookup(struct fuse_call *c, uint64_t dir, const char *name)
{
	struct fs *fs = c->fs;
	struct resolved_name t;
	enum err e = name_resolve(fs->store, dir, name, &t, &c->detail);
	if (e != ERR_OK) {
		if (name_means_nothing(e) && strlen(name) <= LIMIT_FILE_NAME_BYTES)
			reply_no_entry(c);
		else
			reply_err(c, e);
		return;
	}
	if (t.control != 0) {
		lookup_control(c, t.control);
		resolved_name_fini(&t);
		return;
	}
	struct stage *given = NULL;
	idset_mark(fs->seen, t.dir.id);
	c->in_set = idset_count(fs->in_sets, t.dir.id) != 0;
	if (t.row_name &&
		retries_wants_stage(fs, fs->retries, call_thread(c), t.dir.id, t.name, &given)) {
		lookup_for_writing(c, &t, given);
		if (given != NULL)
			stages_unref(fs, fs->stages, given);
		resolved_name_fini(&t);
		return;
	}
	if (t.row_name && lookup_speculatively(c, &t)) {
		resolved_name_fini(&t);
		return;
	}
	struct item item = { 0 };
	e = look_up(fs, &t, &item);
	if (e == ERR_OK) {
		struct stat st;
		uint64_t nid = nid_of(&item);
		attr_of_item(fs, &item, &st);
		if (fs->shared)
			drop_other_version(fs->contents, &item);
		if (item.body.p != NULL)
			contents_add(fs->contents, &item);
		retries_found(fs->retries, call_thread(c), t.dir.id, t.name, nid);
		reply_node(c, nid, &st, keep_seconds(fs));
	} else if (e == ERR_NOT_FOUND) {
		reply_missing(c, &t);
	} else {
		reply_err(c, e);
	}
	item_fini(&item);
	resolved_name_fini(&t);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_call c = call_begin(req, OP_LOOKUP, parent, name);
	kind_by_id(c.fs, parent)->lookup(&c, parent, name);
}

/* Nothing is kept per node but by some virtual ones. */
void op_forget(fuse_req_t req, fuse_ino_t nid, uint64_t n)
{
	vnode_forget(fuse_req_userdata(req), nid, n);
	fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		vnode_forget(fuse_req_userdata(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}
