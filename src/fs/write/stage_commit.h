/* SPDX-License-Identifier: MIT
 * A stage's way into the store: private to stage.c, which decides when.  The caller holds the
 * stage's lock. */
#ifndef FS_WRITE_STAGE_COMMIT_H
#define FS_WRITE_STAGE_COMMIT_H

#include "fs/write/stage.h"

/* Checks the document, puts it where the row is now, and forgets earlier refusals.  The row may
 * have been renamed meanwhile.  Returns ERR_GONE, ERR_CONDITION_NOT_MET, what the check says, or
 * what the store says; then the stage's state is as before. */
enum err stage__commit(struct fs *fs, struct stage *s, struct err_detail *detail);

#endif
