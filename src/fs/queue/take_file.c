/* SPDX-License-Identifier: MIT */
#include "fs/queue/take_file.h"

#include "base/clock.h"
#include "codec/json_build.h"
#include "fs/queue/message.h"
#include "fs/queue/names.h"

#include <stdlib.h>
#include <string.h>

/* JSON makes six bytes of some. */
#define CONTENT_LIMIT ((size_t)6 * LIMIT_MESSAGE_BYTES + 4096)
/* A waiter looks again after so long, in case the wall clock was set. */
#define LOOK_AGAIN_US (60 * UINT64_C(1000000))
#define SHARED_LOOK_US UINT64_C(1000000)

struct take_file {
	struct vfile file; /* first */
	uint64_t queue;
	enum queue_node which;
	struct buf content;
};

/* ---- a message as text ---- */

static void add_time(struct json_build *b, const char *name, int64_t ticks)
{
	char text[CLOCK_TEXT_MAX];
	json_add_text(b, name, span_make(text, (size_t)clock_format(ticks, text)));
}

static void write_message(const struct queue_message *m, struct buf *out)
{
	struct json_build b;
	json_begin(&b);
	json_add_str(&b, "id", m->id);
	if (m->receipt[0] != '\0')
		json_add_str(&b, "receipt", m->receipt);
	json_add_count(&b, "count", m->taken);
	add_time(&b, "inserted", m->inserted);
	if (m->expires != MESSAGE_EXPIRES_NEVER)
		add_time(&b, "expires", m->expires);
	add_time(&b, "visible", m->visible);
	json_add_text(&b, "text", m->text);
	json_end(&b, out);
	buf_add_char(out, '\n');
}

static bool on_message(void *arg, const struct queue_message *m)
{
	struct take_file *f = arg;
	if (f->which == QUEUE_NODE_WAIT)
		buf_addf(&f->content, "%s\n", m->id);
	else
		write_message(m, &f->content);
	if (f->which != QUEUE_NODE_GET)
		return false;
	/* The name in .taken is about this take. */
	struct queue_name n = { .queue = f->queue,
		.place = QUEUE_PLACE_TAKEN,
		.item = message_item(span_of(m->id)),
		.taken = m->taken };
	memcpy(n.name, m->id, sizeof(m->id));
	(void)queue_names_add(f->file.fs->queue_names, &n);
	return false;
}

/* ---- waiting ---- */

/* When to look again. */
static enum err wait_until(struct take_file *f, uint64_t *ret_us)
{
	struct fs *fs = f->file.fs;
	int64_t now = service_now(fs->service), visible;
	enum err e = queue_next_visible(fs->service, f->queue, now, &visible);
	/* Nobody tells of what other machines put. */
	uint64_t us = fs->shared ? SHARED_LOOK_US : LOOK_AGAIN_US;
	if (visible != INT64_MAX && (visible - now) / 10 < (int64_t)us)
		us = (uint64_t)((visible - now) / 10) + 1;
	*ret_us = clock_mono_us() + us;
	return e;
}

static enum err look(struct take_file *f, struct vwait *wait)
{
	struct fs *fs = f->file.fs;
	struct item queue = { 0 };
	wait->seen = waiters_seen(fs->waiters);
	buf_clear(&f->content);
	enum err e = store_get(fs->store, NULL, f->queue, WANT_ATTRS, &queue);
	item_fini(&queue);
	if (e == ERR_OK)
		e = message_peek(fs->service, f->queue, 1, on_message, f);
	wait->waits = e == ERR_OK && f->content.len == 0;
	wait->key = f->queue;
	if (wait->waits)
		e = wait_until(f, &wait->until_us);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* ---- methods ---- */

static enum err fill(struct take_file *f, const struct caller *call)
{
	struct service *s = f->file.fs->service;
	buf_clear(&f->content);
	enum err e = ERR_OK;
	if (f->which == QUEUE_NODE_GET)
		e = message_take(s, ORIGIN_MOUNT, f->queue, 1, QUEUE_TAKE_SECONDS, false,
			on_message, f, call->detail);
	else if (f->which == QUEUE_NODE_PEEK)
		e = message_peek(s, f->queue, 1, on_message, f);
	else
		e = look(f, &f->file.wait);
	if (e == ERR_OK && !buf_ok(&f->content))
		e = ERR_NO_MEMORY;
	return e == ERR_QUEUE_NOT_FOUND ? ERR_GONE : e;
}

static enum err take_read(
	struct vfile *file, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	struct take_file *f = (struct take_file *)file;
	file->wait.waits = false;
	enum err e = offset == 0 ? fill(f, call) : ERR_OK;
	if (e == ERR_OK && file->wait.waits && caller_interrupted(call)) {
		file->wait.waits = false;
		e = ERR_CANCELLED;
	}
	if (e == ERR_OK && offset < f->content.len)
		buf_add(out, f->content.data + offset,
			n < f->content.len - offset ? n : f->content.len - (size_t)offset);
	return e;
}

static enum err take_poll(struct vfile *file, struct vwait *ret)
{
	struct take_file f = { .file = *file,
		.queue = ((struct take_file *)file)->queue,
		.which = QUEUE_NODE_WAIT,
		.content = BUF_INIT(CONTENT_LIMIT) };
	enum err e = look(&f, ret);
	buf_fini(&f.content);
	return e;
}

static void take_free(struct vfile *file)
{
	struct take_file *f = (struct take_file *)file;
	buf_fini(&f->content);
	free(f);
}

static const struct vfile_ops get_ops = {
	.pool = VPOOL_CHANGE,
	.read = take_read,
	.free = take_free,
};

static const struct vfile_ops peek_ops = {
	.pool = VPOOL_SCAN,
	.read = take_read,
	.free = take_free,
};

static const struct vfile_ops wait_ops = {
	.pool = VPOOL_SCAN,
	.read = take_read,
	.poll = take_poll,
	.free = take_free,
};

enum err take_file_open(struct fs *fs, uint64_t queue, enum queue_node which, struct vfile **ret)
{
	struct take_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->file = (struct vfile){ .ops = which == QUEUE_NODE_GET ? &get_ops
			: which == QUEUE_NODE_PEEK               ? &peek_ops
								 : &wait_ops,
		.fs = fs };
	f->queue = queue;
	f->which = which;
	f->content = BUF_INIT(CONTENT_LIMIT);
	*ret = &f->file;
	return ERR_OK;
}
