/* SPDX-License-Identifier: MIT
 * Staged writes: what a program writes to a blob is in a file without a name beside the store until a
 * close or fsync commits it whole.  So readers see the blob of before until then, and a blob of any
 * size needs the same memory.  A new name that is not committed yet is found by its path. */
#ifndef FS_BLOB_STAGE_H
#define FS_BLOB_STAGE_H

#include "fs/blob/find.h"
#include "fs/blob/pages.h"
#include "fs/core/virtual.h"

struct blob_stages;
struct blob_stages *blob_stages_new(void);    /* NULL: no memory */
void blob_stages_free(struct blob_stages *t); /* accepts NULL */

struct blob_stage;

/* Returns the number for a new stage. */
uint64_t blob_stages_number(struct blob_stages *t);
/* A thread that opens a version to write is told to look its name up again.  Until it opens the stage,
 * its look-ups of the name are given the number of one.  wants: returns that number; 0: it is not
 * expected to come back for this name. */
void blob_stages_expect(struct blob_stages *t, pid_t thread, uint64_t container, struct span name);
uint64_t blob_stages_wants(
	struct blob_stages *t, pid_t thread, uint64_t container, struct span name);

/* Opens the stage of a number, or makes it.  On ERR_OK call blob_stage_close() or blob_stage_unref().  The errors of
 * lease_check_write(); ERR_READ_ONLY. */
enum err blob_stage_open(struct fs *fs, uint64_t container, struct span name, uint64_t number,
	struct blob_stage **ret);
/* Commits what is not committed and was not refused, and lets go of the stage. */
enum err blob_stage_close(struct fs *fs, struct blob_stage *s, struct err_detail *detail);
/* Lets go of a stage without a commit. */
void blob_stage_unref(struct blob_stages *t, struct blob_stage *s);
/* Returns a stage with a reference; NULL: there is none.  By its number, or by a name that is not
 * committed yet. */
struct blob_stage *blob_stage_get(struct blob_stages *t, uint64_t number);
struct blob_stage *blob_stage_named(struct blob_stages *t, uint64_t container, struct span name);
uint64_t blob_stage_number(const struct blob_stage *s);
/* Between these two calls no staged write of this mount becomes a blob, so a removal or a rename of a
 * blob, and the call that tells its writers, are one step for them. */
void blob_stages_lock_names(struct blob_stages *t);
void blob_stages_unlock_names(struct blob_stages *t);
/* The name was removed or replaced: writers of it commit no more.  Under the lock of names. */
void blob_stages_removed(struct blob_stages *t, uint64_t container, struct span name);

/* A blob was moved: its writers go on under the new name.  Under the lock of names. */
void blob_stages_moved(
	struct blob_stages *t, uint64_t from, struct span name, uint64_t to, struct span to_name);

/* Finds the blob as it is, under the name that it has.  On ERR_OK call blob_info_fini().  ERR_GONE. */
enum err blob_stage_blob(struct fs *fs, struct blob_stage *s, struct blob_info *ret);
/* Those of blob_pages_seek() and blob_pages_allocate(), of a page blob.  Of any other: all is data, and
 * ERR_NOT_SUPPORTED. */
enum err blob_stage_seek(
	struct fs *fs, struct blob_stage *s, bool hole, uint64_t offset, uint64_t *ret);
enum err blob_stage_allocate(struct fs *fs, struct blob_stage *s, int mode, uint64_t offset,
	uint64_t n, struct err_detail *detail);
/* Returns whether it is a page blob by now, which is written in place. */
bool blob_stage_is_pages(struct blob_stage *s);
/* Makes a new blob a page blob of no bytes, before anything is written.  ERR_BLOB_TYPE: that was done, or a
 * blob is there.  The errors of blob_pages_create(). */
enum err blob_stage_make_pages(struct fs *fs, struct blob_stage *s, struct err_detail *detail);

uint64_t blob_stage_size(const struct blob_stage *s);
enum err blob_stage_read(
	struct fs *fs, struct blob_stage *s, uint64_t offset, size_t n, struct buf *out);
/* w->append: at the end, whatever the offset. */
enum err blob_stage_write(struct fs *fs, struct blob_stage *s, struct blob_writer *w,
	uint64_t offset, struct span bytes, struct err_detail *detail);
/* That of blob_writer_check(), of a page blob. */
enum err blob_stage_check(struct fs *fs, struct blob_stage *s, const struct blob_writer *w,
	struct err_detail *detail);
/* A write was refused before the stage saw it.  After a refused write nothing is committed until the
 * content is cut to nothing. */
void blob_stage_lose(struct blob_stage *s, enum err e);
/* The first size of a new blob, a multiple of 512, makes it a page blob. */
enum err blob_stage_resize(
	struct fs *fs, struct blob_stage *s, uint64_t size, struct err_detail *detail);
/* Commits it if there is anything new.  The errors of blob_put().  ERR_GONE: a blob of another type has
 * the name. */
enum err blob_stage_commit(
	struct fs *fs, struct blob_stage *s, bool durable, struct err_detail *detail);

#endif
