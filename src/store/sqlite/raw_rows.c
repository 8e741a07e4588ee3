/* SPDX-License-Identifier: MIT
 * The formats are SQLite's (fileformat2.html): pages of b-trees, cells, chains of long records,
 * records.  Every offset, length and page number is looked at before it is followed; no page is
 * followed twice, so that no loop in a damaged tree has no end. */
#include "store/sqlite/raw_rows.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 20 /* as SQLite's */
#define RECORD_MAX ((size_t)16 << 20)
/* The first byte of a page in a chain is that of a page number: in so large a file it can look
 * like the type of a page of a tree. */
#define CHAINS_ARE_PLAIN 0x02000000u
#define PROGRESS_PAGES 256

enum page_type {
	INDEX_INNER = 0x02,
	TABLE_INNER = 0x05,
	INDEX_LEAF = 0x0a,
	TABLE_LEAF = 0x0d,
};

/* The schema makes them in this order in a new file, and nothing moves them.  In a file with pointer
 * maps the first one stands before them. */
static const uint32_t
	roots[RAW_TABLES] = { [RAW_ITEM] = 2, [RAW_OBJ] = 3, [RAW_CHUNK] = 4, [RAW_META] = 5 };

struct reader {
	struct raw_pages *p;
	raw_row_fn fn;
	raw_progress_fn progress;
	void *arg;
	struct raw_result *result;
	enum err error;
	uint64_t done;
	bool doubtful;
	unsigned char *mem; /* a record that goes over several pages */
	unsigned char pages[DEPTH_MAX][PAGE_BYTES];
};

static size_t varint(const unsigned char *p, const unsigned char *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (size_t i = 0; i < 9 && p + i < end; i++) {
		if (i == 8) {
			*ret = v << 8 | p[i];
			return 9;
		}
		v = v << 7 | (p[i] & 0x7f);
		if (!(p[i] & 0x80)) {
			*ret = v;
			return i + 1;
		}
	}
	return 0;
}

/* ---- records ---- */

static size_t size_of(uint64_t type)
{
	static const uint8_t sizes[] = { 0, 1, 2, 3, 4, 6, 8, 8, 0, 0 };
	if (type < sizeof(sizes))
		return sizes[type];
	return type >= 12 && type < 2 * RECORD_MAX ? (size_t)(type - 12) / 2 : RECORD_MAX;
}

static int64_t integer(const unsigned char *p, size_t n)
{
	uint64_t v = n > 0 && p[0] & 0x80 ? UINT64_MAX : 0;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return (int64_t)v;
}

static struct raw_value value(uint64_t type, const unsigned char *p, size_t n)
{
	if (type >= 12)
		return (struct raw_value){ .type = RAW_BYTES, .s = span_make(p, n) };
	if (type == 8 || type == 9)
		return (struct raw_value){ .type = RAW_INT, .i = type == 9 };
	if (type >= 1 && type <= 6)
		return (struct raw_value){ .type = RAW_INT, .i = integer(p, n) };
	return (struct raw_value){ .type = type == 0 ? RAW_NULL : RAW_OTHER };
}

/* n: bytes that there are, of `whole`.  The number of columns; 0: it is no record. */
static size_t decode(const unsigned char *p, size_t n, uint64_t whole, struct raw_row *row)
{
	uint64_t head = 0, type = 0;
	size_t at = varint(p, p + n, &head), columns = 0;
	if (at == 0 || head > n || head < at)
		return 0;
	uint64_t data = head;
	row->whole = true;
	while (at < head) {
		size_t used = varint(p + at, p + head, &type);
		if (used == 0 || columns == RAW_COLUMNS)
			return 0;
		at += used;
		size_t size = size_of(type);
		if (!row->whole || data + size > whole)
			return 0;
		row->whole = data + size <= n;
		row->v[columns++] = row->whole ? value(type, p + data, size)
					       : (struct raw_value){ .type = RAW_NULL };
		data += size;
	}
	return columns;
}

static bool is(const struct raw_row *row, size_t column, enum raw_type type)
{
	return row->v[column].type == type;
}

static bool is_or_null(const struct raw_row *row, size_t column, enum raw_type type)
{
	return is(row, column, type) || is(row, column, RAW_NULL);
}

static bool is_item(const struct raw_row *row)
{
	for (size_t i = 0; i < 6; i++)
		if (!is(row, i, i == 2 ? RAW_BYTES : RAW_INT))
			return false;
	for (size_t i = 6; i < 9; i++)
		if (!is_or_null(row, i, RAW_INT))
			return false;
	return is_or_null(row, 9, RAW_BYTES) && is_or_null(row, 10, RAW_BYTES) && row->whole;
}

/* Of which table it is; RAW_TABLES: of none. */
static enum raw_table table_of(const struct raw_row *row, size_t columns, bool has_rowid)
{
	if (has_rowid)
		return columns == 5 && is(row, 0, RAW_NULL) && is(row, 1, RAW_INT) &&
				is(row, 2, RAW_INT) && is(row, 3, RAW_BYTES) &&
				is_or_null(row, 4, RAW_BYTES)
			? RAW_OBJ
			: RAW_TABLES;
	if (columns == 11 && is_item(row))
		return RAW_ITEM;
	if (columns == 3 && is(row, 0, RAW_INT) && is(row, 1, RAW_INT) && is(row, 2, RAW_BYTES))
		return RAW_CHUNK;
	return columns == 2 && is(row, 0, RAW_BYTES) && is(row, 1, RAW_INT) ? RAW_META : RAW_TABLES;
}

/* ---- cells ---- */

/* Bytes of a record that stand in its cell. */
static size_t local_size(uint64_t size, size_t usable, bool has_rowid)
{
	size_t most = has_rowid ? usable - 35 : (usable - 12) * 64 / 255 - 23;
	size_t least = (usable - 12) * 32 / 255 - 23;
	if (size <= most)
		return (size_t)size;
	size_t local = least + (size_t)((size - least) % (usable - 4));
	return local <= most ? local : least;
}

/* Goes on behind the n bytes that r->mem has; how many there are then. */
static size_t follow(struct reader *r, uint32_t next, size_t n, size_t size)
{
	unsigned char page[PAGE_BYTES];
	while (n < size) {
		if (!raw_page(r->p, next, page) || r->p->mark[next] != RAW_UNSEEN)
			break;
		r->p->mark[next] = RAW_SEEN;
		size_t part = size - n < r->p->usable - 4 ? size - n : r->p->usable - 4;
		memcpy(r->mem + n, page + 4, part);
		n += part;
		next = raw_u32(page);
	}
	return n;
}

static void tell(struct reader *r, const unsigned char *p, size_t n, uint64_t size, bool has_rowid,
	uint64_t rowid, enum raw_table wanted)
{
	struct raw_row row = { .doubtful = r->doubtful, .rowid = (int64_t)rowid };
	size_t columns = decode(p, n, size, &row);
	row.table = columns == 0 ? RAW_TABLES : table_of(&row, columns, has_rowid);
	if (row.table == RAW_TABLES || (wanted != RAW_TABLES && row.table != wanted)) {
		r->result->broken++;
		return;
	}
	/* Its tree is whole and did not lead here. */
	if (r->doubtful && !r->result->damaged[row.table])
		return;
	if (!r->fn(r->arg, &row))
		r->error = ERR_CANCELLED;
}

/* The record at p, which ends before end; wanted: of this table, RAW_TABLES: of any. */
static void read_cell(struct reader *r, const unsigned char *p, const unsigned char *end,
	bool has_rowid, enum raw_table wanted)
{
	uint64_t size = 0, rowid = 0;
	size_t used = varint(p, end, &size);
	p += used;
	size_t used_too = used > 0 && has_rowid ? varint(p, end, &rowid) : used;
	p += has_rowid ? used_too : 0;
	size_t local = local_size(size, r->p->usable, has_rowid);
	size_t link = local < size ? 4 : 0;
	if (used == 0 || used_too == 0 || size > RECORD_MAX || (size_t)(end - p) < local + link) {
		r->result->broken++;
		return;
	}
	if (link == 0) {
		tell(r, p, local, size, has_rowid, rowid, wanted);
		return;
	}
	memcpy(r->mem, p, local);
	size_t n = follow(r, raw_u32(p + local), local, (size_t)size);
	tell(r, r->mem, n, size, has_rowid, rowid, wanted);
}

/* ---- pages ---- */

static void count_page(struct reader *r)
{
	if (++r->done % PROGRESS_PAGES == 0 && r->progress != NULL &&
		!r->progress(r->arg, r->done, r->p->should))
		r->error = ERR_CANCELLED;
}

static bool is_inner(unsigned char type)
{
	return type == INDEX_INNER || type == TABLE_INNER;
}

static size_t cells_at(unsigned char type)
{
	return is_inner(type) ? 12 : 8;
}

/* How many; no more than have their places on the page. */
static size_t cells(const struct reader *r, const unsigned char *page)
{
	size_t n = raw_u16(page + 3), most = (r->p->usable - cells_at(page[0])) / 2;
	return n < most ? n : most;
}

/* NULL: it is not on the page. */
static const unsigned char *cell_at(const struct reader *r, const unsigned char *page, size_t i)
{
	size_t at = raw_u16(page + cells_at(page[0]) + 2 * i);
	size_t least = cells_at(page[0]) + 2 * cells(r, page);
	return at >= least && at + 4 <= r->p->usable ? page + at : NULL;
}

static void read_record(
	struct reader *r, const unsigned char *page, size_t i, enum raw_table wanted)
{
	const unsigned char *cell = cell_at(r, page, i);
	if (page[0] == TABLE_INNER)
		return;
	if (cell == NULL)
		r->result->broken++;
	else
		read_cell(r, cell + (page[0] == INDEX_INNER ? 4 : 0), page + r->p->usable,
			page[0] == TABLE_LEAF, wanted);
}

static bool is_of(unsigned char type, enum raw_table table)
{
	if (table == RAW_OBJ)
		return type == TABLE_LEAF || type == TABLE_INNER;
	return type == INDEX_LEAF || type == INDEX_INNER;
}

/* The page of a tree with this number, into r->pages[depth]; NULL, which damages the tree. */
static const unsigned char *tree_page(
	struct reader *r, uint32_t number, enum raw_table table, unsigned depth)
{
	unsigned char *page = depth < DEPTH_MAX ? r->pages[depth] : NULL;
	if (page == NULL || !raw_page(r->p, number, page) || r->p->mark[number] != RAW_UNSEEN ||
		!is_of(page[0], table)) {
		r->result->damaged[table] = true;
		return NULL;
	}
	r->p->mark[number] = RAW_SEEN;
	count_page(r);
	return page;
}

/* As deep as SQLite's trees can be: DEPTH_MAX. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void read_tree(struct reader *r, uint32_t number, enum raw_table table, unsigned depth)
{
	const unsigned char *page = tree_page(r, number, table, depth);
	if (page == NULL)
		return;
	bool inner = is_inner(page[0]);
	for (size_t i = 0; i < cells(r, page) && r->error == ERR_OK; i++) {
		const unsigned char *cell = cell_at(r, page, i);
		if (inner && cell == NULL)
			r->result->damaged[table] = true;
		else if (inner)
			read_tree(r, raw_u32(cell), table, depth + 1);
		if (r->error == ERR_OK)
			read_record(r, page, i, table);
	}
	if (inner && r->error == ERR_OK)
		read_tree(r, raw_u32(page + 8), table, depth + 1);
}

/* The pages that no tree led to.  Where the trees are whole they are over. */
static void read_rest(struct reader *r)
{
	unsigned char *page = r->pages[0];
	r->doubtful = !r->p->free_known || r->p->n >= CHAINS_ARE_PLAIN;
	for (uint32_t number = 1; number <= r->p->n && r->error == ERR_OK; number++) {
		bool map = r->p->mark[number] == RAW_MAP;
		if ((r->p->mark[number] != RAW_UNSEEN && !map) || number == RAW_LOCKED_PAGE)
			continue;
		count_page(r);
		if (!raw_page(r->p, number, page)) {
			r->result->lost++;
			continue;
		}
		if (map)
			continue;
		if (page[0] != INDEX_LEAF && page[0] != INDEX_INNER && page[0] != TABLE_LEAF)
			continue;
		for (size_t i = 0; i < cells(r, page) && r->error == ERR_OK; i++)
			read_record(r, page, i, RAW_TABLES);
	}
}

enum err raw_rows(struct raw_pages *p, raw_row_fn fn, raw_progress_fn progress, void *arg,
	struct raw_result *ret)
{
	struct reader *r = calloc(1, sizeof(*r));
	*ret = (struct raw_result){ .pages = p->should, .lost = p->should - p->n };
	if (r == NULL || (r->mem = malloc(RECORD_MAX)) == NULL) {
		free(r);
		return ERR_NO_MEMORY;
	}
	r->p = p;
	r->fn = fn;
	r->progress = progress;
	r->arg = arg;
	r->result = ret;
	for (unsigned t = 0; t < RAW_TABLES && r->error == ERR_OK; t++)
		read_tree(r, roots[t] + p->has_maps, (enum raw_table)t, 0);
	if (r->error == ERR_OK)
		read_rest(r);
	enum err e = r->error;
	free(r->mem);
	free(r);
	return e;
}
