/* SPDX-License-Identifier: MIT */
#include "fs/core/virtual.h"

#include <stdlib.h>

struct content_file {
	struct vfile file;
	struct buf content;
};

static enum err content_read(
	struct vfile *f, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	const struct content_file *c = (const struct content_file *)f;
	(void)call;
	if (offset >= c->content.len)
		return ERR_OK;
	size_t left = c->content.len - (size_t)offset;
	buf_add(out, c->content.data + offset, n < left ? n : left);
	return ERR_OK;
}

static void content_free(struct vfile *f)
{
	struct content_file *c = (struct content_file *)f;
	buf_fini(&c->content);
	free(c);
}

static enum err content_size(struct vfile *f, const struct caller *call, uint64_t *ret)
{
	(void)call;
	*ret = ((const struct content_file *)f)->content.len;
	return ERR_OK;
}

static size_t content_holds(const struct vfile *f)
{
	return ((const struct content_file *)f)->content.cap;
}

static const struct vfile_ops content_ops = {
	.pool = VPOOL_INLINE,
	.read = content_read,
	.size = content_size,
	.holds = content_holds,
	.free = content_free,
};

enum err vfile_of_content(struct fs *fs, struct buf *content, bool immutable, struct vfile **ret)
{
	struct content_file *c = NULL;
	if (buf_ok(content))
		c = calloc(1, sizeof(*c));
	if (c == NULL) {
		buf_fini(content);
		return ERR_NO_MEMORY;
	}
	c->file = (struct vfile){ .ops = &content_ops, .fs = fs, .immutable = immutable };
	c->content = *content;
	*content = (struct buf){ 0 };
	*ret = &c->file;
	return ERR_OK;
}
