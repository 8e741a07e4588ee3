/* SPDX-License-Identifier: MIT
 * statx(2) for the time at which a row or file was made.  The kernel asks for it since Linux 6.6,
 * by a request that libfuse knows from 3.18 on only; so the loop gives it to this file first.  All
 * but that time is answered as for getattr. */
#include "base/clock.h"
#include "fs/core/nid.h"
#include "fs/requests/kinds.h"

#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* As in the kernel's fuse.h, which is older on some systems. */
#define OPCODE_STATX 52

struct sx_time {
	int64_t sec;
	uint32_t nsec;
	int32_t unused;
};

struct statx_out {
	uint64_t valid_s;
	uint32_t valid_ns, flags;
	uint64_t unused[2];
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, unused_2;
	uint64_t ino, size, blocks, attributes_mask;
	struct sx_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t unused_3[14];
};
_Static_assert(sizeof(struct statx_out) == 288, "as the kernel has it");

/* The request is not libfuse's, so nor is the reply.  A client that was interrupted, or a mount
 * that has gone, does not hear it. */
static void send_raw(struct fuse_call *c, int code, struct statx_out *out)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + (out != NULL ? sizeof(*out) : 0)),
		.error = -code,
		.unique = c->unique,
	};
	struct iovec parts[2] = { { &head, sizeof(head) }, { out, sizeof(*out) } };
	ssize_t unheard = writev(fuse_session_fd(c->fs->session), parts, out != NULL ? 2 : 1);
	(void)unheard;
}

void reply_statx_errno(struct fuse_call *c, int code)
{
	send_raw(c, code, NULL);
}

static struct sx_time time_of(struct timespec t)
{
	return (struct sx_time){ .sec = t.tv_sec, .nsec = (uint32_t)t.tv_nsec };
}

/* An id has one for good, so it need not be of the moment of the other attributes. */
bool item_born(struct fs *fs, uint64_t nid, struct timespec *ret)
{
	struct item it = { 0 };
	bool known =
		store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &it) == ERR_OK && it.born != 0;
	if (known)
		*ret = ticks_to_timespec(it.born);
	item_fini(&it);
	return known;
}

void reply_statx(struct fuse_call *c, const struct stat *st, double timeout)
{
	struct statx_out out = {
		.valid_s = (uint64_t)timeout,
		.mask = STATX_BASIC_STATS,
		.blksize = (uint32_t)st->st_blksize,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mode = (uint16_t)st->st_mode,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = time_of(st->st_atim),
		.ctime = time_of(st->st_ctim),
		.mtime = time_of(st->st_mtim),
	};
	const struct kind_ops *kind = kind_by_id(c->fs, c->nid);
	struct timespec born;
	if (kind->born != NULL && kind->born(c->fs, c->nid, &born)) {
		out.btime = time_of(born);
		out.mask |= STATX_BTIME;
	}
	send_raw(c, 0, &out);
}

bool statx_is(const void *request, size_t n, struct statx_request *ret)
{
	struct fuse_in_header head;
	if (n < sizeof(head))
		return false;
	memcpy(&head, request, sizeof(head));
	*ret = (struct statx_request){ .nid = head.nodeid,
		.unique = head.unique,
		.tid = (pid_t)head.pid,
		.uid = head.uid,
		.gid = head.gid };
	return head.opcode == OPCODE_STATX;
}
