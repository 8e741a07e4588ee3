/* SPDX-License-Identifier: MIT */
#include "fs/virtual/dir_control.h"

#include "fs/core/nid.h"
#include "fs/tree/attr.h"
#include "fs/tree/control_names.h"
#include "fs/virtual/batch_file.h"
#include "fs/virtual/changes_file.h"
#include "fs/virtual/import_file.h"
#include "fs/virtual/stream_file.h"

#include <fcntl.h>

#define WRITE_IN_PLACE "A control file is written in place (cp, cat, tee); nothing else changes it."

static const struct vnode_ops batch_ops = {
	.pool = VPOOL_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.why = WRITE_IN_PLACE,
	.takes_attrs = true,
	.stat = dir_control_stat,
	.open = batch_file_open,
	.place = dir_control_place,
};

static enum err rows_open(
	struct fs *fs, uint64_t nid, int flags, const struct caller *call, struct vfile **ret)
{
	return (flags & O_ACCMODE) == O_RDONLY ? stream_file_open_rows(fs, nid, call, ret)
					       : import_file_open(fs, nid, call, ret);
}

static const struct vnode_ops rows_ops = {
	.pool = VPOOL_SCAN,
	.refusal = ERR_NOT_PERMITTED,
	.why = WRITE_IN_PLACE,
	.takes_attrs = true,
	.moments = true,
	.stat = dir_control_stat,
	.open = rows_open,
	.replace = import_file_replace,
	.place = dir_control_place,
};

static const struct vnode_ops changes_ops = {
	.pool = VPOOL_SCAN,
	.refusal = ERR_NOT_PERMITTED,
	.why = "Changes are read; only a position is written to the open file.",
	.takes_attrs = true,
	.moments = true,
	.stat = dir_control_stat,
	.open = changes_file_open,
	.place = dir_control_place,
};

const struct vnode_ops *dir_control_ops_of(uint64_t nid)
{
	switch (nid_dir_control(nid)) {
	case DIR_CONTROL_BATCH:
	case DIR_CONTROL_BATCH_CHECK:
		return &batch_ops;
	case DIR_CONTROL_ROWS_NDJSON:
	case DIR_CONTROL_ROWS_CSV:
		return &rows_ops;
	case DIR_CONTROL_CHANGES:
		return &changes_ops;
	case DIR_CONTROL_QUERY: /* of fs/query/tree.h */
	case DIR_CONTROL_COUNT_:
	case DIR_CONTROL_QUEUES: /* of fs/queue/tree.h */
	case DIR_CONTROL_QUEUES_LAST:
	case DIR_CONTROL_BLOBS: /* of fs/blob/tree.h */
	case DIR_CONTROL_BLOBS_LAST:
		break;
	}
	return NULL;
}

void dir_control_place(struct fs *fs, uint64_t nid, struct span name, struct vplace *ret)
{
	(void)fs, (void)name;
	ret->dir = nid_id(nid);
	ret->name = dir_control_name(nid);
}

void dir_control_attr(
	const struct fs *fs, const struct item *dir, uint64_t nid, mode_t most, struct stat *ret)
{
	struct stat st;
	attr_of_item(fs, dir, &st);
	attr_of_control(fs, nid, ret);
	ret->st_uid = st.st_uid;
	ret->st_gid = st.st_gid;
	ret->st_mode = most & (S_IFMT | st.st_mode);
	if ((st.st_mode & S_ISVTX) != 0) /* others may not change what is not theirs */
		ret->st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
	ret->st_mode |= most & S_IFMT;
	if (S_ISDIR(most))
		ret->st_size = 4096;
}

enum err collection_attr(struct fs *fs, enum item_kind kind, uint64_t id, uint64_t nid, mode_t most,
	struct stat *ret)
{
	struct item it = { 0 }, account = { 0 };
	enum err e = store_get(fs->store, NULL, id, WANT_ATTRS, &it);
	if (e == ERR_OK && it.kind != kind)
		e = ERR_NOT_FOUND;
	if (e == ERR_OK)
		e = store_get(fs->store, NULL, it.parent, WANT_ATTRS, &account);
	if (e == ERR_OK)
		dir_control_attr(fs, &account, nid, most, ret);
	if (e == ERR_OK && S_ISDIR(most))
		ret->st_mtim = ret->st_ctim = ret->st_atim = ticks_to_timespec(it.version);
	item_fini(&account);
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

enum err dir_control_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	mode_t most = dir_control_mode(nid);
	struct item dir = { 0 };
	enum err e =
		most == 0 ? ERR_GONE : store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &dir);
	if (e == ERR_OK)
		dir_control_attr(fs, &dir, nid, most, ret);
	item_fini(&dir);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}
