/* SPDX-License-Identifier: MIT
 * Cuts the input into records; import_records.c makes rows of them.  The start of an incomplete
 * record is held, later with its line end, until the pieces behind it are done: importer_rest()
 * needs it. */
#include "service/transfer/importer.h"

#include "service/transfer/import_parts.h"

#include <stdlib.h>
#include <string.h>

#define HELD_LIMIT (RECORD_LIMIT + 1) /* with its line end */

static const char mark[] = { '\xEF', '\xBB', '\xBF' };

enum err importer_new(struct service *s, enum origin origin, uint64_t table_id,
	const struct import_options *options, struct importer **ret)
{
	struct importer *im = calloc(1, sizeof(*im));
	if (im == NULL)
		return ERR_NO_MEMORY;
	im->service = s;
	im->origin = origin;
	im->table_id = table_id;
	im->options = *options;
	im->format = options->format == TRANSFER_CSV ? &import_csv : &import_ndjson;
	im->held = BUF_INIT(HELD_LIMIT);
	im->partition = BUF_INIT(LIMIT_KEY_BYTES);
	im->rendered = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	*ret = im;
	return ERR_OK;
}

void importer_free(struct importer *im)
{
	if (im == NULL)
		return;
	if (im->format->header_free != NULL)
		im->format->header_free(im->header);
	chunk_free(im->chunk);
	splicer_free(im->splicer);
	buf_fini(&im->rendered);
	buf_fini(&im->held);
	buf_fini(&im->partition);
	free(im);
}

enum err importer_aim(struct importer *im, uint64_t table_id, struct span pk)
{
	im->table_id = table_id;
	buf_clear(&im->partition);
	buf_add_span(&im->partition, pk);
	return buf_reserve(&im->partition, 0) ? ERR_OK : ERR_NO_MEMORY;
}

const struct import_counts *importer_counts(const struct importer *im)
{
	return &im->counts;
}

/* ---- pieces ---- */

static uint64_t count_lines(struct span s)
{
	uint64_t n = 0;
	if (s.n == 0)
		return 0; /* arithmetic on a null pointer is undefined */
	for (const char *end = s.p + s.n, *p = s.p; p < end; p++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (p == NULL)
			break;
		n++;
	}
	return n;
}

static struct import_place place(const struct importer *im)
{
	return (struct import_place){ .line = im->lines + 1, .offset = im->at };
}

size_t importer_holds(const struct importer *im)
{
	size_t n = sizeof(*im) + im->partition.cap + im->held.cap + im->rendered.cap;
	if (im->header != NULL)
		n += im->format->header_holds(im->header);
	return im->splicer != NULL ? n + splicer_holds(im->splicer) : n;
}

static size_t held_len(const struct importer *im)
{
	return im->holding ? im->held.len : 0;
}

static void drop_held(struct importer *im)
{
	/* Frees the memory of a long record. */
	if (im->held.cap > CHUNK_BYTES / 4)
		buf_fini(&im->held);
	im->held.limit = HELD_LIMIT;
	buf_clear(&im->held);
	im->holding = false;
}

static enum err skip(struct importer *im, struct span piece, struct err_detail *why)
{
	struct import_place at = place(im);
	if (!im->skipping) {
		enum err e = records_too_long(im, at, why);
		if (e != ERR_OK)
			return e;
		im->lines += count_lines(span_make(im->held.data, held_len(im)));
		drop_held(im);
		im->skipping = true;
	}
	im->lines += count_lines(piece);
	return ERR_OK;
}

/* Adds a part of a record; afterwards held has all of it. */
static enum err hold(struct importer *im, struct span piece)
{
	if (!im->holding) {
		drop_held(im);
		im->scan = (struct json_scan){ 0 };
	}
	im->holding = true;
	buf_add_span(&im->held, piece);
	if (buf_ok(&im->held))
		return ERR_OK;
	im->undecided = place(im);
	return ERR_NO_MEMORY;
}

/* n is the size of the record without its line end. */
static bool fits(const struct importer *im, size_t n)
{
	return !im->skipping && n <= RECORD_LIMIT - held_len(im);
}

/* Takes a piece that ends with the line end of a record. */
static enum err take_end(struct importer *im, struct span piece, struct err_detail *why)
{
	struct import_place at = place(im);
	struct span record = piece;
	enum err e = ERR_OK;
	if (!fits(im, piece.n - 1)) {
		e = skip(im, piece, why);
		im->skipping = false;
		return e;
	}
	if (im->holding) {
		e = hold(im, piece);
		record = buf_span(&im->held);
	}
	im->lines += count_lines(record);
	if (e == ERR_OK)
		e = records_take(im, at, span_make(record.p, record.n - 1), why);
	/* The bytes stay for importer_rest(). */
	im->holding = false;
	return e;
}

/* Bytes that only began like a byte order mark belong to the first record. */
static enum err unmark(struct importer *im)
{
	struct span begun = span_make(mark, im->mark_n);
	im->mark_n = sizeof(mark);
	if (begun.n == 0)
		return ERR_OK;
	im->at = 0;
	im->held_first = (size_t)im->fed;
	(void)im->format->end_of(&im->state, begun);
	return hold(im, begun);
}

static enum err take_mark(struct importer *im, struct span *bytes)
{
	while (im->mark_n < sizeof(mark) && bytes->n > 0) {
		if (bytes->p[0] != mark[im->mark_n])
			return unmark(im);
		im->mark_n++;
		im->at++;
		*bytes = span_make(bytes->p + 1, bytes->n - 1);
	}
	return ERR_OK;
}

/* Takes all complete records.  *ret_tail is the rest. */
static enum err take_pieces(
	struct importer *im, struct span bytes, struct span *ret_tail, struct err_detail *why)
{
	struct span left = bytes;
	enum err e = take_mark(im, &left);
	while (e == ERR_OK) {
		size_t n = im->format->end_of(&im->state, left);
		if (n == 0)
			break;
		e = take_end(im, span_make(left.p, n), why);
		left = span_make(left.p + n, left.n - n);
		im->at = im->counts.bytes = im->fed + (bytes.n - left.n);
	}
	*ret_tail = left;
	return e;
}

/* ---- the calls ---- */

/* With at_once, an importer holds no rows between calls. */
static void rest(struct importer *im)
{
	if (!im->options.at_once)
		return;
	chunk_free(im->chunk);
	im->chunk = NULL;
}

static enum err finish(
	struct importer *im, enum err e, const struct err_detail *why, struct err_detail *detail)
{
	rest(im);
	im->failed = e;
	im->why = *why;
	if (e != ERR_OK && detail != NULL)
		*detail = *why;
	return e;
}

enum err importer_feed(struct importer *im, struct span bytes, struct err_detail *detail)
{
	if (im->failed != ERR_OK)
		return finish(im, im->failed, &im->why, detail);
	struct err_detail why = { 0 };
	struct span tail;
	im->held_first = held_len(im);
	enum err e = take_pieces(im, bytes, &tail, &why);
	if (e == ERR_OK && im->options.at_once)
		e = records_commit(im, &why);
	if (e == ERR_OK && tail.n > 0)
		e = fits(im, tail.n) ? hold(im, tail) : skip(im, tail, &why);
	if (e == ERR_OK && im->options.at_once && im->holding)
		e = records_check_begun(im, place(im), buf_span(&im->held), &why);
	if (e == ERR_OK) {
		im->fed += bytes.n;
		if (!im->holding)
			drop_held(im);
	}
	return finish(im, e, &why, detail);
}

enum err importer_flush(struct importer *im, struct err_detail *detail)
{
	struct err_detail why = { 0 };
	enum err e = im->failed;
	if (e == ERR_OK)
		e = records_commit(im, &why);
	else
		why = im->why;
	return finish(im, e, &why, detail);
}

enum err importer_end(struct importer *im, struct err_detail *detail)
{
	if (im->failed != ERR_OK)
		return finish(im, im->failed, &im->why, detail);
	struct err_detail why = { 0 };
	enum err e = im->mark_n < sizeof(mark) ? unmark(im) : ERR_OK;
	im->held_first = held_len(im);
	im->ending = true;
	if (e == ERR_OK && im->holding)
		e = records_take(im, place(im), buf_span(&im->held), &why);
	im->ending = false;
	if (e == ERR_OK)
		e = records_commit(im, &why);
	rest(im);
	if (e != ERR_OK) {
		if (detail != NULL)
			*detail = why;
		return e;
	}
	im->lines += count_lines(span_make(im->held.data, held_len(im)));
	drop_held(im);
	im->state = 0;
	im->at = im->counts.bytes = im->fed;
	return ERR_OK;
}

void importer_rest(const struct importer *im, struct span bytes, struct buf *out)
{
	size_t from = 0, held = held_len(im);
	if (im->failed != ERR_OK) {
		bool before = im->undecided.offset < im->fed;
		held = before ? im->held_first : 0;
		from = before ? 0 : (size_t)(im->undecided.offset - im->fed);
	}
	buf_add(out, im->held.data, held);
	if (from < bytes.n)
		buf_add(out, bytes.p + from, bytes.n - from);
}
