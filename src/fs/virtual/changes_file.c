/* SPDX-License-Identifier: MIT */
#include "fs/virtual/changes_file.h"

#include "base/clock.h"
#include "service/feed/feed.h"

#include <stdlib.h>
#include <string.h>

/* Lines of about a MiB, and a row. */
#define TEXT_BYTES ((size_t)32 << 20)
/* A waiter looks again after so long, which keeps the feed on, too. */
#define LOOK_AGAIN_US (60 * UINT64_C(1000000))

struct changes_file {
	struct vfile file; /* first */
	struct feed feed;
	struct span pk; /* of the feed, in key */
	char key[LIMIT_KEY_BYTES];
	uint64_t table_id;
	struct buf text;  /* lines that were read from the feed */
	uint64_t text_at; /* their offset in the file */
	bool begun;       /* text_at is known: there was a read since the open, or the write */
	bool ended;       /* the last read was told the end */
};

static enum err start(struct changes_file *f, enum feed_start start, struct span position,
	struct err_detail *detail)
{
	feed_close(&f->feed);
	buf_clear(&f->text);
	f->begun = f->ended = false;
	return feed_open(
		f->file.fs->service, f->table_id, f->pk, start, position, true, &f->feed, detail);
}

/* Reads lines until there are some for this reader, or no more. */
static enum err fill(struct changes_file *f, struct err_detail *detail)
{
	bool more = true;
	enum err e = ERR_OK;
	while (e == ERR_OK && more && f->text.len == 0)
		e = feed_read(&f->feed, &f->text, &more, detail);
	return e == ERR_TABLE_NOT_FOUND ? ERR_GONE : e;
}

/* Replaces the lines that were read, or has the read wait for some. */
static enum err next_lines(struct changes_file *f, const struct caller *call, uint64_t offset)
{
	struct vwait *wait = &f->file.wait;
	buf_clear(&f->text);
	f->text_at = offset;
	wait->seen = waiters_seen(f->file.fs->waiters);
	enum err e = fill(f, call->detail);
	if (e != ERR_OK)
		return e;
	bool at_end = f->text.len == 0;
	if (at_end && f->ended && caller_interrupted(call))
		return ERR_CANCELLED;
	wait->waits = at_end && f->ended;
	wait->key = WAITERS_ANY_CHANGE;
	wait->until_us = clock_mono_us() + LOOK_AGAIN_US;
	f->ended = at_end;
	return ERR_OK;
}

static enum err changes_read(
	struct vfile *file, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	struct changes_file *f = (struct changes_file *)file;
	file->wait.waits = false;
	if (!f->begun)
		f->text_at = offset;
	f->begun = true;
	if (offset < f->text_at || offset > f->text_at + f->text.len)
		return err_set(call->detail, ERR_INVALID_INPUT,
			"Changes are read from their beginning on; write a position to go on behind it.");
	if (offset == f->text_at + f->text.len) {
		enum err e = next_lines(f, call, offset);
		if (e != ERR_OK || file->wait.waits)
			return e;
	}
	size_t from = (size_t)(offset - f->text_at), left = f->text.len - from;
	buf_add(out, f->text.data + from, n < left ? n : left);
	return ERR_OK;
}

static enum err changes_write(
	struct vfile *file, const struct caller *call, uint64_t offset, struct span bytes)
{
	(void)offset;
	if (bytes.n > 0 && bytes.p[bytes.n - 1] == '\n')
		bytes.n--;
	return start((struct changes_file *)file, FEED_START_POSITION, bytes, call->detail);
}

static size_t changes_holds(const struct vfile *file)
{
	return ((const struct changes_file *)file)->text.cap;
}

static void changes_free(struct vfile *file)
{
	struct changes_file *f = (struct changes_file *)file;
	feed_close(&f->feed);
	buf_fini(&f->text);
	free(f);
}

static const struct vfile_ops changes_ops = {
	.pool = VPOOL_SCAN,
	.read = changes_read,
	.write = changes_write,
	.holds = changes_holds,
	.free = changes_free,
};

/* Which table, and which partition of it. */
static enum err aim(struct changes_file *f, uint64_t dir_id)
{
	struct item dir = { 0 };
	enum err e = store_get(f->file.fs->store, NULL, dir_id, WANT_ATTRS, &dir);
	f->table_id = dir.kind == ITEM_PARTITION ? dir.parent : dir.id;
	if (e == ERR_OK && dir.kind == ITEM_PARTITION && dir.key.n <= sizeof(f->key)) {
		memcpy(f->key, dir.key.p, dir.key.n);
		f->pk = span_make(f->key, dir.key.n);
	} else if (e == ERR_OK && dir.kind != ITEM_TABLE) {
		e = ERR_GONE;
	}
	item_fini(&dir);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

enum err changes_file_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	(void)flags;
	if (call->requester != NULL)
		return err_set(call->detail, ERR_NOT_PERMITTED,
			"Changes show all rows, so only the owner of the mount reads them.");
	struct changes_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->file = (struct vfile){ .ops = &changes_ops, .fs = fs };
	f->text = BUF_INIT(TEXT_BYTES);
	enum err e = aim(f, nid_id(nid));
	if (e == ERR_OK)
		e = start(f, FEED_START_KEPT, SPAN_LIT(""), call->detail);
	if (e != ERR_OK) {
		changes_free(&f->file);
		return e;
	}
	*ret = &f->file;
	return ERR_OK;
}
