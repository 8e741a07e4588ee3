/* SPDX-License-Identifier: MIT
 * A byte buffer that grows up to a fixed limit.
 *
 * Invariants: len <= cap <= limit + 1, and data[len] is 0 unless data is NULL.  A zeroed struct
 * with a limit is an empty buffer.
 *
 * An append that would exceed the limit, or that finds no memory, sets `failed`.  Every later
 * append then does nothing.  So the caller appends first and checks buf_ok() once at the end. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/compiler.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts the memory of a buffer against a budget that several buffers share. */
struct buf_memory {
	/* Called before the buffer allocates cap bytes in place of what it has.  Returns false if
	 * the budget has no room for them. */
	bool (*may_have)(struct buf_memory *m, size_t cap);
};

struct buf {
	char *data;
	size_t len, cap, limit;
	bool failed;
	bool no_memory;            /* the cause of `failed` was memory, not the limit */
	struct buf_memory *memory; /* borrowed; NULL: no budget */
};

#define BUF_INIT(limit_) ((struct buf){ .limit = (limit_) })

/* Frees the content.  The buffer is empty again and keeps its limit and budget.  It tells the budget
 * nothing: its owner does. */
void buf_fini(struct buf *b);
/* Overwrites the content with zeros, then frees it.  For secrets. */
void buf_wipe(struct buf *b);
/* Returns true unless an append failed. */
bool buf_ok(const struct buf *b);
/* Returns why an append failed: ERR_NO_MEMORY, or ERR_BODY_TOO_LARGE at the limit; else ERR_OK. */
enum err buf_full(const struct buf *b);
void buf_clear(struct buf *b); /* Empties the buffer and resets `failed`; keeps the memory. */
/* Gives back the memory that the content does not need. */
void buf_trim(struct buf *b);

/* The slow path of buf_reserve(). */
bool buf_grow(struct buf *b, size_t n);

/* Makes room for n more bytes and the NUL.  Returns false at the limit or when memory is out. */
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

/* Appends formatted text, as printf(3) does. */
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends s as a JSON string with quotes.  s must be valid UTF-8. */
void buf_add_json(struct buf *b, struct span s);
/* Sets the length to len; added bytes are 0.  Returns false if the buffer has failed. */
bool buf_resize(struct buf *b, size_t len);
/* Writes n bytes at offset and extends the content as needed; a gap is filled with 0.  Returns
 * false if the buffer has failed. */
bool buf_write_at(struct buf *b, size_t offset, const void *p, size_t n);

static inline struct span buf_span(const struct buf *b)
{
	return (struct span){ b->data, b->len };
}

#endif
