/* SPDX-License-Identifier: MIT
 * What was given is remembered only to spare a second time: with a blob that is forgotten that is
 * forgotten too, and a node of which the kernel has dropped its pages is read. */
#include "fs/cache/pages.h"

#include <fuse_lowlevel.h>

/* A larger content is read, by who wants it. */
#define CONTENT_MAX ((size_t)128 << 10)
/* The kernel may let one wait for a read of the same page, which is answered by another thread of
 * the request loop: few at a time, so that there is one. */
#define GIVERS_MAX 2

static bool store(struct fs *fs, uint64_t nid, struct span content)
{
	struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(content.n);
	bytes.buf[0].mem = (void *)(uintptr_t)content.p;
	return fuse_lowlevel_notify_store(fs->session, nid, 0, &bytes, 0) == 0;
}

bool pages_give(struct fs *fs, const struct blob *blob)
{
	if (blob_is_given(blob))
		return false;
	struct span content = blob->item.body;
	bool given = false;
	if (content.n == 0 || content.n > CONTENT_MAX)
		return false;
	if (atomic_fetch_add(&fs->page_givers, 1) < GIVERS_MAX)
		given = store(fs, blob->nid, content);
	atomic_fetch_sub(&fs->page_givers, 1);
	if (given)
		blob_set_given(blob, true);
	return given;
}

void pages_gone(const struct blob *blob)
{
	blob_set_given(blob, false);
}
