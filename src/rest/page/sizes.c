/* SPDX-License-Identifier: MIT
 * The rows of a table and their bytes, a part in each request: a store knows neither without reading.
 *
 *   from=KEY and row=KEY   goes on in this partition behind this row
 *   after=KEY              goes on behind this partition; none of them: begins
 *
 * The response has the same members, if there may be more. */
#include "rest/page/page_key.h"
#include "service/core/tables.h"
#include "store/store.h"

/* Partitions and rows in a request. */
#define PART_ITEMS 50000

struct count {
	uint64_t left; /* items that this request may still read */
	uint64_t partitions, rows, bytes;
	uint64_t id; /* of the partition being read */
	struct page_key partition, row;
};

static bool take_partition(void *arg, const struct item *it)
{
	struct count *c = arg;
	c->id = it->id;
	page_key_set(&c->partition, it->key);
	return false;
}

static bool count_row(void *arg, const struct item *it)
{
	struct count *c = arg;
	if (c->left == 0)
		return false;
	c->left--;
	c->rows += !item_is_empty_row(it);
	c->bytes += it->size;
	page_key_set(&c->row, it->key);
	return true;
}

/* Finds the next partition; c->id stays 0 behind the last one. */
static enum err next_partition(struct store *store, uint64_t table, bool inclusive, struct count *c)
{
	struct page_key begin = c->partition;
	c->id = 0;
	enum err e = store_list(store, NULL, table, CLASS_KEYED, page_key_span(&begin), inclusive,
		WANT_KEYS | WANT_FEW, take_partition, c);
	/* The row is of a partition that was removed meanwhile. */
	if (!span_eq(page_key_span(&begin), page_key_span(&c->partition)))
		c->row.given = false;
	return e;
}

static enum err count_partition(struct store *store, struct count *c)
{
	struct page_key begin = c->row;
	enum err e = store_list(store, NULL, c->id, CLASS_KEYED, page_key_span(&begin), false,
		WANT_ATTRS, count_row, c);
	if (e == ERR_OK && c->left > 0) { /* it was read to its end */
		c->left--;
		c->partitions++;
		c->row.given = false;
	}
	return e;
}

static enum err read_begin(const struct page_ask *ask, struct count *c, bool *inclusive)
{
	enum err e = page_key_read(ask, "from", &c->partition);
	*inclusive = c->partition.given;
	if (e == ERR_OK && *inclusive)
		e = page_key_read(ask, "row", &c->row);
	else if (e == ERR_OK)
		e = page_key_read(ask, "after", &c->partition);
	return e;
}

static enum err count_part(struct store *store, uint64_t table, bool inclusive, struct count *c)
{
	enum err e = next_partition(store, table, inclusive, c);
	while (e == ERR_OK && c->id != 0 && c->left > 0) {
		e = count_partition(store, c);
		if (e == ERR_OK && c->left > 0)
			e = next_partition(store, table, false, c);
	}
	return e;
}

enum err page_sizes_add(const struct page_ask *ask, struct json_build *b)
{
	struct item table = { 0 };
	struct count c = { .left = PART_ITEMS };
	bool inclusive = false;
	enum err e = table_find(ask->service, ask->account, ask->table, &table);
	if (e == ERR_OK)
		e = read_begin(ask, &c, &inclusive);
	if (e == ERR_OK)
		e = count_part(service_store(ask->service), table.id, inclusive, &c);
	json_add_count(b, "partitions", c.partitions);
	json_add_count(b, "rows", c.rows);
	json_add_count(b, "bytes", c.bytes);
	if (e == ERR_OK && c.id != 0) {
		page_key_add(b, c.row.given ? "from" : "after", page_key_span(&c.partition));
		if (c.row.given)
			page_key_add(b, "row", page_key_span(&c.row));
	}
	item_fini(&table);
	return e;
}
