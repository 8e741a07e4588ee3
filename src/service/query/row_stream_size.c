/* SPDX-License-Identifier: MIT
 * The size of a stream is counted by a twin, which goes on from where the stream is and keeps no
 * text.  Before that, some text is written and kept for the reader. */
#include "service/query/row_stream_parts.h"

#include <string.h>

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
	t->page = (struct page){ .text = BUF_INIT(TEXT_MAX), .base = row_stream_written(s) };
	memset(t->kept, 0, sizeof(t->kept));
	t->ahead = (struct pages_ahead){ 0 };
	return t;
}

/* Writes the next page behind those that are kept. */
static enum err read_ahead(struct row_stream *s)
{
	struct page readers = s->page;
	s->page = (struct page){ .text = BUF_INIT(TEXT_MAX), .base = row_stream_written(s) };
	enum err e = row_stream_produce(s);
	struct page next = s->page;
	buf_trim(&next.text);
	s->page = readers;
	if (e == ERR_OK && next.text.len > 0)
		e = row_stream_add_ahead(s, &next);
	if (e != ERR_OK || next.text.len == 0)
		buf_fini(&next.text);
	if (e != ERR_OK)
		row_stream_start_again(s);
	return e;
}

/* Reads the next page, or goes on with the count behind the first one. */
static enum err count_on(struct row_stream *s)
{
	if (s->phase == PHASE_LOOK && s->next_pk.data == NULL) {
		csv_writer_measure_none(s->csv);
		s->measures = true;
	}
	if (s->phase == PHASE_LOOK || s->phase == PHASE_HEAD || s->page.text.len == 0)
		return row_stream_advance(s);
	if (row_stream_may_read_ahead(s))
		return read_ahead(s);
	if (s->twin == NULL && (s->twin = twin_new(s)) == NULL)
		return ERR_NO_MEMORY;
	enum err e = row_stream_advance(s->twin);
	if (e == ERR_NOT_FOUND && s->twin->needs_documents)
		return ERR_OK;
	if (e == ERR_OK && s->twin->phase == PHASE_END) {
		s->size = s->twin->size;
		row_stream_twin_free(s->twin);
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
	return row_stream_explain(e, detail);
}
