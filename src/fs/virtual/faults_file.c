/* SPDX-License-Identifier: MIT */
#include "fs/virtual/faults_file.h"

#include "base/clock.h"
#include "service/core/faults.h"

#include <fcntl.h>
#include <stdlib.h>

struct faults_file {
	struct vfile file; /* first */
	struct buf text;   /* that no close has decided */
	bool replaces;     /* it replaces the rules, also if it is empty */
	enum err refused;  /* why a write was not taken */
};

static struct faults_file *faults_of(struct vfile *f)
{
	return (struct faults_file *)f;
}

static enum err set(struct service *service, struct span text, bool add, struct err_detail *detail)
{
	return faults_set(service_faults(service), service_metrics(service), text, add,
		clock_mono_us(), detail);
}

/* The lines that are complete: shells hear what a write says, not what a close does. */
static enum err check(const struct faults_file *f, struct err_detail *detail)
{
	size_t n = f->text.len;
	while (n > 0 && f->text.data[n - 1] != '\n')
		n--;
	return faults_check(
		service_metrics(f->file.fs->service), span_make(f->text.data, n), detail);
}

static enum err faults_write_file(
	struct vfile *file, const struct caller *call, uint64_t offset, struct span bytes)
{
	struct faults_file *f = faults_of(file);
	(void)offset; /* it is a stream */
	if (f->refused != ERR_OK)
		return f->refused;
	buf_add_span(&f->text, bytes);
	f->refused = buf_ok(&f->text) ? check(f, call->detail)
				      : err_set(call->detail, ERR_INVALID_INPUT,
						"Rules have %zu bytes at most.", FAULT_TEXT_MAX);
	if (f->refused != ERR_OK)
		buf_fini(&f->text);
	return f->refused;
}

static enum err decide(struct faults_file *f, struct err_detail *detail)
{
	if (f->refused != ERR_OK)
		return f->refused;
	if (!f->replaces && f->text.len == 0)
		return ERR_OK;
	enum err e = set(f->file.fs->service, buf_span(&f->text), !f->replaces, detail);
	f->replaces = false;
	buf_fini(&f->text);
	return e;
}

static enum err faults_close(struct vfile *file, const struct caller *call)
{
	struct faults_file *f = faults_of(file);
	file->noted = f->refused != ERR_OK;
	return decide(f, call->detail);
}

static enum err faults_read(
	struct vfile *file, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	(void)file, (void)offset, (void)n, (void)out;
	return err_set(call->detail, ERR_NOT_PERMITTED, "Open it for reading alone.");
}

static void faults_file_free(struct vfile *file)
{
	struct faults_file *f = faults_of(file);
	(void)decide(f, NULL);
	buf_fini(&f->text);
	free(f);
}

static const struct vfile_ops faults_file_ops = {
	.pool = VPOOL_INLINE,
	.read = faults_read,
	.write = faults_write_file,
	.close = faults_close,
	.free = faults_file_free,
};

void faults_file_show(struct fs *fs, struct buf *out)
{
	faults_write(service_faults(fs->service), clock_mono_us(), out);
}

enum err faults_file_open(struct fs *fs, int flags, struct vfile **ret)
{
	struct faults_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->file = (struct vfile){ .ops = &faults_file_ops, .fs = fs };
	f->text = BUF_INIT(FAULT_TEXT_MAX);
	f->replaces = (flags & O_TRUNC) != 0;
	*ret = &f->file;
	return ERR_OK;
}

enum err faults_file_cut(struct service *service)
{
	return set(service, SPAN_LIT(""), false, NULL);
}
