/* SPDX-License-Identifier: MIT */
#include "daemon/core/rows_out.h"

#include "daemon/core/columns.h"
#include "daemon/core/progress.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

struct run {
	struct cmd_env *env;
	struct row_source *source;
	uint64_t expected;
	struct progress progress;
};

static bool asked(void *arg)
{
	struct run *r = arg;
	uint64_t rows = r->source->rows(r->source);
	progress_show(&r->progress, rows, rows, r->expected);
	return r->env->cancelled(r->env->cancel_arg);
}

bool rows_out_reader_left(const struct cmd_env *env)
{
	struct pollfd p = { .fd = env->out_fd };
	return poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
}

enum err rows_out_error(struct err_detail *why)
{
	int code = errno != 0 ? errno : EIO;
	return err_set(
		why, err_from_errno(code), "cannot write the output: %s", strerrordesc_np(code));
}

enum err rows_out_flush(struct cmd_env *env, struct err_detail *why)
{
	return fflush(env->out) == 0 ? ERR_OK : rows_out_error(why);
}

/* columns: NULL for the bytes as they are. */
static enum err copy(struct run *r, struct columns *columns, struct err_detail *why)
{
	FILE *out = r->env->out;
	struct buf piece = BUF_INIT(READ_BYTES);
	uint64_t offset = 0;
	enum err e;
	do {
		buf_clear(&piece);
		e = r->source->read(r->source, offset, READ_BYTES, asked, r, &piece, why);
		offset += piece.len;
		if (e != ERR_OK || piece.len == 0)
			break;
		if (columns != NULL)
			e = columns_add(columns, buf_span(&piece));
		else if (fwrite(piece.data, 1, piece.len, out) != piece.len)
			e = rows_out_error(why);
	} while (e == ERR_OK);
	if (e == ERR_OK && columns != NULL)
		e = columns_flush(columns);
	buf_fini(&piece);
	return e == ERR_OK ? rows_out_flush(r->env, why) : e;
}

enum err rows_out(struct cmd_env *env, struct row_source *source, uint64_t expected, unsigned flags,
	struct err_detail *why)
{
	struct run r = { .env = env, .source = source, .expected = expected };
	struct columns columns = COLUMNS_INIT(env->out);
	/* A progress line would be drawn over the rows. */
	progress_start(&r.progress, env, "rows");
	if (isatty(env->out_fd) || (flags & ROWS_OUT_QUIET) != 0)
		r.progress.to = NULL;
	enum err e = copy(&r, (flags & ROWS_OUT_ALIGNED) != 0 ? &columns : NULL, why);
	progress_clear(&r.progress);
	columns_fini(&columns);
	return e;
}
