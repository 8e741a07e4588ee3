/* SPDX-License-Identifier: MIT
 * A stage's way into the store: private to stage.c, which decides when.  The caller holds the
 * stage's lock. */
#ifndef FS_WRITE_STAGE_COMMIT_H
#define FS_WRITE_STAGE_COMMIT_H

#include "fs/write/stage.h"

/* Puts the complete document where the row is now (it may have been renamed meanwhile) and
 * forgets earlier refusals.  ERR_GONE, ERR_CONDITION_NOT_MET, what the check says, and what
 * the store says. */
enum err stage__commit(struct fs *fs, struct stage *s, bool durable, struct err_detail *detail);

#endif
