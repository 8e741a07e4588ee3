/* SPDX-License-Identifier: MIT
 * A stream is a query in pages.  A page ends after PAGE_BYTES of text or PAGE_US.  So an interrupt
 * is noticed soon even if no row matches.  The texts of the last pages are kept for reads that go
 * back a little: the kernel's read-ahead sends several reads at once, in any order.
 *
 * The view is in use only during a page, so it can be ended between pages.
 *
 * The size is counted by a twin, which goes on from where the reader is and keeps no text. */
#include "service/query/row_stream.h"

#include "base/clock.h"
#include "codec/entity_json.h"
#include "codec/json_build.h"
#include "query/key_ranges.h"
#include "service/query/csv_writer.h"
#include "service/query/queries.h"
#include "service/query/row_line.h"
#include "service/view/views.h"

#include <inttypes.h>
#include <stdlib.h>

#define PAGE_BYTES ((size_t)128 << 10)
#define PAGE_US (50u * 1000)
#define KEPT_PAGES 4
/* Pages that begin further back are dropped. */
#define KEPT_BYTES ((KEPT_PAGES + 1) * PAGE_BYTES)
/* A page and one row, or the header of a CSV file. */
#define TEXT_MAX ((size_t)16 << 20)

enum phase {
	PHASE_LOOK, /* collects the names of a CSV file's columns */
	PHASE_HEAD,
	PHASE_ROWS,
	PHASE_END,
};

struct page {
	struct buf text;
	uint64_t base; /* its offset in the stream */
};

struct row_stream {
	struct service *service;
	struct view *view;
	uint64_t table_id;
	struct key_ranges limit; /* of a partition */
	bool limited;
	struct row_query query;
	const struct query_viewer *viewer;
	bool with_time; /* Timestamp is selected */
	struct csv_writer *csv;
	struct filter_mismatch *mismatch; /* for .explain */

	enum phase phase;
	struct buf next_pk, next_rk; /* start of the next page; data NULL: the start of the table */
	uint64_t rows;               /* rows written */
	uint64_t looked_at, matched;
	enum key_plan plan;

	struct page page;             /* the last one */
	struct page kept[KEPT_PAGES]; /* those before it, the latest first */
	uint64_t size;                /* of the whole; UINT64_MAX: not known yet */

	struct row_stream *twin; /* while the size is counted; borrows all that does not change */
	bool counts;             /* it is a twin */
	bool needs_documents;    /* of a twin: a row's size does not tell the length of its line */
	bool measures;           /* the first pass over a CSV file's rows counts their bytes */
	struct row_line line;

	struct entity entity;      /* a row that the query did not decode */
	struct property *selected; /* of a row; room for all selected ones */
	enum err e;                /* the error of the page */
};

/* ---- rows ---- */

static const struct entity *entity_of(struct row_stream *s, const struct query_row *row)
{
	struct entity *e = &s->entity;
	if (row->entity != NULL)
		return row->entity;
	enum err err = entity_json_decode(row->document, ENTITY_JSON_FILE, e, NULL, NULL);
	if (err != ERR_OK) {
		s->e = err == ERR_NO_MEMORY ? err : ERR_CORRUPT;
		return NULL;
	}
	e->pk = row->pk;
	e->rk = row->rk;
	e->has_pk = e->has_rk = true;
	e->timestamp = row->version;
	return e;
}

/* Returns the row with only the selected properties; borrows from e. */
static struct entity select_from(struct row_stream *s, const struct entity *e)
{
	const struct selection *select = &s->query.select;
	struct entity ret = *e;
	if (select->all)
		return ret;
	ret.props = s->selected;
	ret.nprops = selection_apply(select, e, s->selected);
	return ret;
}

static unsigned json_flags(const struct row_stream *s)
{
	return ENTITY_JSON_PK | ENTITY_JSON_RK | (s->with_time ? ENTITY_JSON_TIMESTAMP : 0u);
}

/* Copies a canonical document behind the keys. */
static void splice(struct row_stream *s, const struct query_row *row)
{
	struct entity keys = { .pk = row->pk,
		.rk = row->rk,
		.has_pk = true,
		.has_rk = true,
		.timestamp = row->version };
	struct span members;
	if (!entity_json_members(row->document, &members)) {
		s->e = ERR_CORRUPT;
		return;
	}
	entity_json_encode(&keys, json_flags(s), &s->page.text);
	if (members.n == 0 || !buf_ok(&s->page.text))
		return;
	s->page.text.data[s->page.text.len - 1] = ',';
	buf_add_span(&s->page.text, members);
	buf_add_char(&s->page.text, '}');
}

/* All properties as an object: a twin counts it unwritten. */
static bool counts_unwritten(const struct row_stream *s)
{
	bool object = s->query.form == ROW_FORM_NDJSON || s->query.form == ROW_FORM_JSON;
	return s->counts && object && s->query.select.all;
}

static void count_object(struct row_stream *s, const struct query_row *row)
{
	uint64_t bytes;
	s->e = row_line_bytes(
		&s->line, row->item, row->pk, row->rk, json_flags(s), row->document, &bytes);
	s->needs_documents = s->needs_documents || s->e == ERR_NOT_FOUND;
	s->page.base += bytes;
}

static void put_object(struct row_stream *s, const struct query_row *row)
{
	if (counts_unwritten(s)) {
		count_object(s, row);
		return;
	}
	if (s->query.select.all && (row->flags & ITEM_CANONICAL) != 0) {
		splice(s, row);
		return;
	}
	const struct entity *e = entity_of(s, row);
	if (e == NULL)
		return;
	struct entity selected = select_from(s, e);
	entity_json_encode(&selected, json_flags(s), &s->page.text);
}

static void put_record(struct row_stream *s, const struct query_row *row)
{
	const struct entity *e = entity_of(s, row);
	if (e != NULL)
		s->e = csv_writer_row(s->csv, e, &s->page.text);
}

static void write_row(struct row_stream *s, const struct query_row *row)
{
	switch (s->query.form) {
	case ROW_FORM_NDJSON:
		put_object(s, row);
		buf_add_char(&s->page.text, '\n');
		break;
	case ROW_FORM_JSON:
		buf_add_str(&s->page.text, s->rows == 0 ? "\n" : ",\n");
		put_object(s, row);
		break;
	case ROW_FORM_CSV:
		put_record(s, row);
		break;
	case ROW_FORM_COUNT:
	case ROW_FORM_EXPLAIN:
	case ROW_FORM_NONE:
		break;
	}
	s->rows++;
}

static void look_at_names(struct row_stream *s, const struct query_row *row)
{
	const struct entity *e = entity_of(s, row);
	for (size_t i = 0; e != NULL && s->e == ERR_OK && i < e->nprops; i++)
		s->e = csv_writer_add(s->csv, e->props[i].name);
	if (e != NULL && s->e == ERR_OK && s->measures)
		s->e = csv_writer_measure(s->csv, e);
}

static bool on_row(void *arg, const struct query_row *row)
{
	struct row_stream *s = arg;
	if (s->phase == PHASE_LOOK)
		look_at_names(s, row);
	else
		write_row(s, row);
	if (s->e == ERR_OK && !buf_ok(&s->page.text))
		s->e = ERR_NO_MEMORY;
	return s->e == ERR_OK && s->page.text.len < PAGE_BYTES;
}

/* ---- pages ---- */

static void begin_walk(struct row_stream *s)
{
	buf_fini(&s->next_pk);
	buf_fini(&s->next_rk);
	s->rows = s->looked_at = s->matched = 0;
	if (s->mismatch != NULL)
		filter_mismatch_clear(s->mismatch);
}

static void take_key(struct buf *to, struct buf *from)
{
	buf_fini(to);
	*to = *from;
	*from = (struct buf){ 0 };
}

/* Sets *ret_done after the last row. */
static enum err walk_on(struct row_stream *s, bool *ret_done)
{
	const struct row_query *rq = &s->query;
	struct query q = { .table_id = s->table_id,
		.filter = &rq->filter,
		.limit = s->limited ? &s->limit : NULL,
		.viewer = s->viewer,
		.no_documents = counts_unwritten(s) && !s->needs_documents,
		.mismatch = s->mismatch,
		.from_pk = buf_span(&s->next_pk),
		.from_rk = buf_span(&s->next_rk),
		.top = rq->top == 0 ? 0 : rq->top - s->matched,
		.deadline_us = clock_mono_us() + PAGE_US };
	struct query_end end;
	struct store_view *view;
	enum err e = view_begin(s->view, &view);
	if (e != ERR_OK)
		return e;
	s->e = ERR_OK;
	e = query_run(s->service, view, &q, on_row, s, &end);
	view_end(s->view);
	if (e == ERR_OK)
		e = s->e;
	if (e == ERR_OK) {
		s->plan = end.plan;
		s->looked_at += end.looked_at;
		s->matched += end.matched;
		*ret_done = !end.more || (rq->top != 0 && s->matched >= rq->top);
		take_key(&s->next_pk, &end.next_pk);
		take_key(&s->next_rk, &end.next_rk);
	}
	query_end_fini(&end);
	return e;
}

static enum err look_on(struct row_stream *s)
{
	bool done = false;
	enum err e = walk_on(s, &done);
	if (e != ERR_OK) {
		s->measures = false; /* some rows of the page were added, and come again */
	} else if (done) {
		begin_walk(s);
		s->phase = PHASE_HEAD;
		if (s->measures)
			s->size = csv_writer_measured(s->csv);
	}
	return e;
}

static void write_head(struct row_stream *s)
{
	if (s->query.form == ROW_FORM_JSON)
		buf_add_char(&s->page.text, '[');
	else if (s->query.form == ROW_FORM_CSV)
		csv_writer_header(s->csv, &s->page.text);
	s->phase = PHASE_ROWS;
}

static void put_selection(struct json_build *b, const struct selection *select)
{
	if (select->all) {
		json_add_null(b, "select");
		return;
	}
	json_open_array(b, "select");
	for (size_t i = 0; i < select->n; i++)
		json_add_text(b, NULL, select->names[i]);
	json_close(b);
}

static void put_filter(struct json_build *b, const struct filter *f)
{
	struct buf text = BUF_INIT(TEXT_MAX);
	filter_print(f, &text);
	if (!buf_ok(&text))
		b->failed = true;
	else if (text.len == 0)
		json_add_null(b, "filter");
	else
		json_add_text(b, "filter", buf_span(&text));
	buf_fini(&text);
}

static void explain(struct row_stream *s)
{
	struct json_build b;
	json_begin(&b);
	json_add_str(&b, "plan", key_plan_name(s->plan));
	put_filter(&b, &s->query.filter);
	if (s->query.top == 0)
		json_add_null(&b, "top");
	else
		json_add_count(&b, "top", s->query.top);
	put_selection(&b, &s->query.select);
	json_add_count(&b, "looked_at", s->looked_at);
	json_add_count(&b, "matched", s->matched);
	filter_mismatch_tell(s->mismatch, &b);
	json_end(&b, &s->page.text);
	buf_add_char(&s->page.text, '\n');
}

static void write_tail(struct row_stream *s)
{
	if (s->query.form == ROW_FORM_JSON)
		buf_add_str(&s->page.text, "\n]\n");
	else if (s->query.form == ROW_FORM_COUNT)
		buf_addf(&s->page.text, "%" PRIu64 "\n", s->matched);
	else if (s->query.form == ROW_FORM_EXPLAIN)
		explain(s);
	s->phase = PHASE_END;
}

static enum err write_rows(struct row_stream *s)
{
	bool done = false;
	uint64_t rows = s->rows, base = s->page.base;
	enum err e = walk_on(s, &done);
	if (e != ERR_OK) {
		/* The next page starts where this one did. */
		buf_clear(&s->page.text);
		s->page.base = base;
		s->rows = rows;
	} else if (done) {
		write_tail(s);
	}
	return e;
}

static void start_again(struct row_stream *s)
{
	for (size_t i = 0; i < KEPT_PAGES; i++)
		buf_fini(&s->kept[i].text);
	buf_clear(&s->page.text);
	s->page.base = 0;
	begin_walk(s);
	if (s->phase != PHASE_LOOK)
		s->phase = PHASE_HEAD;
}

/* The last page becomes one of those before the next. */
static void keep_page(struct row_stream *s)
{
	struct page oldest = s->kept[KEPT_PAGES - 1];
	uint64_t end = s->page.base + s->page.text.len;
	if (s->counts) {
		buf_clear(&s->page.text);
		s->page.base = end;
	}
	if (s->page.text.len == 0)
		return;
	memmove(&s->kept[1], &s->kept[0], (KEPT_PAGES - 1) * sizeof(s->kept[0]));
	s->kept[0] = s->page;
	for (size_t i = 1; i < KEPT_PAGES; i++)
		if (end - s->kept[i].base > KEPT_BYTES)
			buf_fini(&s->kept[i].text);
	buf_clear(&oldest.text);
	if (oldest.text.cap > KEPT_BYTES)
		buf_fini(&oldest.text);
	s->page = (struct page){ .text = oldest.text, .base = end };
	s->page.text.limit = TEXT_MAX;
}

/* Replaces the text by the next piece, which may be empty. */
static enum err go_on(struct row_stream *s)
{
	enum err e = ERR_OK;
	keep_page(s);
	switch (s->phase) {
	case PHASE_LOOK:
		e = look_on(s);
		break;
	case PHASE_HEAD:
		write_head(s);
		break;
	case PHASE_ROWS:
		e = write_rows(s);
		break;
	case PHASE_END:
		break;
	}
	if (e == ERR_OK && !buf_ok(&s->page.text)) {
		start_again(s); /* a head or a tail was lost */
		e = ERR_NO_MEMORY;
	}
	if (e == ERR_OK && s->phase == PHASE_END)
		s->size = s->page.base + s->page.text.len;
	return e;
}

/* ---- reading ---- */

static const struct page *page_at(const struct row_stream *s, uint64_t offset)
{
	const struct page *p = &s->page;
	for (size_t i = 0; p != NULL && offset < p->base; i++)
		p = i < KEPT_PAGES && s->kept[i].text.len > 0 ? &s->kept[i] : NULL;
	return p;
}

/* Copies the text at this offset. */
static size_t take(const struct row_stream *s, uint64_t offset, size_t n, struct buf *out)
{
	size_t got = 0;
	const struct page *p;
	while (got < n && (p = page_at(s, offset + got)) != NULL &&
		offset + got - p->base < p->text.len) {
		size_t at = (size_t)(offset + got - p->base);
		size_t part = p->text.len - at < n - got ? p->text.len - at : n - got;
		buf_add(out, p->text.data + at, part);
		got += part;
	}
	return got;
}

static enum err explain_error(enum err e, struct err_detail *detail)
{
	if (e == ERR_GONE)
		return err_set(detail, e,
			"The stream was open for too long: the log of changes since then has "
			"reached its bound.");
	if (e == ERR_TOO_MANY_PROPERTIES)
		return err_set(detail, e,
			"The rows have more different property names than a CSV file may have "
			"columns.");
	return e;
}

enum err row_stream_read(struct row_stream *s, uint64_t offset, size_t n,
	row_stream_asked_fn interrupted, void *arg, struct buf *out, struct err_detail *detail)
{
	uint64_t started = clock_mono_us();
	enum err e = ERR_OK;
	size_t got = 0;
	if (page_at(s, offset) == NULL)
		start_again(s);
	for (;;) {
		got += take(s, offset + got, n - got, out);
		if (got == n || s->phase == PHASE_END ||
			(got > 0 && clock_mono_us() - started >= PAGE_US))
			break;
		e = interrupted != NULL && interrupted(arg) ? ERR_CANCELLED : go_on(s);
		if (e != ERR_OK)
			break;
	}
	/* The next read meets the error again. */
	if (got > 0)
		e = ERR_OK;
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : explain_error(e, detail);
}

static void twin_free(struct row_stream *t)
{
	if (t == NULL)
		return;
	buf_fini(&t->next_pk);
	buf_fini(&t->next_rk);
	buf_fini(&t->page.text);
	row_line_fini(&t->line);
	entity_fini(&t->entity);
	free(t);
}

static struct row_stream *twin_new(const struct row_stream *s)
{
	struct row_stream *t = malloc(sizeof(*t));
	if (t == NULL)
		return NULL;
	*t = *s;
	t->counts = true;
	t->next_pk = t->next_rk = BUF_INIT(LIMIT_KEY_BYTES + 1);
	buf_add(&t->next_pk, s->next_pk.data, s->next_pk.len);
	buf_add(&t->next_rk, s->next_rk.data, s->next_rk.len);
	t->entity = (struct entity){ 0 };
	t->line = (struct row_line){ 0 };
	t->page = (struct page){ .text = BUF_INIT(TEXT_MAX),
		.base = s->page.base + s->page.text.len };
	memset(t->kept, 0, sizeof(t->kept));
	return t;
}

/* Reads the next page, or goes on with the count behind the first one. */
static enum err count_on(struct row_stream *s)
{
	if (s->phase == PHASE_LOOK && s->next_pk.data == NULL) {
		csv_writer_measure_none(s->csv);
		s->measures = true;
	}
	if (s->phase == PHASE_LOOK || s->phase == PHASE_HEAD || s->page.text.len == 0)
		return go_on(s);
	if (s->twin == NULL && (s->twin = twin_new(s)) == NULL)
		return ERR_NO_MEMORY;
	enum err e = go_on(s->twin);
	if (e == ERR_NOT_FOUND && s->twin->needs_documents)
		return ERR_OK;
	if (e == ERR_OK && s->twin->phase == PHASE_END) {
		s->size = s->twin->size;
		twin_free(s->twin);
		s->twin = NULL;
	}
	return e;
}

enum err row_stream_size(struct row_stream *s, row_stream_asked_fn interrupted, void *arg,
	uint64_t *ret, struct err_detail *detail)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && s->size == UINT64_MAX)
		e = interrupted != NULL && interrupted(arg) ? ERR_CANCELLED : count_on(s);
	*ret = s->size;
	return explain_error(e, detail);
}

uint64_t row_stream_rows(const struct row_stream *s)
{
	return s->rows;
}

/* ---- opening ---- */

static bool is_system(struct span name)
{
	return span_is(name, "PartitionKey") || span_is(name, "RowKey") ||
		span_is(name, "Timestamp");
}

static enum err prepare_csv(struct row_stream *s)
{
	const struct selection *select = &s->query.select;
	enum err e = ERR_OK;
	s->csv = csv_writer_new(s->with_time);
	if (s->csv == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; e == ERR_OK && i < select->n; i++)
		if (!is_system(select->names[i]))
			e = csv_writer_add(s->csv, select->names[i]);
	s->phase = select->all ? PHASE_LOOK : PHASE_HEAD;
	return e;
}

static enum err prepare(struct row_stream *s, const struct span *partition)
{
	const struct selection *select = &s->query.select;
	static const struct span none = { 0 };
	enum err e = ERR_OK;
	s->phase = PHASE_HEAD;
	s->with_time = selection_holds(select, SPAN_LIT("Timestamp"));
	if (partition != NULL) {
		s->limited = true;
		e = key_ranges_between(*partition, none, *partition, none, &s->limit);
	}
	if (e == ERR_OK && select->n > 0) {
		s->selected = calloc(select->n, sizeof(*s->selected));
		if (s->selected == NULL)
			e = ERR_NO_MEMORY;
	}
	if (e == ERR_OK && s->query.form == ROW_FORM_EXPLAIN) {
		s->mismatch = filter_mismatch_new(&s->query.filter);
		if (s->mismatch == NULL)
			e = ERR_NO_MEMORY;
	}
	return e == ERR_OK && s->query.form == ROW_FORM_CSV ? prepare_csv(s) : e;
}

enum err row_stream_renew(struct row_stream *s, struct span what, struct err_detail *detail)
{
	views_close(s->view);
	s->view = NULL;
	enum err e = views_open(service_views(s->service), what, &s->view);
	return e != ERR_THROTTLED
		? e
		: err_set(detail, e, "%d streams of rows are open, which is the most.",
			  STREAMS_MAX);
}

enum err row_stream_open(struct service *s, uint64_t table_id, const struct span *partition,
	struct row_query *query, struct span what, struct row_stream **ret,
	struct err_detail *detail)
{
	struct row_stream *r = calloc(1, sizeof(*r));
	if (r == NULL) {
		row_query_fini(query);
		return ERR_NO_MEMORY;
	}
	r->service = s;
	r->table_id = table_id;
	r->query = *query;
	*query = (struct row_query){ 0 };
	r->page.text = BUF_INIT(TEXT_MAX);
	r->size = UINT64_MAX;
	enum err e = prepare(r, partition);
	if (e == ERR_OK)
		e = row_stream_renew(r, what, detail);
	if (e != ERR_OK) {
		row_stream_close(r);
		return e;
	}
	*ret = r;
	return ERR_OK;
}

void row_stream_for(struct row_stream *s, const struct query_viewer *viewer)
{
	s->viewer = viewer;
}

void row_stream_close(struct row_stream *s)
{
	if (s == NULL)
		return;
	views_close(s->view);
	key_ranges_fini(&s->limit);
	row_query_fini(&s->query);
	csv_writer_free(s->csv);
	filter_mismatch_free(s->mismatch);
	twin_free(s->twin);
	buf_fini(&s->next_pk);
	buf_fini(&s->next_rk);
	buf_fini(&s->page.text);
	for (size_t i = 0; i < KEPT_PAGES; i++)
		buf_fini(&s->kept[i].text);
	entity_fini(&s->entity);
	free(s->selected);
	free(s);
}
