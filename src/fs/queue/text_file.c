/* SPDX-License-Identifier: MIT */
#include "fs/queue/text_file.h"

#include "base/clock.h"
#include "fs/refused/reason.h"
#include "fs/tree/open_quota.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct text_file {
	struct vfile file; /* first */
	uint64_t queue, number;
	uint64_t item;  /* 0: it becomes a new message */
	uint32_t taken; /* how often it had been taken when it was opened */
	bool append;
	bool news;      /* something was written, or cut, since the last put */
	bool done;      /* it was put */
	bool told;      /* a close failed */
	enum err ended; /* by a write that was refused */
	struct buf text;
};

static struct text_file *text_of(struct vfile *f)
{
	return (struct text_file *)f;
}

enum err message_change(struct service *service, const struct message *m, uint32_t taken,
	int64_t visibility_s, const struct span *text, bool durable, struct err_detail *detail)
{
	struct queue_message now;
	if (m->key.taken != taken)
		return message_refuse_lost(detail);
	enum err e = message_update(service, ORIGIN_MOUNT, m->item.parent, span_of(m->id),
		span_of(m->receipt), visibility_s, text, durable, &now, detail);
	return e == ERR_MESSAGE_NOT_FOUND ? message_refuse_lost(detail) : e;
}

enum err message_put_named(struct fs *fs, uint64_t number, struct queue_name *n, struct span text,
	bool durable, struct err_detail *detail)
{
	struct queue_message m;
	/* A file does not vanish by itself. */
	enum err e = message_put(
		fs->service, ORIGIN_MOUNT, n->queue, text, 0, MESSAGE_NEVER, durable, &m, detail);
	if (e != ERR_OK)
		return e;
	n->item = message_item(span_of(m.id));
	n->taken = 0;
	queue_names_set(fs->queue_names, number, n);
	reasons_clear(fs->reasons, n->queue, span_of(n->name));
	return ERR_OK;
}

/* ---- the text becomes a message ---- */

static enum err put_new(struct text_file *f, bool durable, struct err_detail *detail)
{
	struct fs *fs = f->file.fs;
	struct queue_name n;
	if (!queue_names_get(fs->queue_names, f->number, &n) || n.name[0] == '\0')
		return ERR_OK; /* removed before it was put */
	if (n.name[0] != '.') {
		enum err e =
			message_put_named(fs, f->number, &n, buf_span(&f->text), durable, detail);
		f->item = n.item;
		f->taken = 0;
		return e;
	}
	struct buf copy = BUF_INIT(LIMIT_MESSAGE_BYTES);
	buf_add_span(&copy, buf_span(&f->text));
	enum err e = buf_full(&copy);
	if (e == ERR_OK)
		e = queue_names_keep(fs->queue_names, f->number, &copy);
	else
		buf_fini(&copy);
	return e;
}

static enum err put_again(struct text_file *f, bool durable, struct err_detail *detail)
{
	struct message m;
	struct span text = buf_span(&f->text);
	enum err e = message_load(f->file.fs, f->item, WANT_ATTRS, &m);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? message_refuse_lost(detail) : e;
	e = message_change(f->file.fs->service, &m, f->taken,
		message_seconds_left(f->file.fs->service, &m), &text, durable, detail);
	message_fini(&m);
	return e;
}

static enum err put(struct text_file *f, bool durable, struct err_detail *detail)
{
	enum err e = f->item == 0 ? put_new(f, durable, detail) : put_again(f, durable, detail);
	if (e == ERR_OK)
		f->news = false;
	f->done = f->done || e == ERR_OK;
	f->told = e != ERR_OK;
	return e;
}

/* Returns the error that ended the text; a write of which nothing came ends it too. */
static enum err ended(struct text_file *f)
{
	if (f->ended == ERR_OK && atomic_load(&f->file.write_lost))
		f->ended = ERR_NO_MEMORY;
	return f->ended;
}

/* ---- methods ---- */

static enum err text_read(
	struct vfile *file, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	const struct text_file *f = text_of(file);
	(void)call;
	if (offset < f->text.len)
		buf_add(out, f->text.data + offset,
			n < f->text.len - offset ? n : f->text.len - (size_t)offset);
	return ERR_OK;
}

static enum err text_write(
	struct vfile *file, const struct caller *call, uint64_t offset, struct span bytes)
{
	struct text_file *f = text_of(file);
	struct queue_name n;
	if (f->append)
		offset = f->text.len;
	if (f->ended == ERR_OK &&
		(offset > LIMIT_MESSAGE_BYTES || bytes.n > LIMIT_MESSAGE_BYTES - offset))
		f->ended = err_set(call->detail, ERR_MESSAGE_TOO_LARGE,
			"A message has up to %d bytes; nothing was put.", LIMIT_MESSAGE_BYTES);
	if (f->ended == ERR_OK && !open_quota_may_grow(file->fs, call->uid))
		f->ended =
			err_set(call->detail, ERR_NO_MEMORY, "Too much is being written at once.");
	if (f->ended == ERR_OK && !buf_write_at(&f->text, (size_t)offset, bytes.p, bytes.n))
		f->ended = ERR_NO_MEMORY;
	if (f->ended != ERR_OK)
		return f->ended;
	f->news = true;
	if (f->item == 0 && queue_names_get(file->fs->queue_names, f->number, &n) && n.item == 0) {
		n.size = f->text.len;
		queue_names_set(file->fs->queue_names, f->number, &n);
	}
	return ERR_OK;
}

static enum err text_close(struct vfile *file, const struct caller *call)
{
	struct text_file *f = text_of(file);
	file->noted = f->ended != ERR_OK;
	if (ended(f) != ERR_OK || !f->news)
		return f->ended;
	return put(f, false, call->detail);
}

static enum err text_sync(struct vfile *file, const struct caller *call)
{
	struct text_file *f = text_of(file);
	file->noted = f->ended != ERR_OK;
	if (ended(f) != ERR_OK)
		return f->ended;
	return f->news ? put(f, true, call->detail) : store_sync(file->fs->store);
}

static size_t text_holds(const struct vfile *file)
{
	return ((const struct text_file *)file)->text.cap;
}

/* The last close: also of a file in which nothing was written, which is an empty message. */
static void text_free(struct vfile *file)
{
	struct text_file *f = text_of(file);
	struct fs *fs = file->fs;
	struct err_detail detail = { 0 };
	struct queue_name n = { 0 };
	bool fresh = f->item == 0 && !f->done;
	bool opened = !file->unopened;
	enum err e = ERR_OK;
	(void)queue_names_get(fs->queue_names, f->number, &n);
	if (ended(f) == ERR_OK && !f->told && opened && (f->news || fresh))
		e = put(f, false, &detail);
	if (e != ERR_OK)
		reasons_add(fs->reasons,
			&(struct refusal){ .call = "close",
				.dir = f->queue,
				.name = span_of(n.name),
				.error = e,
				.detail = &detail });
	/* A file that never became a message has no name any more. */
	if (fresh && !f->done)
		queue_names_drop(fs->queue_names, f->number);
	if (f->number != 0)
		queue_names_open(fs->queue_names, f->number, false);
	buf_fini(&f->text);
	free(f);
}

static const struct vfile_ops text_ops = {
	.pool = VPOOL_CHANGE,
	.read = text_read,
	.write = text_write,
	.close = text_close,
	.sync = text_sync,
	.holds = text_holds,
	.free = text_free,
};

/* ---- opening ---- */

enum err text_file_read(struct fs *fs, struct message *m, struct vfile **ret)
{
	struct buf text = BUF_INIT(LIMIT_MESSAGE_BYTES);
	buf_add_span(&text, m->item.body);
	message_fini(m);
	return vfile_of_content(fs, &text, false, ret);
}

static enum err may_write(struct fs *fs, const struct caller *call)
{
	if (service_is_read_only(fs->service))
		return ERR_READ_ONLY;
	return open_quota_may_grow(fs, call->uid) ? ERR_OK : ERR_NO_MEMORY;
}

static struct text_file *new_file(struct fs *fs, uint64_t queue, int flags)
{
	struct text_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return NULL;
	f->file = (struct vfile){ .ops = &text_ops, .fs = fs };
	f->queue = queue;
	f->append = (flags & O_APPEND) != 0;
	f->text = BUF_INIT(LIMIT_MESSAGE_BYTES);
	return f;
}

enum err text_file_new(struct fs *fs, uint64_t queue, uint64_t number, int flags,
	const struct caller *call, struct vfile **ret)
{
	enum err e = may_write(fs, call);
	struct text_file *f = e == ERR_OK ? new_file(fs, queue, flags) : NULL;
	if (f == NULL)
		return e != ERR_OK ? e : ERR_NO_MEMORY;
	f->number = number;
	queue_names_open(fs->queue_names, number, true);
	*ret = &f->file;
	return ERR_OK;
}

enum err text_file_change(struct fs *fs, const struct message *m, uint32_t taken, int flags,
	const struct caller *call, struct vfile **ret)
{
	enum err e = may_write(fs, call);
	if (e == ERR_OK && m->key.taken != taken)
		e = message_refuse_lost(call->detail);
	struct text_file *f = e == ERR_OK ? new_file(fs, m->item.parent, flags) : NULL;
	if (f == NULL)
		return e != ERR_OK ? e : ERR_NO_MEMORY;
	f->item = m->item.id;
	f->taken = taken;
	f->news = (flags & O_TRUNC) != 0;
	if (!f->news)
		buf_add_span(&f->text, m->item.body);
	*ret = &f->file;
	return ERR_OK;
}
