/* SPDX-License-Identifier: MIT */
#include "fs/tree/trash_dir.h"

#include "fs/cache/notify.h"
#include "fs/core/idset.h"
#include "fs/tree/handle.h"

static void on_gone(void *arg, struct span name)
{
	struct fs *fs = arg;
	notify_attributes(fs->notifier, STORE_TRASH);
	if (idset_count(fs->seen, STORE_TRASH) != 0)
		notify_name_soon(fs->notifier, STORE_TRASH, name);
}

static bool in_use(void *arg, uint64_t id)
{
	return !file_goes(arg, id);
}

static void over(void *arg, uint64_t id)
{
	file_went(arg, id);
}

void trash_dir_watch(struct fs *fs)
{
	const struct trash_watch watch = {
		.in_use = in_use, .over = over, .gone = on_gone, .arg = fs
	};
	trash_set_watch(fs->trash, &watch);
}

void trash_dir_tidy(struct fs *fs)
{
	if (!fs->options.read_only && !service_is_read_only(fs->service))
		trash_trim(fs->trash);
}

enum err trash_dir_unlink(struct fs *fs, const struct dentry *at, struct err_detail *detail)
{
	bool kept;
	enum err e = trash_unlink(fs->trash, at, &kept, detail);
	/* No name has to go: it holds the time, so nobody asked for it before. */
	if (kept)
		notify_attributes(fs->notifier, STORE_TRASH);
	trash_dir_tidy(fs);
	return e;
}

void trash_dir_left(struct trash *trash, const struct item *was)
{
	if (trash_dir_has(was))
		trash_left(trash, was->size);
}
