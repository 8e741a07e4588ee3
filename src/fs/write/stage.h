/* SPDX-License-Identifier: MIT
 * A staged write: the private document of one writer of a row.  It has a node of its own that no
 * other look-up is given.  So its writer sees what it wrote, and everyone else the last committed
 * row.  A commit is an upsert of the whole document (docs/semantics.md, "A write is staged").
 *
 * Its states stand in stage_state.h.  The calls go one way: stages.c, stage.c, stage_commit.c,
 * stage_check.c, stage_state.c.  A stage of a new name becomes visible as a row without a document
 * as soon as anyone could see the name (stage_create_name). */
#ifndef FS_WRITE_STAGE_H
#define FS_WRITE_STAGE_H

#include "base/buf.h"
#include "base/lock.h"
#include "codec/json_scan.h"
#include "fs/core/state.h"
#include "fs/tree/names.h"
#include "fs/write/stage_state.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

enum stage_change {
	CHANGED_NOTHING,
	CHANGED_ATTRS,
	CHANGED_CONTENT,
};

struct stage {
	/* Its place in the table: the table's lock guards it (stages.c). */
	uint64_t nid;                   /* constant once it is there */
	struct stage *next, *next_node; /* in their buckets */
	unsigned refs;                  /* handles and retries */

	/* Where it was opened, and under which name: constant. */
	uint64_t dir_id;
	char name[COMPONENT_MAX];
	size_t name_len;

	/* What the kernel may have seen meanwhile.  Any thread sets them, without a lock. */
	atomic_bool exposed; /* another node was given out for the name */

	struct mutex lock; /* guards all below; is.name and handles may be read without it */
	struct stage_state is;
	atomic_uint handles;

	/* What holds the name, and where that is now. */
	struct resolved_name at; /* owns its dir; its name is now_name */
	char now_name[COMPONENT_MAX];
	struct item base;     /* what holds the name, as loaded or committed, without body */
	int64_t base_version; /* its version; a rename moves it on, but not base.version */

	/* The document. */
	struct buf buf;
	size_t held; /* of buf, as counted (open_quota.h) */
	uid_t uid;   /* the opener with the smallest share (open_quota.h) */
	struct {
		bool sequential; /* all writes came in order from an empty start */
		struct json_scan scan;
		size_t len;     /* buf up to here is known to be a valid document */
		unsigned flags; /* if so: as document_check() sets them */
	} check;

	/* What the next commit takes along. */
	struct {
		bool loaded;        /* opened without O_TRUNC: commit only over base_version */
		int64_t if_match;   /* what must hold of the row (MATCH_UNSET: nothing) */
		bool admitted;      /* it was let in and counted (service/core/admission.h) */
		struct attrs attrs; /* set on an open handle: hold over the commit */
	} commit;

	/* The last refusal, of a write or a commit. */
	struct {
		enum err error;
		uint64_t at;      /* the offset of the write that was refused */
		uint64_t kept_id; /* the file of the bytes in rejected/; 0: none */
		size_t kept_len;  /* how many there were then, kept or not */
	} refused;

	/* What stage_take_stale() has not told yet. */
	struct {
		enum stage_change changed;
		uint64_t old_nid; /* what the last commit replaced; 0: nothing */
	} stale;
};

/* The id that stage_item() returns. */
static inline uint64_t stage__item(const struct stage *s)
{
	lock_assert_held(&s->lock);
	return s->is.name == NAME_ITEM ? s->base.id : 0;
}

/* Makes a stage of the item, or of a name that does not exist (NULL).  A row that comes without its
 * document has it read by stage_load().  Takes over *at and *item.  Nobody else knows it yet. */
enum err stage_new(struct fs *fs, struct resolved_name *at, struct item *item, struct stage **ret);
/* create(2) made it, and let its next commit in.  attrs: of a name that did not exist; else NULL.
 * */
void stage_created(struct stage *s, const struct attrs *attrs);
void stage_free(struct fs *fs, struct stage *s);

/* Returns whether it still holds what the item holds, untouched.  Its attributes are the item's
 * from now on then. */
bool stage_is_current(struct stage *s, const struct item *item);
/* Reads the row's document, before an open without O_TRUNC.  ERR_GONE: the row was replaced or
 * removed after the look-up of its name. */
enum err stage_load(struct fs *fs, struct stage *s);
/* Lets its next commit in, before an open for writing.  ERR_THROTTLED. */
enum err stage_admit(struct service *service, struct stage *s, struct err_detail *detail);
/* Counts one more handle; truncated: opened with O_TRUNC. */
void stage_opened(const struct fs *fs, struct stage *s, uid_t uid, bool truncated);
bool stage_is_open(struct stage *s);
/* Counts one handle less.  The last one commits a complete document, and moves any other to
 * rejected/. */
void stage_close(struct fs *fs, struct stage *s);

/* These three, and the last close, note the reason of a refusal, and keep the bytes. */
/* write(2); an error is its reply. */
enum err stage_write(struct fs *fs, struct stage *s, uint64_t offset, struct span bytes);
/* close(2); only one in the process that opened the file commits and can fail. */
enum err stage_flush(struct fs *fs, struct stage *s, bool by_opener);
/* fsync(2): commits; not synced yet. */
enum err stage_fsync(struct fs *fs, struct stage *s);

/* ftruncate(2). */
enum err stage_truncate(struct fs *fs, struct stage *s, uint64_t size);
void stage_read(struct stage *s, uint64_t offset, size_t n, struct buf *out);
/* What the kernel knows wrong since the last change: the name under which the row is now, and the
 * committed node that it may lead to. */
struct stale {
	bool any;     /* false: the kernel knows no node of it but the stage's own */
	bool content; /* the node is an old version; else only its attributes are wrong */
	uint64_t nid; /* 0: none */
	uint64_t dir_nid;
	char name[COMPONENT_MAX];
};
void stage_take_stale(struct stage *s, struct stale *ret);
/* chmod(2), chown(2), utimensat(2) on the handle; mask of enum attrs_mask. */
enum err stage_set_attrs(struct fs *fs, struct stage *s, const struct attrs *attrs, uint32_t mask);
/* Sets user.rowfs.if_match for the next commit.  After that commit the stage counts as loaded.  The
 * last close ends the condition at the latest. */
void stage_set_match(struct stage *s, int64_t if_match);
int64_t stage_match(struct stage *s);
/* Takes over mode, owner and times that another request set on the item since the open. */
void stage_look(struct store *store, struct stage *s);
void stage_stat(struct fs *fs, struct stage *s, struct stat *ret);
/* Returns id and version of what holds its name; id 0: nothing does. */
struct item stage_item(struct stage *s);
/* Makes a new name visible: as a row without a document. */
enum err stage_create_name(struct fs *fs, struct stage *s);

#endif
