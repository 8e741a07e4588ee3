/* SPDX-License-Identifier: MIT
 * Directory cursors: where the entries of an open directory's last two replies were.  A position
 * (d_off) is an item's id.  If the client removes that item while it lists (rm -r), its place is found
 * here.  Not thread-safe: under the lock of the directory. */
#ifndef FS_CORE_DIR_CURSORS_H
#define FS_CORE_DIR_CURSORS_H

#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

struct dir_cursor;
struct dir_cursors_reply {
	struct dir_cursor *v;
	size_t n, cap;
	char *bytes;
	size_t len, bytes_cap;
};
/* A zeroed one is fine. */
struct dir_cursors {
	struct dir_cursors_reply of[2];
	unsigned now; /* the reply being made; the other is the one before */
	bool fixed;   /* they get no more memory: ERR_NO_MEMORY */
};

void dir_cursors_fini(struct dir_cursors *m);
size_t dir_cursors_holds(const struct dir_cursors *m); /* memory */
/* An entry was put into the reply.  ERR_NO_MEMORY. */
enum err dir_cursors_add(
	struct dir_cursors *m, uint64_t id, enum item_class class, struct span key);
/* *ret_key: borrowed until the next call for m.  False: this id is not among them. */
bool dir_cursors_find(
	const struct dir_cursors *m, uint64_t id, enum item_class *ret_class, struct span *ret_key);
/* A new reply begins; goes_on: behind an entry of the last one, else from the start. */
void dir_cursors_next_reply(struct dir_cursors *m, bool goes_on);

#endif
