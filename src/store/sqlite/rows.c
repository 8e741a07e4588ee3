/* SPDX-License-Identifier: MIT
 * Items as SQLite rows, and every way to read them.  What has its default is NULL in the
 * file; the five attributes that chmod, chown and utimensat leave are one packed column
 * (little endian), since a row that came by REST or import has none of them. */
#include "store/sqlite/rows.h"

#include "store/rules.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* A caller that asks by place knows the place and sets it: a listing has less to read. */
enum {
	COL_ID,
	COL_KEY,
	COL_KIND,
	COL_VERSION, /* from here on not with WANT_KEYS */
	COL_GENERATION,
	COL_SIZE,
	COL_FLAGS,
	COL_ATTRS,
	COL_NAME,
	COL_BODY, /* by place */
	COL_PARENT = COL_BODY,
	COL_CLASS,
	COL_BODY_BY_ID
};

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, int64_t v)
{
	uint64_t u = htole64((uint64_t)v);
	memcpy(p, &u, 8);
}

static uint32_t get32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return le32toh(v);
}

static int64_t get64(const char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return (int64_t)le64toh(v);
}

static bool attrs_are_unset(const struct attrs *a)
{
	return a->mode == MODE_UNSET && a->uid == OWNER_UNSET && a->gid == OWNER_UNSET &&
		a->mtime_ns == TIME_UNSET && a->ctime_ns == TIME_UNSET &&
		a->if_match == MATCH_UNSET;
}

/* Returns the length. */
static int pack_attrs(const struct attrs *a, uint8_t out[SQL_ATTRS_BYTES])
{
	put32(out, a->mode);
	put32(out + 4, a->uid);
	put32(out + 8, a->gid);
	put64(out + 12, a->mtime_ns);
	put64(out + 20, a->ctime_ns);
	put64(out + 28, a->if_match);
	return a->if_match == MATCH_UNSET ? SQL_ATTRS_PLAIN : SQL_ATTRS_BYTES;
}

static struct attrs attrs_of(sqlite3_stmt *st)
{
	struct attrs a = ATTRS_UNSET;
	if (sqlite3_column_type(st, COL_ATTRS) == SQLITE_NULL)
		return a;
	struct span s = sql_column_span(st, COL_ATTRS);
	if (s.n != SQL_ATTRS_PLAIN && s.n != SQL_ATTRS_BYTES)
		return a;
	a.mode = get32(s.p);
	a.uid = get32(s.p + 4);
	a.gid = get32(s.p + 8);
	a.mtime_ns = get64(s.p + 12);
	a.ctime_ns = get64(s.p + 20);
	if (s.n == SQL_ATTRS_BYTES)
		a.if_match = get64(s.p + 28);
	return a;
}

static bool looks_changed(const struct item *it)
{
	return it->kind == ITEM_ROW ? it->generation > 1 : it->kind == ITEM_FILE && it->size > 0;
}

/* Of a row or file.  None is kept of one that nobody has changed, and of one that a rowfs that
 * kept none has changed. */
static int64_t born_of(sqlite3_stmt *st, const struct item *it)
{
	struct span s = sql_column_span(st, COL_NAME);
	if (s.n == SQL_BORN_BYTES)
		return get64(s.p);
	return looks_changed(it) ? 0 : it->version;
}

/* Borrows from the statement; body: its column, if it is asked for. */
static void item_of(sqlite3_stmt *st, unsigned want, uint64_t parent, enum item_class class,
	int body, struct item *it)
{
	*it = (struct item){
		.id = (uint64_t)sqlite3_column_int64(st, COL_ID),
		.parent = parent,
		.class = class,
		.kind = (enum item_kind)sqlite3_column_int(st, COL_KIND),
		.version = sqlite3_column_int64(st, COL_VERSION),
		.generation = (uint64_t)sqlite3_column_int64(st, COL_GENERATION),
		.size = (uint64_t)sqlite3_column_int64(st, COL_SIZE),
		.flags = (uint32_t)sqlite3_column_int64(st, COL_FLAGS),
		.attrs = attrs_of(st),
		.key = sql_column_span(st, COL_KEY),
		.name = SPAN_LIT(""),
	};
	if (it->kind == ITEM_TABLE)
		it->name = sql_column_span(st, COL_NAME);
	else if (!item_is_dir(it->kind))
		it->born = born_of(st, it);
	if (rules_wants_body(want, it))
		it->body = sql_column_span(st, body);
}

static void item_of_keys(sqlite3_stmt *st, uint64_t parent, enum item_class class, struct item *it)
{
	*it = (struct item){
		.id = (uint64_t)sqlite3_column_int64(st, COL_ID),
		.parent = parent,
		.class = class,
		.kind = (enum item_kind)sqlite3_column_int(st, COL_KIND),
		.attrs = ATTRS_UNSET,
		.key = sql_column_span(st, COL_KEY),
		.name = SPAN_LIT(""),
	};
}

static void bind_place(sqlite3_stmt *st, uint64_t parent, enum item_class class, struct span key)
{
	(void)sqlite3_bind_int64(st, 1, (int64_t)parent);
	(void)sqlite3_bind_int(st, 2, (int)class);
	sql_bind_span(st, 3, key);
}

static void bind_or_null(sqlite3_stmt *st, int at, int64_t v)
{
	if (v)
		(void)sqlite3_bind_int64(st, at, v);
	else
		(void)sqlite3_bind_null(st, at);
}

void sql_bind_item(sqlite3_stmt *st, const struct item *it, uint8_t mem[SQL_BOUND_BYTES])
{
	bind_place(st, it->parent, it->class, it->key);
	(void)sqlite3_bind_int64(st, 4, (int64_t)it->id);
	(void)sqlite3_bind_int(st, 5, (int)it->kind);
	(void)sqlite3_bind_int64(st, 6, it->version);
	bind_or_null(st, 7, it->generation);
	bind_or_null(st, 8, (int64_t)it->size);
	bind_or_null(st, 9, it->flags);
	if (attrs_are_unset(&it->attrs)) {
		(void)sqlite3_bind_null(st, 10);
	} else {
		int n = pack_attrs(&it->attrs, mem);
		(void)sqlite3_bind_blob(st, 10, mem, n, SQLITE_STATIC);
	}
	if (it->born != 0 && (it->born != it->version || looks_changed(it))) {
		put64(mem + SQL_ATTRS_BYTES, it->born);
		(void)sqlite3_bind_blob(
			st, 11, mem + SQL_ATTRS_BYTES, SQL_BORN_BYTES, SQLITE_STATIC);
	} else if (it->name.n) {
		sql_bind_span(st, 11, it->name);
	} else {
		(void)sqlite3_bind_null(st, 11);
	}
}

/* What the statement, which stands at its row, has; it is reset. */
static enum err take_one(sqlite3_stmt *st, const struct item *it, struct item *ret)
{
	enum err e = item_copy(ret, it);
	(void)sqlite3_reset(st);
	return e;
}

static enum err first_with_id(
	struct sql_conn *c, uint64_t id, enum sql_stmt which, sqlite3_stmt **ret)
{
	enum err e = sql_prepare(c, which, ret);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(
		*ret, 1, which == SQL_GET_BY_SEARCH ? (int64_t)id : sql_obj_id(id));
	return sql_first(c, *ret);
}

/* ---- what is removed ---- */

static enum err look_for_removed(struct sql_conn *c)
{
	sqlite3_stmt *st;
	if (c->has_removed != SQL_UNKNOWN)
		return ERR_OK;
	/* All that this moment shows was reclaimed before it, or would have been begun by now. */
	if (!c->removals || atomic_load(&c->removals->begun) == c->ended) {
		c->has_removed = SQL_NO;
		return ERR_OK;
	}
	enum err e = sql_prepare(c, SQL_FIRST_REMOVED, &st);
	if (e == ERR_OK)
		e = sql_first(c, st);
	if (e == ERR_OK)
		(void)sqlite3_reset(st);
	else if (e != ERR_NOT_FOUND)
		return e;
	c->has_removed = e == ERR_OK ? SQL_YES : SQL_NO;
	return ERR_OK;
}

enum err sql_stands(struct sql_conn *c, uint64_t id)
{
	sqlite3_stmt *st;
	enum err e = look_for_removed(c);
	if (e != ERR_OK || c->has_removed == SQL_NO || c->stands == id)
		return e;
	e = sql_prepare(c, SQL_IS_REMOVED, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, sql_obj_id(id));
	e = sql_first(c, st);
	if (e == ERR_OK) {
		(void)sqlite3_reset(st);
		return ERR_NOT_FOUND;
	}
	if (e != ERR_NOT_FOUND)
		return e;
	c->stands = id;
	return ERR_OK;
}

/* Of what was read: where it does not stand it is not found. */
static enum err if_it_stands(struct sql_conn *c, enum err e, struct item *it)
{
	if (e == ERR_OK)
		e = sql_stands(c, it->parent != 0 ? it->parent : it->id);
	else
		return e;
	if (e != ERR_OK)
		item_fini(it);
	return e;
}

enum err sql_get_any(struct sql_conn *c, uint64_t id, unsigned want, struct item *ret)
{
	sqlite3_stmt *st;
	enum err e = first_with_id(c, id, want & WANT_BODY ? SQL_GET_BODY : SQL_GET, &st);
	/* The document row is damaged, but all else stands with the item: for that a long search is
	 * better than none. */
	if (e == ERR_CORRUPT && !(want & WANT_BODY))
		e = first_with_id(c, id, SQL_GET_BY_SEARCH, &st);
	if (e != ERR_OK)
		return e;
	struct item it;
	item_of(st, want & WANT_BODY, (uint64_t)sqlite3_column_int64(st, COL_PARENT),
		(enum item_class)sqlite3_column_int(st, COL_CLASS), COL_BODY_BY_ID, &it);
	if (it.id == id)
		return take_one(st, &it, ret);
	(void)sqlite3_reset(st);
	return ERR_NOT_FOUND;
}

enum err sql_get(struct sql_conn *c, uint64_t id, unsigned want, struct item *ret)
{
	return if_it_stands(c, sql_get_any(c, id, want, ret), ret);
}

enum err sql_first_child(struct sql_conn *c, uint64_t parent, struct item *ret)
{
	sqlite3_stmt *st;
	struct item it;
	enum err e = sql_prepare(c, SQL_FIRST_CHILD, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, (int64_t)parent);
	e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	item_of(st, WANT_ATTRS, parent, (enum item_class)sqlite3_column_int(st, COL_CLASS),
		COL_BODY_BY_ID, &it);
	return take_one(st, &it, ret);
}

enum err sql_child(struct sql_conn *c, uint64_t parent, enum item_class class, struct span key,
	unsigned want, struct item *ret)
{
	if (parent == 0)
		return ERR_NOT_FOUND; /* where the fixed items are kept */
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, want & WANT_BODIES ? SQL_CHILD_BODY : SQL_CHILD, &st);
	if (e != ERR_OK)
		return e;
	bind_place(st, parent, class, key);
	e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	struct item it;
	item_of(st, want, parent, class, COL_BODY, &it);
	return if_it_stands(c, take_one(st, &it, ret), ret);
}

static enum sql_stmt list_stmt(unsigned want, bool inclusive)
{
	if (want & WANT_BODIES)
		return inclusive ? SQL_LIST_GE_BODY : SQL_LIST_GT_BODY;
	if (want & WANT_KEYS)
		return inclusive ? SQL_LIST_GE_KEYS : SQL_LIST_GT_KEYS;
	return inclusive ? SQL_LIST_GE : SQL_LIST_GT;
}

static enum err list_by(struct sql_conn *c, enum sql_stmt which, uint64_t parent,
	enum item_class class, struct span after, unsigned want, store_list_fn fn, void *arg,
	bool *ret_more)
{
	*ret_more = false;
	if (parent == 0)
		return ERR_OK;
	bool keys = want == WANT_KEYS;
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, which, &st);
	if (e != ERR_OK)
		return e;
	bind_place(st, parent, class, after);
	int rc = SQLITE_ROW;
	bool go_on = true;
	unsigned n = 0;
	c->skipped = 0;
	for (; go_on && n + c->skipped < SQL_LIST_MAX && (rc = sqlite3_step(st)) == SQLITE_ROW;
		n++) {
		struct item it;
		if (n == 0 && (e = sql_stands(c, parent)) != ERR_OK)
			break;
		if (keys)
			item_of_keys(st, parent, class, &it);
		else
			item_of(st, want, parent, class, COL_BODY, &it);
		it.flags &= ITEM_FLAGS_PUBLIC;
		go_on = fn(arg, &it);
	}
	*ret_more = e == ERR_OK && go_on && rc == SQLITE_ROW;
	if (e == ERR_OK)
		e = sql_error(c->db, rc);
	(void)sqlite3_reset(st);
	return e == ERR_NOT_FOUND ? ERR_OK : e; /* it has no children */
}

enum err sql_list(struct sql_conn *c, uint64_t parent, enum item_class class, struct span after,
	bool inclusive, unsigned want, store_list_fn fn, void *arg, bool *ret_more)
{
	return list_by(c, list_stmt(want, inclusive || !after.p), parent, class, after, want, fn,
		arg, ret_more);
}

enum err sql_scan(struct sql_conn *c, uint64_t parent, enum item_class class, struct span after,
	bool inclusive, store_skip_fn skip, store_list_fn fn, void *arg, bool *ret_more)
{
	c->skip = skip;
	c->skip_arg = arg;
	enum err e = list_by(c, inclusive || !after.p ? SQL_SCAN_GE : SQL_SCAN_GT, parent, class,
		after, WANT_BODY, fn, arg, ret_more);
	c->skip = NULL;
	return e;
}

/* Copies what a piece, or the document row, holds of [offset, offset + n). */
static void take_piece(sqlite3_stmt *st, uint64_t offset, char *out, size_t n)
{
	bool piece = sqlite3_column_type(st, 2) != SQLITE_NULL;
	uint64_t at = piece ? (uint64_t)sqlite3_column_int64(st, 2) * SQL_CHUNK : 0;
	struct span data = sql_column_span(st, piece ? 3 : 4);
	uint64_t from = at > offset ? at : offset;
	uint64_t to = at + data.n < offset + n ? at + data.n : offset + n;
	if (from < to)
		memcpy(out + (from - offset), data.p + (from - at), to - from);
}

/* Bytes to give of a file of this size; a negative offset in 64 bits is behind any end. */
static size_t readable(uint64_t size, uint64_t offset, size_t n)
{
	if (offset >= size)
		return 0;
	return size - offset < n ? (size_t)(size - offset) : n;
}

enum err sql_file_read(
	struct sql_conn *c, uint64_t id, uint64_t offset, void *out, size_t n, size_t *ret_n)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, SQL_FILE_READ, &st);
	if (e != ERR_OK)
		return e;
	uint64_t end = offset > INT64_MAX || n > INT64_MAX - offset ? INT64_MAX : offset + n;
	(void)sqlite3_bind_int64(st, 1, sql_obj_id(id));
	(void)sqlite3_bind_int64(st, 4, (int64_t)id);
	(void)sqlite3_bind_int64(st, 2, (int64_t)(offset / SQL_CHUNK));
	(void)sqlite3_bind_int64(st, 3, (int64_t)(end / SQL_CHUNK));
	e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	enum item_kind kind = (enum item_kind)sqlite3_column_int(st, 0);
	n = readable((uint64_t)sqlite3_column_int64(st, 1), offset, n);
	if (kind != ITEM_FILE) {
		(void)sqlite3_reset(st);
		return item_is_dir(kind) ? ERR_IS_A_DIRECTORY : ERR_INVALID_INPUT;
	}
	memset(out, 0, n);
	int rc = SQLITE_ROW;
	for (; n > 0 && rc == SQLITE_ROW; rc = sqlite3_step(st))
		take_piece(st, offset, out, n);
	e = sql_error(c->db, rc);
	(void)sqlite3_reset(st);
	if (e == ERR_OK)
		e = sql_stands(c, id);
	if (e == ERR_OK)
		*ret_n = n;
	return e;
}

/* ?1, where the statement has one, is the item that has the sums as its name. */
static enum err one_sum(struct sql_conn *c, enum sql_stmt which, uint64_t *ret)
{
	sqlite3_stmt *st;
	enum err e = sql_prepare(c, which, &st);
	if (e != ERR_OK)
		return e;
	(void)sqlite3_bind_int64(st, 1, STORE_TRASH);
	e = sql_first(c, st);
	if (e != ERR_OK)
		return e;
	*ret = (uint64_t)sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	return ERR_OK;
}

enum err sql_file_bytes(struct sql_conn *c, uint64_t *ret)
{
	return one_sum(c, SQL_FILE_BYTES, ret);
}

enum err sql_piece_bytes(struct sql_conn *c, uint64_t *ret)
{
	return one_sum(c, SQL_PIECE_BYTES, ret);
}

enum err sql_piece_count(struct sql_conn *c, uint64_t *ret)
{
	return one_sum(c, SQL_PIECE_COUNT, ret);
}
