/* SPDX-License-Identifier: MIT */
#include "service/query/csv_writer.h"

#include "base/arena.h"
#include "base/clock.h"
#include "codec/edm_text.h"

#include <stdlib.h>

/* The limits of an import: 65,536 fields and 8 MiB a record. */
#define NAMES_MAX ((65536 - 3) / 2)
#define HEADER_MAX ((size_t)8 << 20)
#define HEADER_BASE 64 /* for the keys, Timestamp and the line end */
#define SLOTS ((size_t)65536)
#define RECORD_MAX ((size_t)16 << 20)
#define EMPTY_CELLS (sizeof(",,") - 1) /* a column that a row lacks */

struct csv_writer {
	bool with_time;
	struct span *names;
	size_t n, cap;
	size_t header_bytes;
	uint32_t *slots;          /* hash table of index + 1; 0: free */
	const struct value **row; /* the values of a row, by column */
	struct arena arena;       /* owns the names */
	uint64_t records, cells;  /* what was measured: records, and bytes of all but empty cells */
	struct buf record;
};

struct csv_writer *csv_writer_new(bool with_time)
{
	struct csv_writer *w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	w->with_time = with_time;
	w->record = BUF_INIT(RECORD_MAX);
	w->slots = calloc(SLOTS, sizeof(*w->slots));
	if (w->slots == NULL) {
		free(w);
		return NULL;
	}
	return w;
}

void csv_writer_free(struct csv_writer *w)
{
	if (w == NULL)
		return;
	arena_fini(&w->arena);
	free(w->names);
	free(w->slots);
	free(w->row);
	buf_fini(&w->record);
	free(w);
}

static uint32_t hash(struct span s)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 16777619u;
	return h ^ (h >> 15);
}

/* Returns the slot of this column, or the free one for it. */
static uint32_t *slot_of(struct csv_writer *w, struct span name)
{
	for (uint32_t at = hash(name);; at++) {
		uint32_t *slot = &w->slots[at % SLOTS];
		if (*slot == 0 || span_eq(w->names[*slot - 1], name))
			return slot;
	}
}

static bool grow(struct csv_writer *w)
{
	if (w->n < w->cap)
		return true;
	size_t cap = w->cap == 0 ? 64 : w->cap * 2;
	void *names = reallocarray(w->names, cap, sizeof(*w->names));
	if (names == NULL)
		return false;
	w->names = names;
	w->cap = cap;
	return true;
}

enum err csv_writer_add(struct csv_writer *w, struct span name)
{
	uint32_t *slot = slot_of(w, name);
	if (*slot != 0)
		return ERR_OK;
	size_t bytes = 2 * name.n + sizeof(",,@type") - 1;
	if (w->n == NAMES_MAX || bytes > HEADER_MAX - HEADER_BASE - w->header_bytes)
		return ERR_TOO_MANY_PROPERTIES;
	struct span copy = arena_copy(&w->arena, name);
	if (copy.p == NULL || !grow(w))
		return ERR_NO_MEMORY;
	w->names[w->n++] = copy;
	*slot = (uint32_t)w->n;
	w->header_bytes += bytes;
	return ERR_OK;
}

void csv_writer_names(const struct csv_writer *w, struct buf *out)
{
	for (size_t i = 0; i < w->n; i++) {
		buf_add_span(out, w->names[i]);
		buf_add_char(out, ',');
	}
}

void csv_writer_header(struct csv_writer *w, struct buf *out)
{
	buf_add_str(out, "PartitionKey,RowKey");
	if (w->with_time)
		buf_add_str(out, ",Timestamp");
	for (size_t i = 0; i < w->n; i++) {
		/* Property names need no quotes. */
		buf_add_char(out, ',');
		buf_add_span(out, w->names[i]);
		buf_add_char(out, ',');
		buf_add_span(out, w->names[i]);
		buf_add_str(out, "@type");
	}
	buf_add_str(out, "\r\n");
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

static void put_time(struct buf *out, int64_t ticks)
{
	char when[CLOCK_TEXT_MAX];
	buf_add_char(out, ',');
	buf_add(out, when, (size_t)clock_format(ticks, when));
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

static void place_values(struct csv_writer *w, const struct entity *e)
{
	for (size_t i = 0; i < e->nprops; i++) {
		uint32_t slot = *slot_of(w, e->props[i].name);
		if (slot != 0)
			w->row[slot - 1] = &e->props[i].value;
	}
}

static void put_keys(const struct csv_writer *w, const struct entity *e, struct buf *out)
{
	put_text(out, e->pk);
	buf_add_char(out, ',');
	put_text(out, e->rk);
	if (w->with_time)
		put_time(out, e->timestamp);
}

enum err csv_writer_measure(struct csv_writer *w, const struct entity *e)
{
	buf_clear(&w->record);
	put_keys(w, e, &w->record);
	for (size_t i = 0; i < e->nprops; i++)
		put_value(&w->record, &e->props[i].value);
	buf_add_str(&w->record, "\r\n");
	w->records++;
	w->cells += w->record.len - EMPTY_CELLS * e->nprops;
	return buf_ok(&w->record) ? ERR_OK : ERR_NO_MEMORY;
}

void csv_writer_measure_none(struct csv_writer *w)
{
	w->records = w->cells = 0;
}

uint64_t csv_writer_measured(const struct csv_writer *w)
{
	uint64_t header = sizeof("PartitionKey,RowKey\r\n") - 1 + w->header_bytes +
		(w->with_time ? sizeof(",Timestamp") - 1 : 0);
	return header + w->cells + w->records * w->n * EMPTY_CELLS;
}

enum err csv_writer_row(struct csv_writer *w, const struct entity *e, struct buf *out)
{
	if (w->row == NULL && w->n > 0) {
		w->row = calloc(w->n, sizeof(*w->row));
		if (w->row == NULL)
			return ERR_NO_MEMORY;
	}
	place_values(w, e);
	put_keys(w, e, out);
	for (size_t i = 0; i < w->n; i++) {
		put_value(out, w->row[i]);
		w->row[i] = NULL;
	}
	buf_add_str(out, "\r\n");
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}
