/* SPDX-License-Identifier: MIT */
#include "fs/virtual/import_file.h"

#include "fs/refused/reason.h"
#include "fs/refused/rejected.h"
#include "fs/tree/control_names.h"
#include "fs/tree/open_quota.h"
#include "fs/tree/requester.h"
#include "model/key.h"
#include "service/transfer/importer.h"

#include <errno.h>
#include <stdlib.h>

#define REST_LIMIT ((size_t)32 << 20) /* a record, and one write */
#define PIECE ((size_t)128 << 10)

struct import_file {
	struct vfile file; /* first */
	uint64_t nid;
	struct importer *importer;
	struct requester requester; /* who opened it, where modes are asked */
	enum err ended;             /* by a line that was refused, or by the store */
	bool news;                  /* something was written since the last close that succeeded */
	bool told;                  /* a close that failed has had all that was written */
	uint64_t rejected_id;
};

static struct import_file *import_of(struct vfile *f)
{
	return (struct import_file *)f;
}

/* Where its rows go now: the directory may have been renamed, or removed. */
static enum err aim(struct import_file *f, struct err_detail *detail)
{
	struct item dir = { 0 };
	enum err e = store_get(f->file.fs->store, NULL, nid_id(f->nid), WANT_ATTRS, &dir);
	if (e == ERR_NOT_FOUND)
		e = err_set(detail, ERR_GONE, "the directory was removed meanwhile");
	if (e == ERR_OK && dir.kind == ITEM_PARTITION) {
		char pk[LIMIT_KEY_BYTES];
		key_from_order(dir.key.p, dir.key.n, pk);
		e = importer_aim(f->importer, dir.parent, span_make(pk, dir.key.n));
	}
	item_fini(&dir);
	return e;
}

/* Keeps the reason, and the input from the first line on that is not in the store; answers
 * what the caller is told. */
static enum err refuse(struct import_file *f, const char *call, enum err e, struct span bytes,
	const struct err_detail *detail)
{
	struct fs *fs = f->file.fs;
	char rejected[REJECTED_NAME_MAX] = "";
	if (e == ERR_TABLE_NOT_FOUND) /* removed behind aim() */
		e = ERR_GONE;
	struct span name = dir_control_name(f->nid);
	struct buf rest = BUF_INIT(REST_LIMIT);
	importer_rest(f->importer, bytes, &rest);
	if (buf_ok(&rest) && rest.len > 0)
		(void)rejected_save(fs, name, buf_span(&rest), &f->rejected_id, rejected);
	buf_fini(&rest);
	reasons_add(fs->reasons,
		&(struct refusal){ .call = call,
			.dir = nid_id(f->nid),
			.name = name,
			.error = e,
			.detail = detail,
			.rejected = rejected[0] != 0 ? rejected : NULL });
	f->file.noted = true;
	return e;
}

static void accepted(struct import_file *f)
{
	reasons_clear(f->file.fs->reasons, nid_id(f->nid), dir_control_name(f->nid));
	if (f->rejected_id != 0)
		rejected_drop(f->file.fs, f->rejected_id);
	f->rejected_id = 0;
}

/* A write is short, and is not broken off: half of it would be in the store, unsaid. */
static enum err import_write(
	struct vfile *file, const struct caller *call, uint64_t offset, struct span bytes)
{
	struct import_file *f = import_of(file);
	struct err_detail detail = { 0 };
	(void)offset;
	if (f->ended != ERR_OK) {
		/* A writer that goes on does not lose that either. */
		if (f->rejected_id != 0 &&
			rejected_append(file->fs, f->rejected_id, bytes) != ERR_OK)
			f->rejected_id = 0;
		f->file.noted = true;
		return f->ended;
	}
	f->news = true;
	f->told = false;
	enum err e = aim(f, &detail);
	if (e == ERR_OK && !open_quota_may_grow(file->fs, call->uid))
		e = err_set(&detail, ERR_NO_MEMORY, "Too much is being written at once.");
	if (e == ERR_OK)
		e = importer_feed(f->importer, bytes, &detail);
	if (e != ERR_OK)
		f->ended = refuse(f, "write", e, bytes, &detail);
	return f->ended;
}

static enum err import_close(struct vfile *file, const struct caller *call)
{
	struct import_file *f = import_of(file);
	struct err_detail detail = { 0 };
	(void)call;
	f->file.noted = f->ended != ERR_OK;
	if (f->ended != ERR_OK || !f->news)
		return f->ended;
	enum err e = aim(f, &detail);
	if (e == ERR_OK)
		e = importer_end(f->importer, &detail);
	f->told = e != ERR_OK;
	if (e != ERR_OK)
		return refuse(f, "close", e, (struct span){ 0 }, &detail);
	f->news = false;
	accepted(f);
	return ERR_OK;
}

static enum err import_sync(struct vfile *file, const struct caller *call)
{
	const struct import_file *f = import_of(file);
	(void)call;
	file->noted = f->ended != ERR_OK;
	return f->ended != ERR_OK ? f->ended : store_sync(file->fs->store);
}

static size_t import_holds(const struct vfile *file)
{
	return importer_holds(((const struct import_file *)file)->importer);
}

static void import_free(struct vfile *file)
{
	struct import_file *f = import_of(file);
	if (!f->told)
		(void)import_close(file, NULL);
	importer_free(f->importer);
	free(f);
}

static const struct vfile_ops import_file_ops = {
	.pool = VPOOL_CHANGE,
	.write = import_write,
	.close = import_close,
	.sync = import_sync,
	.holds = import_holds,
	.free = import_free,
};

static enum err may_change(void *arg, uint64_t table_id, struct span pk)
{
	const struct import_file *f = arg;
	return requester_may_change(&f->requester, table_id, pk);
}

enum err import_file_open(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vfile **ret)
{
	struct item dir = { 0 };
	enum err e = store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &dir);
	bool csv = nid_dir_control(nid) == DIR_CONTROL_ROWS_CSV;
	struct import_options options = { .format = csv ? TRANSFER_CSV : TRANSFER_NDJSON,
		.mode = IMPORT_UPSERT,
		.in_partition = dir.kind == ITEM_PARTITION,
		.stop_at_error = true,
		.at_once = true };
	item_fini(&dir);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	struct import_file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->file = (struct vfile){ .ops = &import_file_ops, .fs = fs };
	f->nid = nid;
	if (call->requester != NULL) {
		f->requester = *call->requester;
		options.may_change = may_change;
		options.arg = f;
	}
	/* Not as the mount's: the kernel must drop what it knows of these rows. */
	e = importer_new(fs->service, ORIGIN_COMMAND, nid_id(nid), &options, &f->importer);
	if (e != ERR_OK) {
		free(f);
		return e;
	}
	*ret = &f->file;
	return ERR_OK;
}

/* ---- a file that is renamed onto the name ---- */

static enum err import_content(struct vfile *f, const struct item *file, const struct caller *call)
{
	char *piece = malloc(PIECE);
	size_t n = 1;
	enum err e = piece != NULL ? ERR_OK : ERR_NO_MEMORY;
	for (uint64_t at = 0; e == ERR_OK && n > 0; at += n) {
		e = store_file_read(f->fs->store, NULL, file->id, at, piece, PIECE, &n);
		if (e == ERR_OK && n > 0)
			e = import_write(f, call, at, span_make(piece, n));
	}
	free(piece);
	return e == ERR_OK ? import_close(f, call) : e;
}

/* Its owner let others rename it, and may have kept them from reading it. */
static bool may_read(const struct caller *call, const struct item *file)
{
	return call->requester == NULL || requester_may(call->requester, &file->attrs, false, 4);
}

enum err import_file_replace(struct fs *fs, uint64_t nid, const struct item *file,
	const struct caller *call, bool *ret_noted)
{
	struct vfile *f = NULL;
	if (!may_read(call, file))
		return ERR_ACCESS;
	enum err e = import_file_open(fs, nid, call, &f);
	if (e != ERR_OK)
		return e;
	e = import_content(f, file, call);
	*ret_noted = f->noted;
	import_free(f);
	/* mv says of EINVAL what is not so. */
	return e != ERR_OK && err_errno(e) == EINVAL ? ERR_NOT_AN_ENTITY : e;
}
