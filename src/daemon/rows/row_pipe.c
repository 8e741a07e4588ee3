/* SPDX-License-Identifier: MIT */
#include "daemon/rows/row_pipe.h"

#include "codec/entity_json.h"
#include "daemon/core/self.h"
#include "model/key.h"
#include "model/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum err failed(const char *what, struct err_detail *why)
{
	int code = errno;
	return err_set(why, err_from_errno(code), "cannot %s: %s", what, strerrordesc_np(code));
}

/* writes: we write to the process. */
static enum err start(
	const char *const *argv, bool writes, pid_t *ret_child, FILE **ret, struct err_detail *why)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return failed("make a pipe", why);
	pid_t child = self_start(argv, writes ? fds[0] : -1, writes ? -1 : fds[1]);
	close(fds[writes ? 0 : 1]);
	*ret = child > 0 ? fdopen(fds[writes ? 1 : 0], writes ? "w" : "r") : NULL;
	*ret_child = child > 0 ? child : 0;
	if (*ret != NULL)
		return ERR_OK;
	enum err e = failed("start a process", why);
	close(fds[writes ? 1 : 0]);
	return e;
}

/* ---- reading ---- */

enum err row_reader_start(struct row_reader *r, const char *const *argv, struct err_detail *why)
{
	*r = (struct row_reader){ .key = BUF_INIT(2 * (size_t)LIMIT_KEY_BYTES + 1) };
	return start(argv, false, &r->child, &r->in, why);
}

static bool read_line(struct row_reader *r)
{
	ssize_t n = getline(&r->text, &r->room, r->in);
	while (n > 0 && (r->text[n - 1] == '\n' || r->text[n - 1] == ','))
		n--;
	r->line = span_make(r->text, n > 0 ? (size_t)n : 0);
	return n >= 0;
}

static void add_order(struct span key, struct buf *out)
{
	size_t at = out->len;
	buf_add_span(out, key);
	if (buf_ok(out) && key.n > 0)
		key_to_order(out->data + at, key.n, out->data + at);
}

/* A key in order form has no NUL, so that the shorter PartitionKey comes first. */
static enum err take_key(struct row_reader *r, struct err_detail *why)
{
	struct buf key = BUF_INIT(2 * (size_t)LIMIT_KEY_BYTES + 1);
	add_order(r->entity.pk, &key);
	buf_add_char(&key, 0);
	add_order(r->entity.rk, &key);
	enum err e = buf_full(&key);
	if (e == ERR_OK && r->rows > 0 && span_cmp(buf_span(&r->key), buf_span(&key)) >= 0)
		e = err_set(why, ERR_INVALID_INPUT,
			"the rows do not come in the order of their keys, so they cannot be "
			"compared");
	buf_fini(&r->key);
	r->key = key;
	return e;
}

enum err row_reader_next(struct row_reader *r, struct err_detail *why)
{
	do {
		if (!read_line(r))
			return err_set(why, ERR_IO, "the rows could not be read to their end");
		r->ended = span_is(r->line, "]");
	} while (r->line.n == 0 || span_is(r->line, "["));
	if (r->ended)
		return ERR_OK;
	enum err e = entity_json_decode(r->line, ENTITY_JSON_FILE, &r->entity, NULL, why);
	if (e == ERR_OK)
		e = take_key(r, why);
	r->rows += e == ERR_OK;
	return e;
}

void row_reader_stop(struct row_reader *r)
{
	if (r->in != NULL)
		(void)fclose(r->in);
	r->in = NULL;
}

int row_reader_end(struct row_reader *r)
{
	row_reader_stop(r);
	int code = r->child > 0 ? self_wait(r->child) : 0;
	free(r->text);
	entity_fini(&r->entity);
	buf_fini(&r->key);
	*r = (struct row_reader){ 0 };
	return code;
}

/* ---- writing ---- */

enum err row_writer_start(struct row_writer *w, const char *const *argv, struct err_detail *why)
{
	return start(argv, true, &w->child, &w->out, why);
}

enum err row_writer_add(struct row_writer *w, struct span line, struct err_detail *why)
{
	bool ok = fwrite(line.p, 1, line.n, w->out) == line.n && fputc('\n', w->out) != EOF;
	return ok ? ERR_OK : err_set(why, ERR_IO, "the rows could not all be written");
}

int row_writer_end(struct row_writer *w)
{
	int code = 0;
	bool ok = w->out == NULL || fclose(w->out) == 0;
	if (w->child > 0)
		code = self_wait(w->child);
	*w = (struct row_writer){ 0 };
	return ok ? code : 1;
}
