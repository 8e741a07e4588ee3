/* SPDX-License-Identifier: MIT
 * What a stage's document must be to become its row: private to stage.c and stage_commit.c.
 * The caller holds the stage's lock. */
#ifndef FS_WRITE_STAGE_CHECK_H
#define FS_WRITE_STAGE_CHECK_H

#include "fs/write/stage.h"

/* Checks the whole document, and remembers that it is valid. */
enum err stage__check(struct fs *fs, struct stage *s, struct err_detail *detail);
/* Checks what strictly sequential writes have brought so far: refuses the first byte that no
 * document can hold.  Checks the whole document once it is complete. */
enum err stage__check_so_far(struct fs *fs, struct stage *s, struct err_detail *detail);

#endif
