/* SPDX-License-Identifier: MIT
 * The rows of an account elsewhere as text: the pages of a scan, read when the reader wants more.  The
 * text goes forward only. */
#include "cloud/row_scan.h"
#include "codec/entity_json.h"
#include "daemon/rows/rows.h"
#include "service/query/csv_writer.h"

#include <inttypes.h>
#include <stdlib.h>

#define ROW_LIMIT ((size_t)16 << 20)
#define PAGE_ROWS 1000 /* of the service, at most */

struct text {
	struct row_source source;
	struct row_scan scan;
	struct cloud_row row;
	struct row_query query;
	struct csv_writer *csv;
	struct property *selected; /* room for those of a row */
	uint64_t rows;
	bool begun, ended;
	struct buf line;
};

static bool is_system(struct span name)
{
	return span_is(name, "PartitionKey") || span_is(name, "RowKey") ||
		span_is(name, "Timestamp");
}

/* ---- rows ---- */

static struct entity select_from(struct text *t, const struct entity *e)
{
	struct entity ret = *e;
	if (t->query.select.all)
		return ret;
	ret.props = t->selected;
	ret.nprops = selection_apply(&t->query.select, e, t->selected);
	return ret;
}

static void add_object(struct text *t, struct buf *out)
{
	struct entity selected = select_from(t, &t->row.entity);
	bool timed = selection_holds(&t->query.select, SPAN_LIT("Timestamp"));
	entity_json_encode(&selected,
		ENTITY_JSON_PK | ENTITY_JSON_RK | (timed ? ENTITY_JSON_TIMESTAMP : 0u), out);
}

static enum err add_row(struct text *t, struct buf *out)
{
	enum err e = ERR_OK;
	t->rows++;
	if (t->query.form == ROW_FORM_CSV) {
		e = csv_writer_row(t->csv, &t->row.entity, out);
	} else if (t->query.form == ROW_FORM_JSON) {
		buf_add_str(out, t->rows == 1 ? "\n" : ",\n");
		add_object(t, out);
	} else if (t->query.form == ROW_FORM_NDJSON) {
		add_object(t, out);
		buf_add_char(out, '\n');
	}
	return e;
}

static void add_head(struct text *t, struct buf *out)
{
	if (t->query.form == ROW_FORM_JSON)
		buf_add_char(out, '[');
	else if (t->query.form == ROW_FORM_CSV)
		csv_writer_header(t->csv, out);
	t->begun = true;
}

static void add_tail(struct text *t, struct buf *out)
{
	if (t->query.form == ROW_FORM_JSON)
		buf_add_str(out, "\n]\n");
	else if (t->query.form == ROW_FORM_COUNT)
		buf_addf(out, "%" PRIu64 "\n", t->rows);
	t->ended = true;
}

static enum err add_next(struct text *t, struct buf *out, struct err_detail *why)
{
	bool enough = t->query.top != 0 && t->rows >= t->query.top;
	enum err e = enough ? ERR_NOT_FOUND : row_scan_next(&t->scan, &t->row, why);
	if (e == ERR_OK)
		return add_row(t, out);
	if (e == ERR_NOT_FOUND) {
		add_tail(t, out);
		e = ERR_OK;
	}
	return e;
}

static enum err text_read(struct row_source *s, uint64_t offset, size_t n,
	row_stream_asked_fn asked, void *arg, struct buf *out, struct err_detail *why)
{
	struct text *t = (struct text *)s;
	enum err e = ERR_OK;
	(void)offset;
	buf_clear(&t->line);
	if (!t->begun)
		add_head(t, &t->line);
	while (e == ERR_OK && !t->ended && t->line.len < n) {
		e = asked(arg) ? ERR_CANCELLED : add_next(t, &t->line, why);
		if (e == ERR_OK)
			e = buf_full(&t->line);
	}
	out->limit = t->line.limit;
	buf_add_span(out, buf_span(&t->line));
	return e == ERR_OK ? buf_full(out) : e;
}

static uint64_t text_rows(const struct row_source *s)
{
	return ((const struct text *)s)->rows;
}

static void text_close(struct row_source *s)
{
	struct text *t = (struct text *)s;
	row_scan_end(&t->scan);
	cloud_row_fini(&t->row);
	row_query_fini(&t->query);
	csv_writer_free(t->csv);
	free(t->selected);
	buf_fini(&t->line);
	free(t);
}

/* ---- opening ---- */

static enum err prepare_csv(struct text *t, struct err_detail *why)
{
	const struct selection *select = &t->query.select;
	enum err e = ERR_OK;
	if (select->all)
		return err_set(why, ERR_NOT_SUPPORTED,
			"the columns must be known before the first row: name them with --select, or "
			"use --format=ndjson");
	t->csv = csv_writer_new(selection_holds(select, SPAN_LIT("Timestamp")));
	if (t->csv == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; e == ERR_OK && i < select->n; i++)
		if (!is_system(select->names[i]))
			e = csv_writer_add(t->csv, select->names[i]);
	return e;
}

static enum err prepare(struct text *t, struct err_detail *why)
{
	size_t n = t->query.select.n;
	if (t->query.form == ROW_FORM_EXPLAIN)
		return err_set(why, ERR_NOT_SUPPORTED,
			"the service elsewhere does not tell how it runs a query");
	t->selected = n > 0 ? calloc(n, sizeof(*t->selected)) : NULL;
	if (n > 0 && t->selected == NULL)
		return ERR_NO_MEMORY;
	return t->query.form == ROW_FORM_CSV ? prepare_csv(t, why) : ERR_OK;
}

/* The keys are always asked for, and Timestamp, which the writers of text need. */
static void add_selection(const struct row_query *q, struct buf *out)
{
	const struct selection *select = &q->select;
	if (select->all && q->form != ROW_FORM_COUNT)
		return;
	buf_add_str(out, "PartitionKey,RowKey,Timestamp");
	for (size_t i = 0; i < select->n && q->form != ROW_FORM_COUNT; i++) {
		if (is_system(select->names[i]))
			continue;
		buf_add_char(out, ',');
		buf_add_span(out, select->names[i]);
	}
}

static enum err begin(struct text *t, struct client *c, struct span table, struct span filter)
{
	struct buf select = BUF_INIT((size_t)32 << 10);
	add_selection(&t->query, &select);
	const struct row_scan_query q = { .table = table,
		.filter = filter,
		.select = buf_span(&select),
		.top = t->query.top < PAGE_ROWS ? (unsigned)t->query.top : 0 };
	enum err e = buf_full(&select);
	if (e == ERR_OK)
		e = row_scan_begin(c, &q, &t->scan);
	buf_fini(&select);
	return e;
}

enum err cloud_text_open(struct client *c, struct span table, struct span filter,
	struct row_query *query, struct row_source **ret, struct err_detail *why)
{
	struct text *t = calloc(1, sizeof(*t));
	if (t == NULL) {
		row_query_fini(query);
		return ERR_NO_MEMORY;
	}
	t->source = (struct row_source){ text_read, text_rows, text_close };
	t->query = *query;
	*query = (struct row_query){ 0 };
	t->line = BUF_INIT(ROW_LIMIT);
	enum err e = prepare(t, why);
	if (e == ERR_OK)
		e = begin(t, c, table, filter);
	if (e == ERR_OK)
		*ret = &t->source;
	else
		text_close(&t->source);
	return e;
}
