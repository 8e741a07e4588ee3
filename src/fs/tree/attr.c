/* SPDX-License-Identifier: MIT */
#include "fs/tree/attr.h"

#include "base/clock.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"

#define NS_PER_SECOND INT64_C(1000000000)

struct timespec attr_timespec(int64_t unix_ns)
{
	int64_t seconds = unix_ns / NS_PER_SECOND;
	int64_t rest = unix_ns % NS_PER_SECOND;
	if (rest < 0) {
		rest += NS_PER_SECOND;
		seconds--;
	}
	return (struct timespec){ .tv_sec = seconds, .tv_nsec = rest };
}

int64_t attr_unix_ns(struct timespec t)
{
	int64_t ns;
	if (__builtin_mul_overflow((int64_t)t.tv_sec, NS_PER_SECOND, &ns) ||
		__builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		return t.tv_sec < 0 ? INT64_MIN + 1 : INT64_MAX;
	return ns;
}

/* version 0: nothing has changed there since the store was made. */
static struct timespec time_of(const struct fs *fs, int64_t set_ns, int64_t version)
{
	if (set_ns != TIME_UNSET)
		return attr_timespec(set_ns);
	return ticks_to_timespec(version != 0 ? version : fs->started);
}

void attr_of_item(const struct fs *fs, const struct item *it, struct stat *ret)
{
	bool dir = item_is_dir(it->kind);
	*ret = (struct stat){ .st_ino = it->id, .st_blksize = 4096 };
	ret->st_nlink = it->parent == STORE_ORPHANS ? 0 : 1;
	mode_t bits = (dir ? 0777u : 0666u) & ~fs->options.umask;
	if (it->id == STORE_REJECTED || it->id == STORE_TRASH)
		bits = 0700; /* they hold what comes from directories of any mode */
	if (it->attrs.mode != MODE_UNSET)
		bits = it->attrs.mode & 07777;
	ret->st_mode = (dir ? S_IFDIR : S_IFREG) | bits;
	ret->st_uid = it->attrs.uid == OWNER_UNSET ? fs->options.uid : it->attrs.uid;
	ret->st_gid = it->attrs.gid == OWNER_UNSET ? fs->options.gid : it->attrs.gid;
	ret->st_size = dir ? 4096 : (off_t)it->size;
	ret->st_blocks = (ret->st_size + 511) / 512;
	ret->st_mtim = time_of(fs, it->attrs.mtime_ns, it->version);
	ret->st_atim = ret->st_mtim;
	ret->st_ctim = it->attrs.ctime_ns == it->attrs.mtime_ns
		? ret->st_mtim
		: time_of(fs, it->attrs.ctime_ns, it->version);
}

void attr_of_control(const struct fs *fs, uint64_t nid, struct stat *ret)
{
	*ret = (struct stat){ .st_ino = nid, .st_nlink = 1, .st_blksize = 4096 };
	ret->st_mode = nid == NID_CONTROL_DIR ? S_IFDIR | 0755 : S_IFREG | 0444;
	/* They tell names of any directory. */
	if (nid == NID_ERRORS || nid == NID_WAITING)
		ret->st_mode = S_IFREG | 0400;
	else if (nid == NID_FAULTS)
		ret->st_mode = S_IFREG | 0600; /* accounts are the owner's to change */
	else if (nid == NID_STATS || nid == NID_METRICS)
		ret->st_mode = S_IFREG | 0440;
	ret->st_uid = fs->options.uid;
	ret->st_gid = fs->options.gid;
	ret->st_size = nid == NID_CONTROL_DIR ? 4096 : 0;
	ret->st_mtim = ret->st_atim = ret->st_ctim = ticks_to_timespec(fs->started);
}

struct attrs attr_for_new(
	const struct fs *fs, const struct item *parent, mode_t mode, uid_t uid, gid_t gid, bool dir)
{
	struct attrs a = ATTRS_UNSET;
	mode_t usual = (dir ? 0777u : 0666u) & ~fs->options.umask;
	if (parent->attrs.mode != MODE_UNSET && (parent->attrs.mode & S_ISGID) != 0) {
		gid = parent->attrs.gid == OWNER_UNSET ? fs->options.gid : parent->attrs.gid;
		mode |= dir ? S_ISGID : 0u;
	}
	if ((mode & 07777) != usual)
		a.mode = MODE_SET(mode & 07777);
	if (uid != fs->options.uid)
		a.uid = uid;
	if (gid != fs->options.gid)
		a.gid = gid;
	return a;
}

void attr_resize_begins(const struct fs *fs, uint64_t id, uint64_t before)
{
	(void)idset_add(fs->resizing, id, (int64_t)before + 1);
}

void attr_resize_ends(const struct fs *fs, uint64_t id, uint64_t before)
{
	(void)idset_add(fs->resizing, id, -((int64_t)before + 1));
}

bool attr_is_resizing(const struct fs *fs, struct item *it)
{
	int64_t before = it->kind == ITEM_FILE ? idset_count(fs->resizing, it->id) : 0;
	if (before > 0)
		it->size = (uint64_t)before - 1;
	return before > 0;
}
