/* SPDX-License-Identifier: MIT
 * Imports: whatever comes, whole and in pieces, in chunks and at once: the same rows, the
 * same refusals at the same lines.  Where the first refusal ends it, what is left is an end
 * of the input, and what stands before it gives these rows.
 * The first byte says how ("0" to "?": bit 0 CSV, 1 in a partition, 2 stops, 3 insert), the
 * second the sizes of the pieces. */
#include "../unit/service_table.h"
#include "fuzz.h"
#include "model/key.h"
#include "service/check/walk.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/transfer/importer.h"
#include "store/engines.h"

struct world {
	struct service *service;
	uint64_t table;
	struct import_options options;
	struct import_counts counts;
	struct buf told, rows, rest;
	enum err e;
};

static void tell(void *arg, enum err e, const struct err_detail *detail)
{
	struct world *w = arg;
	MUST(e != ERR_OK && detail->line > 0);
	/* A line that comes in pieces may be refused before all is known that is wrong with it. */
	if (w->options.stop_at_error)
		buf_addf(&w->told, "%u\n", detail->line);
	else
		buf_addf(&w->told, "%u:%u %s\n", detail->line, detail->column,
			err_message(e, detail));
}

static void make_world(struct world *w, unsigned how)
{
	struct store *store;
	MUST(store_open_memory(&store) == ERR_OK && service_new(store, &w->service) == ERR_OK);
	uint64_t account;
	service_table(w->service, &account, &w->table);
	w->options =
		(struct import_options){ .format = (how & 1) != 0 ? TRANSFER_CSV : TRANSFER_NDJSON,
			.in_partition = (how & 2) != 0,
			.stop_at_error = (how & 4) != 0,
			.mode = (how & 8) != 0 ? IMPORT_INSERT : IMPORT_UPSERT,
			.on_error = tell,
			.arg = w };
	w->told = w->rows = w->rest = BUF_INIT((size_t)256 << 20);
}

static void free_world(struct world *w)
{
	service_free(w->service);
	buf_fini(&w->told);
	buf_fini(&w->rows);
	buf_fini(&w->rest);
}

static void list_rows(struct world *w)
{
	struct store *store = service_store(w->service);
	struct item pk = { 0 }, row = { 0 };
	while (walk_next(store, NULL, w->table, CLASS_KEYED, WANT_ATTRS, &pk) == ERR_OK) {
		item_fini(&row);
		while (walk_next(store, NULL, pk.id, CLASS_KEYED, WANT_BODY, &row) == ERR_OK) {
			buf_addf(&w->rows, "%zu %zu ", pk.key.n, row.key.n);
			buf_add_span(&w->rows, pk.key);
			buf_add_span(&w->rows, row.key);
			buf_add_span(&w->rows, row.body);
		}
	}
	item_fini(&row);
	item_fini(&pk);
}

/* seed 0: in one piece. */
static void import(struct world *w, struct span text, unsigned seed)
{
	struct importer *im;
	uint32_t dice = seed;
	struct span piece = { 0 };
	MUST(importer_new(w->service, ORIGIN_COMMAND, w->table, &w->options, &im) == ERR_OK);
	MUST(importer_aim(im, w->table, SPAN_LIT("p")) == ERR_OK);
	while (w->e == ERR_OK && text.n > 0) {
		dice = dice * 1664525u + 1013904223u;
		size_t n = seed == 0 ? text.n : 1 + (dice >> 16) % (seed % 32 + 1);
		piece = span_make(text.p, n < text.n ? n : text.n);
		text = span_make(text.p + piece.n, text.n - piece.n);
		w->e = importer_feed(im, piece, NULL);
	}
	if (w->e == ERR_OK) {
		piece = (struct span){ 0 };
		w->e = importer_end(im, NULL);
	}
	if (w->e != ERR_OK && w->options.at_once) {
		importer_rest(im, piece, &w->rest);
		buf_add_span(&w->rest, text);
	}
	MUST(w->e == ERR_OK || w->options.stop_at_error || w->options.format == TRANSFER_CSV);
	w->counts = *importer_counts(im);
	importer_free(im);
	list_rows(w);
}

static void must_be_same(const struct world *a, const struct world *b)
{
	MUST((a->e == ERR_OK) == (b->e == ERR_OK));
	MUST(span_eq(buf_span(&a->rows), buf_span(&b->rows)));
	MUST(span_eq(buf_span(&a->told), buf_span(&b->told)));
	MUST(a->counts.done == b->counts.done && a->counts.refused == b->counts.refused);
	if (a->e == ERR_OK)
		MUST(a->counts.lines == b->counts.lines && a->counts.bytes == b->counts.bytes);
}

/* What is left is the end of the text; without it the import succeeds, with the same rows. */
static void rest_is_right(struct world *w, struct span text, unsigned how)
{
	struct span rest = buf_span(&w->rest);
	MUST(span_ends(text, rest));
	struct world before = { 0 };
	make_world(&before, how);
	import(&before, span_make(text.p, text.n - rest.n), 0);
	MUST(before.e == ERR_OK || w->options.format == TRANSFER_CSV);
	MUST(span_eq(buf_span(&before.rows), buf_span(&w->rows)));
	free_world(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world whole = { 0 }, pieces = { 0 };
	if (size < 2)
		return 0;
	struct span text = span_make(data + 2, size - 2);
	make_world(&whole, data[0]);
	make_world(&pieces, data[0]);
	pieces.options.at_once = true;
	import(&whole, text, 0);
	import(&pieces, text, 1u + data[1]);
	must_be_same(&whole, &pieces);
	if (pieces.e != ERR_OK && pieces.options.stop_at_error)
		rest_is_right(&pieces, text, data[0]);
	free_world(&whole);
	free_world(&pieces);
	return 0;
}
