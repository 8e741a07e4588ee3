/* SPDX-License-Identifier: MIT */
#include "fs/held.h"

#include "fs/blob.h"
#include "fs/state.h"

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

void held_init(struct held *h)
{
	const char *text = secure_getenv("ROWFS_MOUNT_LIMITS");
	h->max_handles = HELD_HANDLES;
	h->max_bytes = HELD_BYTES;
	h->max_ranges = HELD_RANGES;
	if (text == NULL)
		return;
	read_limit(text, "handles=", &h->max_handles);
	read_limit(text, "bytes=", &h->max_bytes);
	read_limit(text, "ranges=", &h->max_ranges);
}

bool held_is_first(const struct fs *fs, uid_t uid)
{
	return uid == 0 || uid == fs->options.uid;
}

static size_t share(const struct fs *fs, uid_t uid, size_t max)
{
	return held_is_first(fs, uid) ? max : max - max / 4;
}

bool held_may_grow(const struct fs *fs, uid_t uid)
{
	return atomic_load_explicit(&fs->held.bytes, memory_order_relaxed) <
		share(fs, uid, fs->held.max_bytes);
}

bool held_may_keep(const struct fs *fs)
{
	return blobs_pinned_bytes(fs->blobs) < fs->held.max_bytes - fs->held.max_bytes / 4;
}

bool held_may_open(const struct fs *fs, uid_t uid)
{
	return atomic_load_explicit(&fs->held.handles, memory_order_relaxed) <
		share(fs, uid, fs->held.max_handles) &&
		held_may_grow(fs, uid) &&
		blobs_pinned_bytes(fs->blobs) < share(fs, uid, fs->held.max_bytes);
}

void held_set(struct fs *fs, size_t *own, size_t now)
{
	if (now != *own)
		(void)atomic_fetch_add_explicit(&fs->held.bytes, now - *own, memory_order_relaxed);
	*own = now;
}
