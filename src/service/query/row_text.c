/* SPDX-License-Identifier: MIT
 * Rows as text, in each form.  A stream that only counts adds the length of a row's line instead. */
#include "codec/entity_json.h"
#include "codec/json_build.h"
#include "query/key_ranges.h"
#include "service/query/row_stream_parts.h"

#include <inttypes.h>

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
	s->e = row_line_splice(&keys, row->document, json_flags(s), &s->page.text);
}

bool row_text_is_whole_object(const struct row_stream *s)
{
	bool object = s->query.form == ROW_FORM_NDJSON || s->query.form == ROW_FORM_JSON;
	return object && s->query.select.all;
}

bool row_text_only_counts(const struct row_stream *s)
{
	return s->counts && row_text_is_whole_object(s);
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
	if (row_text_only_counts(s)) {
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

void row_text_add(struct row_stream *s, const struct query_row *row)
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

void row_text_look(struct row_stream *s, const struct query_row *row)
{
	const struct entity *e = entity_of(s, row);
	for (size_t i = 0; e != NULL && s->e == ERR_OK && i < e->nprops; i++)
		s->e = csv_writer_add(s->csv, e->props[i].name);
	if (e != NULL && s->e == ERR_OK && s->measures)
		s->e = csv_writer_measure(s->csv, e);
}

/* ---- before and behind the rows ---- */

void row_text_head(struct row_stream *s)
{
	if (s->query.form == ROW_FORM_JSON)
		buf_add_char(&s->page.text, '[');
	else if (s->query.form == ROW_FORM_CSV)
		csv_writer_header(s->csv, &s->page.text);
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

void row_text_tail(struct row_stream *s)
{
	if (s->query.form == ROW_FORM_JSON)
		buf_add_str(&s->page.text, "\n]\n");
	else if (s->query.form == ROW_FORM_COUNT)
		buf_addf(&s->page.text, "%" PRIu64 "\n", s->matched);
	else if (s->query.form == ROW_FORM_EXPLAIN)
		explain(s);
}
