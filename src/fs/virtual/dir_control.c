/* SPDX-License-Identifier: MIT */
#include "fs/virtual/dir_control.h"

#include "fs/core/nid.h"
#include "fs/query/tree.h"
#include "fs/refused/reason.h"
#include "fs/tree/attr.h"
#include "fs/virtual/batch_file.h"
#include "fs/virtual/import_file.h"
#include "fs/virtual/stream_file.h"

#include <fcntl.h>

#define KIND(k_) (1u << (k_))
#define EVERYWHERE (KIND(ITEM_TABLE) | KIND(ITEM_PARTITION))

#define WRITE_IN_PLACE "A control file is written in place (cp, cat, tee); nothing else changes it."

static const struct vnode_ops batch_ops = {
	.lane = VLANE_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.why = WRITE_IN_PLACE,
	.takes_attrs = true,
	.stat = dir_control_stat,
	.open = batch_file_open,
	.xattr_get = batch_file_xattr_get,
};

static enum err rows_open(
	struct fs *fs, uint64_t nid, int flags, const struct vcall *call, struct vfile **ret)
{
	return (flags & O_ACCMODE) == O_RDONLY ? stream_file_open_rows(fs, nid, call, ret)
					       : import_file_open(fs, nid, call, ret);
}

static const struct vnode_ops rows_ops = {
	.lane = VLANE_SCAN,
	.refusal = ERR_NOT_PERMITTED,
	.why = WRITE_IN_PLACE,
	.takes_attrs = true,
	.stat = dir_control_stat,
	.open = rows_open,
	.xattr_get = dir_control_xattr_get,
};

/* Keep alphabetized. */
static const struct control_name {
	const char *name;
	enum dir_control which;
	unsigned kinds; /* of directories that have it */
	mode_t mode;
	const struct vnode_ops *ops;
} names[] = {
	{ ".batch", DIR_CONTROL_BATCH, EVERYWHERE, S_IFREG | 0666, &batch_ops },
	{ ".batch-check", DIR_CONTROL_BATCH_CHECK, EVERYWHERE, S_IFREG | 0666, &batch_ops },
	{ ".query", DIR_CONTROL_QUERY, KIND(ITEM_TABLE), S_IFDIR | 0777, &query_root_ops },
	{ ".rows.csv", DIR_CONTROL_ROWS_CSV, EVERYWHERE, S_IFREG | 0666, &rows_ops },
	{ ".rows.ndjson", DIR_CONTROL_ROWS_NDJSON, EVERYWHERE, S_IFREG | 0666, &rows_ops },
};

uint64_t dir_control_find(const struct item *dir, struct span name)
{
	if (name.n == 0 || name.p[0] != '.')
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((names[i].kinds & KIND(dir->kind)) != 0 && span_is(name, names[i].name))
			return nid_of_dir_control(names[i].which, dir->id);
	return 0;
}

bool dir_control_entry(
	enum item_kind kind, size_t index, const char **ret_name, enum dir_control *ret_which)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((names[i].kinds & KIND(kind)) != 0 && index-- == 0) {
			*ret_name = names[i].name;
			*ret_which = names[i].which;
			return true;
		}
	return false;
}

static const struct control_name *name_of(uint64_t nid)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].which == nid_dir_control(nid))
			return &names[i];
	return NULL;
}

struct span dir_control_name(uint64_t nid)
{
	const struct control_name *c = name_of(nid);
	return c != NULL ? span_of(c->name) : SPAN_LIT("");
}

enum err dir_control_xattr_get(struct fs *fs, uint64_t nid, const char *name, struct buf *out)
{
	bool found = strcmp(name, "error") == 0 &&
		reasons_get(fs->reasons, nid_id(nid), dir_control_name(nid), 0, out);
	return found ? ERR_OK : ERR_NO_ATTRIBUTE;
}

const struct vnode_ops *dir_control_ops(uint64_t nid)
{
	const struct control_name *c = name_of(nid);
	return c != NULL ? c->ops : NULL;
}

enum err dir_control_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	const struct control_name *c = name_of(nid);
	struct item dir = { 0 };
	struct stat st;
	enum err e =
		c == NULL ? ERR_GONE : store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &dir);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	attr_of_item(fs, &dir, &st);
	item_fini(&dir);
	attr_of_control(fs, nid, ret);
	ret->st_uid = st.st_uid;
	ret->st_gid = st.st_gid;
	ret->st_mode = c->mode & (S_IFMT | st.st_mode);
	if ((st.st_mode & S_ISVTX) != 0) /* others may not change what is not theirs */
		ret->st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
	if (S_ISDIR(c->mode))
		ret->st_size = 4096;
	return ERR_OK;
}
