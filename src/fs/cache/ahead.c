/* SPDX-License-Identifier: MIT */
#include "fs/cache/ahead.h"

#include "base/lock.h"
#include "fs/cache/content.h"

#include <stdlib.h>
#include <string.h>

/* Directories that are read at the same time. */
#define STREAMS 8
/* So many rows in order are taken for a sequence: of rows in no order, six are once in 720 times. */
#define RUN 6
/* Rows of one scan, growing; and their bytes. */
#define ROWS_FIRST 8
#define ROWS_MAX 64
#define BYTES_MAX ((size_t)128 << 10)
/* So many look-ups in a row after which nothing was opened are taken for somebody who only wants
 * attributes. */
#define LOOKUPS_MAX 16

struct key {
	size_t n;
	char p[LIMIT_KEY_BYTES];
};

struct stream {
	uint64_t dir; /* 0: none */
	uint64_t used;
	struct key last; /* read last */
	struct key end;  /* the documents up to here are among the recent ones */
	size_t run;      /* rows in order since it began, or since the last scan */
	size_t window;   /* rows of the last scan; 0: there was none */
	bool scanning;
};

struct ahead {
	atomic_int opens_expected; /* about: two threads may count as one */
	struct mutex lock;
	uint64_t clock; /* guarded by lock, as all below */
	struct stream streams[STREAMS];
};

struct ahead *ahead_new(void)
{
	struct ahead *a = calloc(1, sizeof(*a));
	if (a != NULL && mutex_init(&a->lock, RANK_AHEAD) != 0) {
		free(a);
		return NULL;
	}
	return a;
}

void ahead_free(struct ahead *a)
{
	if (a == NULL)
		return;
	mutex_destroy(&a->lock);
	free(a);
}

bool ahead_expects_open(struct ahead *a)
{
	int n = atomic_load_explicit(&a->opens_expected, memory_order_relaxed);
	if (n > 0)
		atomic_store_explicit(&a->opens_expected, n - 1, memory_order_relaxed);
	return n > 0;
}

void ahead_opened(struct ahead *a)
{
	int n = atomic_load_explicit(&a->opens_expected, memory_order_relaxed);
	if (n < LOOKUPS_MAX)
		atomic_store_explicit(&a->opens_expected, n + 2, memory_order_relaxed);
}

static struct span span_of_key(const struct key *k)
{
	return span_make(k->p, k->n);
}

static void set_key(struct key *k, struct span s)
{
	k->n = s.n;
	memcpy(k->p, s.p, s.n);
}

/* The one of this directory, or that of the one that was not read for longest. */
static struct stream *stream_of(struct ahead *a, uint64_t dir)
{
	struct stream *oldest = &a->streams[0];
	for (size_t i = 0; i < STREAMS; i++) {
		struct stream *s = &a->streams[i];
		if (s->dir == dir)
			return s;
		if (!s->scanning && (oldest->scanning || s->used < oldest->used))
			oldest = s;
	}
	return oldest;
}

/* Rows to read behind this one now; 0: none. */
static size_t follow(struct ahead *a, const struct item *row, struct stream **ret)
{
	lock_assert_held(&a->lock);
	struct stream *s = stream_of(a, row->parent);
	*ret = s;
	if (s->scanning)
		return 0;
	bool goes_on = s->dir == row->parent && span_cmp(row->key, span_of_key(&s->last)) > 0;
	s->dir = row->parent;
	s->used = ++a->clock;
	set_key(&s->last, row->key);
	s->run = goes_on ? s->run + 1 : 1;
	if (!goes_on)
		s->window = 0;
	if (s->window == 0)
		return s->run < RUN ? 0 : ROWS_FIRST;
	if (span_cmp(row->key, span_of_key(&s->end)) < 0)
		return 0;
	/* Who leaves most of them out is not reading in order. */
	if (s->run * 2 >= s->window)
		return s->window * 2 < ROWS_MAX ? s->window * 2 : ROWS_MAX;
	s->window = s->run = 0;
	return 0;
}

struct scan {
	struct fs *fs;
	size_t rows, n, bytes;
	struct key end;
};

static bool keep(void *arg, const struct item *it)
{
	struct scan *s = arg;
	struct item copy = { 0 };
	if (it->kind != ITEM_ROW || it->key.n > LIMIT_KEY_BYTES ||
		s->bytes + it->body.n > BYTES_MAX)
		return false;
	/* What is larger is passed over. */
	if (it->body.p != NULL) {
		if (item_copy(&copy, it) != ERR_OK)
			return false;
		contents_add(s->fs->contents, &copy);
		item_fini(&copy);
	}
	set_key(&s->end, it->key);
	s->bytes += it->body.n;
	return ++s->n < s->rows;
}

void ahead_read(struct fs *fs, const struct item *row)
{
	struct ahead *a = fs->ahead;
	struct stream *stream;
	if (row->kind != ITEM_ROW || row->key.n > LIMIT_KEY_BYTES)
		return;
	mutex_lock(&a->lock);
	struct scan s = { .fs = fs, .rows = follow(a, row, &stream) };
	stream->scanning = stream->scanning || s.rows > 0;
	mutex_unlock(&a->lock);
	if (s.rows == 0)
		return;
	(void)store_list(fs->store, NULL, row->parent, CLASS_KEYED, row->key, false,
		WANT_SMALL_BODY, keep, &s);
	mutex_lock(&a->lock);
	stream->window = s.n;
	stream->run = 0;
	set_key(&stream->end, span_of_key(&s.end));
	stream->scanning = false;
	mutex_unlock(&a->lock);
}
