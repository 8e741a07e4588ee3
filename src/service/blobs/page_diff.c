/* SPDX-License-Identifier: MIT
 * Both extents are gone through side by side, some pieces at a time. */
#include "service/blobs/page_diff.h"

#include "service/blobs/pages.h"

#include <string.h>

#define AT_ONCE 256

struct side {
	uint64_t extent;
	struct page_piece found[AT_ONCE];
	size_t n, at;
};

struct diff {
	struct service *service;
	struct side before, now;
	uint64_t from, end, left;
	page_diff_fn fn;
	void *arg;
	bool cleared;
	uint64_t first, after; /* the range that may go on; first == after: none */
	uint64_t next;
	bool stopped;
};

static void give_range(struct diff *d)
{
	if (d->first == d->after)
		return;
	d->stopped = !d->fn(d->arg, d->cleared, d->first, d->after - 1);
	d->left--;
	d->first = d->after;
}

static void add_page(struct diff *d, uint64_t at, bool cleared)
{
	if (d->stopped || at < d->from || at >= d->end)
		return;
	if (d->first != d->after && (d->cleared != cleared || d->after != at))
		give_range(d);
	if (d->left == 0 && !d->stopped) {
		d->next = at;
		d->stopped = true;
	}
	if (d->stopped)
		return;
	if (d->first == d->after) {
		d->first = at;
		d->cleared = cleared;
	}
	d->after = at + BLOB_PAGE_BYTES;
}

/* Returns the pages that are valid in both and have other bytes, by *ret. */
static enum err compare(struct diff *d, uint32_t number, uint8_t both, uint8_t *ret)
{
	static const char zeros[PAGES_PIECE_BYTES];
	char old[PAGES_PIECE_BYTES], new[PAGES_PIECE_BYTES];
	uint8_t mask;
	*ret = 0;
	if (both == 0)
		return ERR_OK;
	memcpy(old, zeros, sizeof(old));
	memcpy(new, zeros, sizeof(new));
	enum err e = pages_load(d->service, d->before.extent, number, old, &mask);
	if (e == ERR_OK)
		e = pages_load(d->service, d->now.extent, number, new, &mask);
	for (unsigned i = 0; i < PAGES_OF_PIECE; i++) {
		size_t at = i * BLOB_PAGE_BYTES;
		if (both & 1u << i && memcmp(old + at, new + at, BLOB_PAGE_BYTES) != 0)
			*ret |= (uint8_t)(1u << i);
	}
	return e;
}

static enum err add_piece(struct diff *d, uint32_t number, uint8_t before, uint8_t now)
{
	uint8_t other;
	enum err e = compare(d, number, before & now, &other);
	for (unsigned i = 0; e == ERR_OK && i < PAGES_OF_PIECE; i++) {
		uint64_t at = number * PAGES_PIECE_BYTES + i * BLOB_PAGE_BYTES;
		unsigned bit = 1u << i;
		if (now & bit && (!(before & bit) || other & bit))
			add_page(d, at, false);
		else if (before & bit && !(now & bit))
			add_page(d, at, true);
	}
	return e;
}

static enum err find(struct diff *d, struct side *side, uint32_t first, uint32_t last)
{
	side->at = 0;
	return pages_find(d->service, side->extent, first, last, AT_ONCE, side->found, &side->n);
}

/* Up to here the pieces that were found are all that there are. */
static uint32_t known_to(const struct side *side, uint32_t last)
{
	return side->n == AT_ONCE ? side->found[AT_ONCE - 1].number : last;
}

/* Takes the mask of a piece; 0 where there is none. */
static uint8_t take(struct side *side, uint32_t number)
{
	bool there = side->at < side->n && side->found[side->at].number == number;
	return there ? side->found[side->at++].mask : 0;
}

static enum err merge(struct diff *d, uint32_t upto)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && !d->stopped) {
		struct side *a = &d->before, *b = &d->now;
		uint32_t x = a->at < a->n ? a->found[a->at].number : UINT32_MAX;
		uint32_t y = b->at < b->n ? b->found[b->at].number : UINT32_MAX;
		uint32_t number = x < y ? x : y;
		if (number > upto || (a->at == a->n && b->at == b->n))
			break;
		uint8_t before = take(a, number);
		e = add_piece(d, number, before, take(b, number));
	}
	return e;
}

enum err pages_diff(struct service *s, uint64_t before, uint64_t now, uint64_t from, uint64_t end,
	uint64_t max, page_diff_fn fn, void *arg, uint64_t *ret_next)
{
	struct diff d = { .service = s,
		.before = { .extent = before },
		.now = { .extent = now },
		.from = from,
		.end = end,
		.left = max,
		.fn = fn,
		.arg = arg,
		.next = end };
	enum err e = ERR_OK;
	uint32_t last = (uint32_t)((end - 1) / PAGES_PIECE_BYTES);
	for (uint64_t at = from / PAGES_PIECE_BYTES;
		e == ERR_OK && from < end && at <= last && !d.stopped;) {
		e = find(&d, &d.before, (uint32_t)at, last);
		if (e == ERR_OK)
			e = find(&d, &d.now, (uint32_t)at, last);
		uint32_t x = known_to(&d.before, last), y = known_to(&d.now, last);
		uint32_t upto = x < y ? x : y;
		if (e == ERR_OK)
			e = merge(&d, upto);
		at = (uint64_t)upto + 1;
	}
	if (e == ERR_OK && !d.stopped)
		give_range(&d);
	*ret_next = d.next;
	return e;
}
