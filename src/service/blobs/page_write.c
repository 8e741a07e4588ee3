/* SPDX-License-Identifier: MIT
 * A change puts the record with the pieces into one commit.  The record's version is its condition, so
 * what was read of the pieces is what the change replaces. */
#include "service/blobs/page_write.h"

#include "model/metadata.h"
#include "model/names.h"
#include "service/blobs/blob_change.h"
#include "service/blobs/pages.h"

#include <stdlib.h>
#include <string.h>

struct piece_key {
	char text[EXTENT_KEY_CHARS + 1];
};

/* A range of pages that one commit writes or clears. */
struct page_work {
	const struct sequence_conditions *sequence;
	bool grows;
	uint64_t offset, end; /* whole pages */
	struct span bytes;    /* p NULL: they are cleared */
	uint64_t begun;       /* the extent of the steps before, or that is meant; 0: any */
	char *padded;         /* NULL, or `bytes`, whose ends are filled from what is there: */
	uint64_t fill_to, fill_from; /* up to the one offset, and from the other one on */

	uint64_t extent;
	uint64_t next;  /* where the next step begins */
	bool grew;      /* the record, in the last step */
	int64_t number; /* the sequence number after it */

	/* The changes of the pieces, and what they borrow. */
	struct change *changes;
	struct piece_key *keys;
	struct page_piece *found;
	size_t n, room;
	char edges[2][PAGES_PIECE_BYTES]; /* pieces of which a part stays */
	size_t nedges;
	int64_t added; /* pages; negative: removed */
};

static void work_fini(struct page_work *p)
{
	free(p->changes);
	free(p->keys);
	free(p->found);
}

static enum err make_room(struct page_work *p)
{
	uint64_t pieces = (p->end - 1) / PAGES_PIECE_BYTES - p->offset / PAGES_PIECE_BYTES + 1;
	p->n = p->nedges = 0;
	p->added = 0;
	if (p->room > 0)
		return ERR_OK;
	p->room = pieces < PAGES_STEP ? (size_t)pieces : PAGES_STEP;
	p->changes = calloc(p->room, sizeof(*p->changes));
	p->keys = calloc(p->room, sizeof(*p->keys));
	p->found = calloc(p->room, sizeof(*p->found));
	return p->changes != NULL && p->keys != NULL && p->found != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* ---- one piece ---- */

/* The pages of a piece that the range covers. */
static uint8_t cover(const struct page_work *p, uint32_t number)
{
	uint64_t at = number * PAGES_PIECE_BYTES;
	unsigned from = p->offset > at ? (unsigned)((p->offset - at) / BLOB_PAGE_BYTES) : 0;
	unsigned to = p->end < at + PAGES_PIECE_BYTES ? (unsigned)((p->end - at) / BLOB_PAGE_BYTES)
						      : PAGES_OF_PIECE;
	return (uint8_t)((1u << to) - (1u << from));
}

/* The given bytes of page i of a piece. */
static const char *given(const struct page_work *p, uint32_t number, unsigned i)
{
	return p->bytes.p + (number * PAGES_PIECE_BYTES + i * BLOB_PAGE_BYTES - p->offset);
}

/* Puts the old pages and the given ones together; the valid ones close ranks. */
static enum err merge(struct service *s, struct page_work *p, uint32_t number, uint8_t now,
	uint8_t covered, struct span *ret)
{
	char *to = p->edges[p->nedges++];
	uint8_t old;
	size_t n = 0;
	enum err e = pages_load(s, p->extent, number, to, &old);
	if (e == ERR_OK && (now & ~covered & ~old) != 0)
		e = ERR_CONDITION_NOT_MET; /* somebody else is changing it */
	for (unsigned i = 0; e == ERR_OK && i < PAGES_OF_PIECE; i++)
		if (now & 1u << i) {
			memmove(to + n,
				covered & 1u << i ? given(p, number, i) : to + i * BLOB_PAGE_BYTES,
				BLOB_PAGE_BYTES);
			n += BLOB_PAGE_BYTES;
		}
	*ret = span_make(to, n);
	return e;
}

static enum err add_piece(struct service *s, struct page_work *p, uint32_t number, uint8_t old)
{
	uint8_t covered = cover(p, number), kept = old & (uint8_t)~covered;
	uint8_t now = p->bytes.p != NULL ? kept | covered : kept;
	struct change *c = &p->changes[p->n];
	enum err e = ERR_OK;
	if (now == old && p->bytes.p == NULL)
		return ERR_OK;
	*c = (struct change){ .op = now != 0 ? CHANGE_PUT : CHANGE_DELETE,
		.at = { .parent = p->extent,
			.class = CLASS_BLOB,
			.key = extent_key(number, p->keys[p->n].text) },
		.kind = ITEM_PIECE,
		.item_flags = now,
		.attrs = ATTRS_UNSET };
	if (now != 0 && kept == 0)
		c->body = span_make(given(p, number, (unsigned)__builtin_ctz(covered)),
			BLOB_PAGE_BYTES * (unsigned)__builtin_popcount(covered));
	else if (now != 0)
		e = merge(s, p, number, now, covered, &c->body);
	p->added += __builtin_popcount(now) - __builtin_popcount(old);
	p->n++;
	return e;
}

/* ---- one step ---- */

static enum err write_pieces(struct service *s, struct page_work *p, size_t nfound)
{
	uint32_t last = (uint32_t)((p->end - 1) / PAGES_PIECE_BYTES);
	enum err e = ERR_OK;
	size_t at = 0;
	for (uint32_t i = (uint32_t)(p->offset / PAGES_PIECE_BYTES); i <= last && e == ERR_OK;
		i++) {
		bool there = at < nfound && p->found[at].number == i;
		e = add_piece(s, p, i, there ? p->found[at].mask : 0);
		at += there;
	}
	p->next = p->end;
	return e;
}

static enum err clear_pieces(struct service *s, struct page_work *p, size_t nfound)
{
	enum err e = ERR_OK;
	for (size_t i = 0; i < nfound && e == ERR_OK; i++)
		e = add_piece(s, p, p->found[i].number, p->found[i].mask);
	p->next =
		nfound == p->room ? (p->found[nfound - 1].number + 1) * PAGES_PIECE_BYTES : p->end;
	p->next = p->next < p->end ? p->next : p->end;
	return e;
}

/* Plans the pieces of the next step. */
static enum err plan(struct service *s, struct page_work *p)
{
	size_t nfound = 0;
	enum err e = make_room(p);
	if (e == ERR_OK)
		e = pages_find(s, p->extent, (uint32_t)(p->offset / PAGES_PIECE_BYTES),
			(uint32_t)((p->end - 1) / PAGES_PIECE_BYTES), p->room, p->found, &nfound);
	if (e == ERR_OK)
		e = p->bytes.p != NULL ? write_pieces(s, p, nfound) : clear_pieces(s, p, nfound);
	return e;
}

static enum err check_sequence(const struct sequence_conditions *c, int64_t number)
{
	bool ok = c == NULL ||
		((!c->has_le || number <= c->le) && (!c->has_lt || number < c->lt) &&
			(!c->has_eq || number == c->eq));
	return ok ? ERR_OK : ERR_SEQUENCE_CONDITION;
}

static enum err check_record(struct page_work *p, const struct blob_record *there)
{
	if (there == NULL)
		return ERR_BLOB_NOT_FOUND;
	if (there->type != BLOB_PAGES)
		return ERR_BLOB_TYPE;
	p->extent = there->extent;
	/* It was replaced between two steps. */
	return p->begun == 0 || p->begun == p->extent ? ERR_OK : ERR_BLOB_NOT_FOUND;
}

/* Plans a step, and what the record says after it. */
static enum err step(struct page_work *p, struct blob_change *w, struct blob_record *ret)
{
	enum err e = plan(w->service, p);
	ret->pages = (uint64_t)((int64_t)ret->pages + p->added);
	w->more = p->changes;
	w->nmore = p->n;
	return e;
}

static enum err check_size(uint64_t size, struct err_detail *detail)
{
	if (size <= PAGE_BLOB_MAX_BYTES && size % BLOB_PAGE_BYTES == 0)
		return ERR_OK;
	return err_set(detail, ERR_OUT_OF_RANGE,
		"The size of a page blob is a multiple of 512, and at most 8 TiB.");
}

/* Has the record contain the range. */
static enum err cover_range(struct page_work *p, struct blob_record *ret, struct err_detail *detail)
{
	p->grew = p->end > ret->size;
	if (!p->grew)
		return ERR_OK;
	if (!p->grows)
		return ERR_PAGE_RANGE;
	ret->size = p->end;
	return check_size(p->end, detail);
}

/* Reads what stays of the first and the last page. */
static enum err fill(struct service *s, const struct page_work *p)
{
	enum err e =
		pages_read(s, p->extent, p->offset, p->padded, (size_t)(p->fill_to - p->offset));
	if (e == ERR_OK)
		e = pages_read(s, p->extent, p->fill_from, p->padded + (p->fill_from - p->offset),
			(size_t)(p->end - p->fill_from));
	return e == ERR_GONE ? ERR_CONDITION_NOT_MET : e;
}

static enum err make_pages(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	struct page_work *p = arg;
	enum err e = check_record(p, there);
	if (e == ERR_OK)
		e = check_sequence(p->sequence, there->sequence);
	if (e != ERR_OK)
		return e;
	*ret = *there;
	p->number = there->sequence;
	e = cover_range(p, ret, w->detail);
	if (e == ERR_OK && p->padded != NULL)
		e = fill(w->service, p);
	return e == ERR_OK ? step(p, w, ret) : e;
}

/* What still holds for the steps behind the first one: the lease. */
static struct blob_conditions lease_of(const struct page_target *t)
{
	return (struct blob_conditions){ .lease = t->conditions->lease };
}

static struct blob_change change_of(const struct page_target *t, struct err_detail *detail)
{
	return (struct blob_change){ .service = t->service,
		.origin = t->origin,
		.container = t->container,
		.name = t->name,
		.conditions = t->conditions,
		.lazy = t->lazy,
		.detail = detail };
}

/* Makes one step after the other, each behind the one before.  Only the first one has conditions
 * besides the lease, and only the last one waits for the disk. */
static enum err run(const struct page_target *t, struct page_work *p, struct page_result *ret,
	struct err_detail *detail)
{
	struct blob_change w = change_of(t, detail);
	const struct blob_conditions rest = lease_of(t);
	enum err e;
	*ret = (struct page_result){ 0 };
	if (p->offset % BLOB_PAGE_BYTES != 0 || p->end % BLOB_PAGE_BYTES != 0 ||
		p->offset >= p->end)
		return ERR_PAGE_RANGE;
	p->sequence = t->sequence;
	p->grows = t->grows;
	p->begun = t->extent;
	do {
		e = blob_change(&w, make_pages, p);
		p->begun = p->extent;
		p->offset = p->next;
		p->sequence = NULL;
		w.conditions = &rest;
	} while (e == ERR_OK && p->next < p->end);
	*ret = (struct page_result){ w.etag, p->number, p->grew };
	work_fini(p);
	return e;
}

enum err pages_write(const struct page_target *t, uint64_t offset, struct span bytes,
	struct page_result *ret, struct err_detail *detail)
{
	struct page_work p = { .offset = offset, .end = offset + bytes.n, .bytes = bytes };
	return bytes.n <= PAGES_WRITE_MAX ? run(t, &p, ret, detail) : ERR_BODY_TOO_LARGE;
}

enum err pages_patch(const struct page_target *t, uint64_t offset, struct span bytes,
	struct page_result *ret, struct err_detail *detail)
{
	uint64_t to = offset + bytes.n, first = offset - offset % BLOB_PAGE_BYTES;
	uint64_t end = to + (BLOB_PAGE_BYTES - to % BLOB_PAGE_BYTES) % BLOB_PAGE_BYTES;
	if (first == offset && end == to)
		return pages_write(t, offset, bytes, ret, detail);
	if (end - first > PAGES_WRITE_MAX)
		return ERR_BODY_TOO_LARGE;
	char *padded = malloc((size_t)(end - first));
	if (padded == NULL)
		return ERR_NO_MEMORY;
	memcpy(padded + (offset - first), bytes.p, bytes.n);
	struct page_work p = { .offset = first,
		.end = end,
		.bytes = span_make(padded, (size_t)(end - first)),
		.padded = padded,
		.fill_to = offset,
		.fill_from = to };
	enum err e = run(t, &p, ret, detail);
	free(padded);
	return e;
}

enum err pages_clear(const struct page_target *t, uint64_t offset, uint64_t n,
	struct page_result *ret, struct err_detail *detail)
{
	struct page_work p = { .offset = offset, .end = offset + n };
	return run(t, &p, ret, detail);
}

/* ---- the whole blob ---- */

static enum err make_create(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct page_blob_new *to = arg;
	(void)there;
	*ret = (struct blob_record){ .type = BLOB_PAGES,
		.properties = to->properties,
		.metadata = to->metadata,
		.size = to->size,
		.sequence = to->sequence,
		.extent = blob_upload_extent(w->upload),
		.content = SPAN_LIT("") };
	return ERR_OK;
}

enum err page_blob_create(const struct page_target *t, const struct page_blob_new *to,
	struct page_result *ret, struct err_detail *detail)
{
	struct page_blob_new copy = *to;
	struct blob_change w = change_of(t, detail);
	enum err e = blob_name_check(t->name, detail);
	*ret = (struct page_result){ 0 };
	if (e == ERR_OK)
		e = metadata_check(to->metadata, detail);
	if (e == ERR_OK)
		e = check_size(to->size, detail);
	if (e == ERR_OK)
		e = blob_upload_new(t->service, t->origin, &w.upload);
	if (e == ERR_OK)
		e = blob_upload_make_extent(w.upload, detail);
	if (e == ERR_OK)
		e = blob_change(&w, make_create, &copy);
	blob_upload_free(w.upload);
	*ret = (struct page_result){ w.etag, to->sequence, false };
	return e;
}

struct edit_work {
	const struct page_blob_edit *to;
	struct page_work pages; /* behind a smaller size */
	bool done;              /* the record has everything; else only pages were cleared */
};

static enum err new_sequence(const struct page_blob_edit *to, int64_t *number)
{
	switch (to->action) {
	case SEQUENCE_KEEP:
		break;
	case SEQUENCE_MAX:
		*number = to->sequence > *number ? to->sequence : *number;
		break;
	case SEQUENCE_UPDATE:
		*number = to->sequence;
		break;
	case SEQUENCE_INCREMENT:
		if (*number == INT64_MAX)
			return ERR_SEQUENCE_TOO_LARGE;
		++*number;
		break;
	}
	return ERR_OK;
}

static enum err make_edit(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	struct edit_work *m = arg;
	const struct page_blob_edit *to = m->to;
	struct page_work *p = &m->pages;
	enum err e = check_record(p, there);
	if (e != ERR_OK)
		return e;
	*ret = *there;
	w->nmore = 0;
	m->done = true;
	if (to->resize && to->size < there->size && !to->only_grows) {
		p->offset = to->size;
		p->end = there->size;
		e = step(p, w, ret);
		m->done = p->next == p->end;
	}
	if (e != ERR_OK || !m->done)
		return e;
	if (to->resize && (to->size > there->size || !to->only_grows))
		ret->size = to->size;
	if (to->properties != NULL)
		ret->properties = *to->properties;
	e = new_sequence(to, &ret->sequence);
	p->number = ret->sequence;
	return e;
}

enum err page_blob_edit(const struct page_target *t, const struct page_blob_edit *to,
	struct page_result *ret, struct err_detail *detail)
{
	struct edit_work m = { .to = to, .pages.begun = t->extent };
	struct blob_change w = change_of(t, detail);
	const struct blob_conditions rest = lease_of(t);
	enum err e = to->resize ? check_size(to->size, detail) : ERR_OK;
	*ret = (struct page_result){ 0 };
	if (e != ERR_OK)
		return e;
	do {
		e = blob_change(&w, make_edit, &m);
		m.pages.begun = m.pages.extent;
		w.conditions = &rest;
	} while (e == ERR_OK && !m.done);
	*ret = (struct page_result){ w.etag, m.pages.number, false };
	work_fini(&m.pages);
	return e;
}
