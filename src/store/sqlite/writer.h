/* SPDX-License-Identifier: MIT
 * The writing side of the engine: one connection, used by the one thread that leads the
 * current commit (commit.c), with what it knows ahead of the file.
 *
 *   dirs.c   directories touched lately: their counters are written once per change set
 *   items.c  single items: find, make, rewrite, remove
 *   chunks.c the content of ordinary files
 *   feed.c   the feed of changes
 *   apply.c  change sets; move.c has CHANGE_MOVE, reclaim.c the removal of directories
 */
#ifndef STORE_SQLITE_WRITER_H
#define STORE_SQLITE_WRITER_H

#include "store/sqlite/conn.h"
#include "store/store.h"

/* The feed as the file has it (feed.c); zeroed: none was ever begun. */
struct sql_feed_state {
	uint64_t first, next;   /* numbers: of the earliest line, of the next one */
	int64_t second_version; /* of the line after the earliest one */
	uint64_t begin;         /* number of the line that began the present feed */
	int64_t until;          /* ticks; 0: it has ended */
};

/* What a rolled-back transaction takes back. */
struct sql_counters {
	uint64_t id_reserved;     /* meta next_id: ids below may be in use */
	int64_t version_reserved; /* meta version_high: versions up to here may be in use */
	uint64_t file_bytes, piece_bytes;
	uint64_t file_bytes_saved, piece_bytes_saved; /* as in the file */
	int schema;                                   /* its version */
	struct sql_feed_state feed;
};

#define SQL_DIR_BUCKETS 256
struct sql_dir {
	struct item it; /* owns its memory */
	bool dirty;
	struct sql_dir *next;
};

struct sql_writer {
	struct sql_conn *conn;
	struct sql_counters now;
	uint64_t next_id; /* never goes back, also not by a rollback */
	uint64_t limit_file, limit_files, limit_pieces;
	uint64_t feed_lines; /* so many lines of the feed are kept */
	int64_t feed_ticks;  /* for so long */
	int looked_at;       /* frames of the log when shrink.c looked for free pages */
	int log_sent;        /* frames of the log that are on their way to the disk */
	uint64_t log_tried;  /* the log's size when it could not be brought back */
	struct sql_dir *buckets[SQL_DIR_BUCKETS];
	unsigned ndirs;
	/* The partition that was named last by (table, key): a bulk load asks for nothing else. */
	uint64_t memo_table, memo_partition;
	struct item memo_key; /* only key and mem */

	/* The change set at work. */
	struct change *set;
	size_t at;       /* index of the change at work */
	bool expect_new; /* the last row put was a new one: the next may be, too */

	struct sql_removals *removals;
	uint64_t reclaim_at; /* the removed directory where the last slice ended; 0 */
};

/* ---- dirs.c ---- */

/* The directory, from memory or the file; borrowed until the next call that removes, moves
 * or changes a directory as an item.  ERR_NOT_FOUND; ERR_NOT_PERMITTED: it is a row or a
 * file, which holds nothing. */
enum err sql_dir_get(struct sql_writer *w, uint64_t id, struct sql_dir **ret);
/* The same where it is in memory; between commits that is what the file has.  NULL. */
const struct item *sql_dir_known(struct sql_writer *w, uint64_t id);
/* As sql_get() and sql_child(), with what is ahead of the file. */
enum err sql_item_get(struct sql_writer *w, uint64_t id, unsigned want, struct item *ret);
enum err sql_item_child(struct sql_writer *w, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret);
/* A member came, went or changed its name. */
void sql_dir_touch(struct sql_dir *d, int64_t version, int delta);
/* Writes it if need be and forgets it: before it is changed as an item. */
enum err sql_dir_release(struct sql_writer *w, uint64_t id);
enum err sql_dirs_flush(struct sql_writer *w);
/* Forgets all, written or not. */
void sql_dirs_drop(struct sql_writer *w);
/* Partition of a table by key.  ERR_NOT_FOUND. */
enum err sql_partition_find(struct sql_writer *w, uint64_t table, struct span pk, uint64_t *ret);

/* ---- items.c ---- */

enum err sql_item_new_id(struct sql_writer *w, uint64_t *ret);
/* body.p NULL: none. */
enum err sql_item_insert(struct sql_writer *w, const struct item *it, struct span body);
/* The same for what is probably not there; ERR_NAME_EXISTS, and nothing done, if it is. */
enum err sql_item_try_insert(struct sql_writer *w, const struct item *it, struct span body);
/* Same place, new values; the body only where body.p is not NULL. */
enum err sql_item_update(struct sql_writer *w, const struct item *it, struct span body);
/* From the place it has in *from to the place in *it, with the values in *it; the body only
 * where body.p is not NULL. */
enum err sql_item_move(
	struct sql_writer *w, const struct item *from, const struct item *it, struct span body);
/* Removes the item, which has no content and no child. */
enum err sql_item_take_out(struct sql_writer *w, const struct item *it);
enum err sql_item_set_body(struct sql_writer *w, uint64_t id, struct span body);

/* ---- chunks.c ---- */

/* Adds to the sum of file sizes.  ERR_QUOTA. */
enum err sql_files_grow(struct sql_writer *w, uint64_t from, uint64_t to);
/* Adds to the sum of the pieces of blobs.  ERR_BLOB_SPACE. */
enum err sql_pieces_grow(struct sql_writer *w, uint64_t from, uint64_t to);
/* These read and change how *it, a file as it was, is kept (it->flags): the item is the caller's
 * to write, with its new size. */
enum err sql_content_write(
	struct sql_writer *w, struct item *it, uint64_t offset, struct span data);
/* Content from size on is gone. */
enum err sql_content_cut(struct sql_writer *w, struct item *it, uint64_t size);
/* A file goes, or becomes a row: all but its document row. */
enum err sql_content_drop(struct sql_writer *w, const struct item *it);

/* ---- places.c ---- */

/* The item with its content; directories are empty. */
enum err sql_item_delete(struct sql_writer *w, const struct item *it);
/* Where a change's place leads. */
struct sql_found {
	bool present;
	struct item it;  /* if present; owned */
	uint64_t parent; /* 0: there is no such directory */
	enum item_class class;
	struct span key; /* borrowed from the place or from it */
	bool made;       /* the partition was made on the way */
};
void sql_found_fini(struct sql_found *f);
/* Fills ret->parent, where the place names one; make as below. */
enum err sql_find_parent(struct sql_writer *w, const struct item_ref *at, bool make,
	int64_t version, struct sql_found *ret);
/* make: a missing partition is made, a missing parent is an error. */
enum err sql_find(struct sql_writer *w, const struct item_ref *at, unsigned want, bool make,
	int64_t version, struct sql_found *ret);
/* ERR_STALE_VERSION unless the change at work may change this item. */
enum err sql_check_stale(struct sql_writer *w, const struct change *c, const struct item *it);
/* A child of `parent` went: counts it, and removes a partition that is left empty. */
enum err sql_child_gone(struct sql_writer *w, uint64_t parent, struct change *c);
enum err sql_touch(struct sql_writer *w, uint64_t parent, int64_t version, int delta);
/* child: as it will be.  The caller touches the parent then. */
enum err sql_check_fits(
	struct sql_writer *w, uint64_t parent, const struct item *child, enum item_class class);

/* ---- move.c ---- */

enum err sql_apply_move(struct sql_writer *w, struct change *c);

/* ---- reclaim.c ---- */

/* How much one commit may reclaim.  It stops where one of them is used up. */
struct sql_slice {
	size_t items;
	uint64_t bytes;
	uint64_t until_us; /* on the monotonic clock; looked at now and then */
	size_t done;       /* steps: items that went, pieces of a large file */
};

/* The item with all that is below it: for readers it is gone, and what a change set has no time for is
 * left to be reclaimed.  The caller counts it in its directory. */
enum err sql_remove(struct sql_writer *w, const struct item *it);
/* Reclaims a slice of what was removed.  *ret_all: nothing is left. */
enum err sql_reclaim(struct sql_writer *w, struct sql_slice *slice, bool *ret_all);
/* After the commit of that. */
void sql_all_reclaimed(struct sql_writer *w);

/* Writes what a transaction leaves to be written. */
enum err sql_finish(struct sql_writer *w);
/* All changes in order, inside the caller's transaction, with all that they leave to be
 * written written.  On failure the caller rolls back and sql_dirs_drop()s; results may be
 * half filled then.  *ret_op: the change to blame. */
enum err sql_apply_set(struct sql_writer *w, struct change *changes, size_t n, size_t *ret_op);

#endif
