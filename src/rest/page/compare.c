/* SPDX-License-Identifier: MIT
 * A table in two versions of the store, row by row, a part in each request:
 *
 *   before=N, after=N      numbers of snapshots; 0: what is there now
 *   from=KEY and row=KEY   goes on in this partition behind this row
 *   behind=KEY             goes on behind this partition; none of them: begins
 *
 * The response has the same members, if there may be more.  Both versions list their rows in the order of
 * keys, so one walk over both finds what differs.  A content has an id and a generation; rows that agree
 * in both are not read. */
#include "model/names.h"
#include "rest/page/page_key.h"
#include "service/view/views.h"
#include "store/store.h"

#include <string.h>

/* Rows and partitions in a request, and what it shows of them. */
#define PART_ITEMS 50000
#define PART_DIFFERENCES 100
#define PART_BYTES ((uint64_t)4 << 20)
#define CHUNK 500 /* rows between two calls of the store */

struct head {
	struct span key;
	uint64_t id, generation;
};

/* One version. */
struct side {
	struct view *snapshot;   /* NULL: now */
	struct store_view *view; /* of this request */
	uint64_t table;          /* 0: there is none in this version */
	uint64_t partition;      /* that is compared; 0: it has none of this key */
	struct page_key key;     /* of its next partition */
	struct head rows[CHUNK];
	size_t n;
};

struct compare {
	struct store *store;
	struct json_build *b;
	struct arena arena; /* the keys of a chunk */
	struct side sides[2];
	struct page_key partition, row; /* compared up to here */
	uint64_t looked, differences, bytes;
	bool is_full, out_of_memory;
};

/* ---- the versions ---- */

static enum err open_side(
	const struct page_ask *ask, const char *name, struct compare *c, struct side *side)
{
	struct item account = { 0 }, table = { 0 };
	char folded[LIMIT_TABLE_NAME_MAX];
	uint64_t number = 0;
	enum err e = page_number_read(ask, name, VIEW_NUMBER_MAX, &number);
	if (e == ERR_OK && number == 0)
		e = store_view_open(c->store, &side->view);
	else if (e == ERR_OK)
		e = snapshot_begin(service_views(ask->service), (uint32_t)number, &side->snapshot,
			&side->view);
	if (e != ERR_OK || ask->table.n > sizeof(folded))
		return e;
	table_name_fold(ask->table, folded);
	e = store_child(
		c->store, side->view, STORE_ROOT, CLASS_KEYED, ask->account, WANT_ATTRS, &account);
	if (e == ERR_OK)
		e = store_child(c->store, side->view, account.id, CLASS_KEYED,
			span_make(folded, ask->table.n), WANT_ATTRS, &table);
	side->table = e == ERR_OK ? table.id : 0;
	item_fini(&table);
	item_fini(&account);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static void close_side(struct compare *c, struct side *side)
{
	if (side->snapshot != NULL)
		view_end(side->snapshot);
	else
		store_view_close(c->store, side->view);
}

/* ---- partitions ---- */

static bool take_partition(void *arg, const struct item *it)
{
	struct side *side = arg;
	side->partition = it->id;
	page_key_set(&side->key, it->key);
	return false;
}

static enum err next_of_side(struct compare *c, struct side *side, bool inclusive)
{
	side->partition = 0;
	side->key.given = false;
	return side->table == 0 ? ERR_OK
				: store_list(c->store, side->view, side->table, CLASS_KEYED,
					  page_key_span(&c->partition), inclusive,
					  WANT_KEYS | WANT_FEW, take_partition, side);
}

/* Sets c->partition to the next one that either version has.  *ret_any: there was one. */
static enum err next_partition(struct compare *c, bool inclusive, bool *ret_any)
{
	struct side *a = &c->sides[0], *b = &c->sides[1];
	enum err e = next_of_side(c, a, inclusive);
	if (e == ERR_OK)
		e = next_of_side(c, b, inclusive);
	*ret_any = e == ERR_OK && (a->key.given || b->key.given);
	if (!*ret_any)
		return e;
	int order = !a->key.given ? 1
		: !b->key.given   ? -1
				  : span_cmp(page_key_span(&a->key), page_key_span(&b->key));
	const struct page_key *least = order <= 0 ? &a->key : &b->key;
	/* A row to go on behind is of the partition that the request named. */
	if (!inclusive || !span_eq(page_key_span(least), page_key_span(&c->partition)))
		c->row.given = false;
	c->partition = *least;
	if (order < 0)
		b->partition = 0;
	if (order > 0)
		a->partition = 0;
	return ERR_OK;
}

/* ---- rows ---- */

struct chunk {
	struct compare *c;
	struct side *side;
};

static bool take_row(void *arg, const struct item *it)
{
	struct chunk *chunk = arg;
	struct side *side = chunk->side;
	if (item_is_empty_row(it))
		return true;
	struct span key = arena_copy(&chunk->c->arena, it->key);
	if (key.p == NULL) {
		chunk->c->out_of_memory = true;
		return false;
	}
	side->rows[side->n++] = (struct head){ key, it->id, it->generation };
	return side->n < CHUNK;
}

static enum err read_chunk(struct compare *c, struct side *side)
{
	struct chunk chunk = { c, side };
	side->n = 0;
	if (side->partition == 0)
		return ERR_OK;
	enum err e = store_list(c->store, side->view, side->partition, CLASS_KEYED,
		page_key_span(&c->row), false, WANT_ATTRS, take_row, &chunk);
	return e == ERR_OK && c->out_of_memory ? ERR_NO_MEMORY : e;
}

static enum err add_version(
	struct compare *c, const struct side *side, const char *name, struct span key)
{
	struct item row = { 0 };
	enum err e = store_child(
		c->store, side->view, side->partition, CLASS_KEYED, key, WANT_BODY, &row);
	if (e == ERR_OK) {
		json_add_text(c->b, name, row.body);
		c->bytes += row.body.n;
	}
	item_fini(&row);
	return e;
}

static enum err add_difference(struct compare *c, struct span key, bool before, bool after)
{
	json_open_object(c->b, NULL);
	page_key_add(c->b, "partition_key", page_key_span(&c->partition));
	page_key_add(c->b, "row_key", key);
	enum err e = before ? add_version(c, &c->sides[0], "before", key) : ERR_OK;
	if (e == ERR_OK && after)
		e = add_version(c, &c->sides[1], "after", key);
	json_close(c->b);
	c->differences++;
	c->is_full = c->differences == PART_DIFFERENCES || c->bytes >= PART_BYTES;
	return e;
}

/* Compares the next rows of both sides by key.  Returns less than 0 if that of `a` is first, 0 if the keys
 * are the same.  A side without rows is last. */
static int order_of(const struct side *a, size_t i, const struct side *b, size_t k)
{
	if (i == a->n || k == b->n)
		return i < a->n ? -1 : 1;
	return span_cmp(a->rows[i].key, b->rows[k].key);
}

static bool is_same(const struct head *a, const struct head *b)
{
	return a->id == b->id && a->generation == b->generation;
}

/* Compares two chunks up to the end of the one that may go on.  *ret_ended: neither may. */
static enum err compare_chunks(struct compare *c, bool *ret_ended)
{
	struct side *a = &c->sides[0], *b = &c->sides[1];
	enum err e = ERR_OK;
	size_t i = 0, k = 0;
	bool more = false;
	while (e == ERR_OK && !c->is_full && !more && (i < a->n || k < b->n)) {
		int order = order_of(a, i, b, k);
		struct span key = order <= 0 ? a->rows[i].key : b->rows[k].key;
		if (order != 0 || !is_same(&a->rows[i], &b->rows[k]))
			e = add_difference(c, key, order <= 0, order >= 0);
		i += order <= 0;
		k += order >= 0;
		c->looked++;
		page_key_set(&c->row, key);
		more = i == CHUNK || k == CHUNK;
	}
	*ret_ended = !more && !c->is_full;
	return e;
}

static enum err compare_partition(struct compare *c)
{
	enum err e = ERR_OK;
	bool ended = false;
	while (e == ERR_OK && !ended && !c->is_full) {
		arena_reset(&c->arena);
		e = read_chunk(c, &c->sides[0]);
		if (e == ERR_OK)
			e = read_chunk(c, &c->sides[1]);
		if (e == ERR_OK)
			e = compare_chunks(c, &ended);
		c->is_full = c->is_full || c->looked >= PART_ITEMS;
	}
	if (ended) {
		c->row.given = false;
		c->looked++;
	}
	return e;
}

/* ---- a request ---- */

static enum err read_begin(const struct page_ask *ask, struct compare *c, bool *inclusive)
{
	enum err e = page_key_read(ask, "from", &c->partition);
	*inclusive = c->partition.given;
	if (e == ERR_OK && *inclusive)
		e = page_key_read(ask, "row", &c->row);
	else if (e == ERR_OK)
		e = page_key_read(ask, "behind", &c->partition);
	return e;
}

static enum err compare_part(struct compare *c, bool inclusive, bool *more)
{
	enum err e = next_partition(c, inclusive, more);
	while (e == ERR_OK && *more && !c->is_full) {
		e = compare_partition(c);
		if (e == ERR_OK && !c->is_full)
			e = next_partition(c, false, more);
	}
	return e;
}

static enum err compare_tables(const struct page_ask *ask, struct compare *c, bool *more)
{
	bool inclusive = false;
	enum err e = read_begin(ask, c, &inclusive);
	if (e == ERR_OK)
		e = open_side(ask, "before", c, &c->sides[0]);
	if (e == ERR_OK)
		e = open_side(ask, "after", c, &c->sides[1]);
	if (e == ERR_OK && c->sides[0].table == 0 && c->sides[1].table == 0)
		e = ERR_TABLE_NOT_FOUND;
	if (e == ERR_OK)
		e = compare_part(c, inclusive, more);
	close_side(c, &c->sides[0]);
	close_side(c, &c->sides[1]);
	return e;
}

enum err page_compare_add(const struct page_ask *ask, struct json_build *b)
{
	struct compare *c = arena_alloc(ask->arena, sizeof(*c));
	bool more = false;
	if (c == NULL)
		return ERR_NO_MEMORY;
	memset(c, 0, sizeof(*c));
	c->store = service_store(ask->service);
	c->b = b;
	json_open_array(b, "differences");
	enum err e = compare_tables(ask, c, &more);
	json_close(b);
	json_add_count(b, "looked_at", c->looked);
	if (e == ERR_OK && more) {
		page_key_add(b, c->row.given ? "from" : "behind", page_key_span(&c->partition));
		if (c->row.given)
			page_key_add(b, "row", page_key_span(&c->row));
	}
	arena_fini(&c->arena);
	return e;
}
