/* SPDX-License-Identifier: MIT
 * A name in a queue is a name of the mount's own (.get), one that a user chose (names.h), or
 * the id of a message that is in this directory at this moment.  Messages come and go by time,
 * so the kernel keeps nothing of them. */
#include "fs/queue/tree.h"

#include "base/clock.h"
#include "base/text.h"
#include "fs/core/idset.h"
#include "fs/queue/dir.h"
#include "fs/queue/message.h"
#include "fs/queue/move.h"
#include "fs/queue/names.h"
#include "fs/queue/take_file.h"
#include "fs/queue/text_file.h"
#include "fs/virtual/dir_control.h"
#include "service/queue/queues.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define ONLY_QUEUES "Queues are here: mkdir makes one, and files in it are messages."
#define TAKE_FIRST "A visible message cannot be changed: take it first (mv QUEUE/ID QUEUE/.taken/)."

/* Names that each queue has. */
static const struct fixed {
	const char *name;
	enum queue_node which;
	mode_t mode;
} fixed[] = {
	{ ".get", QUEUE_NODE_GET, S_IFREG | 0444 },
	{ ".hidden", QUEUE_NODE_HIDDEN, S_IFDIR | 0777 },
	{ ".peek", QUEUE_NODE_PEEK, S_IFREG | 0444 },
	{ ".taken", QUEUE_NODE_TAKEN, S_IFDIR | 0777 },
	{ ".wait", QUEUE_NODE_WAIT, S_IFREG | 0444 },
};

static const struct fixed *fixed_of(enum queue_node which)
{
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		if (fixed[i].which == which)
			return &fixed[i];
	return NULL;
}

static const struct fixed *fixed_named(uint64_t dir, struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		if (queue_nid_is_place(dir) && queue_place_of(dir) == QUEUE_PLACE_VISIBLE &&
			span_is(name, fixed[i].name))
			return &fixed[i];
	return NULL;
}

static bool is_message(enum queue_node which)
{
	return which >= QUEUE_NODE_VISIBLE_MESSAGE && which <= QUEUE_NODE_HIDDEN_MESSAGE;
}

/* ---- attributes ---- */

/* Of a name whose message is not put, or has gone while somebody has it open. */
static enum err stat_name(struct fs *fs, const struct queue_name *n, uint64_t nid, struct stat *ret)
{
	enum err e = collection_attr(fs, ITEM_QUEUE, n->queue, nid, S_IFREG | 0666, ret);
	if (e != ERR_OK)
		return e;
	ret->st_size = (off_t)n->size;
	ret->st_mtim = ret->st_atim = ret->st_ctim = ticks_to_timespec(n->made);
	ret->st_nlink = n->item == 0;
	return ERR_OK;
}

/* The message behind a node, if there is one: ERR_NOT_FOUND.  *ret_taken: the take that it is
 * about. */
static enum err message_of(struct fs *fs, uint64_t nid, unsigned want, struct message *ret,
	struct queue_name *ret_name, uint32_t *ret_taken)
{
	uint64_t item = nid_id(nid);
	bool named = queue_node_of(nid) == QUEUE_NODE_NAMED;
	*ret_name = (struct queue_name){ 0 };
	if (named && !queue_names_get(fs->queue_names, nid_id(nid), ret_name))
		return ERR_GONE;
	if (named)
		item = ret_name->item;
	enum err e = item == 0 ? ERR_NOT_FOUND : message_load(fs, item, want, ret);
	if (e == ERR_OK)
		*ret_taken = named ? ret_name->taken : ret->key.taken;
	return e == ERR_NOT_FOUND && !named ? ERR_GONE : e;
}

/* A read of .get takes a message, so only those may read it who may change the queue. */
static enum err stat_get(struct fs *fs, uint64_t nid, struct stat *ret)
{
	enum err e = collection_attr(fs, ITEM_QUEUE, nid_id(nid), nid, S_IFREG | 0666, ret);
	mode_t writers = ret->st_mode & 0222;
	ret->st_mode &= S_IFMT | writers << 1;
	return e;
}

static enum err queues_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	enum queue_node which = queue_node_of(nid);
	const struct fixed *f = fixed_of(which);
	struct queue_name n;
	struct message m;
	uint32_t taken;
	if (which == QUEUE_NODE_ROOT)
		return dir_control_stat(fs, nid, ret);
	if (which == QUEUE_NODE_GET)
		return stat_get(fs, nid, ret);
	if (f != NULL || which == QUEUE_NODE_VISIBLE)
		return collection_attr(fs, ITEM_QUEUE, nid_id(nid), nid,
			f != NULL ? f->mode : S_IFDIR | 0777, ret);
	enum err e = message_of(fs, nid, WANT_ATTRS, &m, &n, &taken);
	if (e == ERR_NOT_FOUND)
		return stat_name(fs, &n, nid, ret);
	if (e == ERR_OK) {
		e = message_attr(fs, &m, nid, ret);
		message_fini(&m);
	}
	return e;
}

static enum err queues_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	enum queue_node which = queue_node_of(nid);
	struct queue_name n;
	struct message m;
	struct item queue = { 0 };
	uint32_t taken;
	enum err e = ERR_NO_ATTRIBUTE;
	if (is_message(which) || which == QUEUE_NODE_NAMED) {
		e = message_of(fs, nid, WANT_ATTRS, &m, &n, &taken);
		if (e == ERR_OK) {
			e = message_fact(fs->service, &m, name, out);
			message_fini(&m);
		}
		return e == ERR_NOT_FOUND ? ERR_NO_ATTRIBUTE : e;
	}
	if (which == QUEUE_NODE_VISIBLE && strcmp(name, "messages") == 0) {
		e = store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &queue);
		if (e == ERR_OK)
			buf_addf(out, "%" PRIu64, queue.size);
		item_fini(&queue);
	}
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* visibility: from now on the message is invisible for so long.  receipt: the name is about the
 * state that this receipt names, which must be the present one. */
static enum err queues_xattr_set(
	struct fs *fs, uint64_t nid, const char *name, struct span value, const struct caller *call)
{
	struct queue_name n;
	struct message m;
	uint32_t taken;
	int64_t seconds;
	if (!is_message(queue_node_of(nid)) && queue_node_of(nid) != QUEUE_NODE_NAMED)
		return ERR_NOT_PERMITTED;
	enum err e = message_of(fs, nid, WANT_ATTRS, &m, &n, &taken);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	if (strcmp(name, "receipt") == 0) {
		if (!span_is(value, m.receipt))
			e = message_refuse_lost(call->detail);
		else if (n.item != 0)
			n.taken = m.key.taken, queue_names_set(fs->queue_names, nid_id(nid), &n);
	} else if (strcmp(name, "visibility") != 0) {
		e = ERR_NOT_PERMITTED;
	} else if (!text_to_i64(value, &seconds)) {
		e = err_set(call->detail, ERR_INVALID_INPUT,
			"user.rowfs.visibility is a number of seconds, 0 to %d.",
			LIMIT_MESSAGE_HIDDEN_S);
	} else {
		e = message_change(fs->service, &m, taken, seconds, NULL, false, call->detail);
	}
	message_fini(&m);
	return e;
}

static enum err queues_resize(struct fs *fs, uint64_t nid, uint64_t size, const struct caller *call)
{
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES);
	struct queue_name n;
	struct message m;
	uint32_t taken;
	enum err e = message_of(fs, nid, WANT_BODY, &m, &n, &taken);
	if (e != ERR_OK) /* the size of what is being written is the writer's */
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	if (m.item.size == size)
		e = ERR_OK;
	else if (m.place == QUEUE_PLACE_VISIBLE && m.key.taken == 0)
		e = err_set(call->detail, ERR_NOT_PERMITTED, "%s", TAKE_FIRST);
	else if (size > LIMIT_MESSAGE_BYTES)
		e = ERR_MESSAGE_TOO_LARGE;
	else {
		buf_add_span(&text, m.item.body);
		struct span now = { 0 };
		if (!buf_resize(&text, (size_t)size))
			e = ERR_NO_MEMORY;
		now = buf_span(&text);
		if (e == ERR_OK)
			e = message_change(fs->service, &m, taken,
				message_seconds_left(fs->service, &m), &now, false, call->detail);
	}
	buf_fini(&text);
	message_fini(&m);
	return e;
}

/* ---- names ---- */

static enum err entry_of(struct fs *fs, uint64_t nid, struct ventry *ret)
{
	ret->nid = nid;
	ret->valid_s = 0;
	return queues_stat(fs, nid, &ret->st);
}

static enum err queue_named(struct service *service, uint64_t root, struct span name, uint64_t *ret)
{
	enum err e = queue_id(service, nid_id(root), name, ret);
	return e == ERR_QUEUE_NOT_FOUND ? ERR_NOT_FOUND : e;
}

static enum err queues_lookup(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	const struct fixed *f = fixed_named(dir, name);
	struct queue_found found;
	uint64_t queue;
	(void)call;
	if (queue_node_of(dir) == QUEUE_NODE_ROOT) {
		enum err e = queue_named(fs->service, dir, name, &queue);
		return e == ERR_OK ? entry_of(fs, queue_nid(QUEUE_NODE_VISIBLE, queue), ret) : e;
	}
	if (!queue_nid_is_place(dir))
		return ERR_NOT_A_DIRECTORY;
	if (f != NULL)
		return entry_of(fs, queue_nid(f->which, nid_id(dir)), ret);
	enum err e = queue_name_find(fs, dir, name, &found);
	if (e == ERR_OK) {
		e = entry_of(fs, found.nid, ret);
		queue_found_fini(&found);
	}
	return e;
}

static enum err queues_mkdir(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	bool created = false;
	uint64_t queue;
	if (queue_node_of(dir) != QUEUE_NODE_ROOT)
		return err_set(call->detail, ERR_NOT_PERMITTED,
			"A queue holds messages, and no directories.");
	enum err e = queue_create(
		fs->service, ORIGIN_MOUNT, nid_id(dir), name, SPAN_LIT(""), &created, call->detail);
	if (e == ERR_QUEUE_EXISTS || (e == ERR_OK && !created))
		return ERR_NAME_EXISTS;
	if (e == ERR_ACCOUNT_NOT_FOUND)
		return ERR_GONE;
	if (e == ERR_OK)
		e = queue_named(fs->service, dir, name, &queue);
	return e == ERR_OK ? entry_of(fs, queue_nid(QUEUE_NODE_VISIBLE, queue), ret) : e;
}

/* .queue, .taken and .hidden are always there, and are listed while something is in them.  So
 * an empty one is there again when it was removed. */
static enum err rmdir_fixed(struct fs *fs, uint64_t nid)
{
	bool any;
	enum err e = queue_dir_any(fs, nid, 0, &any);
	if (e == ERR_OK && any)
		e = ERR_NOT_EMPTY;
	if (e == ERR_OK)
		(void)idset_add(fs->removals, nid, 1);
	return e;
}

static enum err queues_rmdir(
	struct fs *fs, uint64_t dir, struct span name, const struct caller *call)
{
	const struct fixed *f = fixed_named(dir, name);
	uint64_t queue;
	if (f != NULL)
		return S_ISDIR(f->mode) ? rmdir_fixed(fs, queue_nid(f->which, nid_id(dir)))
					: ERR_NOT_A_DIRECTORY;
	if (queue_node_of(dir) != QUEUE_NODE_ROOT)
		return ERR_NOT_A_DIRECTORY;
	if (name.n == 0)
		return rmdir_fixed(fs, dir);
	enum err e = queue_named(fs->service, dir, name, &queue);
	return e == ERR_OK ? queue_delete_empty(fs->service, ORIGIN_MOUNT, queue, call->detail) : e;
}

static enum err queues_unlink(
	struct fs *fs, uint64_t dir, struct span name, const struct caller *call)
{
	if (!queue_nid_is_place(dir) || fixed_named(dir, name) != NULL)
		return ERR_NOT_PERMITTED;
	return queue_name_remove(fs, dir, name, call->detail);
}

static enum err queues_rename(struct fs *fs, const struct vmove *move, const struct caller *call)
{
	bool fixed_name = fixed_named(move->from, move->name) != NULL ||
		fixed_named(move->to, move->to_name) != NULL;
	bool queues = (nid_kind(move->from) == NID_KIND_QUEUE &&
			      queue_node_of(move->from) == QUEUE_NODE_ROOT) ||
		(nid_kind(move->to) == NID_KIND_QUEUE &&
			queue_node_of(move->to) == QUEUE_NODE_ROOT);
	if (fixed_name || queues)
		return err_set(call->detail, ERR_NOT_PERMITTED,
			"Queues and the names of rowfs's own are not moved; move messages.");
	return queue_name_move(fs, move, call->detail);
}

/* ---- open ---- */

static enum err open_name(struct fs *fs, uint64_t nid, const struct queue_name *n, int flags,
	const struct caller *call, struct vfile **ret)
{
	if ((flags & O_ACCMODE) != O_RDONLY)
		return text_file_new(fs, n->queue, nid_id(nid), flags, call, ret);
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES);
	enum err e =
		n->item != 0 ? ERR_GONE : queue_names_text(fs->queue_names, nid_id(nid), &text);
	if (e == ERR_OK)
		return vfile_of_content(fs, &text, false, ret);
	buf_fini(&text);
	return e;
}

static enum err open_message(struct fs *fs, uint64_t nid, struct message *m,
	const struct queue_name *n, uint32_t taken, int flags, const struct caller *call,
	struct vfile **ret)
{
	enum err e;
	bool visible = n->queue != 0 ? n->place == QUEUE_PLACE_VISIBLE
				     : queue_node_of(nid) == QUEUE_NODE_VISIBLE_MESSAGE;
	if ((flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY)
		return text_file_read(fs, m, ret);
	if (visible && n->queue != 0) /* the name is free for another message */
		e = text_file_new(fs, n->queue, nid_id(nid), flags, call, ret);
	else if (visible)
		e = err_set(call->detail, ERR_NOT_PERMITTED, "%s", TAKE_FIRST);
	else
		e = text_file_change(fs, m, taken, flags, call, ret);
	message_fini(m);
	return e;
}

static enum err open_fixed(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	enum queue_node which = queue_node_of(nid);
	if ((flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY)
		return err_set(call->detail, ERR_NOT_PERMITTED,
			"%s is read; a message is put by writing a file of another name.",
			fixed_of(which)->name);
	if (which == QUEUE_NODE_GET && service_is_read_only(fs->service))
		return ERR_READ_ONLY;
	return take_file_open(fs, nid_id(nid), which, ret);
}

static enum err queues_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	enum queue_node which = queue_node_of(nid);
	struct queue_name n;
	struct message m;
	uint32_t taken;
	if (fixed_of(which) != NULL && S_ISREG(fixed_of(which)->mode))
		return open_fixed(fs, nid, flags, call, ret);
	if (!is_message(which) && which != QUEUE_NODE_NAMED)
		return ERR_IS_A_DIRECTORY;
	enum err e = message_of(fs, nid, WANT_BODY, &m, &n, &taken);
	if (e == ERR_NOT_FOUND)
		return open_name(fs, nid, &n, flags, call, ret);
	return e == ERR_OK ? open_message(fs, nid, &m, &n, taken, flags, call, ret) : e;
}

static enum err queues_opendir(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret)
{
	(void)call;
	return queue_dir_open(fs, nid, ret);
}

static enum err make_name(struct fs *fs, uint64_t dir, struct span name, struct ventry *ret)
{
	struct queue_name n = { .queue = nid_id(dir), .place = queue_place_of(dir) };
	if (name.n >= sizeof(n.name))
		return ERR_NAME_TOO_LONG;
	memcpy(n.name, name.p, name.n);
	n.made = service_now(fs->service);
	uint64_t number = queue_names_add(fs->queue_names, &n);
	return number == 0 ? ERR_NO_MEMORY : entry_of(fs, queue_nid(QUEUE_NODE_NAMED, number), ret);
}

static enum err queues_create(struct fs *fs, uint64_t dir, struct span name, int flags,
	const struct caller *call, struct ventry *ret, struct vfile **ret_file)
{
	struct queue_found found;
	if (!queue_nid_is_place(dir))
		return err_set(call->detail, ERR_NOT_PERMITTED, ONLY_QUEUES);
	if (service_is_read_only(fs->service))
		return ERR_READ_ONLY;
	enum err e = queue_name_find(fs, dir, name, &found);
	if (e == ERR_OK) {
		e = (flags & O_EXCL) != 0 ? ERR_NAME_EXISTS : entry_of(fs, found.nid, ret);
		queue_found_fini(&found);
		return e == ERR_OK ? queues_open(fs, ret->nid, flags, call, ret_file) : e;
	}
	if (e == ERR_NOT_FOUND)
		e = make_name(fs, dir, name, ret);
	return e == ERR_OK ? text_file_new(fs, nid_id(dir), nid_id(ret->nid), flags, call, ret_file)
			   : e;
}

/* ---- reasons ---- */

static void queues_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	enum queue_node which = queue_node_of(nid);
	struct item it = { 0 };
	struct queue_name n;
	struct message m;
	uint32_t taken;
	ret->dir = nid_id(nid);
	ret->name = name;
	if (which == QUEUE_NODE_ROOT) {
		ret->name = SPAN_LIT(".queue");
	} else if (name.p == NULL && fixed_of(which) != NULL) {
		ret->name = span_of(fixed_of(which)->name);
	} else if (name.p == NULL && which == QUEUE_NODE_VISIBLE) {
		ret->inside = nid_id(nid);
		ret->name = SPAN_LIT(".queue");
		if (store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &it) == ERR_OK)
			ret->dir = it.parent;
		item_fini(&it);
	} else if (name.p == NULL) {
		enum err e = message_of(fs, nid, WANT_ATTRS, &m, &n, &taken);
		const char *text = n.queue != 0 ? n.name : e == ERR_OK ? m.id : "";
		ret->dir = n.queue != 0 ? n.queue : e == ERR_OK ? m.item.parent : 0;
		size_t len = strlen(text);
		memcpy(ret->text, text, len);
		ret->name = span_make(ret->text, len);
		if (e == ERR_OK)
			message_fini(&m);
	}
}

static const struct vnode_ops queues_ops = {
	.pool = VPOOL_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.why = ONLY_QUEUES,
	.takes_attrs = true,
	.stat = queues_stat,
	.lookup = queues_lookup,
	.opendir = queues_opendir,
	.open = queues_open,
	.mkdir = queues_mkdir,
	.rmdir = queues_rmdir,
	.create = queues_create,
	.unlink = queues_unlink,
	.rename = queues_rename,
	.resize = queues_resize,
	.xattr_get = queues_xattr_get,
	.xattr_set = queues_xattr_set,
	.place = queues_place,
};

const struct vnode_ops *queue_ops_of(uint64_t nid)
{
	(void)nid;
	return &queues_ops;
}
