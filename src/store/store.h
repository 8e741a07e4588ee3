/* SPDX-License-Identifier: MIT
 * The store: the engine interface and its contract.  Everything that rowfs keeps is an
 * item in a tree: accounts hold tables and queues, tables hold partitions, partitions hold
 * rows and ordinary files, queues hold messages, containers hold blobs; folders (dot-directories
 * beside the rows) hold files and folders.  An
 * engine keeps items, orders them, and applies change sets; it knows no meaning beyond
 * what stands here.  A second engine can be written from this page, and
 * tests/unit/store_contract.c is the suite that it must pass.
 *
 * Rules:
 *  1. Atomicity is asked for by one call of apply() and by nothing else; no transaction
 *     handle crosses this interface.  The caller keeps a change set inside one directory,
 *     or checks STORE_CAN_SPAN first.
 *  2. The caller chooses versions (100 ns ticks, base/clock.h) before the call.  A version must
 *     exceed that of the item it changes.  Else nothing is applied, and the answer is
 *     ERR_STALE_VERSION: the caller takes a later one than version_floor() and calls again, a
 *     bounded number of times.  So a retry is idempotent.
 *  3. A call may block.  Its caller may hold only locks that stand above STORE_CALL in
 *     base/lock_ranks.h: those of one thing (a staged write, a listing), and those around a
 *     change set.  Every call asserts that.  ERR_OUTCOME_UNKNOWN and ERR_THROTTLED are
 *     possible answers of every call.
 *  4. Keys arrive in order form (model/key.h): no NUL, memcmp order is the service's.
 *  5. Listings name the next key, never an offset, and may stop early.
 *  6. Ids come from the engine: greater than STORE_ID_FIRST, less than 2^40, stable, never
 *     used again, carried through moves.  CHANGE_TO_FILE gives rules_left_id().  Their order
 *     means nothing: an engine may take them in blocks.
 *  7. Every call may be made by many threads at once.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum item_kind {
	ITEM_NONE,
	ITEM_ACCOUNT, /* child of STORE_ROOT; body: the account's secrets */
	ITEM_TABLE,   /* body: its stored access policies; may be empty */
	ITEM_PARTITION,
	ITEM_ROW,     /* body: the document, exactly as a file shows it; see item_is_empty_row() */
	ITEM_FILE,    /* an ordinary file; content by file_read and CHANGE_WRITE */
	ITEM_FOLDER,  /* a directory among the ordinary files; in a table: a partition whose
			   key is not known yet (made under its digest name) */
	ITEM_QUEUE,   /* child of an account; body: its metadata and stored access policies */
	ITEM_MESSAGE, /* child of a queue; body: its text */
	ITEM_CONTAINER, /* child of an account; body: its metadata and policies */
	ITEM_BLOB,      /* child of a container; body: all but its content (service/blobs) */
	ITEM_EXTENT, /* content of a blob; before its upload has ended, a child of STORE_ORPHANS */
	ITEM_PIECE,  /* child of an extent, or of a blob; body: bytes */
};

/* The name spaces of a directory.  A listing shows one of them. */
enum item_class {
	CLASS_KEYED, /* accounts, tables (key: name in lower case), partitions, rows */
	CLASS_NAMED, /* ordinary files and folders; key: the name's bytes */
	CLASS_QUEUE, /* queues of an account, messages of a queue */
	CLASS_BLOB,  /* containers of an account, and all below them */
};

/* Fixed ids.  They exist in every store, are never listed, and cannot be removed. */
#define STORE_ROOT 1        /* parent of the accounts */
#define STORE_REJECTED 2    /* folder: .rowfs/rejected */
#define STORE_TRASH 3       /* folder: .rowfs/trash */
#define STORE_ORPHANS 4     /* folder: removed ordinary files that are still open, and extents */
#define STORE_ID_FIRST 1024 /* ids below are fixed or belong to a front end */
#define STORE_ID_BITS 40

enum item_flags {
	ITEM_MADE = 1,        /* directories: stays while it is empty */
	ITEM_KEYS_INSIDE = 2, /* rows: the document holds PartitionKey or RowKey */
	ITEM_CANONICAL = 4,   /* rows: the document is what codec/entity_json.h writes, without
				 keys: it can be spliced into answers as it is */
	/* Pieces: all bits of ITEM_PIECE_FLAGS, as the caller likes. */
	ITEM_HELD_EMPTY = 8, /* directories: an empty row stands there, or stood there once */
};

#define ITEM_PIECE_FLAGS 0xffu

#define TIME_UNSET INT64_MIN
#define MODE_UNSET 0u
#define OWNER_UNSET UINT32_MAX

/* attrs.if_match: else it is the version that the row must have. */
#define MATCH_UNSET INT64_C(0)
#define MATCH_PRESENT INT64_C(-1) /* a row of any version must be there */
#define MATCH_ABSENT INT64_C(-2)  /* no row may be there */

/* The results of chmod, chown, utimensat and setxattr.  "Unset" means the default: the mount's mode
 * and owner, and the version's time. */
struct attrs {
	uint32_t mode;     /* permission bits | 0x10000 so that 0000 is a set mode; MODE_UNSET */
	uint32_t uid, gid; /* OWNER_UNSET */
	int64_t mtime_ns;  /* since 1970; TIME_UNSET: follows version */
	int64_t ctime_ns;  /* TIME_UNSET: follows version */
	int64_t if_match;  /* files: what must hold of the row that the file replaces (MATCH_UNSET:
			      nothing); goes when the file becomes a row.  The engine keeps it,
			      the caller asks it */
};
#define ATTRS_UNSET \
	((struct attrs){ \
		MODE_UNSET, OWNER_UNSET, OWNER_UNSET, TIME_UNSET, TIME_UNSET, MATCH_UNSET })
#define MODE_SET(bits_) ((uint32_t)(bits_) | 0x10000u)

struct item {
	uint64_t id, parent;
	enum item_kind kind;
	enum item_class class;
	uint32_t flags;      /* enum item_flags */
	uint64_t generation; /* moves on with every new content of a row, not with attributes;
			     starts at 1 for a new row, 0 for everything else (that of a message
			     or a piece moves on with a new body); it moves on
			     where a row becomes a file, and is kept where a file becomes a
			     row: (id, generation) names one immutable row content. */
	int64_t version;     /* ticks.  Rows: Timestamp, the ETag.  Files, directories: last change
			    of content or membership */
	int64_t born; /* ticks.  Rows, messages, pieces and files: the version with which it was made, whatever
			     changes, replaces or moves it afterwards; a file that a row leaves
			     behind has the row's.  0: not known.  Directories: 0 */
	struct attrs attrs;
	uint64_t
		size; /* rows, messages, pieces and files: bytes; directories: number of children */
	struct span key;  /* order form (CLASS_KEYED) or name bytes */
	struct span name; /* tables: the name in its own case; else empty */
	struct span body; /* of each kind that has one, where asked for; else p is NULL */
	void *mem;        /* owns what the spans point to; item_fini() frees it */
};

/* Whether it is a row without a document: a name that waits for one.  The mount shows an empty
 * file; for all others no row is there.  Not known after WANT_KEYS. */
static inline bool item_is_empty_row(const struct item *it)
{
	return it->kind == ITEM_ROW && it->size == 0;
}

/* A zeroed item is fine; the item is zeroed afterwards. */
void item_fini(struct item *it);
/* A deep copy.  ERR_NO_MEMORY. */
enum err item_copy(struct item *to, const struct item *from);

/* ---- reading ---- */

enum store_want {
	WANT_ATTRS = 0,
	WANT_BODY = 1,
	WANT_KEYS = 2,       /* list(): id, kind and key of each will do; the rest may be 0 */
	WANT_SMALL_BODY = 4, /* child(), list(): the body of a row, message or piece up to
				STORE_SMALL_BODY bytes */
	WANT_BODIES = WANT_BODY | WANT_SMALL_BODY,
	WANT_FEW = 8, /* list(): the caller stops after a few items; an engine may read them with
			 a lock held that writers need */
};
#define STORE_SMALL_BODY ((uint64_t)32 << 10)

/* A consistent, unchanging view of the whole store.  NULL in its place means: now. */
struct store_view;

/* Return false to stop the listing.  The item is borrowed for the call only (take it over
 * with item_copy()).  The engine may hold a lock: from here no call into the store, and only locks
 * below the engines' in base/lock_ranks.h. */
typedef bool (*store_list_fn)(void *arg, const struct item *it);

/* Returns true for an item of a scan that fn need not see.  Only key, version, flags and body are
 * set.  Otherwise as store_list_fn. */
typedef bool (*store_skip_fn)(void *arg, const struct item *it);

/* ---- changing ---- */

enum change_op {
	CHANGE_PUT,    /* make or replace a row or piece; make a directory, file, message or
			  account; PUT on an existing account, table, queue, container or blob
			  replaces its body (a table keeps its name).  New file: empty.  A row
			  without a document replaces nothing. */
	CHANGE_DELETE, /* remove a row, a file, or an empty directory (ERR_NOT_EMPTY; whole
			  subtrees with CHANGE_RECURSIVE) */
	CHANGE_MOVE,   /* item -> to; what stands there is removed in the same step
			  (directories: only an empty one, else ERR_NOT_EMPTY) unless
			  CHANGE_NO_REPLACE (ERR_NAME_EXISTS or the like).  Kind changes
			  FILE<->ROW and FOLDER->PARTITION by to_kind; a FILE that becomes a
			  ROW takes `body` as its document, which must be what the file
			  holds: give cond_version.  A message or a piece takes `body` as its
			  new one. */
	CHANGE_ATTRS,  /* set attrs (only the members that set_mask names); no new version */
	CHANGE_WRITE,  /* files: body at offset, extends */
	CHANGE_RESIZE, /* files: size = offset */
};

/* To COND_ABSENT and COND_PRESENT an empty row is nothing. */
enum change_cond {
	COND_NONE,
	COND_ABSENT,  /* else ERR_ENTITY_EXISTS, ERR_TABLE_EXISTS, ERR_ACCOUNT_EXISTS,
			 ERR_QUEUE_EXISTS, ERR_CONTAINER_EXISTS, ERR_BLOB_EXISTS or
			 ERR_NAME_EXISTS by kind */
	COND_PRESENT, /* else ERR_NOT_FOUND */
	COND_VERSION, /* present (else ERR_NOT_FOUND) with this version, else
			 ERR_CONDITION_NOT_MET */
	COND_ID,      /* present (else ERR_NOT_FOUND) with this id, else ERR_GONE */
};

enum change_flags {
	CHANGE_RECURSIVE =
		1, /* DELETE of a directory with all below it, however much: see Removal */
	CHANGE_NO_REPLACE = 2,
	CHANGE_WANT_OLD = 4,  /* fill `old` with body: what was removed, replaced or rewritten */
	CHANGE_KEEP_DIR = 8,  /* DELETE, MOVE: the directory left behind becomes ITEM_MADE */
	CHANGE_EXCHANGE = 16, /* MOVE: what stands at `to` goes to where the item was (must be
				 there: ERR_NOT_FOUND); its own conversion: other_kind,
				 other_body */
	CHANGE_FREED = 32,    /* PUT, WRITE: the set removes as much as this adds, so the space
				 that is kept free for removing may be used */
	CHANGE_RESERVED = 64, /* PUT, WRITE: all but the last of that space may be used */
	CHANGE_TO_FILE = 128, /* DELETE of a row (else ERR_INVALID_INPUT): its document becomes the
				 content of a new file at `to` (else rules_exists()), with the
				 row's mode, owner and time.  offset: so many bytes the caller
				 takes it for, to see whether there is room; CHANGE_FREED as
				 for PUT */
};

enum attrs_mask {
	ATTR_MODE = 1,
	ATTR_UID = 2,
	ATTR_GID = 4,
	ATTR_MTIME = 8,
	ATTR_CTIME = 16,
	ATTR_FLAG_MADE = 32, /* directories: flags & ITEM_MADE */
	ATTR_MATCH = 64,     /* files */
};

/* Where an item is: a child of `parent`.  With has_pk: the row `key` of the partition `pk` of the
 * table `parent`; a PUT or a MOVE makes the partition if needed.  By id alone: id != 0, the rest is
 * ignored (ERR_GONE if there is none). */
struct item_ref {
	uint64_t id;
	uint64_t parent;
	bool has_pk;
	struct span pk; /* order form */
	enum item_class class;
	struct span key;
};

struct change {
	enum change_op op;
	uint32_t flags;
	struct item_ref at;
	enum change_cond cond;
	int64_t cond_version; /* COND_VERSION: version; COND_ID: the id */

	int64_t version;        /* rule 2; not for CHANGE_ATTRS */
	enum item_kind kind;    /* PUT */
	struct span name;       /* PUT of a table, MOVE of a table: the name in its case */
	uint32_t item_flags;    /* PUT; MOVE with a body */
	struct span body;       /* PUT of an item with a body, WRITE; MOVE: a rewritten document or
				 text (p not NULL: generation moves on unless a file becomes a row) */
	struct attrs attrs;     /* PUT: of a new item; of a replaced row: mode and owner are kept
				 where unset here, times are taken as given; ATTRS */
	uint32_t set_mask;      /* ATTRS */
	uint64_t offset;        /* WRITE, RESIZE; DELETE: see CHANGE_TO_FILE */
	struct item_ref to;     /* MOVE; DELETE with CHANGE_TO_FILE */
	bool to_match;          /* MOVE: what stands at `to` must have to_version, else */
	int64_t to_version;     /* ERR_CONDITION_NOT_MET */
	enum item_kind to_kind; /* MOVE; ITEM_NONE: unchanged */
	enum item_kind other_kind; /* EXCHANGE; ITEM_NONE: unchanged */
	struct span other_body;    /* EXCHANGE */
	uint32_t other_flags;

	/* Results, set when apply() answers ERR_OK; the caller item_fini()s them. */
	struct item now;     /* the item after the change, without body; DELETE: as it was */
	struct item old;     /* with CHANGE_WANT_OLD; kind is ITEM_NONE if there was nothing */
	struct item left;    /* a partition without ITEM_MADE that went with its last row */
	bool made_partition; /* a partition was made on the way; now.parent is its id */
};

/* Membership: a change that adds or removes a child sets the parent's version (and its
 * attrs.mtime_ns, ctime_ns to TIME_UNSET) and its size.  A partition that loses its last
 * row and file goes too unless it is ITEM_MADE or CHANGE_KEEP_DIR was given.  Where the set puts
 * another one there, an engine may keep it. */

/* Removal: what is below a removed directory is gone with the commit for every reader and every
 * change, by id too, and the name is free.  The commit takes no longer for more; an engine may
 * reclaim the space later, on its own, in pieces that other change sets need not wait for, and goes
 * on at the next open.  A change set that would be refused for lack of space or quota waits for it
 * instead.  Views of before show everything until they are closed. */

enum store_ability {
	STORE_CAN_VIEW = 1,      /* views of the whole store; without: view_open() gives NULL */
	STORE_CAN_MOVE_DIRS = 2, /* MOVE of directories; without: ERR_CROSS_DEVICE */
	/* Change sets over several directories, also a MOVE from one to another; without:
	 * ERR_CROSS_DEVICE.  A change stands in the directory of its item, CHANGE_ATTRS of a
	 * directory, and PUT where one is, in that directory.  A partition that a set makes or
	 * empties does not count. */
	STORE_CAN_SPAN = 4,
	STORE_COUNTS_EXACT = 8, /* item.size of directories is exact; without: 0 means empty, and
				   any other size is an estimate */
	STORE_READ_ONLY = 16,   /* every apply() answers ERR_READ_ONLY */
	/* Other processes may change the store, and listen() does not tell of it: what may be
	 * changed must be read anew for every request. */
	STORE_SHARED = 32,
	/* Without STORE_CAN_SPAN: a MOVE of a row to another partition, as the only change of its
	 * set, is two steps.  The row is put there, as another item, and then deleted here.  A crash
	 * in between leaves both. */
	STORE_MOVES_IN_STEPS = 64,
	STORE_FINDS = 128, /* store_find(); without: ERR_NOT_SUPPORTED */
};

#define STORE_COMMIT_SIZES 8
#define STORE_NOTE_MAX 4096

struct traffic;

struct store_info {
	unsigned abilities;
	int upgraded_from; /* the schema's version before this opening upgraded it; 0: it did not */
	const char *kept_copy; /* of before; NULL: none was wanted.  Valid until the close */
	uint64_t bytes;        /* on disk */
	/* Kept in a cluster.  bytes: of its whole pool; then the cluster's space; 0: not known. */
	bool remote;
	uint64_t large_rows; /* a partition of so many rows is large; 0: of any number is fine */
	uint64_t remote_bytes, remote_free;
	uint64_t log_bytes;    /* of that: write-ahead log */
	uint64_t cached_bytes; /* in memory: what only makes reads quicker */
	uint64_t log_rest;     /* up to here the log is left as large as it is; 0: there is none */
	uint64_t
		file_bytes; /* sum of ordinary files' sizes; removed ones until they are reclaimed */
	/* The same of the pieces of blobs, and their limit; UINT64_MAX: there is none. */
	uint64_t piece_bytes, piece_limit;
	/* Since open; commits < change sets: shared commits. */
	uint64_t commits, change_sets, changes, syncs;
	const struct traffic *traffic; /* of an account elsewhere (cloud/traffic.h); NULL: none */
	uint64_t slices;               /* commits that reclaimed a part of what was removed */
	bool reclaiming;               /* some of what was removed is still on disk */
	/* Commits by how many change sets shared them: the i-th counts those of at least
	 * 1 << i, and fewer than 2 << i but for the last one. */
	uint64_t commit_sizes[STORE_COMMIT_SIZES];
};

/* One finding of check(); return false to stop. */
typedef bool (*store_check_fn)(void *arg, const char *finding);
/* The units of a check's progress. */
enum store_check_unit {
	STORE_CHECK_PAGES, /* of the file; each is read about twice, and counts each time */
	STORE_CHECK_ITEMS, /* each is compared with others several times, and counts each time */
};
/* Told a unit after the other, often.  total: an estimate; 0: nobody knows. */
typedef void (*store_progress_fn)(
	void *arg, enum store_check_unit unit, uint64_t done, uint64_t total);
/* Is told of an external change set: one that another process has committed.  `changes` has the
 * results of its apply(), with `old` except for its body.  The callee drops what it remembers of the
 * old state before it returns; after that, the engine acknowledges the set to its writer.  Must not
 * call apply(). */
typedef void (*store_external_fn)(void *arg, const struct change *changes, size_t n);
/* Is called about every MiB, with bytes done and bytes in all; return false to stop. */
typedef bool (*store_copy_fn)(void *arg, uint64_t done, uint64_t total);

/* ---- the feed of changes ---- */

/* A line of the feed.  Lines are numbered in the order of the commits.  The version tells lines of one
 * number in two copies of a store apart. */
struct store_feed_position {
	uint64_t number;
	int64_t version; /* ticks, of the change */
};
enum store_feed_kind {
	STORE_FEED_BEGIN,  /* no change: the feed began here */
	STORE_FEED_PUT,    /* a row was made or replaced; without rk: all rows of the partition */
	STORE_FEED_DELETE, /* a row was removed; without rk: the partition */
};
struct store_feed_line {
	struct store_feed_position at;
	enum store_feed_kind kind;
	uint64_t table;     /* its id */
	struct span pk, rk; /* order form; rk.p may be NULL, of a BEGIN both */
};
/* Return false to stop.  As store_list_fn. */
typedef bool (*store_feed_fn)(void *arg, const struct store_feed_line *line);

/* The feed ends with the first change after it was not asked for so long. */
#define STORE_FEED_KEPT_TICKS (INT64_C(24) * 3600 * 10000000)
/* Lines older than that, and all but the latest so many, are dropped. */
#define STORE_FEED_LINES 1000000

/* ---- finding rows ---- */

/* Names the rows that a caller wants.  Keys are in order form. */
struct store_find {
	uint64_t table;
	struct span filter; /* $filter, as filter_print() writes it */
	/* From this row on, which need not be there.  p is not NULL; an engine takes a control character
	 * at the end of a key for a place behind that key. */
	struct span from_pk, from_rk;
	/* To this row.  rk.p NULL: to the end of the partition, pk.p NULL: to that of the table. */
	struct span until_pk, until_rk;
	/* $select: a row may come without its id, and its document needs these properties only; n 0:
	 * rows come as from list() with WANT_BODY. */
	struct span select;
	unsigned most; /* about so many rows are wanted; 0: as many as one answer has */
};

/* Tells where the next call begins, unless fn returned false.  The caller frees the keys. */
struct store_found {
	bool more; /* rows may follow: go on from the keys */
	struct buf next_pk, next_rk;
};

/* Takes a row and its partition; as store_list_fn, but no lock is held. */
typedef bool (*store_find_fn)(void *arg, const struct item *partition, const struct item *row);

struct store;
struct store_ops {
	const char *name;

	/* The item with this id, or ERR_NOT_FOUND. */
	enum err (*get)(struct store *s, struct store_view *v, uint64_t id, unsigned want,
		struct item *ret);
	/* The child with this key, or ERR_NOT_FOUND (also if there is no such parent). */
	enum err (*child)(struct store *s, struct store_view *v, uint64_t parent,
		enum item_class class, struct span key, unsigned want, struct item *ret);
	/* Children of one class in key order: those greater than `after` (from the first one
	 * where after.p is NULL; `inclusive`: or equal to it), until fn answers false.
	 * *ret_more: fn did not stop it, but there may be more; go on after the last key. */
	enum err (*list)(struct store *s, struct store_view *v, uint64_t parent,
		enum item_class class, struct span after, bool inclusive, unsigned want,
		store_list_fn fn, void *arg, bool *ret_more);
	/* See store_find().  NULL: without STORE_FINDS. */
	enum err (*find)(struct store *s, const struct store_find *q, store_find_fn fn, void *arg,
		struct store_found *ret);
	/* As list() with WANT_BODY, but asks skip(arg) first: fn sees no item for which it returns
	 * true.  NULL: the engine has no cheaper way than list(). */
	enum err (*scan)(struct store *s, struct store_view *v, uint64_t parent,
		enum item_class class, struct span after, bool inclusive, store_skip_fn skip,
		store_list_fn fn, void *arg, bool *ret_more);
	/* Up to n bytes of an ordinary file; 0 at or behind its end. */
	enum err (*file_read)(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
		void *out, size_t n, size_t *ret_n);

	/* All n changes in order, or none.  On failure reterr->op is the index of the change
	 * to blame.  Returned means visible to every reader; durable: it also survives a power
	 * cut.  Change sets of several threads may share one commit. */
	enum err (*apply)(struct store *s, struct change *changes, size_t n, bool durable,
		struct err_detail *reterr);
	/* ERR_NO_SPACE if a row or file of so many bytes would be refused now; ERR_IO,
	 * ERR_READ_ONLY if every change would be.  An answer for this moment, to tell a writer
	 * early; cheap where all is well. */
	enum err (*room)(struct store *s, uint64_t bytes, struct err_detail *reterr);
	/* Everything acknowledged so far survives a power cut when this returns. */
	enum err (*sync)(struct store *s);

	/* A version greater than or equal to every version ever applied, across restarts. */
	int64_t (*version_floor)(struct store *s);

	/* held: it may stay open for long, so no change set may wait for its end.  One that is
	 * not is closed within a second or so, and a change set may wait for that long.  *ret is
	 * NULL, which means now, where the engine has no views. */
	enum err (*view_open)(struct store *s, bool held, struct store_view **ret);
	void (*view_close)(struct store *s, struct store_view *v);

	void (*info)(struct store *s, struct store_info *ret);
	/* Verifies what the engine alone can know.  ERR_CORRUPT if it found anything. */
	enum err (*check)(
		struct store *s, store_check_fn fn, store_progress_fn progress, void *arg);
	/* Writes the whole store as the view shows it to fd, an empty file that is open for reading
	 * and writing, and syncs it: a store of its own afterwards.  Nobody else uses the view
	 * meanwhile.  ERR_CANCELLED: fn said so.  NULL: the engine has no file. */
	enum err (*copy)(
		struct store *s, struct store_view *v, int fd, store_copy_fn fn, void *arg);

	/* See store_compact().  NULL: the engine gives space back by itself. */
	enum err (*compact)(
		struct store *s, store_copy_fn fn, void *arg, struct err_detail *reterr);

	/* See store_listen().  NULL: this process alone changes the store. */
	void (*listen)(struct store *s, store_external_fn fn, void *arg);
	/* See store_note_put() and store_note_get().  NULL, both: the engine keeps no note. */
	void (*note_put)(struct store *s, int64_t version, struct span note);
	enum err (*note_get)(struct store *s, struct buf *ret);
	/* See store_feed_keep() and store_feed_read().  NULL, both: the engine keeps no feed. */
	enum err (*feed_keep)(struct store *s, int64_t now, struct err_detail *reterr);
	enum err (*feed_read)(struct store *s, const struct store_feed_position *after,
		store_feed_fn fn, void *arg);
	/* Drops what only makes later reads quicker.  NULL: the engine has no such cache. */
	void (*give_back)(struct store *s);
	/* Clean: nothing to recover at the next open. */
	void (*close)(struct store *s);
};

struct store {
	const struct store_ops *ops; /* first member of each engine's own struct */
};

/* ---- callers use these ---- */

enum err store_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret);
enum err store_child(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret);
/* Goes on by itself until the end or until fn answers false. */
enum err store_list(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, unsigned want, store_list_fn fn, void *arg);
/* Gives the rows that match in the order of their keys, with others among them perhaps: the caller evaluates
 * the filter again.  Returns after one answer of the engine, or when fn answers false.  Sets *ret in any case.
 * ERR_NOT_SUPPORTED: the engine evaluates no filter, or not this one, and gave no row; list instead. */
enum err store_find(struct store *s, const struct store_find *q, store_find_fn fn, void *arg,
	struct store_found *ret);
/* As store_list() with WANT_BODY.  An engine may leave out the items for which skip(arg) returns true,
 * which is cheaper; or fn(arg) sees them all. */
enum err store_scan(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, store_skip_fn skip, store_list_fn fn, void *arg);
enum err store_file_read(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n);
enum err store_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr);
enum err store_room(struct store *s, uint64_t bytes, struct err_detail *reterr);
enum err store_sync(struct store *s);
int64_t store_version_floor(struct store *s);
/* Of this moment: all that was acknowledged before is in it.  To be closed soon.  *ret is NULL
 * where the engine has no views: the caller reads what is there now. */
enum err store_view_open(struct store *s, struct store_view **ret);
/* The same for a view that may stay open for long.  What is changed meanwhile costs space on
 * disk until it is closed: bound it (service/view/views.h). */
enum err store_view_hold(struct store *s, struct store_view **ret);
void store_view_close(struct store *s, struct store_view *v); /* NULL is fine */
void store_info(struct store *s, struct store_info *ret);
enum err store_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg);
/* Writes a copy of the store's file to fd.  ERR_NOT_SUPPORTED: the engine has no file. */
enum err store_copy(struct store *s, struct store_view *v, int fd, store_copy_fn fn, void *arg);
/* Gives the space of what was removed back to the file system.  Readers go on, and change sets wait
 * until it has ended.  fn may be called by any thread.  Uses twice the space that the store keeps, for
 * the time.  After an error the store is as it was: ERR_CANCELLED, where fn said so; ERR_NO_SPACE;
 * ERR_NOT_SUPPORTED: the engine has no file; ERR_READ_ONLY.  Under a view the file shrinks later. */
enum err store_compact(struct store *s, store_copy_fn fn, void *arg, struct err_detail *reterr);
/* Tells fn of each external change set from now on, instead of the function given before; NULL: tells
 * nobody.  Returns when no call of the function given before is running. */
void store_listen(struct store *s, store_external_fn fn, void *arg);
/* Leaves a note for the next opening, at most STORE_NOTE_MAX bytes, in place of an earlier one.  It is true
 * of the store while version_floor() is this version.  A clean close writes it, if it is true then.  An
 * engine may keep none. */
void store_note_put(struct store *s, int64_t version, struct span note);
/* Appends the note that an earlier opening left.  ERR_NOT_FOUND: there is none, or it is not true any
 * more. */
enum err store_note_get(struct store *s, struct buf *ret);
/* Keeps the feed on for STORE_FEED_KEPT_TICKS from now (ticks), or begins one.  Cheap where it was called
 * within the last hour.  Every change of a row that is applied after it returned is in the feed.
 * ERR_NOT_SUPPORTED: the engine keeps no feed; errors of apply(). */
enum err store_feed_keep(struct store *s, int64_t now, struct err_detail *reterr);
/* Gives the lines after this one, or all that are kept (NULL), with all changes that were acknowledged
 * before the call.  ERR_FEED_GONE: that line is not kept any more, or is not of this store. */
enum err store_feed_read(
	struct store *s, const struct store_feed_position *after, store_feed_fn fn, void *arg);
/* Frees the caches of idle readers; for after a burst. */
void store_give_back(struct store *s);
void store_close(struct store *s); /* NULL is fine */
/* item_fini()s the results of n changes. */
void changes_fini(struct change *changes, size_t n);

/* Whether a directory of this kind may hold a child of that kind. */
bool item_may_hold(enum item_kind parent, enum item_kind child);
static inline bool item_is_dir(enum item_kind k)
{
	return k == ITEM_ACCOUNT || k == ITEM_TABLE || k == ITEM_PARTITION || k == ITEM_FOLDER ||
		k == ITEM_QUEUE || k == ITEM_CONTAINER || k == ITEM_BLOB || k == ITEM_EXTENT;
}

#endif
