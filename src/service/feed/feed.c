/* SPDX-License-Identifier: MIT
 * A page of lines is taken from the store first, and the rows are read after it, since no call into the
 * store is allowed while it lists. */
#include "service/feed/feed.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/text.h"
#include "codec/json_build.h"
#include "model/etag.h"
#include "model/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One page has so many lines of the reader, of so many that it looks at. */
#define PAGE_LINES 128
#define PAGE_LOOKS 8192
/* Lines of rows end the page beyond this. */
#define PAGE_BYTES ((size_t)1 << 20)

struct page {
	struct feed *feed;
	struct store_feed_line lines[PAGE_LINES];
	size_t n, looked;
	struct store_feed_position end;
	struct arena arena; /* keys of the lines */
	bool more, no_memory;
};

/* ---- positions ---- */

static int write_position(const struct store_feed_position *at, char out[FEED_POSITION_MAX])
{
	return snprintf(out, FEED_POSITION_MAX, "%" PRIu64 "-%" PRId64, at->number, at->version);
}

static enum err read_position(
	struct span text, struct store_feed_position *ret, struct err_detail *detail)
{
	const char *dash = text.n > 0 ? memchr(text.p, '-', text.n) : NULL;
	size_t n = dash != NULL ? (size_t)(dash - text.p) : 0;
	if (dash == NULL || !text_to_u64(span_make(text.p, n), &ret->number) ||
		!text_to_i64(span_make(dash + 1, text.n - n - 1), &ret->version) ||
		ret->number > INT64_MAX)
		return err_set(detail, ERR_INVALID_INPUT,
			"A position is a text such as 17-638993404800000000, from an earlier line.");
	return ERR_OK;
}

/* ---- taking a page ---- */

static bool is_wanted(const struct feed *f, const struct store_feed_line *l)
{
	return l->kind != STORE_FEED_BEGIN && l->table == f->table_id &&
		(f->pk.p == NULL || span_eq(l->pk, f->pk));
}

static struct span key_of(struct page *p, struct span order)
{
	if (order.p == NULL)
		return order;
	char *key = arena_alloc(&p->arena, order.n + 1);
	p->no_memory = p->no_memory || key == NULL;
	if (key == NULL)
		return (struct span){ NULL, 0 };
	memcpy(key, order.p, order.n);
	return span_make(key, order.n);
}

static bool on_line(void *arg, const struct store_feed_line *l)
{
	struct page *p = arg;
	p->more = p->n == PAGE_LINES || p->looked == PAGE_LOOKS;
	if (p->more)
		return false;
	p->looked++;
	p->end = l->at;
	if (is_wanted(p->feed, l)) {
		struct store_feed_line *to = &p->lines[p->n++];
		*to = *l;
		to->pk = key_of(p, l->pk);
		to->rk = key_of(p, l->rk);
	}
	return !p->no_memory;
}

/* ---- lines ---- */

static enum err load_row(struct feed *f, const struct store_feed_line *l, struct item *ret)
{
	struct store *store = service_store(f->service);
	struct item partition = { 0 };
	enum err e =
		store_child(store, NULL, f->table_id, CLASS_KEYED, l->pk, WANT_ATTRS, &partition);
	if (e == ERR_OK)
		e = store_child(store, NULL, partition.id, CLASS_KEYED, l->rk, WANT_BODY, ret);
	item_fini(&partition);
	return e;
}

static void add_key(struct json_build *b, const char *name, struct span order)
{
	char key[LIMIT_KEY_BYTES];
	if (order.p == NULL)
		return;
	key_from_order(order.p, order.n, key);
	json_add_text(b, name, span_make(key, order.n));
}

static void write_head(const char *position, const char *kind, struct json_build *b)
{
	json_begin(b);
	json_add_str(b, "position", position);
	json_add_str(b, "kind", kind);
}

static enum err add_row(struct feed *f, const struct store_feed_line *l, struct buf *out)
{
	struct item row = { 0 };
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	enum err e = load_row(f, l, &row);
	out->data[--out->len] = 0; /* the brace */
	buf_add_str(out, ",\"row\":");
	if (e == ERR_OK && row.kind == ITEM_ROW && row.version == l->at.version) {
		key_from_order(l->pk.p, l->pk.n, pk);
		key_from_order(l->rk.p, l->rk.n, rk);
		e = row_line_write(&f->row, &row, span_make(pk, l->pk.n), span_make(rk, l->rk.n),
			ROW_LINE_STREAM, out);
	} else {
		buf_add_str(out, "null");
	}
	buf_add_char(out, '}');
	item_fini(&row);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err write_line(struct feed *f, const struct store_feed_line *l, struct buf *out)
{
	struct json_build b;
	char time[CLOCK_TEXT_MAX], etag[ETAG_MAX];
	bool put = l->kind == STORE_FEED_PUT, row = put && l->rk.p != NULL;
	enum err e = ERR_OK;
	char position[FEED_POSITION_MAX];
	(void)write_position(&l->at, position);
	write_head(position, put ? "put" : "delete", &b);
	add_key(&b, "PartitionKey", l->pk);
	add_key(&b, "RowKey", l->rk);
	json_add_text(&b, "time", span_make(time, (size_t)clock_format(l->at.version, time)));
	if (row)
		json_add_text(
			&b, "etag", span_make(etag, (size_t)etag_format(l->at.version, etag)));
	json_end(&b, out);
	if (row && f->with_rows && buf_ok(out))
		e = add_row(f, l, out);
	buf_add_char(out, '\n');
	return e == ERR_OK ? buf_full(out) : e;
}

/* ---- readers ---- */

static enum err check_table(struct feed *f)
{
	struct item table = { 0 };
	enum err e = store_get(service_store(f->service), NULL, f->table_id, WANT_ATTRS, &table);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && table.kind != ITEM_TABLE))
		e = ERR_TABLE_NOT_FOUND;
	item_fini(&table);
	return e;
}

static enum err take_page(struct feed *f, struct page *p)
{
	p->end = f->at;
	enum err e =
		store_feed_read(service_store(f->service), f->started ? &f->at : NULL, on_line, p);
	return e == ERR_OK && p->no_memory ? ERR_NO_MEMORY : e;
}

enum err feed_read(struct feed *f, struct buf *out, bool *ret_more, struct err_detail *detail)
{
	struct page p = { .feed = f };
	size_t before = out->len, i = 0;
	*ret_more = false;
	enum err e = store_feed_keep(service_store(f->service), service_now(f->service), detail);
	if (e == ERR_OK)
		e = check_table(f);
	if (e == ERR_OK)
		e = take_page(f, &p);
	while (e == ERR_OK && i < p.n && out->len - before < PAGE_BYTES)
		e = write_line(f, &p.lines[i++], out);
	if (e == ERR_OK) {
		*ret_more = p.more || i < p.n;
		f->at = i < p.n ? p.lines[i - 1].at : p.end;
		f->started = true;
		f->passed = i > 0 ? p.looked - i : f->passed + p.looked;
	} else {
		buf_resize(out, before);
	}
	arena_fini(&p.arena);
	return e;
}

/* To the end of what is there. */
static enum err skip_all(struct feed *f)
{
	enum err e = ERR_OK;
	bool more = true;
	while (e == ERR_OK && more) {
		struct page p = { .feed = f };
		e = take_page(f, &p);
		arena_fini(&p.arena);
		f->at = p.end;
		f->started = true;
		more = p.more;
	}
	return e;
}

enum err feed_open(struct service *s, uint64_t table_id, struct span pk, enum feed_start start,
	struct span position, bool with_rows, struct feed *ret, struct err_detail *detail)
{
	*ret = (struct feed){ .service = s, .table_id = table_id, .with_rows = with_rows };
	if (pk.p != NULL && pk.n <= sizeof(ret->key)) {
		memcpy(ret->key, pk.p, pk.n);
		ret->pk = span_make(ret->key, pk.n);
	}
	if (start == FEED_START_POSITION) {
		enum err e = read_position(position, &ret->at, detail);
		if (e != ERR_OK)
			return e;
		ret->started = true;
	}
	enum err e = store_feed_keep(service_store(s), service_now(s), detail);
	if (e == ERR_OK && start == FEED_START_NOW)
		e = skip_all(ret);
	return e;
}

void feed_close(struct feed *f)
{
	row_line_fini(&f->row);
}

int feed_position(const struct feed *f, char out[FEED_POSITION_MAX])
{
	return write_position(&f->at, out);
}

void feed_write_position(const char *position, struct buf *out)
{
	struct json_build b;
	write_head(position, "position", &b);
	json_end(&b, out);
	buf_add_char(out, '\n');
}
