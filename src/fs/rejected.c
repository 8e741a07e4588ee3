/* SPDX-License-Identifier: MIT */
#include "fs/rejected.h"

#include "base/clock.h"
#include "base/log.h"
#include "fs/nid.h"
#include "fs/notify.h"
#include "service/tree.h"

#include <stdio.h>

static enum err folder(struct fs *fs, struct item *ret)
{
	return store_get(fs->store, NULL, STORE_REJECTED, WANT_ATTRS, ret);
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

static void trim(struct fs *fs, const struct item *dir)
{
	for (;;) {
		struct tally t = { 0 };
		enum err e = store_list(fs->store, NULL, STORE_REJECTED, CLASS_NAMED,
			(struct span){ 0 }, false, WANT_ATTRS, count_one, &t);
		bool over = t.files > REJECTED_MAX_FILES || t.bytes > REJECTED_MAX_BYTES;
		if (e == ERR_OK && t.error == ERR_OK && over && t.files > 1) {
			const struct spot at = {
				.dir = dir, .class = CLASS_NAMED, .key = t.oldest.key
			};
			e = tree_unlink(fs->service, &at, -1, NULL, NULL);
			notify_name_soon(fs->notifier, STORE_REJECTED, t.oldest.key);
		}
		item_fini(&t.oldest);
		if (!over || e != ERR_OK)
			return;
	}
}

/* ---- keeping ---- */

static enum err make_file(
	struct fs *fs, struct span component, uint64_t *ret_id, char out_name[REJECTED_NAME_MAX])
{
	struct item dir = { 0 }, file = { 0 };
	enum err e = folder(fs, &dir);
	if (e != ERR_OK)
		return e;
	char now[CLOCK_TEXT_MAX];
	clock_format_full(service_next_version(fs->service), now);
	size_t n = component.n < 200 ? component.n : 200;
	int len = snprintf(out_name, REJECTED_NAME_MAX, "%s-%.*s", now, (int)n, component.p);
	const struct spot at = {
		.dir = &dir, .class = CLASS_NAMED, .key = span_make(out_name, (size_t)len)
	};
	struct attrs attrs = ATTRS_UNSET;
	e = tree_create_file(fs->service, &at, &attrs, &file, NULL);
	if (e == ERR_OK) {
		*ret_id = file.id;
		notify_name_soon(fs->notifier, STORE_REJECTED, at.key);
		notify_attributes(fs->notifier, STORE_REJECTED);
		trim(fs, &dir);
	}
	item_fini(&file);
	item_fini(&dir);
	return e;
}

static enum err name_of(struct fs *fs, uint64_t id, char out_name[REJECTED_NAME_MAX])
{
	struct item file = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &file);
	if (e == ERR_OK && file.parent != STORE_REJECTED)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		snprintf(out_name, REJECTED_NAME_MAX, "%.*s", (int)file.key.n, file.key.p);
	item_fini(&file);
	return e;
}

void rejected_drop(struct fs *fs, uint64_t id)
{
	struct item file = { 0 }, dir = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &file);
	if (e == ERR_OK && file.parent == STORE_REJECTED && folder(fs, &dir) == ERR_OK) {
		const struct spot at = { .dir = &dir, .class = CLASS_NAMED, .key = file.key };
		(void)tree_unlink(fs->service, &at, -1, NULL, NULL);
		notify_name_soon(fs->notifier, STORE_REJECTED, file.key);
		notify_attributes(fs->notifier, STORE_REJECTED);
	}
	item_fini(&dir);
	item_fini(&file);
}

enum err rejected_save(struct fs *fs, struct span component, struct span bytes, uint64_t *ret_id,
	char out_name[REJECTED_NAME_MAX])
{
	enum err e = ERR_NOT_FOUND;
	bool made = false;
	if (*ret_id != 0)
		e = name_of(fs, *ret_id, out_name);
	if (e == ERR_NOT_FOUND) {
		e = make_file(fs, component, ret_id, out_name);
		made = e == ERR_OK;
	}
	struct item file = { 0 };
	if (e == ERR_OK)
		e = tree_file_write(fs->service, *ret_id, 0, bytes, &file);
	if (e == ERR_OK && file.size > bytes.n) {
		item_fini(&file);
		e = tree_file_resize(fs->service, *ret_id, bytes.n, &file);
	}
	item_fini(&file);
	if (e == ERR_OK) {
		notify_inode_soon(fs->notifier, nid_make(*ret_id, 0));
		return ERR_OK;
	}
	log_error("%zu refused bytes could not be kept: %s", bytes.n, err_symbol(e));
	out_name[0] = 0; /* nobody shall look for them there */
	if (made) {
		rejected_drop(fs, *ret_id);
		*ret_id = 0;
	}
	return e;
}

enum err rejected_append(struct fs *fs, uint64_t id, struct span bytes)
{
	struct item file = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &file);
	uint64_t size = file.size;
	if (e == ERR_OK && file.parent != STORE_REJECTED)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK && size + bytes.n > REJECTED_MAX_BYTES / 4)
		e = ERR_FILE_TOO_LARGE;
	item_fini(&file);
	if (e == ERR_OK)
		e = tree_file_write(fs->service, id, size, bytes, &file);
	if (e == ERR_OK)
		notify_inode_soon(fs->notifier, nid_make(id, 0));
	item_fini(&file);
	return e;
}
