/* SPDX-License-Identifier: MIT */
#include "fs/tree/open_quota.h"

#include "fs/cache/content.h"
#include "fs/core/state.h"

#include <stdlib.h>
#include <string.h>

static void read_limit(const char *text, const char *name, size_t *limit)
{
	const char *at = strstr(text, name);
	char *end;
	unsigned long long n = at != NULL ? strtoull(at + strlen(name), &end, 10) : 0;
	if (n > 0)
		*limit = (size_t)n;
}

struct open_quota *open_quota_new(void)
{
	const char *text = secure_getenv("ROWFS_MOUNT_LIMITS");
	struct open_quota *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	h->max_handles = OPEN_QUOTA_HANDLES;
	h->max_bytes = OPEN_QUOTA_BYTES;
	h->max_ranges = OPEN_QUOTA_RANGES;
	if (text == NULL)
		return h;
	read_limit(text, "handles=", &h->max_handles);
	read_limit(text, "bytes=", &h->max_bytes);
	read_limit(text, "ranges=", &h->max_ranges);
	return h;
}

bool open_quota_is_first(const struct fs *fs, uid_t uid)
{
	return uid == 0 || uid == fs->options.uid;
}

static size_t share(const struct fs *fs, uid_t uid, size_t max)
{
	return open_quota_is_first(fs, uid) ? max : max - max / 4;
}

bool open_quota_may_grow(const struct fs *fs, uid_t uid)
{
	return atomic_load_explicit(&fs->open_quota->bytes, memory_order_relaxed) <
		share(fs, uid, fs->open_quota->max_bytes);
}

bool open_quota_may_keep(const struct fs *fs)
{
	return contents_pinned_bytes(fs->contents) <
		fs->open_quota->max_bytes - fs->open_quota->max_bytes / 4;
}

enum err open_quota_may_open(const struct fs *fs, uid_t uid, struct err_detail *detail)
{
	size_t most = share(fs, uid, fs->open_quota->max_handles);
	if (atomic_load_explicit(&fs->open_quota->handles, memory_order_relaxed) >= most)
		return err_set(detail, ERR_TOO_MANY_OPEN,
			"User %u can open no more while %zu files are open in the mount; close some.",
			(unsigned)uid, most);
	if (!open_quota_may_grow(fs, uid))
		return err_set(detail, ERR_TOO_MANY_OPEN,
			"Too much is being written in the mount; close some files.");
	if (contents_pinned_bytes(fs->contents) >= share(fs, uid, fs->open_quota->max_bytes))
		return err_set(detail, ERR_TOO_MANY_OPEN,
			"Open files hold too many rows in memory; close some.");
	return ERR_OK;
}

void open_quota_set(struct open_quota *open_quota, size_t *own, size_t now)
{
	if (now != *own)
		(void)atomic_fetch_add_explicit(
			&open_quota->bytes, now - *own, memory_order_relaxed);
	*own = now;
}
