/* SPDX-License-Identifier: MIT
 * Pages that were written to count the stream and are kept for its reader, so that a query whose result fits
 * runs once.  Where the length of a line is known without writing it, counting alone is cheaper. */
#include "service/query/row_stream_parts.h"

#include <stdatomic.h>

/* Of one stream, and of all streams of the process. */
#define AHEAD_BYTES ((size_t)4 << 20)
#define AHEAD_ALL_BYTES ((size_t)16 << 20)

static atomic_size_t all_bytes;

static void give_back(struct row_stream *s, const struct page *p)
{
	s->ahead.bytes -= p->text.cap;
	atomic_fetch_sub(&all_bytes, p->text.cap);
}

bool row_stream_has_ahead(const struct row_stream *s)
{
	return s->ahead.first < s->ahead.n;
}

void row_stream_drop_ahead(struct row_stream *s)
{
	for (size_t i = s->ahead.first; i < s->ahead.n; i++) {
		give_back(s, &s->ahead.v[i]);
		buf_fini(&s->ahead.v[i].text);
	}
	free(s->ahead.v);
	s->ahead = (struct pages_ahead){ 0 };
}

bool row_stream_take_ahead(struct row_stream *s)
{
	if (!row_stream_has_ahead(s))
		return false;
	buf_fini(&s->page.text);
	s->page = s->ahead.v[s->ahead.first++];
	give_back(s, &s->page);
	if (!row_stream_has_ahead(s))
		row_stream_drop_ahead(s);
	return true;
}

bool row_stream_may_read_ahead(const struct row_stream *s)
{
	bool counts_lines =
		row_text_is_whole_object(s) && !filter_needs_properties(&s->query.filter);
	return s->twin == NULL && !counts_lines && s->ahead.bytes < AHEAD_BYTES &&
		atomic_load(&all_bytes) < AHEAD_ALL_BYTES;
}

uint64_t row_stream_written(const struct row_stream *s)
{
	const struct page *last = row_stream_has_ahead(s) ? &s->ahead.v[s->ahead.n - 1] : &s->page;
	return last->base + last->text.len;
}

enum err row_stream_add_ahead(struct row_stream *s, const struct page *p)
{
	if (s->ahead.n == s->ahead.cap) {
		size_t cap = s->ahead.cap == 0 ? 16 : 2 * s->ahead.cap;
		struct page *v = reallocarray(s->ahead.v, cap, sizeof(*v));
		if (v == NULL)
			return ERR_NO_MEMORY;
		s->ahead.v = v;
		s->ahead.cap = cap;
	}
	s->ahead.v[s->ahead.n++] = *p;
	s->ahead.bytes += p->text.cap;
	atomic_fetch_add(&all_bytes, p->text.cap);
	return ERR_OK;
}
