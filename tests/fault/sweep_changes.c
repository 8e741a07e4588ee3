/* SPDX-License-Identifier: MIT
 * Sweeps over every kind of change, over sets of them, and over a set that is larger than what
 * SQLite keeps in memory. */
#include "store/sqlite/store.h"
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT SPAN_LIT("{\"B\":\"two\"}\n")

static struct item_ref row_at(const char *pk, const char *rk)
{
	return (struct item_ref){
		.parent = ids.table, .has_pk = true, .pk = span_of(pk), .key = span_of(rk)
	};
}

static struct item_ref named(uint64_t parent, const char *name)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_NAMED, .key = span_of(name) };
}

static struct item_ref keyed(uint64_t parent, const char *key)
{
	return (struct item_ref){ .parent = parent, .key = span_of(key) };
}

static struct change put(struct item_ref at, enum item_kind kind, struct span body)
{
	return (struct change){ .op = CHANGE_PUT,
		.kind = kind,
		.at = at,
		.version = 500,
		.name = SPAN_LIT("New"),
		.attrs = ATTRS_UNSET,
		.flags = CHANGE_WANT_OLD,
		.body = body };
}

static struct change move(struct item_ref from, struct item_ref to)
{
	return (struct change){
		.op = CHANGE_MOVE, .at = from, .to = to, .version = 500, .flags = CHANGE_WANT_OLD
	};
}

static struct change removal(struct item_ref at, uint32_t flags)
{
	return (struct change){
		.op = CHANGE_DELETE, .at = at, .version = 500, .flags = flags | CHANGE_WANT_OLD
	};
}

/* ---- one change ---- */

static enum err put_new(struct world *w)
{
	return sweep_apply(w, put(row_at("p", "n"), ITEM_ROW, DOCUMENT), false);
}

static enum err put_durable(struct world *w)
{
	return sweep_apply(w, put(row_at("p", "n"), ITEM_ROW, DOCUMENT), true);
}

static enum err put_partition(struct world *w)
{
	return sweep_apply(w, put(row_at("new", "n"), ITEM_ROW, DOCUMENT), false);
}

static enum err put_over(struct world *w)
{
	return sweep_apply(w, put(row_at("p", "b"), ITEM_ROW, DOCUMENT), false);
}

static enum err put_table(struct world *w)
{
	return sweep_apply(w, put(keyed(ids.account, "new"), ITEM_TABLE, SPAN_LIT("")), false);
}

static enum err remove_row(struct world *w)
{
	return sweep_apply(w, removal(row_at("p", "b"), CHANGE_KEEP_DIR), false);
}

static enum err remove_file(struct world *w)
{
	return sweep_apply(w, removal((struct item_ref){ .id = ids.g }, 0), false);
}

static enum err remove_tree(struct world *w)
{
	return sweep_apply(
		w, removal((struct item_ref){ .id = ids.table }, CHANGE_RECURSIVE), false);
}

static enum err to_trash(struct world *w, const char *rk)
{
	struct change c = removal(row_at("p", rk), CHANGE_TO_FILE);
	c.to = named(STORE_TRASH, "row");
	c.offset = 100;
	return sweep_apply(w, c, false);
}

static enum err small_to_trash(struct world *w)
{
	return to_trash(w, "a");
}

static enum err large_to_trash(struct world *w)
{
	return to_trash(w, "b");
}

static enum err move_row(struct world *w)
{
	return sweep_apply(w, move(row_at("p", "a"), row_at("other", "x")), false);
}

static enum err move_row_over(struct world *w)
{
	struct change c = move(row_at("p", "a"), row_at("q", "r03"));
	c.body = DOCUMENT;
	return sweep_apply(w, c, false);
}

static enum err move_partition(struct world *w)
{
	return sweep_apply(w, move(keyed(ids.table, "q"), keyed(ids.table, "qq")), false);
}

static enum err move_table(struct world *w)
{
	struct change c = move(keyed(ids.account, "tab"), keyed(ids.account, "other"));
	c.name = SPAN_LIT("Other");
	return sweep_apply(w, c, false);
}

static enum err exchange(struct world *w)
{
	struct change c = move(row_at("p", "a"), row_at("q", "r05"));
	c.flags |= CHANGE_EXCHANGE;
	return sweep_apply(w, c, false);
}

static enum err row_to_file(struct world *w)
{
	struct change c = move(row_at("p", "b"), named(ids.p, "b~"));
	c.to_kind = ITEM_FILE;
	return sweep_apply(w, c, false);
}

static enum err file_to_row(struct world *w)
{
	struct change c = move((struct item_ref){ .id = ids.g }, row_at("p", "b"));
	c.to_kind = ITEM_ROW;
	c.body = DOCUMENT;
	return sweep_apply(w, c, false);
}

static enum err attrs(struct world *w)
{
	struct change c = { .op = CHANGE_ATTRS, .at = { .id = ids.p }, .set_mask = ATTR_MODE };
	c.attrs = ATTRS_UNSET;
	c.attrs.mode = MODE_SET(0700);
	return sweep_apply(w, c, false);
}

static enum err write_at(struct world *w, uint64_t id, uint64_t offset, size_t n)
{
	static char bytes[50000];
	struct change c = { .op = CHANGE_WRITE, .at = { .id = id }, .version = 500 };
	memset(bytes, 'w', sizeof(bytes));
	c.offset = offset;
	c.body = span_make(bytes, n);
	return sweep_apply(w, c, false);
}

static enum err write_small(struct world *w)
{
	return write_at(w, ids.f, 100, 50);
}

static enum err write_outgrows(struct world *w)
{
	return write_at(w, ids.f, 3000, 20000);
}

static enum err write_pieces(struct world *w)
{
	return write_at(w, ids.g, 10000, 50000);
}

static enum err resize(struct world *w)
{
	struct change c = { .op = CHANGE_RESIZE, .at = { .id = ids.g }, .version = 500 };
	c.offset = 17000;
	return sweep_apply(w, c, false);
}

/* ---- sets ---- */

static enum err apply_set(struct world *w, struct change *set, size_t n, bool durable)
{
	enum err e = store_apply(w->store, set, n, durable, &w->detail);
	changes_fini(set, n);
	return e;
}

static enum err mixed_set(struct world *w)
{
	struct change set[] = {
		put(row_at("p", "n1"), ITEM_ROW, DOCUMENT),
		put(row_at("p", "n2"), ITEM_ROW, DOCUMENT),
		put(row_at("p", "a"), ITEM_ROW, DOCUMENT),
		removal(row_at("p", "b"), 0),
		move(row_at("q", "r01"), row_at("p", "r01")),
		{ .op = CHANGE_WRITE, .at = { .id = ids.f }, .version = 500, .body = DOCUMENT },
	};
	return apply_set(w, set, sizeof(set) / sizeof(set[0]), true);
}

#define MANY 300

static enum err large_set(struct world *w)
{
	static char body[3000], keys[MANY][8];
	static struct change set[2 * MANY];
	memset(body, 'x', sizeof(body));
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "n%03d", i);
		set[i] = put(row_at("large", keys[i]), ITEM_ROW, span_make(body, sizeof(body)));
		set[MANY + i] = put(row_at("large", keys[i]), ITEM_ROW, span_make(body, 2900));
		set[i].flags = set[MANY + i].flags = 0;
	}
	return apply_set(w, set, 2 * MANY, true);
}

/* What SQLite may keep in memory is little: pages go to the log before the commit, some twice. */
static void little_memory(struct world *w)
{
	MUST_DO(sql_exec(sql_of(w->store)->writer.conn, "PRAGMA cache_size=20"));
}

/* clang-format off */
const struct sweep_case sweep_changes[] = {
	{ "put a row", 0, NULL, put_new, NULL },
	{ "put a row, durable", 0, NULL, put_durable, NULL },
	{ "put a row and its partition", 0, NULL, put_partition, NULL },
	{ "put over a row", 0, NULL, put_over, NULL },
	{ "put a table", 0, NULL, put_table, NULL },
	{ "remove a row", SWEEP_ONCE, NULL, remove_row, NULL },
	{ "remove a file", SWEEP_ONCE, NULL, remove_file, NULL },
	{ "remove a table", SWEEP_ONCE, NULL, remove_tree, NULL },
	{ "a small row to the trash", SWEEP_ONCE, NULL, small_to_trash, NULL },
	{ "a large row to the trash", SWEEP_ONCE, NULL, large_to_trash, NULL },
	{ "move a row", SWEEP_ONCE, NULL, move_row, NULL },
	{ "move a row over one", SWEEP_ONCE, NULL, move_row_over, NULL },
	{ "move a partition", SWEEP_ONCE, NULL, move_partition, NULL },
	{ "move a table", SWEEP_ONCE, NULL, move_table, NULL },
	{ "exchange rows", SWEEP_ONCE, NULL, exchange, NULL },
	{ "a row becomes a file", SWEEP_ONCE, NULL, row_to_file, NULL },
	{ "a file becomes a row", SWEEP_ONCE, NULL, file_to_row, NULL },
	{ "set attributes", 0, NULL, attrs, NULL },
	{ "write a small file", 0, NULL, write_small, NULL },
	{ "a small file grows out of its document", 0, NULL, write_outgrows, NULL },
	{ "write a file in pieces", 0, NULL, write_pieces, NULL },
	{ "resize a file", 0, NULL, resize, NULL },
	{ "a set of all kinds", SWEEP_ONCE, NULL, mixed_set, NULL },
	{ "a set larger than the cache", SWEEP_LARGE, little_memory, large_set, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};
/* clang-format on */
