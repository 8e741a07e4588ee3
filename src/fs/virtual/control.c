/* SPDX-License-Identifier: MIT */
#include "fs/virtual/control.h"

#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/refused/unsaved.h"
#include "fs/tree/attr.h"
#include "fs/virtual/faults_file.h"
#include "fs/virtual/stats.h"

#include <fcntl.h>
#include <stdlib.h>

/* The largest is .rowfs/rejected.ndjson: of some bytes JSON makes six. */
#define CONTENT_LIMIT (6 * UNSAVED_MAX_BYTES + ((size_t)1 << 20))

static void write_version(struct fs *fs, struct buf *out)
{
	buf_addf(out, "rowfs %s\n", fs->version);
}

static void write_errors(struct fs *fs, struct buf *out)
{
	reasons_dump(fs->reasons, out);
}

static void write_waiting(struct fs *fs, struct buf *out)
{
	unsaved_dump(fs->unsaved, out);
}

/* Keep alphabetized. */
static const struct control {
	const char *name;
	uint64_t nid;
	void (*write)(struct fs *fs, struct buf *out); /* NULL: a directory */
} controls[] = {
	{ "errors", NID_ERRORS, write_errors },
	{ "faults", NID_FAULTS, faults_file_show },
	{ "metrics", NID_METRICS, stats_write_metrics },
	{ "rejected", STORE_REJECTED, NULL },
	{ "rejected.ndjson", NID_WAITING, write_waiting },
	{ "snapshots", NID_SNAPSHOTS, NULL },
	{ "stats.json", NID_STATS, stats_write_json },
	{ "trash", STORE_TRASH, NULL },
	{ "version", NID_VERSION, write_version },
};

static const char *control_name(uint64_t nid)
{
	for (size_t i = 0; i < ARRAY_LEN(controls); i++)
		if (controls[i].nid == nid)
			return controls[i].name;
	return "";
}

/* ---- nodes ---- */

static enum err control_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	if (nid == NID_SNAPSHOTS)
		return vnode_ops_of(fs, nid)->stat(fs, nid, ret);
	if (nid_is_control(nid)) {
		attr_of_control(fs, nid, ret);
		return ERR_OK;
	}
	struct item folder = { 0 };
	enum err e = store_get(fs->store, NULL, nid, WANT_ATTRS, &folder);
	if (e == ERR_OK)
		attr_of_item(fs, &folder, ret);
	item_fini(&folder);
	return e;
}

static enum err control_lookup(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	(void)call;
	if (dir != NID_CONTROL_DIR)
		return ERR_NOT_A_DIRECTORY;
	for (size_t i = 0; i < ARRAY_LEN(controls); i++)
		if (span_is(name, controls[i].name)) {
			ret->nid = controls[i].nid;
			ret->valid_s = CACHE_SECONDS;
			ret->moment = controls[i].write != NULL;
			return control_stat(fs, ret->nid, &ret->st);
		}
	return ERR_NOT_FOUND;
}

static enum err control_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	(void)call;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return nid == NID_FAULTS ? faults_file_open(fs, flags, ret) : ERR_NOT_PERMITTED;
	for (size_t i = 0; i < ARRAY_LEN(controls); i++)
		if (controls[i].nid == nid && controls[i].write != NULL) {
			struct buf content = BUF_INIT(CONTENT_LIMIT);
			controls[i].write(fs, &content);
			return vfile_of_content(fs, &content, false, ret);
		}
	return ERR_IS_A_DIRECTORY;
}

/* ---- the directory ---- */

/* Positions: 1 and 2 are "." and "..". */
static enum err control_list(
	struct vdir *d, const struct caller *call, int64_t offset, listing_fn fn, void *arg)
{
	struct stat st;
	(void)call;
	for (size_t i = (size_t)offset; i < ARRAY_LEN(controls) + 2; i++) {
		const struct control *c = i < 2 ? NULL : &controls[i - 2];
		uint64_t nid = c != NULL ? c->nid : NID_CONTROL_DIR;
		enum err e = control_stat(d->fs, nid, &st);
		if (e != ERR_OK)
			return e;
		/* nid 0: no attributes with it, these files change at every read */
		if (!fn(arg, c != NULL ? c->name : i == 0 ? "." : "..", 0, &st, (int64_t)i + 1))
			break;
	}
	return ERR_OK;
}

static void control_close_dir(struct vdir *d)
{
	free(d);
}

static const struct vdir_ops control_dir_ops = {
	.pool = VPOOL_INLINE,
	.read = control_list,
	.free = control_close_dir,
};

static enum err control_opendir(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret)
{
	(void)call;
	if (nid != NID_CONTROL_DIR)
		return ERR_NOT_A_DIRECTORY;
	*ret = calloc(1, sizeof(**ret));
	if (*ret == NULL)
		return ERR_NO_MEMORY;
	**ret = (struct vdir){ .ops = &control_dir_ops, .fs = fs };
	return ERR_OK;
}

static void control_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	(void)fs;
	bool top = name.p == NULL && nid == NID_CONTROL_DIR;
	ret->dir = top ? STORE_ROOT : NID_CONTROL_DIR;
	ret->name = name.p != NULL ? name : span_of(top ? ".rowfs" : control_name(nid));
	ret->inside = top ? NID_CONTROL_DIR : 0;
}

static enum err control_cut(struct fs *fs, uint64_t nid)
{
	return nid == NID_FAULTS ? faults_file_cut(fs->service) : ERR_NOT_PERMITTED;
}

static const struct vnode_ops control_ops = {
	.pool = VPOOL_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.why = "What is in .rowfs cannot be made, changed or removed.",
	.stat = control_stat,
	.lookup = control_lookup,
	.opendir = control_opendir,
	.open = control_open,
	.cut = control_cut,
	.place = control_place,
};

const struct vnode_ops *control_ops_of(uint64_t nid)
{
	(void)nid;
	return &control_ops;
}
