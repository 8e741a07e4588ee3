/* SPDX-License-Identifier: MIT */
#include "fs/virtual/snapshot.h"

#include "base/clock.h"
#include "base/text.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/refused/reason.h"
#include "fs/tree/attr.h"
#include "fs/tree/facts.h"
#include "fs/tree/listing.h"
#include "fs/tree/names.h"
#include "service/view/views.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

/* ---- one item for a moment ---- */

struct use {
	struct view *view;
	struct store_view *moment;
	struct item item;
};

static enum err use_begin(struct fs *fs, uint64_t nid, unsigned want, struct use *ret)
{
	*ret = (struct use){ 0 };
	enum err e = snapshot_begin(
		service_views(fs->service), nid_snapshot(nid), &ret->view, &ret->moment);
	if (e != ERR_OK)
		return e;
	e = store_get(fs->store, ret->moment, nid_id(nid), want, &ret->item);
	if (e != ERR_OK)
		view_end(ret->view);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

static void use_end(struct use *u)
{
	item_fini(&u->item);
	view_end(u->view);
}

/* ---- attributes ---- */

static void attr_in(struct fs *fs, uint32_t snapshot, const struct item *it, struct stat *ret)
{
	attr_of_item(fs, it, ret);
	ret->st_ino = nid_in_snapshot(snapshot, it->id);
}

/* Its ctime is the moment that the snapshot shows. */
static enum err stat_top(struct fs *fs, const struct view_info *info, struct stat *ret)
{
	struct use u;
	enum err e = use_begin(fs, nid_in_snapshot(info->number, STORE_ROOT), WANT_ATTRS, &u);
	if (e != ERR_OK)
		return e;
	attr_in(fs, info->number, &u.item, ret);
	ret->st_ctim = ticks_to_timespec(info->made);
	use_end(&u);
	return ERR_OK;
}

static enum err snapshot_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	struct view_info info;
	struct use u;
	if (nid == NID_SNAPSHOTS) {
		int64_t changed = snapshots_changed(service_views(fs->service));
		attr_of_control(fs, NID_CONTROL_DIR, ret);
		ret->st_ino = nid;
		if (changed != 0)
			ret->st_mtim = ret->st_ctim = ticks_to_timespec(changed);
		return ERR_OK;
	}
	if (nid_id(nid) == STORE_ROOT) {
		enum err e = snapshot_get(service_views(fs->service), nid_snapshot(nid), &info);
		return e == ERR_OK ? stat_top(fs, &info, ret) : e;
	}
	enum err e = use_begin(fs, nid, WANT_ATTRS, &u);
	if (e != ERR_OK)
		return e;
	attr_in(fs, nid_snapshot(nid), &u.item, ret);
	use_end(&u);
	return ERR_OK;
}

/* ---- names ---- */

/* The name may mean another snapshot the next time: the kernel asks again. */
static enum err entry_of(struct fs *fs, const struct view_info *info, struct ventry *ret)
{
	ret->nid = nid_in_snapshot(info->number, STORE_ROOT);
	ret->valid_s = 0;
	enum err e = stat_top(fs, info, &ret->st);
	return e == ERR_GONE ? ERR_NOT_FOUND : e;
}

static enum err look_up_in(struct fs *fs, struct store_view *moment, uint64_t dir, const char *name,
	struct ventry *ret)
{
	struct resolved_name t;
	struct item it = { 0 };
	enum err e = name_resolve_in(fs->store, moment, nid_id(dir), name, &t, NULL);
	if (e != ERR_OK)
		return name_means_nothing(e) ? ERR_NOT_FOUND : e;
	e = resolved_name_item(fs->store, &t, WANT_ATTRS, &it);
	if (e == ERR_OK) {
		ret->nid = nid_in_snapshot(nid_snapshot(dir), it.id);
		ret->valid_s = CACHE_SECONDS;
		attr_in(fs, nid_snapshot(dir), &it, &ret->st);
	}
	item_fini(&it);
	resolved_name_fini(&t);
	return e;
}

static enum err snapshot_lookup(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	char component[LIMIT_FILE_NAME_BYTES + 1];
	struct view_info info;
	struct view *view;
	struct store_view *moment;
	(void)call;
	if (name.n > LIMIT_FILE_NAME_BYTES)
		return ERR_NAME_TOO_LONG;
	if (dir == NID_SNAPSHOTS) {
		enum err e = snapshot_find(service_views(fs->service), name, &info);
		return e == ERR_OK ? entry_of(fs, &info, ret) : e;
	}
	memcpy(component, name.p, name.n);
	component[name.n] = 0;
	enum err e = snapshot_begin(service_views(fs->service), nid_snapshot(dir), &view, &moment);
	if (e != ERR_OK)
		return e;
	e = look_up_in(fs, moment, dir, component, ret);
	view_end(view);
	return e;
}

static enum err snapshot_mkdir(struct fs *fs, uint64_t dir, struct span name,
	const struct caller *call, struct ventry *ret)
{
	struct view_info info;
	if (dir != NID_SNAPSHOTS)
		return ERR_READ_ONLY;
	enum err e = snapshot_make(service_views(fs->service), name, &info, call->detail);
	return e == ERR_OK ? entry_of(fs, &info, ret) : e;
}

static enum err snapshot_rmdir(
	struct fs *fs, uint64_t dir, struct span name, const struct caller *call)
{
	(void)call;
	return dir == NID_SNAPSHOTS ? snapshot_drop(service_views(fs->service), name)
				    : ERR_READ_ONLY;
}

/* ---- directories ---- */

struct dir {
	struct vdir vdir;
	uint64_t nid;
	struct listing *listing; /* NULL: .rowfs/snapshots itself */
};

/* Positions: 1 and 2 are "." and "..", then 2 and the snapshot's number. */
static enum err list_snapshots(struct service *service, int64_t offset, listing_fn fn, void *arg)
{
	struct stat st = { .st_ino = NID_SNAPSHOTS, .st_mode = S_IFDIR };
	struct view_info info = { 0 };
	if (offset < 1 && !fn(arg, ".", 0, &st, 1))
		return ERR_OK;
	if (offset < 2 && !fn(arg, "..", 0, &st, 2))
		return ERR_OK;
	uint32_t after = offset < 2 ? 0 : (uint32_t)(offset - 2);
	while (snapshot_next(service_views(service), after, &info) == ERR_OK) {
		after = info.number;
		st.st_ino = nid_in_snapshot(after, STORE_ROOT);
		/* nid 0: the kernel shall look the name up itself */
		if (!fn(arg, info.name, 0, &st, 2 + (int64_t)after))
			break;
	}
	return ERR_OK;
}

static enum err dir_read(
	struct vdir *vdir, const struct caller *call, int64_t offset, listing_fn fn, void *arg)
{
	const struct dir *d = (const struct dir *)vdir;
	struct fs *fs = vdir->fs;
	struct view *view;
	struct store_view *moment;
	if (d->listing == NULL)
		return list_snapshots(fs->service, offset, fn, arg);
	enum err e =
		snapshot_begin(service_views(fs->service), nid_snapshot(d->nid), &view, &moment);
	if (e != ERR_OK)
		return e;
	e = listing_read(fs, moment, d->listing, call->uid, offset, false, fn, arg);
	view_end(view);
	return e;
}

static void dir_free(struct vdir *vdir)
{
	struct dir *d = (struct dir *)vdir;
	listing_free(vdir->fs->open_quota, d->listing);
	free(d);
}

static const struct vdir_ops dir_ops = {
	.pool = VPOOL_INLINE,
	.read = dir_read,
	.free = dir_free,
};

static enum err open_listing(struct fs *fs, uint64_t nid, struct listing **ret)
{
	struct view *view;
	struct store_view *moment;
	enum err e = snapshot_begin(service_views(fs->service), nid_snapshot(nid), &view, &moment);
	if (e != ERR_OK)
		return e;
	e = listing_new(fs, moment, nid_snapshot(nid), nid_id(nid), ret);
	view_end(view);
	return e;
}

static enum err snapshot_opendir(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vdir **ret)
{
	(void)call;
	struct dir *d = calloc(1, sizeof(*d));
	if (d == NULL)
		return ERR_NO_MEMORY;
	d->vdir = (struct vdir){ .ops = &dir_ops, .fs = fs };
	d->nid = nid;
	enum err e = nid == NID_SNAPSHOTS ? ERR_OK : open_listing(fs, nid, &d->listing);
	if (e != ERR_OK) {
		free(d);
		return e;
	}
	*ret = &d->vdir;
	return ERR_OK;
}

/* ---- files ---- */

/* An ordinary file, of any size; a row's content is read at open. */
struct file {
	struct vfile vfile;
	uint64_t nid;
};

static enum err file_read(
	struct vfile *vfile, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	const struct file *f = (const struct file *)vfile;
	struct fs *fs = vfile->fs;
	struct view *view;
	struct store_view *moment;
	(void)call;
	if (!buf_resize(out, n))
		return ERR_NO_MEMORY;
	enum err e =
		snapshot_begin(service_views(fs->service), nid_snapshot(f->nid), &view, &moment);
	if (e != ERR_OK)
		return e;
	e = store_file_read(fs->store, moment, nid_id(f->nid), offset, out->data, n, &n);
	view_end(view);
	if (e == ERR_OK)
		(void)buf_resize(out, n);
	return e;
}

static void file_free(struct vfile *vfile)
{
	free(vfile);
}

static const struct vfile_ops file_ops = {
	.pool = VPOOL_INLINE,
	.read = file_read,
	.free = file_free,
};

static enum err open_file(struct fs *fs, uint64_t nid, struct vfile **ret)
{
	struct file *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->vfile = (struct vfile){ .ops = &file_ops, .fs = fs, .immutable = true };
	f->nid = nid;
	*ret = &f->vfile;
	return ERR_OK;
}

static enum err snapshot_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	struct use u;
	(void)call;
	if (nid == NID_SNAPSHOTS)
		return ERR_IS_A_DIRECTORY;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return ERR_READ_ONLY;
	enum err e = use_begin(fs, nid, WANT_BODY, &u);
	if (e != ERR_OK)
		return e;
	if (u.item.kind == ITEM_ROW) {
		struct buf content = BUF_INIT(LIMIT_DOCUMENT_BYTES);
		buf_add_span(&content, u.item.body);
		e = vfile_of_content(fs, &content, true, ret);
	} else {
		e = u.item.kind == ITEM_FILE ? open_file(fs, nid, ret) : ERR_IS_A_DIRECTORY;
	}
	use_end(&u);
	return e;
}

/* ---- extended attributes ---- */

static enum err snapshot_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	char created[CLOCK_TEXT_MAX];
	struct view_info info;
	struct use u;
	if (nid == NID_SNAPSHOTS)
		return ERR_NO_ATTRIBUTE;
	enum err e = snapshot_get(service_views(fs->service), nid_snapshot(nid), &info);
	if (e != ERR_OK)
		return e;
	if (nid_id(nid) != STORE_ROOT) {
		e = use_begin(fs, nid, WANT_ATTRS, &u);
		if (e != ERR_OK)
			return e;
		e = fact_get(fs, u.moment, &u.item, name, out);
		use_end(&u);
		return e;
	}
	if (strcmp(name, "created") == 0)
		buf_add(out, created, (size_t)clock_format(info.made, created));
	else if (strcmp(name, "lifetime") == 0)
		buf_addf(out, "%" PRIu64, info.left_s);
	else if (strcmp(name, "log_bytes") == 0)
		buf_addf(out, "%" PRIu64, info.log_bytes);
	else
		return ERR_NO_ATTRIBUTE;
	return ERR_OK;
}

static enum err snapshot_xattr_set(
	struct fs *fs, uint64_t nid, const char *name, struct span value, const struct caller *call)
{
	uint64_t seconds;
	(void)call;
	if (nid == NID_SNAPSHOTS || nid_id(nid) != STORE_ROOT || strcmp(name, "lifetime") != 0)
		return ERR_READ_ONLY;
	if (!text_to_u64(value, &seconds))
		return ERR_INVALID_INPUT;
	return snapshot_set_lifetime(service_views(fs->service), nid_snapshot(nid), seconds);
}

/* What is in a snapshot has the reasons of the snapshot. */
static void snapshot_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	struct view_info info = { 0 };
	ret->dir = NID_SNAPSHOTS;
	if (nid == NID_SNAPSHOTS && name.p != NULL) {
		ret->name = name;
	} else if (nid == NID_SNAPSHOTS) {
		ret->dir = NID_CONTROL_DIR;
		ret->name = SPAN_LIT("snapshots");
		ret->inside = nid;
	} else {
		(void)snapshot_get(service_views(fs->service), nid_snapshot(nid), &info);
		size_t n = strnlen(info.name, sizeof(ret->text) - 1);
		memcpy(ret->text, info.name, n);
		ret->name = span_make(ret->text, n);
	}
}

static const struct vnode_ops snapshot_ops = {
	.pool = VPOOL_INLINE,
	.refusal = ERR_READ_ONLY,
	.why = "A snapshot is read-only; copy out of it (cp) what shall be changed.",
	.stat = snapshot_stat,
	.lookup = snapshot_lookup,
	.opendir = snapshot_opendir,
	.open = snapshot_open,
	.mkdir = snapshot_mkdir,
	.rmdir = snapshot_rmdir,
	.xattr_get = snapshot_xattr_get,
	.xattr_set = snapshot_xattr_set,
	.place = snapshot_place,
};

const struct vnode_ops *snapshot_ops_of(uint64_t nid)
{
	(void)nid;
	return &snapshot_ops;
}

/* ---- ended by force ---- */

static void on_end(void *arg, const struct view_info *info, const char *why)
{
	struct fs *fs = arg;
	struct err_detail detail = { 0 };
	if (why == NULL)
		return;
	(void)err_set(&detail, ERR_GONE, "%s was ended: %s",
		info->number != 0 ? "the snapshot" : "the stream", why);
	reasons_add(fs->reasons,
		&(struct refusal){ .call = info->number != 0 ? "snapshot" : "stream",
			.dir = info->number != 0 ? NID_SNAPSHOTS : STORE_ROOT,
			.name = span_of(info->name),
			.error = ERR_GONE,
			.detail = &detail,
			.rare = true });
	if (info->number != 0)
		notify_name_soon(fs->notifier, NID_SNAPSHOTS, span_of(info->name));
}

void snapshots_start(struct fs *fs)
{
	views_set_bounds(service_views(fs->service), fs->options.snapshot_log,
		fs->options.snapshot_lifetime_s);
	views_on_end(service_views(fs->service), on_end, fs);
}

void snapshots_stop(struct service *service)
{
	views_on_end(service_views(service), NULL, NULL);
}
