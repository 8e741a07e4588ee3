/* SPDX-License-Identifier: MIT */
#include "fs/refused/rejected.h"

#include "base/clock.h"
#include "base/log.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/refused/unsaved.h"
#include "fs/tree/handle.h"
#include "service/tree/tree.h"

#include <stdio.h>
#include <stdlib.h>

/* So many stay on a full disk where others have to give way, or fewer. */
#define FULL_FILES 8

static enum err folder(struct store *store, struct item *ret)
{
	return store_get(store, NULL, STORE_REJECTED, WANT_ATTRS, ret);
}

/* ---- the bound ---- */

struct tally {
	uint64_t files, bytes;
	struct item oldest; /* names begin with the time */
	enum err error;
};

static bool count_one(void *arg, const struct item *it)
{
	struct tally *t = arg;
	if (it->kind != ITEM_FILE)
		return true;
	if (t->files++ == 0)
		t->error = item_copy(&t->oldest, it);
	t->bytes += it->size;
	return t->error == ERR_OK;
}

static void trim(struct fs *fs, const struct item *dir, uint64_t files_max, uint64_t bytes_max)
{
	for (;;) {
		struct tally t = { 0 };
		enum err e = store_list(fs->store, NULL, STORE_REJECTED, CLASS_NAMED,
			(struct span){ 0 }, false, WANT_ATTRS, count_one, &t);
		bool over = t.files > files_max || t.bytes > bytes_max;
		if (e == ERR_OK && t.error == ERR_OK && over) {
			const struct dentry at = { .origin = ORIGIN_MOUNT,
				.dir = dir,
				.class = CLASS_NAMED,
				.key = t.oldest.key };
			e = file_unlink(fs, &at, t.oldest.id, NULL);
			notify_attributes(fs->notifier, nid_of(&t.oldest));
			notify_name_soon(fs->notifier, STORE_REJECTED, t.oldest.key);
		}
		item_fini(&t.oldest);
		if (!over || e != ERR_OK || t.error != ERR_OK)
			return;
	}
}

/* ---- keeping ---- */

static void make_name(
	struct service *service, struct span component, char out_name[REJECTED_NAME_MAX])
{
	char now[CLOCK_TEXT_MAX];
	clock_format_full(service_next_version(service), now);
	size_t n = component.n < 200 ? component.n : 200;
	(void)snprintf(out_name, REJECTED_NAME_MAX, "%s-%.*s", now, (int)n, component.p);
}

static enum err put_file(struct service *service, struct span name, struct span bytes,
	uint32_t flags, uint64_t *ret_id)
{
	const struct item_ref at = { .parent = STORE_REJECTED, .class = CLASS_NAMED, .key = name };
	struct change c[2] = {
		{ .op = CHANGE_PUT,
			.at = at,
			.flags = flags,
			.kind = ITEM_FILE,
			.cond = COND_ABSENT,
			.attrs = ATTRS_UNSET },
		{ .op = CHANGE_WRITE,
			.at = at,
			.flags = flags,
			.body = bytes,
			.attrs = ATTRS_UNSET },
	};
	enum err e = service_apply(service, ORIGIN_MOUNT, c, 2, false, NULL);
	if (e == ERR_OK)
		*ret_id = c[0].now.id;
	changes_fini(c, 2);
	return e;
}

/* The oldest give way until there is room, but the last one. */
static enum err put_on_full_disk(struct fs *fs, const struct item *dir, struct span name,
	struct span bytes, uint64_t *ret_id)
{
	enum err e = put_file(fs->service, name, bytes, CHANGE_RESERVED, ret_id);
	for (unsigned n = FULL_FILES; e == ERR_NO_SPACE && n > 1; n /= 2) {
		trim(fs, dir, n - 1, (n - 1) * REJECTED_FULL_BYTES);
		e = put_file(fs->service, name, bytes, CHANGE_RESERVED, ret_id);
	}
	return e;
}

/* fresh: others may give way for it. */
static enum err keep(
	struct fs *fs, struct span name, struct span bytes, bool fresh, uint64_t *ret_id)
{
	struct item dir = { 0 };
	enum err e = folder(fs->store, &dir);
	if (e == ERR_OK)
		e = put_file(fs->service, name, bytes, 0, ret_id);
	if (e == ERR_NO_SPACE && fresh && bytes.n <= REJECTED_FULL_BYTES)
		e = put_on_full_disk(fs, &dir, name, bytes, ret_id);
	if (e == ERR_OK) {
		notify_name_soon(fs->notifier, STORE_REJECTED, name);
		notify_attributes(fs->notifier, STORE_REJECTED);
		trim(fs, &dir, REJECTED_MAX_FILES, REJECTED_MAX_BYTES);
	}
	item_fini(&dir);
	return e;
}

void rejected_retry(struct fs *fs)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && unsaved_has(fs->unsaved, (struct span){ 0 })) {
		struct buf name = BUF_INIT(REJECTED_NAME_MAX), bytes = BUF_INIT(UNSAVED_MAX_BYTES);
		uint64_t id = 0, waits = unsaved_first(fs->unsaved, &name, &bytes);
		e = waits == 0 ? ERR_NO_MEMORY
			       : keep(fs, buf_span(&name), buf_span(&bytes), false, &id);
		/* Two threads at once put the same. */
		if (e == ERR_NAME_EXISTS)
			e = ERR_OK;
		if (e == ERR_OK)
			unsaved_drop(fs->unsaved, waits);
		buf_fini(&name);
		buf_fini(&bytes);
	}
}

void rejected_retry_in_turn(struct fs *fs)
{
	if (unsaved_has(fs->unsaved, (struct span){ 0 }) && unsaved_is_due(fs->unsaved))
		rejected_retry(fs);
}

void rejected_drop(struct fs *fs, uint64_t id)
{
	struct item file = { 0 }, dir = { 0 };
	if (unsaved_is_id(id)) {
		unsaved_drop(fs->unsaved, id);
		return;
	}
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &file);
	if (e == ERR_OK && file.parent == STORE_REJECTED && folder(fs->store, &dir) == ERR_OK) {
		const struct dentry at = {
			.origin = ORIGIN_MOUNT, .dir = &dir, .class = CLASS_NAMED, .key = file.key
		};
		(void)file_unlink(fs, &at, id, NULL);
		notify_attributes(fs->notifier, nid_of(&file));
		notify_name_soon(fs->notifier, STORE_REJECTED, file.key);
		notify_attributes(fs->notifier, STORE_REJECTED);
	}
	item_fini(&dir);
	item_fini(&file);
}

enum err rejected_save(struct fs *fs, struct span component, struct span bytes, uint64_t *ret_id,
	char out_name[REJECTED_NAME_MAX])
{
	uint64_t id = 0;
	make_name(fs->service, component, out_name);
	enum err e = keep(fs, span_of(out_name), bytes, true, &id);
	if (e == ERR_OK) {
		notify_inode_soon(fs->notifier, nid_make(id, 0));
		rejected_retry_in_turn(fs);
	} else {
		id = unsaved_put(fs->unsaved, span_of(out_name), bytes);
	}
	if (id != 0) {
		if (*ret_id != 0)
			rejected_drop(fs, *ret_id);
		*ret_id = id;
		return ERR_OK;
	}
	log_warning("%zu refused bytes could not be kept: %s", bytes.n, err_symbol(e));
	out_name[0] = 0; /* nobody shall look for them there */
	return e;
}

/* More than a row's or a change set's text and one write. */
#define SAVED_MAX ((size_t)8 << 20)

enum err rejected_save_with(struct fs *fs, struct span component, struct span text, size_t offset,
	struct span bytes, uint64_t *ret_id, char out_name[REJECTED_NAME_MAX])
{
	struct buf all = BUF_INIT(SAVED_MAX);
	buf_add_span(&all, text);
	bool whole = buf_write_at(&all, offset, bytes.p, bytes.n);
	struct span kept = whole ? buf_span(&all) : text.n > 0 ? text : bytes;
	enum err e = rejected_save(fs, component, kept, ret_id, out_name);
	buf_fini(&all);
	return e;
}

static bool ends_with(struct store *store, const struct item *file, struct span bytes)
{
	size_t n = 0;
	char *end = bytes.n <= file->size ? malloc(bytes.n + 1) : NULL;
	bool same = end != NULL &&
		store_file_read(store, NULL, file->id, file->size - bytes.n, end, bytes.n, &n) ==
			ERR_OK &&
		span_eq(span_make(end, n), bytes);
	free(end);
	return same;
}

enum err rejected_append(struct fs *fs, uint64_t id, struct span bytes)
{
	struct item file = { 0 };
	if (unsaved_is_id(id))
		return unsaved_append(fs->unsaved, id, bytes) ? ERR_OK : ERR_NOT_FOUND;
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &file);
	uint64_t size = file.size;
	if (e == ERR_OK && file.parent != STORE_REJECTED)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK && size + bytes.n > REJECTED_MAX_BYTES / 4)
		e = ERR_FILE_TOO_LARGE;
	bool again = e == ERR_OK && ends_with(fs->store, &file, bytes);
	item_fini(&file);
	if (again)
		return ERR_OK;
	if (e == ERR_OK)
		e = tree_file_write(fs->service, id, size, bytes, &file);
	if (e == ERR_OK)
		notify_inode_soon(fs->notifier, nid_make(id, 0));
	item_fini(&file);
	return e;
}
