/* SPDX-License-Identifier: MIT
 * Where the entries of an open directory's last two replies were.  A position (d_off) is an
 * item's id, and the client that lists may have removed that item (rm -r).  Then its place is
 * found here.  Not thread-safe: under the lock of the directory. */
#ifndef FS_CORE_MARKS_H
#define FS_CORE_MARKS_H

#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

struct mark;
struct marks_reply {
	struct mark *v;
	size_t n, cap;
	char *bytes;
	size_t len, bytes_cap;
};
/* A zeroed one is fine. */
struct marks {
	struct marks_reply of[2];
	unsigned now; /* the reply being made; the other is the one before */
	bool fixed;   /* they get no more memory: ERR_NO_MEMORY */
};

void marks_fini(struct marks *m);
size_t marks_holds(const struct marks *m); /* memory */
/* An entry was put into the reply.  ERR_NO_MEMORY. */
enum err marks_add(struct marks *m, uint64_t id, enum item_class class, struct span key);
/* *ret_key: borrowed until the next call for m.  False: this id is not among them. */
bool marks_find(
	const struct marks *m, uint64_t id, enum item_class *ret_class, struct span *ret_key);
/* A new reply begins; goes_on: behind an entry of the last one, else from the start. */
void marks_next_reply(struct marks *m, bool goes_on);

#endif
