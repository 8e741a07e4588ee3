/* SPDX-License-Identifier: MIT
 * CSV (docs/formats.md): RFC 4180 with a header line.  A column NAME may have a column
 * NAME@type beside it, as Azure's tools write it, or give the type of all its values by
 * being called NAME@Edm.Int32; else its values are strings.  A cell with nothing in it
 * is no property; "" is an empty string.
 * Export reads its view twice: the header needs the names of all properties. */
#include "base/clock.h"
#include "base/text.h"
#include "codec/edm_text.h"
#include "service/transfer_parts.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 65536
#define COLUMN_SLOTS ((size_t)2 * COLUMNS_MAX)

enum column_role {
	COLUMN_VALUE,
	COLUMN_TYPE,
	COLUMN_PK,
	COLUMN_RK,
	COLUMN_IGNORED
};

struct column {
	struct span name; /* of the property */
	enum column_role role;
	bool typed; /* type is the type of all values */
	enum edm_type type;
	size_t type_column; /* where the types stand, plus 1; 0: nowhere */
};

struct cell {
	size_t at, n; /* in the record's text */
	bool quoted;
};

struct csv_table {
	struct column *columns;
	size_t n, cap;
	struct cell *cells; /* import: of the record */
	size_t ncells, cells_cap;
	uint32_t *slots;          /* export: index + 1 by the hash of the name */
	const struct value **row; /* export: the row's values by column */
	struct arena names;
};

static struct csv_table *table_new(void)
{
	return calloc(1, sizeof(struct csv_table));
}

static void table_free(struct csv_table *t)
{
	if (t == NULL)
		return;
	arena_fini(&t->names);
	free(t->columns);
	free(t->cells);
	free(t->slots);
	free(t->row);
	free(t);
}

/* Room for one more of something. */
static bool grow(void **array, size_t *cap, size_t n, size_t size)
{
	if (n < *cap)
		return true;
	size_t want = *cap == 0 ? 64 : *cap * 2;
	void *p = reallocarray(*array, want, size);
	if (p == NULL)
		return false;
	*array = p;
	*cap = want;
	return true;
}

static enum err add_column(struct csv_table *t, const struct column *c)
{
	if (t->n == COLUMNS_MAX)
		return ERR_TOO_MANY_PROPERTIES;
	void *columns = t->columns;
	if (!grow(&columns, &t->cap, t->n, sizeof(*c)))
		return ERR_NO_MEMORY;
	t->columns = columns;
	t->columns[t->n] = *c;
	t->columns[t->n].name = arena_copy(&t->names, c->name);
	if (t->columns[t->n].name.p == NULL)
		return ERR_NO_MEMORY;
	t->n++;
	return ERR_OK;
}

/* ---- import ---- */

static bool add_cell(struct csv_table *t, size_t at, size_t n, bool quoted)
{
	void *cells = t->cells;
	if (t->ncells == COLUMNS_MAX ||
		!grow(&cells, &t->cells_cap, t->ncells, sizeof(struct cell)))
		return false;
	t->cells = cells;
	t->cells[t->ncells++] = (struct cell){ at, n, quoted };
	return true;
}

/* The rest of a quoted cell, behind its first quote; answers the byte that ends it. */
static int read_quoted(struct reader *r, bool *ret_stray)
{
	for (;;) {
		int c = reader_getc(r);
		if (c == EOF) {
			*ret_stray = true;
			return EOF;
		}
		if (c != '"') {
			buf_add_char(&r->text, (char)c);
			continue;
		}
		c = reader_getc(r);
		if (c != '"')
			return c;
		buf_add_char(&r->text, '"');
	}
}

static bool ends_cell(int c)
{
	return c == EOF || c == ',' || c == '\n';
}

/* One cell into r->text; answers what ended it: ',', '\n' or EOF. */
static int read_cell(struct reader *r, bool *ret_ok, bool *ret_stray)
{
	size_t at = r->text.len;
	bool quoted = false;
	int c = reader_getc(r);
	if (c == '"') {
		quoted = true;
		c = read_quoted(r, ret_stray);
	}
	for (; !ends_cell(c); c = reader_getc(r)) {
		if (quoted && c != '\r')
			*ret_stray = true;
		if (!quoted)
			buf_add_char(&r->text, (char)c);
	}
	size_t n = r->text.len - at;
	if (!quoted && c != ',' && n > 0 && buf_ok(&r->text) && r->text.data[at + n - 1] == '\r')
		n--;
	*ret_ok = add_cell(r->csv, at, n, quoted);
	return c;
}

static bool blank_record(const struct csv_table *t)
{
	return t->ncells == 1 && t->cells[0].n == 0 && !t->cells[0].quoted;
}

static enum err read_record(struct reader *r, struct err_detail *detail)
{
	bool stray = false, fits = true;
	int c;
	do {
		r->line = r->lines + 1;
		buf_clear(&r->text);
		r->csv->ncells = 0;
		do {
			bool ok;
			c = read_cell(r, &ok, &stray);
			fits = fits && ok;
		} while (c == ',');
	} while (c == '\n' && blank_record(r->csv));

	if (r->broken)
		return reader_error(r, detail);
	if (c == EOF && blank_record(r->csv)) {
		r->end = true;
		return ERR_OK;
	}
	if (!fits || !buf_ok(&r->text))
		return err_set(detail, ERR_BODY_TOO_LARGE,
			"the record is longer than %zu bytes or %d cells", RECORD_LIMIT,
			COLUMNS_MAX);
	if (stray)
		return err_set(detail, ERR_INVALID_INPUT,
			"a quoted cell is not closed, or something follows its closing quote");
	return ERR_OK;
}

/* The record's bytes; an empty one has no memory of its own. */
static struct span record_text(const struct reader *r)
{
	return r->text.data != NULL ? buf_span(&r->text) : SPAN_LIT("");
}

static bool type_from_text(struct span text, enum edm_type *ret)
{
	char full[32] = "Edm.";
	if (edm_from_name(text, ret))
		return true;
	if (text.p == NULL || text.n > sizeof(full) - 4 || text.n == 0)
		return false;
	memcpy(full + 4, text.p, text.n);
	return edm_from_name(span_make(full, text.n + 4), ret);
}

/* Columns that hold nothing of the row's own. */
static bool is_dropped(struct span title)
{
	return span_is(title, "Timestamp") || span_starts(title, SPAN_LIT("Timestamp@")) ||
		span_starts(title, SPAN_LIT("PartitionKey@")) ||
		span_starts(title, SPAN_LIT("RowKey@")) || span_starts(title, SPAN_LIT("odata."));
}

static enum err parse_title(struct span title, struct column *c, struct err_detail *detail)
{
	*c = (struct column){ .name = title, .type = EDM_STRING };
	const char *at = title.p == NULL ? NULL : memrchr(title.p, '@', title.n);
	if (span_is(title, "PartitionKey")) {
		c->role = COLUMN_PK;
	} else if (span_is(title, "RowKey")) {
		c->role = COLUMN_RK;
	} else if (is_dropped(title)) {
		c->role = COLUMN_IGNORED;
	} else if (at != NULL) {
		c->name.n = (size_t)(at - title.p);
		struct span type = span_make(at + 1, title.n - c->name.n - 1);
		if (span_is(type, "type") || span_is(type, "odata.type"))
			c->role = COLUMN_TYPE;
		else if (type_from_text(type, &c->type))
			c->typed = true;
		else
			return err_set(detail, ERR_INVALID_INPUT,
				"column '%.*s': there is no type '%.*s'", (int)title.n, title.p,
				(int)type.n, type.p);
	} else if (title.n == 0) {
		return err_set(detail, ERR_INVALID_INPUT, "a column has no name");
	}
	return ERR_OK;
}

/* Gives every value column the column of its types; a type column must have one. */
static enum err pair_columns(struct csv_table *t, struct err_detail *detail)
{
	bool pk = false, rk = false;
	for (size_t i = 0; i < t->n; i++) {
		if ((pk && t->columns[i].role == COLUMN_PK) ||
			(rk && t->columns[i].role == COLUMN_RK))
			return err_set(detail, ERR_INVALID_INPUT,
				"the header has column '%s' twice",
				t->columns[i].role == COLUMN_PK ? "PartitionKey" : "RowKey");
		pk = pk || t->columns[i].role == COLUMN_PK;
		rk = rk || t->columns[i].role == COLUMN_RK;
		if (t->columns[i].role != COLUMN_TYPE)
			continue;
		/* Nearly always the column before. */
		size_t k = i > 0 && span_eq(t->columns[i - 1].name, t->columns[i].name) ? i - 1 : 0;
		while (k < t->n &&
			(t->columns[k].role != COLUMN_VALUE ||
				!span_eq(t->columns[k].name, t->columns[i].name)))
			k++;
		if (k == t->n)
			return err_set(detail, ERR_INVALID_INPUT,
				"column '%.*s@type' has no column '%.*s' beside it",
				(int)t->columns[i].name.n, t->columns[i].name.p,
				(int)t->columns[i].name.n, t->columns[i].name.p);
		t->columns[k].type_column = i + 1;
	}
	if (!pk || !rk)
		return err_set(detail, ERR_KEY_MISSING, "the header has no column '%s'",
			pk ? "RowKey" : "PartitionKey");
	return ERR_OK;
}

static enum err start(struct reader *r, struct err_detail *detail)
{
	r->csv = table_new();
	if (r->csv == NULL)
		return ERR_NO_MEMORY;
	reader_skip_mark(r);
	enum err e = read_record(r, detail);
	if (e != ERR_OK)
		return e;
	if (r->end) /* an empty file holds no rows */
		return ERR_OK;
	struct csv_table *t = r->csv;
	for (size_t i = 0; e == ERR_OK && i < t->ncells; i++) {
		struct column c;
		struct span title = span_make(record_text(r).p + t->cells[i].at, t->cells[i].n);
		e = parse_title(title, &c, detail);
		if (e == ERR_OK)
			e = add_column(t, &c);
	}
	if (e == ERR_OK)
		e = pair_columns(t, detail);
	if (e != ERR_OK && detail != NULL)
		detail->line = 1;
	return e;
}

/* Whether the cell is a property, and of which type. */
static enum err type_of(const struct csv_table *t, struct span text, size_t i, bool *ret_absent,
	enum edm_type *ret, struct err_detail *detail)
{
	const struct column *c = &t->columns[i];
	const struct cell *cell = &t->cells[i];
	*ret = c->type;
	*ret_absent = cell->n == 0 && (!cell->quoted || c->type != EDM_STRING);
	if (c->type_column == 0 || c->type_column > t->ncells)
		return ERR_OK;
	const struct cell *type = &t->cells[c->type_column - 1];
	if (type->n == 0)
		return ERR_OK;
	struct span name = span_make(text.p + type->at, type->n);
	if (!type_from_text(name, ret))
		return err_set(detail, ERR_INVALID_INPUT, "column '%.*s@type': no type '%.*s'",
			(int)c->name.n, c->name.p, (int)name.n, name.p);
	*ret_absent = cell->n == 0 && *ret != EDM_STRING && *ret != EDM_BINARY;
	return ERR_OK;
}

static enum err parse_value(enum edm_type type, struct span cell, const struct column *c,
	struct entity *ret, struct err_detail *detail)
{
	struct buf bytes = BUF_INIT((size_t)LIMIT_DOCUMENT_BYTES);
	struct value v = { 0 };
	struct err_detail why = { 0 };
	enum err e = edm_text_parse(type, cell, &v, &bytes, &why);
	if (e != ERR_OK)
		e = err_set(detail, e, "column '%.*s': %s", (int)c->name.n, c->name.p,
			why.text[0] != '\0' ? why.text : "not a value of the type");
	if (e == ERR_OK && type == EDM_BINARY) {
		v.bytes = arena_copy(&ret->arena, v.bytes);
		if (v.bytes.p == NULL)
			e = ERR_NO_MEMORY;
	}
	if (e == ERR_OK)
		e = entity_add(ret, c->name, &v);
	buf_fini(&bytes);
	return e;
}

static enum err build(
	const struct csv_table *t, struct span text, struct entity *ret, struct err_detail *detail)
{
	for (size_t i = 0; i < t->ncells; i++) {
		const struct column *c = &t->columns[i];
		struct span cell = span_make(text.p + t->cells[i].at, t->cells[i].n);
		if (c->role == COLUMN_PK) {
			ret->pk = cell;
			ret->has_pk = true;
		} else if (c->role == COLUMN_RK) {
			ret->rk = cell;
			ret->has_rk = true;
		} else if (c->role == COLUMN_VALUE) {
			bool absent;
			enum edm_type type;
			enum err e = type_of(t, text, i, &absent, &type, detail);
			if (e == ERR_OK && !absent)
				e = parse_value(type, cell, c, ret, detail);
			if (e != ERR_OK)
				return e;
		}
	}
	if (!ret->has_pk || !ret->has_rk)
		return err_set(detail, ERR_KEY_MISSING, "there is no %s",
			ret->has_pk ? "RowKey" : "PartitionKey");
	return entity_check(ret, detail);
}

static enum err next(
	struct reader *r, struct arena *text, struct entity *ret, struct err_detail *detail)
{
	if (r->end)
		return ERR_OK;
	entity_reset(ret);
	enum err e = read_record(r, detail);
	if (e != ERR_OK || r->end)
		return e;
	if (r->csv->ncells > r->csv->n)
		return err_set(detail, ERR_INVALID_INPUT, "%zu cells, but the header has %zu",
			r->csv->ncells, r->csv->n);
	size_t bad = utf8_valid_prefix(buf_span(&r->text));
	if (bad < r->text.len)
		return err_set(detail, ERR_INVALID_INPUT, "the record is not valid UTF-8");
	struct span copy = arena_copy(text, record_text(r));
	if (copy.p == NULL) {
		r->broken = true;
		return ERR_NO_MEMORY;
	}
	return build(r->csv, copy, ret, detail);
}

static void finish_reader(struct reader *r)
{
	table_free(r->csv);
}

const struct import_format import_csv = { start, next, finish_reader };

/* ---- export ---- */

static uint32_t hash(struct span s)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 16777619u;
	return h ^ (h >> 15);
}

/* The slot of the column with this name, or the free one where it would go. */
static uint32_t *slot_of(struct csv_table *t, struct span name)
{
	for (uint32_t at = hash(name);; at++) {
		uint32_t *slot = &t->slots[at % COLUMN_SLOTS];
		if (*slot == 0 || span_eq(t->columns[*slot - 1].name, name))
			return slot;
	}
}

static enum err look(struct writer *w, const struct entity *e)
{
	if (w->csv == NULL) {
		w->csv = table_new();
		if (w->csv == NULL)
			return ERR_NO_MEMORY;
		w->csv->slots = calloc(COLUMN_SLOTS, sizeof(uint32_t));
		if (w->csv->slots == NULL)
			return ERR_NO_MEMORY;
	}
	for (size_t i = 0; i < e->nprops; i++) {
		uint32_t *slot = slot_of(w->csv, e->props[i].name);
		if (*slot != 0)
			continue;
		enum err result = add_column(w->csv, &(struct column){ .name = e->props[i].name });
		if (result != ERR_OK)
			return result;
		*slot = (uint32_t)w->csv->n;
	}
	return ERR_OK;
}

static enum err header(struct writer *w)
{
	buf_add_str(&w->out, "PartitionKey,RowKey,Timestamp");
	for (size_t i = 0; w->csv != NULL && i < w->csv->n; i++) {
		/* Names of properties need no quotes. */
		struct span name = w->csv->columns[i].name;
		buf_add_char(&w->out, ',');
		buf_add_span(&w->out, name);
		buf_add_char(&w->out, ',');
		buf_add_span(&w->out, name);
		buf_add_str(&w->out, "@type");
	}
	buf_add_str(&w->out, "\r\n");
	if (w->csv != NULL && w->csv->n > 0) {
		w->csv->row = calloc(w->csv->n, sizeof(const struct value *));
		if (w->csv->row == NULL)
			return ERR_NO_MEMORY;
	}
	return buf_ok(&w->out) ? ERR_OK : ERR_NO_MEMORY;
}

static bool wants_quotes(struct span s)
{
	if (s.n == 0 || s.p[0] == ' ' || s.p[s.n - 1] == ' ')
		return true;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '"' || s.p[i] == ',' || s.p[i] == '\n' || s.p[i] == '\r')
			return true;
	return false;
}

static void put_text(struct buf *out, struct span s)
{
	if (!wants_quotes(s)) {
		buf_add_span(out, s);
		return;
	}
	buf_add_char(out, '"');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, s.p[i]);
	}
	buf_add_char(out, '"');
}

static void put_value(struct buf *out, const struct value *v)
{
	buf_add_char(out, ',');
	if (v != NULL && v->type == EDM_STRING)
		put_text(out, v->bytes);
	else if (v != NULL)
		edm_text_format(v, out);
	buf_add_char(out, ',');
	if (v != NULL)
		buf_add_str(out, edm_name(v->type));
}

static enum err row(struct writer *w, const struct entity *e)
{
	struct csv_table *t = w->csv;
	for (size_t i = 0; i < e->nprops; i++)
		t->row[*slot_of(t, e->props[i].name) - 1] = &e->props[i].value;
	put_text(&w->out, e->pk);
	buf_add_char(&w->out, ',');
	put_text(&w->out, e->rk);
	buf_add_char(&w->out, ',');
	char when[CLOCK_TEXT_MAX];
	buf_add(&w->out, when, (size_t)clock_format(e->timestamp, when));
	for (size_t i = 0; t != NULL && i < t->n; i++) {
		put_value(&w->out, t->row[i]);
		t->row[i] = NULL;
	}
	buf_add_str(&w->out, "\r\n");
	return buf_ok(&w->out) ? ERR_OK : ERR_NO_MEMORY;
}

static void finish_writer(struct writer *w)
{
	table_free(w->csv);
}

const struct export_format export_csv = { true, look, header, row, finish_writer };
