/* SPDX-License-Identifier: MIT
 * A span: bytes that the holder borrows.  They need no NUL at the end. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
	const char *p;
	size_t n;
};

#define SPAN_LIT(s_) ((struct span){ (s_), sizeof(s_) - 1 })

static inline struct span span_of(const char *s)
{
	return (struct span){ s, strlen(s) };
}

static inline struct span span_make(const void *p, size_t n)
{
	return (struct span){ (const char *)p, n };
}

static inline bool span_eq(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool span_is(struct span a, const char *s)
{
	return span_eq(a, span_of(s));
}

static inline bool span_starts(struct span a, struct span prefix)
{
	return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

static inline bool span_ends(struct span a, struct span tail)
{
	return a.n >= tail.n && (tail.n == 0 || memcmp(a.p + a.n - tail.n, tail.p, tail.n) == 0);
}

/* Returns the offset of the first match, or a.n.  what must not be empty.  memmem() would do, but a
 * sanitizer checks all of `a` on each call, so loops become quadratic there. */
static inline size_t span_find(struct span a, struct span what)
{
	for (size_t i = 0; i < a.n; i++) {
		const char *p = (const char *)memchr(a.p + i, what.p[0], a.n - i);
		if (p == NULL)
			break;
		i = (size_t)(p - a.p);
		if (span_starts(span_make(p, a.n - i), what))
			return i;
	}
	return a.n;
}

/* Takes the part before the first sep, and that sep, from the front of *rest; all of it without one. */
static inline struct span span_take(struct span *rest, char sep)
{
	const char *end = rest->n > 0 ? (const char *)memchr(rest->p, sep, rest->n) : NULL;
	struct span part = span_make(rest->p, end != NULL ? (size_t)(end - rest->p) : rest->n);
	size_t n = end != NULL ? part.n + 1 : part.n;
	*rest = span_make(rest->p + n, rest->n - n);
	return part;
}

/* Compares as memcmp() does; a prefix comes before the longer span. */
static inline int span_cmp(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n == 0 ? 0 : memcmp(a.p, b.p, n);
	if (c != 0)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

#endif
