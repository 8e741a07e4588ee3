/* SPDX-License-Identifier: MIT
 * Contents that are given to the kernel's page cache with the reply to open(2).  That saves the
 * read that would follow, and a getattr after it, since the kernel takes its attributes for out of
 * date after each read.  The content of a row's node never changes, so what is given is what a read
 * would bring, whenever it arrives. */
#ifndef FS_CACHE_PAGES_H
#define FS_CACHE_PAGES_H

#include "fs/cache/content.h"
#include "fs/core/state.h"

/* All of the content of a row's node that is being opened; before the reply.  Does nothing where
 * the kernel was given it a while ago.  True: it was given now. */
bool pages_give(struct fs *fs, const struct content *content);
/* The kernel reads it after all: it has dropped its pages. */
void pages_gone(const struct content *content);

#endif
