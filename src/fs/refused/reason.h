/* SPDX-License-Identifier: MIT
 * Why something was refused: the last reason per name (user.rowfs.error) and the last
 * thousand of all (.rowfs/errors, JSON lines).  In memory, bounded.  Thread-safe. */
#ifndef FS_REFUSED_REASON_H
#define FS_REFUSED_REASON_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

struct reasons;
struct service;
struct unsaved;
/* Borrows both.  Returns NULL if memory runs out. */
struct reasons *reasons_new(struct service *service, struct unsaved *unsaved);
void reasons_free(struct reasons *r);

struct refusal {
	const char *call; /* "write", "close", "rename", ... */
	uint64_t dir;     /* item id of the directory */
	struct span name; /* the name in it */
	enum err error;
	const struct err_detail *detail; /* may be NULL */
	bool quiet;                      /* only for the attribute: it is in the list already */
	bool rare;                       /* nobody can cause many: always in the log (log.h) */
	const char *rejected; /* where the bytes are, below .rowfs/rejected; NULL if nowhere */
};

/* Remembers it, with its path for people, and writes a line to the log. */
void reasons_add(struct reasons *r, const struct refusal *f);
/* A later success: the name's reason is forgotten (the line in the list stays). */
void reasons_clear(struct reasons *r, uint64_t dir, struct span name);
/* "code: message (line 3, column 7)": the last reason of the name, or of what is in the directory
 * `inside` (0: of the name only).  Returns false if there is none. */
bool reasons_get(
	struct reasons *r, uint64_t dir, struct span name, uint64_t inside, struct buf *out);
/* All of them, oldest first, one JSON object a line. */
void reasons_dump(struct reasons *r, struct buf *out);

#endif
