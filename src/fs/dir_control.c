/* SPDX-License-Identifier: MIT */
#include "fs/dir_control.h"

#include "fs/attr.h"
#include "fs/nid.h"

#define KIND(k_) (1u << (k_))
#define EVERYWHERE (KIND(ITEM_TABLE) | KIND(ITEM_PARTITION))

static const struct vnode_ops batch_ops = {
	.lane = VLANE_INLINE,
	.refusal = ERR_NOT_PERMITTED,
	.takes_attrs = true,
	.stat = dir_control_stat,
};

static const struct vnode_ops rows_ops = {
	.lane = VLANE_SCAN,
	.refusal = ERR_NOT_PERMITTED,
	.takes_attrs = true,
	.stat = dir_control_stat,
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

const struct vnode_ops *dir_control_ops(uint64_t nid)
{
	const struct control_name *c = name_of(nid);
	return c != NULL ? c->ops : NULL;
}

enum err dir_control_stat(struct fs *fs, uint64_t nid, struct stat *ret)
{
	const struct control_name *c = name_of(nid);
	if (c == NULL)
		return ERR_GONE;
	attr_of_control(fs, nid, ret);
	ret->st_mode = c->mode & ~(fs->options.umask & 0777);
	if (S_ISDIR(c->mode))
		ret->st_size = 4096;
	return ERR_OK;
}
