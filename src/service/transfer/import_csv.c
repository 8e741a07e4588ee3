/* SPDX-License-Identifier: MIT
 * Parses CSV (docs/formats.md): RFC 4180 with a header.  A column NAME is a string by default.  A
 * column NAME@type beside it, as Azure's tools write it, has the types of its values.  A column
 * NAME@Edm.Int32 has values of that type.  An empty field is no property; "" is an empty string. */
#include "base/text.h"
#include "codec/edm_text.h"
#include "service/transfer/import_parts.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 65536

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
	enum edm_type type;
	size_t type_column; /* index of the column with the types, plus 1; 0: none */
};

struct field {
	struct span text;
	bool quoted;
};

struct csv_header {
	struct column *columns;
	size_t n, cap;
	struct field *fields; /* of the record */
	size_t nfields, fields_cap;
	struct arena names;
};

/* ---- records and fields ---- */

enum split_state {
	AT_FIELD,
	IN_PLAIN,
	IN_QUOTES,
	BEHIND_QUOTE /* inside of quotes: the closing quote, or the first one of a pair */
};

static enum split_state step(enum split_state state, char c)
{
	if (state == IN_QUOTES)
		return c == '"' ? BEHIND_QUOTE : IN_QUOTES;
	if (c == '"' && (state == BEHIND_QUOTE || state == AT_FIELD))
		return IN_QUOTES;
	return c == ',' ? AT_FIELD : IN_PLAIN;
}

static size_t end_of(int *state, struct span piece)
{
	enum split_state now = (enum split_state) * state;
	for (size_t i = 0; i < piece.n; i++) {
		if (piece.p[i] == '\n' && now != IN_QUOTES) {
			*state = AT_FIELD;
			return i + 1;
		}
		now = step(now, piece.p[i]);
	}
	*state = (int)now;
	return 0;
}

static bool blank(struct span record)
{
	return record.n == 0 || (record.n == 1 && record.p[0] == '\r');
}

/* Makes room for one more element. */
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

static enum err add_field(
	struct csv_header *h, struct span text, bool quoted, struct err_detail *detail)
{
	void *fields = h->fields;
	if (h->nfields == COLUMNS_MAX)
		return err_set(detail, ERR_BODY_TOO_LARGE, "the record has more than %d fields",
			COLUMNS_MAX);
	if (!grow(&fields, &h->fields_cap, h->nfields, sizeof(struct field)))
		return ERR_NO_MEMORY;
	h->fields = fields;
	h->fields[h->nfields++] = (struct field){ text, quoted };
	return ERR_OK;
}

/* Copies the quoted text at s to *out.  Returns the text behind it; p is NULL if the closing quote
 * is missing. */
static struct span unquote(struct span s, char **out)
{
	for (;;) {
		const char *quote = s.n > 0 ? memchr(s.p, '"', s.n) : NULL;
		if (quote == NULL)
			return (struct span){ 0 };
		size_t n = (size_t)(quote - s.p);
		memcpy(*out, s.p, n);
		*out += n;
		s = span_make(quote + 1, s.n - n - 1);
		if (s.n == 0 || s.p[0] != '"')
			return s;
		*(*out)++ = '"';
		s = span_make(s.p + 1, s.n - 1);
	}
}

/* Returns the text up to the comma, or to the end. */
static struct span up_to_comma(struct span s)
{
	const char *comma = s.n > 0 ? memchr(s.p, ',', s.n) : NULL;
	return span_make(s.p, comma != NULL ? (size_t)(comma - s.p) : s.n);
}

static bool only_returns(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '\r')
			return false;
	return true;
}

/* Takes a field from *left and copies its text to *out. */
static enum err take_field(
	struct csv_header *h, struct span *left, char **out, struct err_detail *detail)
{
	char *begin = *out;
	bool quoted = left->n > 0 && left->p[0] == '"';
	if (quoted)
		*left = unquote(span_make(left->p + 1, left->n - 1), out);
	struct span plain = up_to_comma(*left);
	if (quoted && (left->p == NULL || !only_returns(plain)))
		return err_set(detail, ERR_INVALID_INPUT,
			"a quoted field is not closed, or something follows its closing quote");
	*left = span_make(left->p + plain.n, left->n - plain.n);
	if (!quoted) {
		if (left->n == 0 && span_ends(plain, SPAN_LIT("\r")))
			plain.n--;
		memcpy(*out, plain.p, plain.n);
		*out += plain.n;
	}
	return add_field(h, span_make(begin, (size_t)(*out - begin)), quoted, detail);
}

static enum err split(
	struct csv_header *h, struct span record, struct arena *text, struct err_detail *detail)
{
	h->nfields = 0;
	if (!utf8_valid(record))
		return err_set(detail, ERR_INVALID_INPUT, "the record is not valid UTF-8");
	char *out = arena_alloc(text, record.n + 1);
	if (out == NULL)
		return ERR_NO_MEMORY;
	for (;;) {
		enum err e = take_field(h, &record, &out, detail);
		if (e != ERR_OK || record.n == 0)
			return e;
		record = span_make(record.p + 1, record.n - 1); /* the comma */
	}
}

/* ---- the header ---- */

/* For printf's "%.*s". */
static int shown(struct span s)
{
	return s.n < 100 ? (int)s.n : 100;
}

static void header_free(struct csv_header *h)
{
	if (h == NULL)
		return;
	arena_fini(&h->names);
	free(h->columns);
	free(h->fields);
	free(h);
}

static size_t header_holds(const struct csv_header *h)
{
	return sizeof(*h) + h->cap * sizeof(h->columns[0]) + h->fields_cap * sizeof(h->fields[0]) +
		arena_holds(&h->names);
}

static enum err add_column(struct csv_header *h, const struct column *c)
{
	void *columns = h->columns;
	if (!grow(&columns, &h->cap, h->n, sizeof(*c)))
		return ERR_NO_MEMORY;
	h->columns = columns;
	h->columns[h->n++] = *c;
	return ERR_OK;
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

/* Columns that are not properties of the row. */
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
		else if (!type_from_text(type, &c->type))
			return err_set(detail, ERR_INVALID_INPUT,
				"column '%.*s': there is no type '%.*s'", shown(title), title.p,
				shown(type), type.p);
	} else if (title.n == 0) {
		return err_set(detail, ERR_INVALID_INPUT, "a column has no name");
	}
	return ERR_OK;
}

/* Orders value columns by name, then by position. */
static int by_name(const void *a, const void *b, void *columns)
{
	const struct column *c = columns;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	int order = span_cmp(c[i].name, c[k].name);
	if (order != 0)
		return order;
	return i < k ? -1 : i > k;
}

/* Finds the first value column with this name among the n of `order`. */
static struct column *find_value(
	struct csv_header *h, const size_t *order, size_t n, struct span name)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (span_cmp(h->columns[order[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < n && span_eq(h->columns[order[low]].name, name);
	return found ? &h->columns[order[low]] : NULL;
}

/* Assigns the type columns to the value columns.  Each type column must have one. */
static enum err pair_columns(struct csv_header *h, struct err_detail *detail)
{
	size_t n = 0;
	size_t *order = calloc(h->n, sizeof(*order));
	if (order == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < h->n; i++)
		if (h->columns[i].role == COLUMN_VALUE)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_name, h->columns);
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < h->n; i++) {
		const struct column *type = &h->columns[i];
		if (type->role != COLUMN_TYPE)
			continue;
		struct column *value = find_value(h, order, n, type->name);
		if (value != NULL)
			value->type_column = i + 1;
		else
			e = err_set(detail, ERR_INVALID_INPUT,
				"column '%.*s@type' has no column '%.*s' beside it",
				shown(type->name), type->name.p, shown(type->name), type->name.p);
	}
	free(order);
	return e;
}

static size_t count_role(const struct csv_header *h, enum column_role role)
{
	size_t n = 0;
	for (size_t i = 0; i < h->n; i++)
		n += h->columns[i].role == role;
	return n;
}

static enum err check_keys(const struct csv_header *h, bool in_partition, struct err_detail *detail)
{
	size_t pk = count_role(h, COLUMN_PK), rk = count_role(h, COLUMN_RK);
	if (pk > 1 || rk > 1)
		return err_set(detail, ERR_INVALID_INPUT, "the header has column '%s' twice",
			pk > 1 ? "PartitionKey" : "RowKey");
	if ((pk == 0 && !in_partition) || rk == 0)
		return err_set(detail, ERR_KEY_MISSING, "the header has no column '%s'",
			rk == 0 ? "RowKey" : "PartitionKey");
	return ERR_OK;
}

static enum err header(
	struct span record, bool in_partition, struct csv_header **ret, struct err_detail *detail)
{
	struct csv_header *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return ERR_NO_MEMORY;
	enum err e = split(h, record, &h->names, detail);
	for (size_t i = 0; e == ERR_OK && i < h->nfields; i++) {
		struct column c;
		e = parse_title(h->fields[i].text, &c, detail);
		if (e == ERR_OK)
			e = add_column(h, &c);
	}
	if (e == ERR_OK)
		e = pair_columns(h, detail);
	if (e == ERR_OK)
		e = check_keys(h, in_partition, detail);
	if (e != ERR_OK) {
		header_free(h);
		return e;
	}
	*ret = h;
	return ERR_OK;
}

/* ---- rows ---- */

/* Finds out if the field is a property, and its type. */
static enum err type_of(const struct csv_header *h, size_t i, bool *ret_absent, enum edm_type *ret,
	struct err_detail *detail)
{
	const struct column *c = &h->columns[i];
	const struct field *field = &h->fields[i];
	*ret = c->type;
	*ret_absent = field->text.n == 0 && (!field->quoted || c->type != EDM_STRING);
	if (c->type_column == 0 || c->type_column > h->nfields)
		return ERR_OK;
	struct span name = h->fields[c->type_column - 1].text;
	if (name.n == 0)
		return ERR_OK;
	if (!type_from_text(name, ret))
		return err_set(detail, ERR_INVALID_INPUT, "column '%.*s@type': no type '%.*s'",
			shown(c->name), c->name.p, shown(name), name.p);
	*ret_absent = field->text.n == 0 && *ret != EDM_STRING && *ret != EDM_BINARY;
	return ERR_OK;
}

static enum err parse_value(enum edm_type type, struct span field, const struct column *c,
	struct entity *ret, struct err_detail *detail)
{
	struct buf bytes = BUF_INIT((size_t)LIMIT_DOCUMENT_BYTES);
	struct value v = { 0 };
	struct err_detail why = { 0 };
	enum err e = edm_text_parse(type, field, &v, &bytes, &why);
	if (e != ERR_OK)
		e = err_set(detail, e, "column '%.*s': %s", shown(c->name), c->name.p,
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

static enum err add_property(
	const struct csv_header *h, size_t i, struct entity *ret, struct err_detail *detail)
{
	bool absent;
	enum edm_type type;
	enum err e = type_of(h, i, &absent, &type, detail);
	if (e == ERR_OK && !absent)
		e = parse_value(type, h->fields[i].text, &h->columns[i], ret, detail);
	return e;
}

static enum err parse(struct csv_header *h, struct span record, struct arena *text,
	struct entity *ret, struct err_detail *detail)
{
	entity_reset(ret);
	enum err e = split(h, record, text, detail);
	if (e == ERR_OK && h->nfields > h->n)
		e = err_set(detail, ERR_INVALID_INPUT, "%zu fields, but the header has %zu",
			h->nfields, h->n);
	for (size_t i = 0; e == ERR_OK && i < h->nfields; i++) {
		const struct column *c = &h->columns[i];
		if (c->role == COLUMN_PK) {
			ret->pk = h->fields[i].text;
			ret->has_pk = true;
		} else if (c->role == COLUMN_RK) {
			ret->rk = h->fields[i].text;
			ret->has_rk = true;
		} else if (c->role == COLUMN_VALUE) {
			e = add_property(h, i, ret, detail);
		}
	}
	return e;
}

/* A program that dies while writing leaves a shorter record. */
static bool cut(const struct csv_header *h)
{
	return h->nfields < h->n;
}

const struct import_format import_csv = { .end_of = end_of,
	.blank = blank,
	.header = header,
	.header_free = header_free,
	.header_holds = header_holds,
	.parse = parse,
	.cut = cut };
