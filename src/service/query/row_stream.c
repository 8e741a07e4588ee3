/* SPDX-License-Identifier: MIT
 * A stream is a query in pages.  A page ends after PAGE_BYTES of text or PAGE_US.  So an interrupt
 * is noticed soon even if no row matches.  The texts of the last pages are kept for reads that go
 * back a little: the kernel's read-ahead sends several reads at once, in any order.
 *
 * The view is in use only during a page, so it can be ended between pages. */
#include "service/query/row_stream.h"

#include "base/clock.h"
#include "service/query/row_stream_parts.h"

#include <string.h>

#define PAGE_US (50u * 1000)
/* Pages that begin further back are dropped. */
#define KEPT_BYTES ((KEPT_PAGES + 1) * PAGE_BYTES)

/* ---- pages ---- */

static bool on_row(void *arg, const struct query_row *row)
{
	struct row_stream *s = arg;
	if (s->phase == PHASE_LOOK)
		row_text_look(s, row);
	else
		row_text_add(s, row);
	if (s->e == ERR_OK && !buf_ok(&s->page.text))
		s->e = ERR_NO_MEMORY;
	return s->e == ERR_OK && s->page.text.len < PAGE_BYTES;
}

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
		.requester = s->requester,
		.no_documents = row_text_only_counts(s) && !s->needs_documents,
		.keys_only = rq->form == ROW_FORM_COUNT,
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
		row_text_tail(s);
		s->phase = PHASE_END;
	}
	return e;
}

void row_stream_start_again(struct row_stream *s)
{
	row_stream_drop_ahead(s);
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

enum err row_stream_produce(struct row_stream *s)
{
	enum err e = ERR_OK;
	switch (s->phase) {
	case PHASE_LOOK:
		e = look_on(s);
		break;
	case PHASE_HEAD:
		row_text_head(s);
		s->phase = PHASE_ROWS;
		break;
	case PHASE_ROWS:
		e = write_rows(s);
		break;
	case PHASE_END:
		break;
	}
	if (e == ERR_OK && !buf_ok(&s->page.text))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK && s->phase == PHASE_END)
		s->size = s->page.base + s->page.text.len;
	return e;
}

enum err row_stream_advance(struct row_stream *s)
{
	keep_page(s);
	if (row_stream_take_ahead(s))
		return ERR_OK;
	enum err e = row_stream_produce(s);
	if (e == ERR_NO_MEMORY)
		row_stream_start_again(s);
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

enum err row_stream_explain(enum err e, struct err_detail *detail)
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

static bool is_at_end(const struct row_stream *s)
{
	return s->phase == PHASE_END && !row_stream_has_ahead(s);
}

enum err row_stream_read(struct row_stream *s, uint64_t offset, size_t n,
	row_stream_asked_fn interrupted, void *arg, struct buf *out, struct err_detail *detail)
{
	uint64_t started = clock_mono_us();
	enum err e = ERR_OK;
	size_t got = 0;
	if (page_at(s, offset) == NULL)
		row_stream_start_again(s);
	for (;;) {
		got += take(s, offset + got, n - got, out);
		if (got == n || is_at_end(s) || (got > 0 && clock_mono_us() - started >= PAGE_US))
			break;
		e = interrupted != NULL && interrupted(arg) ? ERR_CANCELLED : row_stream_advance(s);
		if (e != ERR_OK)
			break;
	}
	/* The next read meets the error again. */
	if (got > 0)
		e = ERR_OK;
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : row_stream_explain(e, detail);
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

static bool looks_for_columns(const struct row_stream *s)
{
	return s->query.form == ROW_FORM_CSV && s->query.select.all;
}

bool row_stream_columns(const struct row_stream *s, struct buf *out)
{
	if (!looks_for_columns(s) || s->phase == PHASE_LOOK)
		return false;
	csv_writer_names(s->csv, out);
	return true;
}

enum err row_stream_know_columns(struct row_stream *s, struct span names)
{
	enum err e = ERR_OK;
	if (!looks_for_columns(s))
		return ERR_OK;
	while (e == ERR_OK && names.n > 0) {
		const char *comma = memchr(names.p, ',', names.n);
		size_t n = comma != NULL ? (size_t)(comma - names.p) : names.n;
		e = csv_writer_add(s->csv, span_make(names.p, n));
		n += comma != NULL;
		names = span_make(names.p + n, names.n - n);
	}
	if (e == ERR_OK)
		s->phase = PHASE_HEAD;
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

void row_stream_for(struct row_stream *s, const struct query_requester *requester)
{
	s->requester = requester;
}

void row_stream_twin_free(struct row_stream *t)
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

void row_stream_close(struct row_stream *s)
{
	if (s == NULL)
		return;
	views_close(s->view);
	key_ranges_fini(&s->limit);
	row_query_fini(&s->query);
	csv_writer_free(s->csv);
	filter_mismatch_free(s->mismatch);
	row_stream_twin_free(s->twin);
	row_stream_drop_ahead(s);
	buf_fini(&s->next_pk);
	buf_fini(&s->next_rk);
	buf_fini(&s->page.text);
	for (size_t i = 0; i < KEPT_PAGES; i++)
		buf_fini(&s->kept[i].text);
	entity_fini(&s->entity);
	free(s->selected);
	free(s);
}
