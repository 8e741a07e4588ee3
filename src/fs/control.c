/* SPDX-License-Identifier: MIT */
#include "fs/control.h"

#include "base/clock.h"
#include "fs/attr.h"
#include "fs/blob.h"
#include "fs/idset.h"
#include "fs/nid.h"
#include "fs/notify.h"
#include "fs/reason.h"
#include "fs/stages.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* The largest is .rowfs/errors. */
#define CONTENT_LIMIT ((size_t)16 << 20)

static void write_version(struct fs *fs, struct buf *out)
{
	buf_addf(out, "rowfs %s\n", fs->version);
}

static void write_errors(struct fs *fs, struct buf *out)
{
	reasons_dump(fs->reasons, out);
}

static void write_operations(struct fs *fs, struct buf *out)
{
	static const char *const names[OP_COUNT_] = {
#define X(symbol_, name_) name_,
		OP_LIST(X)
#undef X
	};
	buf_add_str(out, "  \"operations\": {");
	const char *comma = "";
	for (size_t i = 0; i < OP_COUNT_; i++) {
		struct opstat *s = &fs->opstats.op[i];
		uint64_t count = atomic_load(&s->count);
		if (count == 0)
			continue;
		buf_addf(out,
			"%s\n    \"%s\": {\"count\": %" PRIu64 ", \"errors\": %" PRIu64
			", \"mean_us\": %" PRIu64 ", \"max_us\": %" PRIu64 "}",
			comma, names[i], count, (uint64_t)atomic_load(&s->errors),
			(uint64_t)atomic_load(&s->total_us) / count,
			(uint64_t)atomic_load(&s->max_us));
		comma = ",";
	}
	buf_add_str(out, "\n  }\n");
}

static void write_stats(struct fs *fs, struct buf *out)
{
	struct store_info store;
	struct blobs_info blobs;
	char started[CLOCK_TEXT_MAX];
	store_info(fs->store, &store);
	blobs_info(fs->blobs, &blobs);
	clock_format(fs->started, started);
	buf_addf(out, "{\n  \"version\": \"%s\",\n  \"pid\": %d,\n  \"started\": \"%s\",\n",
		fs->version, getpid(), started);
	buf_addf(out,
		"  \"store\": {\"bytes\": %" PRIu64 ", \"wal_bytes\": %" PRIu64
		", \"ordinary_file_bytes\": %" PRIu64 ", \"commits\": %" PRIu64
		", \"changes\": %" PRIu64 ", \"syncs\": %" PRIu64 "},\n",
		store.bytes, store.log_bytes, store.file_bytes, store.commits, store.changes,
		store.syncs);
	buf_addf(out,
		"  \"cache\": {\"rows\": %zu, \"bytes\": %zu, \"pinned\": %zu, \"hits\": %" PRIu64
		", \"misses\": %" PRIu64 ", \"invalidations\": %" PRIu64 "},\n",
		blobs.count, blobs.bytes, blobs.pinned, blobs.hits, blobs.misses,
		notifier_sent(fs->notifier));
	buf_addf(out, "  \"open_stages\": %zu,\n", stages_count(fs->stages));
	write_operations(fs, out);
	buf_add_str(out, "}\n");
}

/* Keep alphabetized. */
static const struct control {
	const char *name;
	uint64_t nid;
	void (*write)(struct fs *fs, struct buf *out); /* NULL: a directory */
} controls[] = {
	{ "errors", NID_ERRORS, write_errors },
	{ "rejected", STORE_REJECTED, NULL },
	{ "stats.json", NID_STATS, write_stats },
	{ "trash", STORE_TRASH, NULL },
	{ "version", NID_VERSION, write_version },
};

/* ---- nodes ---- */

static enum err control_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	if (nid_is_control(nid)) {
		attr_of_control(fs, nid, ret);
		return ERR_OK;
	}
	const struct vnode_ops *ops = vnode_ops_of(nid);
	if (ops != NULL)
		return ops->stat(fs, nid, ret);
	struct item folder = { 0 };
	enum err e = store_get(fs->store, NULL, nid, WANT_ATTRS, &folder);
	if (e == ERR_OK)
		attr_of_item(fs, &folder, ret);
	item_fini(&folder);
	return e;
}

static enum err control_lookup(
	struct fs *fs, uint64_t dir, struct span name, const struct vcall *call, struct ventry *ret)
{
	(void)call;
	if (dir != NID_CONTROL_DIR)
		return ERR_NOT_A_DIRECTORY;
	for (size_t i = 0; i < ARRAY_LEN(controls); i++)
		if (span_is(name, controls[i].name)) {
			ret->nid = controls[i].nid;
			ret->valid_s = CACHE_SECONDS;
			return control_stat(fs, ret->nid, &ret->st);
		}
	return ERR_NOT_FOUND;
}

static enum err control_open(
	struct fs *fs, uint64_t nid, int flags, const struct vcall *call, struct vfile **ret)
{
	(void)call;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return ERR_NOT_PERMITTED;
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
	struct vdir *d, const struct vcall *call, int64_t offset, listing_fn fn, void *arg)
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
	.lane = VLANE_INLINE,
	.read = control_list,
	.free = control_close_dir,
};

static enum err control_opendir(
	struct fs *fs, uint64_t nid, const struct vcall *call, struct vdir **ret)
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

const struct vnode_ops control_vnode_ops = {
	.lane = VLANE_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.stat = control_stat,
	.lookup = control_lookup,
	.opendir = control_opendir,
	.open = control_open,
};
