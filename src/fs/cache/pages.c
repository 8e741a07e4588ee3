/* SPDX-License-Identifier: MIT
 * What was given is remembered only to spare a second time: with a content that is forgotten that is
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

bool pages_give(struct fs *fs, const struct content *content)
{
	if (content_is_given(content))
		return false;
	struct span bytes = content->item.body;
	bool given = false;
	if (bytes.n == 0 || bytes.n > CONTENT_MAX)
		return false;
	if (atomic_fetch_add(&fs->page_givers, 1) < GIVERS_MAX)
		given = store(fs, content->nid, bytes);
	atomic_fetch_sub(&fs->page_givers, 1);
	if (given)
		content_set_given(content, true);
	return given;
}

void pages_gone(const struct content *content)
{
	content_set_given(content, false);
}
