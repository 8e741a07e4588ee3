/* SPDX-License-Identifier: MIT
 * A growing byte buffer that is born with its limit.  Invariants: len <= cap <= limit + 1;
 * data[len] is 0 whenever data is not NULL.  A zeroed struct with a limit is an empty
 * buffer.  Reaching the limit or running out of memory sets `failed`, after which every
 * append does nothing: build first, ask buf_ok() once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/compiler.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len, cap, limit;
	bool failed;
};

#define BUF_INIT(limit_) ((struct buf){ .limit = (limit_) })

void buf_fini(struct buf *b); /* frees; the struct is empty again */
/* The same for secrets: overwrites first. */
void buf_wipe(struct buf *b);
bool buf_ok(const struct buf *b);
void buf_clear(struct buf *b); /* len = 0, failed = false; keeps the memory */

/* Room for n more bytes; false at the limit. */
bool buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_span(struct buf *b, struct span s);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* s as a JSON string with its quotes; s is valid UTF-8. */
void buf_add_json(struct buf *b, struct span s);
/* Sets the length; new bytes are 0. */
bool buf_resize(struct buf *b, size_t len);
/* Overwrites or extends at offset, a gap is filled with 0. */
bool buf_write_at(struct buf *b, size_t offset, const void *p, size_t n);

static inline struct span buf_span(const struct buf *b)
{
	return (struct span){ b->data, b->len };
}

#endif
