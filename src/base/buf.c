/* SPDX-License-Identifier: MIT
 * The buffer allocates up to limit + 1 bytes: a NUL always follows the content.  So the caller can
 * pass data to C string functions. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAP 64

void buf_fini(struct buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
	b->failed = b->no_memory = false;
}

void buf_wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->cap);
	buf_fini(b);
}

bool buf_ok(const struct buf *b)
{
	return !b->failed;
}

enum err buf_full(const struct buf *b)
{
	if (b->no_memory)
		return ERR_NO_MEMORY;
	return b->failed ? ERR_BODY_TOO_LARGE : ERR_OK;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = b->no_memory = false;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void buf_trim(struct buf *b)
{
	char *p = b->data != NULL ? realloc(b->data, b->len + 1) : NULL;
	if (p == NULL)
		return;
	b->data = p;
	b->cap = b->len + 1;
}

/* Doubles the capacity, up to limit + 1.  need includes the NUL. */
static size_t next_cap(const struct buf *b, size_t need)
{
	size_t cap = b->cap < FIRST_CAP / 2 ? FIRST_CAP : b->cap * 2;

	if (cap < need)
		cap = need;
	return cap - 1 > b->limit ? b->limit + 1 : cap;
}

static bool enlarge(struct buf *b, size_t need)
{
	size_t cap = next_cap(b, need);
	char *p = NULL;

	if (b->memory == NULL || b->memory->may_have(b->memory, cap))
		p = realloc(b->data, cap);
	if (p == NULL) {
		b->failed = b->no_memory = true;
		return false;
	}
	b->data = p;
	b->cap = cap;
	p[b->len] = '\0';
	return true;
}

bool buf_grow(struct buf *b, size_t n)
{
	if (b->failed)
		return false;
	if (b->len > b->limit || n > b->limit - b->len) {
		b->failed = true;
		return false;
	}
	return b->cap > b->len + n || enlarge(b, b->len + n + 1);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	BUG_ON(n < 0);
	if (!buf_reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

static void add_escaped(struct buf *b, unsigned char c)
{
	static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i + 1 < sizeof(letters); i += 2) {
		if ((unsigned char)letters[i] == c) {
			buf_add(b, (const char[]){ '\\', letters[i + 1] }, 2);
			return;
		}
	}
	buf_add(b, (const char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] }, 6);
}

void buf_add_json(struct buf *b, struct span s)
{
	size_t from = 0;

	buf_add_char(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(b, s.p + from, i - from);
		add_escaped(b, c);
		from = i + 1;
	}
	buf_add(b, s.p + from, s.n - from);
	buf_add_char(b, '"');
}

bool buf_resize(struct buf *b, size_t len)
{
	if (b->failed)
		return false;
	if (len > b->len) {
		if (!buf_reserve(b, len - b->len))
			return false;
		memset(b->data + b->len, 0, len - b->len);
	}
	b->len = len;
	if (b->data != NULL)
		b->data[len] = '\0';
	return true;
}

bool buf_write_at(struct buf *b, size_t offset, const void *p, size_t n)
{
	size_t end;

	if (b->failed)
		return false;
	if (__builtin_add_overflow(offset, n, &end)) {
		b->failed = true;
		return false;
	}
	if (end > b->len && !buf_resize(b, end))
		return false;
	if (n > 0)
		memcpy(b->data + offset, p, n);
	return true;
}
