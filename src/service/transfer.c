/* SPDX-License-Identifier: MIT
 * The streams of import and export.  Import gathers rows into chunks and commits each as
 * one change set; a row that the store refuses (it exists, it does not) costs its
 * neighbours nothing: they are committed around it in pieces that grow again.  Chunks are
 * made durable together, by one sync at the end.
 * Export renders a page of rows inside the store's listing and writes it outside, so that
 * a slow reader of the output holds nothing but a view. */
#include "service/transfer.h"

#include "model/key.h"
#include "service/transfer_parts.h"
#include "service/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ROWS 1000
#define CHUNK_BYTES (4u << 20)
#define CHUNK_SLOTS 4096 /* of the hash of its keys; a power of two */
#define PAGE_BYTES (256u << 10)

struct chunk {
	struct entity entities[CHUNK_ROWS];
	struct entity_op ops[CHUNK_ROWS];
	uint64_t lines[CHUNK_ROWS];
	uint16_t slots[CHUNK_SLOTS]; /* index + 1 of the row with these keys; 0: free */
	struct arena text;
	size_t n;
	size_t bytes;
};

struct import {
	struct service *service;
	enum origin origin;
	uint64_t table_id;
	const struct import_options *options;
	struct import_counts *counts;
	struct chunk *chunk;
};

/* ---- reading ---- */

int reader_getc(struct reader *r)
{
	if (r->at == r->have) {
		r->at = 0;
		r->have = fread(r->block, 1, sizeof(r->block), r->in);
		if (r->have == 0) {
			r->broken = ferror(r->in) != 0;
			return EOF;
		}
	}
	unsigned char c = (unsigned char)r->block[r->at++];
	r->bytes++;
	r->lines += c == '\n';
	return c;
}

void reader_skip_mark(struct reader *r)
{
	static const char mark[] = { '\xEF', '\xBB', '\xBF' };
	if (reader_getc(r) == EOF)
		return;
	/* The first block is here; nothing of it is taken yet. */
	r->at = r->bytes = r->lines = 0;
	if (r->have >= sizeof(mark) && memcmp(r->block, mark, sizeof(mark)) == 0)
		r->at = r->bytes = sizeof(mark);
}

enum err reader_error(struct reader *r, struct err_detail *detail)
{
	int code = errno != 0 ? errno : EIO;
	(void)r;
	return err_set(
		detail, err_from_errno(code), "cannot read the input: %s", strerrordesc_np(code));
}

/* ---- chunks ---- */

static enum entity_op_kind op_of(enum import_mode mode)
{
	switch (mode) {
	case IMPORT_INSERT:
		return ENTITY_INSERT;
	case IMPORT_MERGE:
		return ENTITY_MERGE;
	case IMPORT_REPLACE:
		return ENTITY_REPLACE;
	case IMPORT_UPSERT:
		break;
	}
	return ENTITY_UPSERT;
}

/* The slot of the row with these keys, or the free one where it would go. */
static uint16_t *slot_of(struct chunk *c, struct span pk, struct span rk)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < pk.n; i++)
		h = (h ^ (unsigned char)pk.p[i]) * 16777619u;
	h = (h ^ 0xFFu) * 16777619u;
	for (size_t i = 0; i < rk.n; i++)
		h = (h ^ (unsigned char)rk.p[i]) * 16777619u;
	for (uint32_t at = h ^ (h >> 15);; at++) {
		uint16_t *slot = &c->slots[at % CHUNK_SLOTS];
		if (*slot == 0)
			return slot;
		const struct entity_op *op = &c->ops[*slot - 1];
		if (span_eq(op->pk, pk) && span_eq(op->rk, rk))
			return slot;
	}
}

static void clear(struct chunk *c)
{
	for (size_t i = 0; i < c->n; i++) {
		/* Big rows give their memory back, the many small ones keep it. */
		if (c->bytes > CHUNK_BYTES / 4)
			entity_fini(&c->entities[i]);
		else
			entity_reset(&c->entities[i]);
	}
	memset(c->slots, 0, sizeof(c->slots));
	arena_reset(&c->text);
	c->n = 0;
	c->bytes = 0;
}

static void chunk_free(struct chunk *c)
{
	for (size_t i = 0; i < CHUNK_ROWS; i++)
		entity_fini(&c->entities[i]);
	arena_fini(&c->text);
	free(c);
}

/* Whether the error is the row's own: the others can be committed without it. */
static bool is_refusal(enum err e, enum import_mode mode)
{
	if (e == ERR_NOT_FOUND)
		return mode == IMPORT_MERGE || mode == IMPORT_REPLACE;
	int http = err_http(e);
	return http >= 400 && http < 500 && e != ERR_READ_ONLY && e != ERR_NOT_PERMITTED &&
		e != ERR_TABLE_NOT_FOUND && e != ERR_ACCOUNT_NOT_FOUND && e != ERR_GONE;
}

static enum err refuse(
	struct import *im, uint64_t line, enum err e, const struct err_detail *detail)
{
	im->counts->refused++;
	if (im->options->on_error != NULL)
		im->options->on_error(im->options->arg, line, e, detail);
	return im->options->stop_at_error ? e : ERR_OK;
}

static enum err report(struct import *im)
{
	const struct import_options *o = im->options;
	bool on = o->on_progress == NULL || o->on_progress(o->arg, im->counts);
	return on ? ERR_OK : ERR_CANCELLED;
}

/* Commits the chunk, around the rows that are refused. */
static enum err commit(struct import *im, struct err_detail *detail)
{
	struct chunk *c = im->chunk;
	size_t at = 0, piece = c->n;
	enum err result = ERR_OK;
	while (result == ERR_OK && at < c->n) {
		size_t n = piece < c->n - at ? piece : c->n - at;
		struct err_detail why = { 0 };
		enum err e = entities_apply(
			im->service, im->origin, im->table_id, &c->ops[at], n, 0, &why);
		if (e == ERR_OK) {
			im->counts->done += n;
			at += n;
			piece = n * 2;
		} else if (!is_refusal(e, im->options->mode)) {
			*detail = why;
			result = e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_TABLE_NOT_FOUND : e;
		} else if (n == 1) {
			result = refuse(im, c->lines[at], e, &why);
			at++;
		} else {
			/* The one to blame is tried alone, after those before it. */
			piece = why.op > 0 && why.op < n ? why.op : 1;
		}
	}
	clear(c);
	enum err e = report(im);
	return result != ERR_OK ? result : e;
}

static void append(struct import *im, uint64_t line)
{
	struct chunk *c = im->chunk;
	struct entity *e = &c->entities[c->n];
	*slot_of(c, e->pk, e->rk) = (uint16_t)(c->n + 1);
	c->ops[c->n] = (struct entity_op){ .kind = op_of(im->options->mode),
		.pk = e->pk,
		.rk = e->rk,
		.entity = e,
		.attrs = ATTRS_UNSET };
	c->lines[c->n++] = line;
	c->bytes += entity_size(e);
}

/* Takes over entities[n]; a second row with the same keys waits for the first one. */
static enum err add(struct import *im, uint64_t line, struct err_detail *detail)
{
	struct chunk *c = im->chunk;
	struct entity *e = &c->entities[c->n];
	if (*slot_of(c, e->pk, e->rk) == 0) {
		append(im, line);
		return c->n == CHUNK_ROWS || c->bytes > CHUNK_BYTES ? commit(im, detail) : ERR_OK;
	}
	/* Its text lives in the chunk's arena, so it is set aside by a deep copy. */
	struct entity again = { 0 };
	enum err result = entity_merge(&again, e);
	struct span pk = arena_copy(&again.arena, e->pk);
	struct span rk = arena_copy(&again.arena, e->rk);
	if (result == ERR_OK && (pk.p == NULL || rk.p == NULL))
		result = ERR_NO_MEMORY;
	entity_reset(e);
	if (result == ERR_OK)
		result = commit(im, detail);
	if (result != ERR_OK) {
		entity_fini(&again);
		return result;
	}
	again.pk = pk;
	again.rk = rk;
	again.has_pk = again.has_rk = true;
	entity_fini(&c->entities[0]);
	c->entities[0] = again;
	append(im, line);
	return ERR_OK;
}

static enum err read_all(struct import *im, const struct import_format *format, struct reader *r,
	struct err_detail *detail)
{
	struct chunk *c = im->chunk;
	enum err e = format->start(r, detail);
	if (e != ERR_OK)
		return e;
	for (;;) {
		struct err_detail why = { 0 };
		e = format->next(r, &c->text, &c->entities[c->n], &why);
		im->counts->bytes = r->bytes;
		if (r->broken)
			*detail = why;
		if (r->broken || r->end)
			break;
		im->counts->lines++;
		if (e == ERR_OK) {
			e = add(im, r->line, detail);
		} else {
			/* In the order of the input: first what stands before it. */
			enum err before = commit(im, detail);
			e = before != ERR_OK ? before : refuse(im, r->line, e, &why);
		}
		if (e != ERR_OK)
			return e;
	}
	enum err last = commit(im, detail);
	return e != ERR_OK ? e : last;
}

enum err import_stream(struct service *s, enum origin origin, uint64_t table_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail)
{
	struct err_detail scratch = { 0 };
	struct import im = { s, origin, table_id, options, counts,
		calloc(1, sizeof(struct chunk)) };
	if (im.chunk == NULL)
		return ERR_NO_MEMORY;
	*counts = (struct import_counts){ 0 };
	const struct import_format *format =
		options->format == TRANSFER_CSV ? &import_csv : &import_ndjson;
	struct reader r = { .in = in, .text = BUF_INIT(RECORD_LIMIT) };
	enum err e = read_all(&im, format, &r, detail != NULL ? detail : &scratch);
	counts->bytes = r.bytes;
	enum err synced = counts->done > 0 ? store_sync(service_store(s)) : ERR_OK;
	format->finish(&r);
	buf_fini(&r.text);
	chunk_free(im.chunk);
	return e != ERR_OK ? e : synced;
}

/* ---- export ---- */

struct export
{
	struct store *store;
	struct store_view *view;
	FILE *out;
	const struct export_options *options;
	const struct export_format *format;
	struct writer w;
	uint64_t rows;
	struct err_detail *detail;

	/* The page being rendered. */
	bool looking; /* the first pass */
	struct span pk;
	char last[LIMIT_KEY_BYTES]; /* order form */
	size_t last_n;
	size_t seen_bytes;
	bool full;
	struct entity entity;
	enum err e;
};

static bool render(void *arg, const struct item *it)
{
	struct export *x = arg;
	if (it->kind == ITEM_ROW) {
		x->e = entity_of_item(it, x->pk, &x->entity);
		if (x->e == ERR_OK)
			x->e = x->looking ? x->format->look(&x->w, &x->entity)
					  : x->format->row(&x->w, &x->entity);
		if (x->e != ERR_OK)
			return false;
		x->rows += !x->looking;
	}
	memcpy(x->last, it->key.p, it->key.n);
	x->last_n = it->key.n;
	x->seen_bytes += it->size;
	x->full = x->seen_bytes >= PAGE_BYTES || x->w.out.len >= PAGE_BYTES;
	return !x->full;
}

static enum err put_out(struct export *x)
{
	if (x->w.out.len > 0 && fwrite(x->w.out.data, 1, x->w.out.len, x->out) != x->w.out.len) {
		int code = errno != 0 ? errno : EIO;
		return err_set(x->detail, err_from_errno(code), "cannot write the output: %s",
			strerrordesc_np(code));
	}
	buf_clear(&x->w.out);
	const struct export_options *o = x->options;
	bool on = o->on_progress == NULL || o->on_progress(o->arg, x->rows);
	return on ? ERR_OK : ERR_CANCELLED;
}

static enum err export_partition(struct export *x, const struct item *partition)
{
	char pk[LIMIT_KEY_BYTES];
	key_from_order(partition->key.p, partition->key.n, pk);
	x->pk = span_make(pk, partition->key.n);
	struct span after = { 0 };
	do {
		x->seen_bytes = 0;
		x->full = false;
		x->e = ERR_OK;
		enum err e = store_list(x->store, x->view, partition->id, CLASS_KEYED, after, false,
			WANT_BODY, render, x);
		if (e == ERR_OK)
			e = x->e;
		if (e != ERR_OK)
			return e;
		e = put_out(x);
		if (e != ERR_OK)
			return e;
		after = span_make(x->last, x->last_n);
	} while (x->full);
	return ERR_OK;
}

static enum err one_partition(struct export *x, uint64_t table_id)
{
	char key[LIMIT_KEY_BYTES];
	struct span pk = *x->options->partition;
	enum err e = key_check(pk, "PartitionKey", x->detail);
	if (e != ERR_OK)
		return e;
	key_to_order(pk.p, pk.n, key);
	struct item it = { 0 };
	e = store_child(
		x->store, x->view, table_id, CLASS_KEYED, span_make(key, pk.n), WANT_ATTRS, &it);
	if (e == ERR_OK)
		e = export_partition(x, &it);
	item_fini(&it);
	return e;
}

static enum err all_partitions(struct export *x, uint64_t table_id)
{
	struct item it = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK) {
		e = walk_next(x->store, x->view, table_id, CLASS_KEYED, WANT_ATTRS, &it);
		if (e == ERR_NOT_FOUND)
			return ERR_OK;
		if (e == ERR_OK && it.kind == ITEM_PARTITION)
			e = export_partition(x, &it);
	}
	item_fini(&it);
	return e;
}

static enum err one_pass(struct export *x, uint64_t table_id, bool looking)
{
	x->looking = looking;
	enum err e = looking ? ERR_OK : x->format->header(&x->w);
	if (e == ERR_OK && x->options->partition != NULL)
		e = one_partition(x, table_id);
	else if (e == ERR_OK)
		e = all_partitions(x, table_id);
	return e == ERR_OK ? put_out(x) : e;
}

enum err export_stream(struct service *s, uint64_t table_id, FILE *out,
	const struct export_options *options, uint64_t *ret_rows, struct err_detail *detail)
{
	struct export *x = calloc(1, sizeof(*x));
	if (x == NULL)
		return ERR_NO_MEMORY;
	x->store = service_store(s);
	x->out = out;
	x->options = options;
	x->format = options->format == TRANSFER_CSV ? &export_csv : &export_ndjson;
	x->w.out = BUF_INIT(SIZE_MAX / 2);
	x->detail = detail;
	enum err e = store_view_open(x->store, &x->view);
	if (e == ERR_OK && x->format->two_passes)
		e = one_pass(x, table_id, true);
	if (e == ERR_OK)
		e = one_pass(x, table_id, false);
	store_view_close(x->store, x->view);
	if (ret_rows != NULL)
		*ret_rows = x->rows;
	x->format->finish(&x->w);
	buf_fini(&x->w.out);
	entity_fini(&x->entity);
	free(x);
	return e;
}
