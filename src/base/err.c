/* SPDX-License-Identifier: MIT
 * The error list as tables, and the functions that fill an error's detail.
 * A detail always is one line of valid UTF-8, whatever input it quotes.  It ends up in extended
 * attributes, JSON lines and logs. */
#include "base/err.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
	int sys, http;
	const char *code, *text, *symbol;
};

static const struct row rows[ERR_COUNT_] = {
#define X(symbol_, errno_, http_, code_, text_) \
	[ERR_##symbol_] = { errno_, http_, code_, text_, #symbol_ },
	ERR_LIST(X)
#undef X
};

static const struct row *row_of(enum err e)
{
	BUG_ON((unsigned)e >= ERR_COUNT_);
	return &rows[e];
}

int err_errno(enum err e)
{
	return row_of(e)->sys;
}

int err_http(enum err e)
{
	return row_of(e)->http;
}

const char *err_code(enum err e)
{
	return row_of(e)->code;
}

const char *err_text(enum err e)
{
	return row_of(e)->text;
}

const char *err_symbol(enum err e)
{
	return row_of(e)->symbol;
}

enum err err_from_code(int http, struct span code)
{
	size_t i = ERR_OK + 1;
	while (i < ERR_COUNT_ && (rows[i].http != http || !span_is(code, rows[i].code)))
		i++;
	return (enum err)i;
}

static const struct {
	int code;
	enum err err;
} from_errno[] = {
	{ 0, ERR_OK },
	{ EACCES, ERR_ACCESS },
	{ EAGAIN, ERR_THROTTLED },
	{ EBUSY, ERR_BUSY },
	{ EDQUOT, ERR_NO_SPACE },
	{ EEXIST, ERR_NAME_EXISTS },
	{ EFBIG, ERR_FILE_TOO_LARGE },
	{ EILSEQ, ERR_NAME_NOT_UTF8 },
	{ EINTR, ERR_CANCELLED },
	{ EINVAL, ERR_INVALID_INPUT },
	{ EISDIR, ERR_IS_A_DIRECTORY },
	{ ENAMETOOLONG, ERR_NAME_TOO_LONG },
	{ ENODATA, ERR_NO_ATTRIBUTE },
	{ ENOENT, ERR_NOT_FOUND },
	{ ENOMEM, ERR_NO_MEMORY },
	{ ENOSPC, ERR_NO_SPACE },
	{ ENOSYS, ERR_NOT_SUPPORTED },
	{ ENOTDIR, ERR_NOT_A_DIRECTORY },
	{ ENOTEMPTY, ERR_NOT_EMPTY },
	{ EOPNOTSUPP, ERR_NOT_SUPPORTED },
	{ EPERM, ERR_NOT_PERMITTED },
	{ ERANGE, ERR_RANGE },
	{ EROFS, ERR_READ_ONLY },
	{ ESTALE, ERR_GONE },
	{ EXDEV, ERR_CROSS_DEVICE },
};

enum err err_from_errno(int code)
{
	for (size_t i = 0; i < ARRAY_LEN(from_errno); i++) {
		if (from_errno[i].code == code)
			return from_errno[i].err;
	}
	return ERR_IO;
}

/* Makes the text one line of valid UTF-8: snprintf() may cut a character in half. */
static void clean(char *s)
{
	char *out = s;

	for (struct span rest = span_of(s); rest.n > 0;) {
		size_t n = utf8_valid_prefix(rest);
		memmove(out, rest.p, n);
		out += n;
		n += n < rest.n; /* skips a byte of the cut character */
		rest = span_make(rest.p + n, rest.n - n);
	}
	*out = '\0';
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
	}
}

static void fill(struct err_detail *d, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void fill(struct err_detail *d, const char *fmt, va_list ap)
{
	(void)vsnprintf(d->text, sizeof(d->text), fmt, ap);
	clean(d->text);
	d->offset = 0;
	d->line = d->column = 0;
	d->has_offset = false;
}

enum err err_set(struct err_detail *detail, enum err e, const char *fmt, ...)
{
	va_list ap;

	if (detail == NULL)
		return e;
	va_start(ap, fmt);
	fill(detail, fmt, ap);
	va_end(ap);
	return e;
}

static void place(struct err_detail *d, const char *text, size_t offset)
{
	size_t line_start = 0;

	d->offset = offset;
	d->has_offset = true;
	d->line = 1;
	for (size_t i = 0; i < offset; i++) {
		if (text[i] == '\n') {
			d->line++;
			line_start = i + 1;
		}
	}
	d->column = (unsigned)(offset - line_start) + 1;
}

enum err err_set_at(struct err_detail *detail, enum err e, const char *text, size_t offset,
	const char *fmt, ...)
{
	va_list ap;

	if (detail == NULL)
		return e;
	va_start(ap, fmt);
	fill(detail, fmt, ap);
	va_end(ap);
	place(detail, text, offset);
	return e;
}

const char *err_message(enum err e, const struct err_detail *detail)
{
	return detail != NULL && detail->text[0] != '\0' ? detail->text : err_text(e);
}
