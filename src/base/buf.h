/* SPDX-License-Identifier: MIT
 * A growing byte buffer that is born with its limit.  Invariants: len <= cap <= limit + 1;
 * data[len] is 0 whenever data is not NULL.  A zeroed struct with a limit is an empty
 * buffer.  Reaching the limit or running out of memory sets `failed`, after which every
 * append does nothing: build first, ask buf_ok() once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/compiler.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len, cap, limit;
	bool failed;
	bool no_memory; /* it failed, and not for its limit */
};

#define BUF_INIT(limit_) ((struct buf){ .limit = (limit_) })

void buf_fini(struct buf *b); /* frees; the struct is empty again */
/* The same for secrets: overwrites first. */
void buf_wipe(struct buf *b);
bool buf_ok(const struct buf *b);
/* Why it failed: ERR_NO_MEMORY, or ERR_BODY_TOO_LARGE at its limit; ERR_OK. */
enum err buf_full(const struct buf *b);
void buf_clear(struct buf *b); /* len = 0, failed = false; keeps the memory */

/* What buf_reserve() does where there is no room yet. */
bool buf_grow(struct buf *b, size_t n);

/* Room for n more bytes; false at the limit. */
static inline bool buf_reserve(struct buf *b, size_t n)
{
	return (!b->failed && n < b->cap - b->len) || buf_grow(b, n);
}

static inline void buf_add(struct buf *b, const void *p, size_t n)
{
	if (n == 0 || !buf_reserve(b, n))
		return;
	memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

static inline void buf_add_span(struct buf *b, struct span s)
{
	buf_add(b, s.p, s.n);
}

static inline void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

static inline void buf_add_char(struct buf *b, char c)
{
	if (!buf_reserve(b, 1))
		return;
	b->data[b->len++] = c;
	b->data[b->len] = '\0';
}

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
