/* SPDX-License-Identifier: MIT
 * Reasons of refused calls, besides the errno: which answers are refusals at all (docs/errors.md,
 * "Answers without a reason"), where a reason is kept, and words that say what to do.  The
 * reply (fs/requests/ops.c) asks here, so that no request handler can forget it. */
#ifndef FS_REQUESTS_REFUSAL_H
#define FS_REQUESTS_REFUSAL_H

#include "fs/refused/reason.h"
#include "fs/tree/names.h"

#include <stdbool.h>

struct fs;

/* Whether the error is a refusal, rather than an ordinary answer.  opened: the call comes by an open
 * file; else the kernel looks the name up once more by itself after ESTALE. */
bool refusal_is(enum err e, bool opened);
/* The words for an error that nobody gave a detail for.  They are the mount's own where the service's
 * text would mislead; NULL: those of err_text() do. */
const char *refusal_text(enum err e);
/* Fills dir and name of *r with the place of `name` in the directory nid, or with that of the node
 * itself (name NULL).  The name is borrowed, or is in component. */
void refusal_place(struct fs *fs, uint64_t nid, const char *name, char component[COMPONENT_MAX],
	struct refusal *r);

/* An ordinary file, or a directory, cannot be made there, nor a file in the trash be changed, nor
 * a control file (.batch) be made anew or moved.  All answer ERR_NOT_PERMITTED. */
enum err refuse_in_trash(struct err_detail *detail);
enum err refuse_control(struct err_detail *detail);
enum err refuse_file_there(struct fs *fs, const struct resolved_name *t, struct err_detail *detail);
/* e: the name of a file in the directory does not resolve.  ERR_NOT_PERMITTED where no other name would do either;
 * else e. */
enum err refuse_file_name(struct fs *fs, uint64_t dir_nid, enum err e, struct err_detail *detail);
enum err refuse_dir_there(struct fs *fs, const struct resolved_name *t, struct err_detail *detail);

#endif
