/* SPDX-License-Identifier: MIT
 * NDJSON: one row a line, an object as in a row file with PartitionKey and RowKey.
 * Blank lines are skipped. */
#include "service/transfer_parts.h"

static bool blank(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
			return false;
	return true;
}

/* Into r->text, without the line's end.  False at the end of the input. */
static bool read_line(struct reader *r)
{
	char piece[4096];
	size_t n = 0;
	int c;
	buf_clear(&r->text);
	r->line = r->lines + 1;
	while ((c = reader_getc(r)) != EOF && c != '\n') {
		piece[n++] = (char)c;
		if (n == sizeof(piece)) {
			buf_add(&r->text, piece, n);
			n = 0;
		}
	}
	buf_add(&r->text, piece, n);
	return c != EOF || r->text.len > 0 || r->text.failed;
}

static enum err start(struct reader *r, struct err_detail *detail)
{
	reader_skip_mark(r);
	return r->broken ? reader_error(r, detail) : ERR_OK;
}

static enum err next(
	struct reader *r, struct arena *text, struct entity *ret, struct err_detail *detail)
{
	bool got;
	do
		got = read_line(r);
	while (got && !r->broken && buf_ok(&r->text) && blank(buf_span(&r->text)));
	if (r->broken)
		return reader_error(r, detail);
	r->end = !got;
	if (r->end)
		return ERR_OK;
	if (!buf_ok(&r->text))
		return err_set(detail, ERR_BODY_TOO_LARGE, "the line is longer than %zu bytes",
			RECORD_LIMIT);

	struct span line = arena_copy(text, buf_span(&r->text));
	if (line.p == NULL) {
		r->broken = true;
		return ERR_NO_MEMORY;
	}
	enum err e = entity_json_decode(line, ENTITY_JSON_FILE, ret, NULL, detail);
	if (e == ERR_OK && !ret->has_pk)
		e = err_set(detail, ERR_KEY_MISSING, "there is no PartitionKey");
	if (e == ERR_OK && !ret->has_rk)
		e = err_set(detail, ERR_KEY_MISSING, "there is no RowKey");
	return e;
}

static void finish_reader(struct reader *r)
{
	(void)r;
}

const struct import_format import_ndjson = { start, next, finish_reader };

static enum err header(struct writer *w)
{
	(void)w;
	return ERR_OK;
}

static enum err row(struct writer *w, const struct entity *e)
{
	entity_json_encode(e,
		ENTITY_JSON_PK | ENTITY_JSON_RK | ENTITY_JSON_TIMESTAMP | ENTITY_JSON_NEWLINE,
		&w->out);
	return buf_ok(&w->out) ? ERR_OK : ERR_NO_MEMORY;
}

static void finish_writer(struct writer *w)
{
	(void)w;
}

const struct export_format export_ndjson = { false, NULL, header, row, finish_writer };
