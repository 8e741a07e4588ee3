/* SPDX-License-Identifier: MIT
 * Makes rows of records, collects them in a chunk, and commits a chunk as one change set.  If the
 * store refuses a row, the chunk is committed in pieces, which then grow again. */
#include "model/filename.h"
#include "service/transfer/import_parts.h"

#include <stdlib.h>

static enum entity_op_kind op_of(enum import_mode mode)
{
	switch (mode) {
	case IMPORT_INSERT:
		return ENTITY_INSERT;
	case IMPORT_MERGE:
		return ENTITY_MERGE;
	case IMPORT_REPLACE:
		return ENTITY_REPLACE;
	case IMPORT_DELETE:
		return ENTITY_DELETE;
	case IMPORT_UPSERT:
		break;
	}
	return ENTITY_UPSERT;
}

/* Returns true if the error concerns only one row: the others can be committed without it. */
static bool is_refusal(enum err e, enum import_mode mode)
{
	if (e == ERR_NOT_FOUND)
		return mode != IMPORT_INSERT && mode != IMPORT_UPSERT;
	int http = err_http(e);
	/* Permissions and the state of the table concern all rows. */
	return http >= 400 && http < 500 && http != 401 && http != 403 && e != ERR_READ_ONLY &&
		e != ERR_NOT_PERMITTED && e != ERR_TABLE_NOT_FOUND && e != ERR_ACCOUNT_NOT_FOUND &&
		e != ERR_TABLE_BEING_DELETED && e != ERR_GONE;
}

/* Converts a position in the record to one in the input. */
static void place_in_input(struct err_detail *detail, struct import_place at)
{
	if (detail->line == 0)
		detail->column = 0;
	detail->line = (unsigned)at.line + (detail->line > 1 ? detail->line - 1 : 0);
}

static enum err refuse(
	struct importer *im, struct import_place at, enum err e, struct err_detail *why)
{
	place_in_input(why, at);
	im->undecided = at;
	im->counts.refused++;
	if (im->options.on_error != NULL)
		im->options.on_error(im->options.arg, e, why);
	/* A lack of memory is not the record's fault. */
	if (im->options.stop_at_error || e == ERR_NO_MEMORY)
		return e;
	*why = (struct err_detail){ 0 }; /* the next detail may set fewer members */
	return ERR_OK;
}

static enum err report(struct importer *im)
{
	const struct import_options *o = &im->options;
	bool on = o->on_progress == NULL || o->on_progress(o->arg, &im->counts);
	return on ? ERR_OK : ERR_CANCELLED;
}

/* Returns how many rows from `at` on one commit takes, at most as many as left. */
static size_t most_at(const struct importer *im, size_t at, size_t left)
{
	bool elsewhere = im->options.commit != NULL;
	if (elsewhere && left > LIMIT_BATCH_OPS)
		left = LIMIT_BATCH_OPS;
	return elsewhere || !service_can(im->service, STORE_CAN_SPAN)
		? chunk_partition(im->chunk, at, left)
		: left;
}

static enum err apply(struct importer *im, size_t at, size_t n, struct err_detail *why)
{
	const struct import_options *o = &im->options;
	return o->commit != NULL
		? o->commit(o->commit_arg, &im->chunk->ops[at], n, why)
		: chunk_apply(im->chunk, at, n, im->service, im->origin, im->table_id, why);
}

/* Commits all rows of the chunk that are not refused. */
static enum err commit_rows(struct importer *im, struct err_detail *why)
{
	struct import_chunk *c = im->chunk;
	size_t at = 0, piece = c->n;
	while (at < c->n) {
		size_t n = most_at(im, at, piece < c->n - at ? piece : c->n - at);
		*why = (struct err_detail){ 0 };
		enum err e = apply(im, at, n, why);
		if (e == ERR_OK) {
			im->counts.done += n;
			at += n;
			piece = n * 2;
		} else if (e == ERR_NO_SPACE && n > 1) {
			/* Fewer rows may fit. */
			piece = n / 2;
		} else if (!is_refusal(e, im->options.mode)) {
			im->undecided = c->places[at];
			place_in_input(why, c->places[at]);
			return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_TABLE_NOT_FOUND : e;
		} else if (n == 1) {
			e = refuse(im, c->places[at++], e, why);
			if (e != ERR_OK)
				return e;
		} else {
			/* The row to blame is tried alone, after the rows before it. */
			piece = why->op > 0 && why->op < n ? why->op : 1;
		}
	}
	return ERR_OK;
}

enum err records_commit(struct importer *im, struct err_detail *why)
{
	if (im->chunk == NULL || im->chunk->n == 0)
		return ERR_OK;
	enum err e = commit_rows(im, why);
	chunk_clear(im->chunk);
	enum err told = report(im);
	return e != ERR_OK ? e : told;
}

static enum err make_chunk(struct importer *im)
{
	if (im->chunk == NULL)
		im->chunk = calloc(1, sizeof(*im->chunk));
	return im->chunk != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* The check is made once for consecutive rows of a partition, and again for each chunk. */
static enum err may_change(struct importer *im, struct span pk)
{
	const struct import_chunk *c = im->chunk;
	if (im->options.may_change == NULL || (c->n > 0 && span_eq(c->ops[c->n - 1].pk, pk)))
		return ERR_OK;
	return im->options.may_change(im->options.arg, im->table_id, pk);
}

/* *row has the keys of the record; p is NULL for a missing one. */
static enum err take_keys(struct importer *im, struct import_row *row, struct err_detail *why)
{
	if (im->options.in_partition && row->pk.p == NULL)
		row->pk = buf_span(&im->partition);
	if (row->pk.p == NULL)
		return err_set(why, ERR_KEY_MISSING, "PartitionKey is missing");
	if (row->rk.p == NULL)
		return err_set(why, ERR_KEY_MISSING, "RowKey is missing");
	if (im->options.in_partition && !span_eq(row->pk, buf_span(&im->partition)))
		return err_set(
			why, ERR_KEY_MISMATCH, "the PartitionKey is not that of the directory");
	return may_change(im, row->pk);
}

/* Only the store takes documents, and only to put them. */
static bool takes_entities(const struct importer *im)
{
	return im->options.mode == IMPORT_MERGE || im->options.mode == IMPORT_DELETE ||
		im->options.commit != NULL;
}

/* Then the document alone is not enough. */
static bool needs_entity(const struct importer *im, const struct import_row *row)
{
	return takes_entities(im) || filename_is_long(row->pk, FILENAME_PARTITION) ||
		filename_is_long(row->rk, FILENAME_ROW);
}

/* Decodes and checks the record, with its keys. */
static enum err parse(
	struct importer *im, struct span record, struct import_row *row, struct err_detail *why)
{
	struct entity *e = &im->chunk->entities[im->chunk->decoded];
	enum err err = im->format->parse(im->header, record, &im->chunk->text, e, why);
	if (err == ERR_OK && im->ending && im->format->cut != NULL && im->format->cut(im->header))
		err = err_set(why, ERR_INVALID_INPUT,
			"the last record was cut off: it has no line end and fewer fields than the "
			"header");
	if (err != ERR_OK)
		return err;
	bool fill = !e->has_pk;
	*row = (struct import_row){ .entity = e };
	if (e->has_pk)
		row->pk = e->pk;
	if (e->has_rk)
		row->rk = e->rk;
	err = take_keys(im, row, why);
	e->pk = row->pk;
	e->has_pk = true;
	if (err == ERR_OK && fill && entity_size(e) > LIMIT_ENTITY_BYTES)
		err = ERR_ENTITY_TOO_LARGE;
	if (err == ERR_OK && !im->format->checks)
		err = entity_check(e, why);
	return err;
}

/* Encodes the row in its stored form, in the chunk's memory. */
static enum err render(struct importer *im, struct import_row *row)
{
	struct arena *text = &im->chunk->text;
	buf_clear(&im->rendered);
	entity_json_encode(row->entity, ENTITY_JSON_NEWLINE, &im->rendered);
	if (!buf_ok(&im->rendered))
		return buf_full(&im->rendered);
	*row = (struct import_row){ .pk = arena_copy(text, row->pk),
		.rk = arena_copy(text, row->rk),
		.document = arena_copy(text, buf_span(&im->rendered)) };
	bool all = row->pk.p != NULL && row->rk.p != NULL && row->document.p != NULL;
	return all ? ERR_OK : ERR_NO_MEMORY;
}

/* An entity stays at the chunk's next index, and borrows from the record. */
static enum err decode(
	struct importer *im, struct span record, struct import_row *row, struct err_detail *why)
{
	struct span kept = arena_copy(&im->chunk->text, record);
	if (kept.p == NULL)
		return ERR_NO_MEMORY;
	enum err e = parse(im, kept, row, why);
	return e != ERR_OK || needs_entity(im, row) ? e : render(im, row);
}

/* Most records need no decoding.  *ret_known is false if this one does. */
static enum err splice(struct importer *im, struct span record, struct import_row *row,
	bool *ret_known, struct err_detail *why)
{
	struct spliced spliced;
	*ret_known = false;
	if (!im->format->json || takes_entities(im))
		return ERR_OK;
	if (im->splicer == NULL)
		im->splicer = splicer_new();
	if (im->splicer == NULL)
		return ERR_NO_MEMORY;
	if (!splicer_take(im->splicer, record, &im->chunk->text, &spliced))
		return ERR_OK;
	*row = (struct import_row){ spliced.pk, spliced.rk, spliced.document, NULL };
	enum err e = take_keys(im, row, why);
	*ret_known = e != ERR_OK || !needs_entity(im, row);
	return e;
}

static enum err read_row(
	struct importer *im, struct span record, struct import_row *row, struct err_detail *why)
{
	bool known;
	enum err e = splice(im, record, row, &known, why);
	return e != ERR_OK || known ? e : decode(im, record, row, why);
}

/* Reports in the order of the input: first commits the rows before it. */
static enum err bad_record(
	struct importer *im, struct import_place at, enum err e, struct err_detail *why)
{
	struct import_chunk *c = im->chunk;
	struct err_detail bad = *why;
	if (c != NULL)
		entity_fini(&c->entities[c->decoded]);
	enum err before = records_commit(im, why);
	/* A commit of no rows leaves the text of refused ones. */
	if (c != NULL)
		arena_reset(&c->text);
	if (before != ERR_OK)
		return before;
	*why = bad;
	return refuse(im, at, e, why);
}

static enum err add_row(
	struct importer *im, struct import_place at, struct span record, struct err_detail *why)
{
	enum err e = make_chunk(im);
	if (e != ERR_OK)
		return e;
	im->counts.lines++;
	struct import_row row;
	e = read_row(im, record, &row, why);
	if (e == ERR_OK && chunk_has(im->chunk, &row)) {
		/* A second row with the same keys must wait for the first one. */
		e = records_commit(im, why);
		if (e != ERR_OK)
			return e;
		e = read_row(im, record, &row, why);
	}
	if (e == ERR_NO_MEMORY) {
		im->undecided = im->chunk->n > 0 ? im->chunk->places[0] : at;
		return e;
	}
	if (e != ERR_OK)
		return bad_record(im, at, e, why);
	chunk_append(im->chunk, op_of(im->options.mode), at, &row, record.n);
	return chunk_full(im->chunk) ? records_commit(im, why) : ERR_OK;
}

static enum err take_header(
	struct importer *im, struct import_place at, struct span record, struct err_detail *why)
{
	enum err e = im->format->header(record, im->options.in_partition, &im->header, why);
	im->undecided = at;
	if (e != ERR_OK)
		place_in_input(why, at);
	return e;
}

enum err records_take(
	struct importer *im, struct import_place at, struct span record, struct err_detail *why)
{
	if (im->format->blank(record))
		return ERR_OK;
	if (im->format->header != NULL && im->header == NULL)
		return take_header(im, at, record, why);
	return add_row(im, at, record, why);
}

enum err records_too_long(struct importer *im, struct import_place at, struct err_detail *why)
{
	(void)err_set(why, ERR_BODY_TOO_LARGE, "the record is longer than %zu bytes", RECORD_LIMIT);
	im->counts.lines++;
	return bad_record(im, at, ERR_BODY_TOO_LARGE, why);
}

/* Programs that write a line without its end often close without checking the result. */
enum err records_check_begun(
	struct importer *im, struct import_place at, struct span begun, struct err_detail *why)
{
	if (im->format->decided == NULL || !im->options.stop_at_error ||
		!im->format->decided(begun, &im->scan))
		return ERR_OK;
	enum err e = make_chunk(im);
	struct import_row row;
	if (e == ERR_OK)
		e = read_row(im, begun, &row, why);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : bad_record(im, at, e, why);
}
