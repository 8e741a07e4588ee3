/* SPDX-License-Identifier: MIT
 * Staging: the private document of one writer of a row.  It has a node of its own that
 * nobody else is given, so the writer sees what it wrote and everyone else the last
 * committed row.  A commit is an upsert of the whole document (docs/semantics.md, "A write
 * is staged").
 *
 *   state      what holds                                  close by the opener
 *   clean      buf is the row as loaded or committed       nothing, success
 *   emptied    truncated to nothing, nothing written       O_TRUNC: nothing, success
 *                                                          ftruncate: ERR_EMPTY
 *   dirty      bytes were written since                    complete: commit; else the error
 *   poisoned   a write was refused                         the same error again,
 *                                                          until it is truncated
 *
 * A stage of a name that did not exist is a draft: an ordinary empty file of that name is
 * kept in the store as soon as anyone could see it (stage_settle), and goes with the first
 * commit. */
#ifndef FS_WRITE_STAGE_H
#define FS_WRITE_STAGE_H

#include "base/buf.h"
#include "base/lock.h"
#include "codec/json_scan.h"
#include "fs/core/state.h"
#include "fs/tree/names.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

struct stage {
	uint64_t nid;
	struct stage *next, *next_node; /* in their buckets; guarded by the table's lock */
	unsigned refs;                  /* handles and notes; guarded by the table's lock */
	uint64_t dir_id;                /* where it was opened, and under which name; constant */
	char name[COMPONENT_MAX];
	size_t name_len;
	bool of_row;         /* that was there when it was opened; constant */
	atomic_bool exposed; /* another node was given out for the name meanwhile */
	atomic_bool asked;   /* somebody else asked for attributes by its node */
	atomic_bool settled; /* no draft that only the daemon knows of (any more) */

	struct mutex lock;   /* for all below */
	atomic_uint handles; /* changed under the lock */
	struct target at;    /* where the row is now; owns its dir; its name is now_name */
	char now_name[COMPONENT_MAX];
	struct item base;  /* the row or draft as loaded, without body */
	uint64_t row_id;   /* the row it was loaded from or committed as; 0: none yet */
	uint64_t draft_id; /* the empty file that holds the name; 0: none */
	bool draft;        /* made by create(2): nothing of this name existed */
	bool changed;      /* since stage_take_stale() was asked last */
	bool changed_content;
	uint64_t old_nid;     /* what the last commit replaced, row or draft; 0: none */
	int64_t base_version; /* of the row as loaded or committed */
	bool loaded;          /* opened without O_TRUNC: commit only over base_version */
	int64_t if_match; /* of the next commit: what must hold of the row (MATCH_UNSET: nothing) */
	bool unread;      /* not opened yet: buf lacks the row's document */
	bool admitted;    /* the next commit was let in and counted (service/core/admission.h) */
	struct buf buf;
	size_t held; /* of buf, as counted (held.h) */
	uid_t uid;   /* the one of its openers who has the smallest share (held.h) */
	bool dirty, poisoned;
	bool missing;    /* bytes of refused writes are in rejected/ and not in buf */
	bool emptied;    /* by ftruncate, not by O_TRUNC */
	bool sequential; /* all writes came in order from an empty start */
	struct json_scan scan;
	size_t checked_len; /* buf up to here is known to be a valid document */
	bool has_keys;
	bool told;            /* a close failed, and nothing was written since */
	enum err error;       /* of the refused write or close */
	struct attrs attrs;   /* set on an open handle: hold over the commit */
	uint64_t rejected_id; /* where the refused bytes are kept; 0: nowhere */
	size_t rejected_len;  /* how many there were then, kept or not */
	uint64_t refused_at;  /* poisoned: the offset of the write that was refused */
};

/* A stage of the item (NULL: of a name that does not exist); a row that comes without its
 * document has it read when it is opened (stage_load).  Takes over *at and *item.  Nobody else knows it yet. */
enum err stage_new(struct fs *fs, struct target *at, struct item *item, struct stage **ret);
void stage_free(struct fs *fs, struct stage *s);

/* Whether it still holds what the item holds, untouched: then its attributes are the item's from
 * now on. */
bool stage_is_current(struct stage *s, const struct item *item);
/* Before it is opened without O_TRUNC.  ERR_GONE: what it stands for has been replaced or removed
 * since its name was looked up. */
enum err stage_load(struct fs *fs, struct stage *s);
/* The handle was opened with O_TRUNC. */
void stage_open_truncated(struct stage *s);
/* The three that write and commit note the reason of what they refuse, with the bytes. */
/* Bytes at offset.  An error is the answer to write(2). */
enum err stage_write(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes);
/* ftruncate(2). */
enum err stage_truncate(struct fs *fs, struct stage *s, uint64_t size);
size_t stage_read(struct stage *s, uint64_t offset, size_t n, struct buf *out);
/* A close(2); only one in the process that opened the file commits and can fail. */
enum err stage_flush(struct fs *fs, struct stage *s, bool by_opener);
/* fsync(2): commits; not synced yet. */
enum err stage_fsync(struct fs *fs, struct stage *s);
/* Before it is opened for writing: lets its next commit in, or not (ERR_THROTTLED). */
enum err stage_admit(struct fs *fs, struct stage *s, struct err_detail *detail);
/* One more handle; one handle less.  With the last one what is complete is committed, what
 * is not goes to rejected/. */
void stage_opened(const struct fs *fs, struct stage *s, uid_t uid);
bool stage_is_open(struct stage *s);
void stage_close(struct fs *fs, struct stage *s);
/* What the last change made wrong in the kernel: the name under which the row is now, and
 * the committed node that it may lead to. */
struct stale {
	bool any;     /* false: the kernel knows no node of it but the stage's own */
	bool content; /* the node is an old version; else only its attributes are wrong */
	uint64_t nid; /* 0: none */
	uint64_t dir_nid;
	char name[COMPONENT_MAX];
};
void stage_take_stale(struct stage *s, struct stale *ret);
/* chmod, chown, utimensat on the handle: mask of enum attrs_mask. */
enum err stage_set_attrs(struct fs *fs, struct stage *s, const struct attrs *attrs, uint32_t mask);
/* user.rowfs.if_match of the descriptors: for the next commit.  After that they are as those that
 * loaded the row.  It ends with the last of them at the latest. */
void stage_set_match(struct stage *s, int64_t if_match);
int64_t stage_match(struct stage *s);
/* Mode, owner and times as somebody else may have set them since it was opened. */
void stage_look(struct fs *fs, struct stage *s);
void stage_stat(struct fs *fs, struct stage *s, struct stat *ret);
/* Makes a draft visible: keeps an empty ordinary file of its name. */
enum err stage_settle(struct fs *fs, struct stage *s);

#endif
