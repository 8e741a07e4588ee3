/* SPDX-License-Identifier: MIT
 * Sweeps over what reads a store, and over making, opening and closing one. */
#include "calls.h"
#include "store/engines.h"
#include "store/sqlite/store.h"
#include "sweep.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct span none = { NULL, 0 };

/* ---- reading ---- */

static enum err get_dir(struct world *w)
{
	struct item it = { 0 };
	enum err e = store_get(w->store, NULL, ids.p, WANT_ATTRS, &it);
	if (e == ERR_OK)
		EXPECT(w, it.kind == ITEM_PARTITION && it.size == 5 && span_is(it.key, "p"));
	item_fini(&it);
	return e;
}

static enum err get_body(struct world *w)
{
	struct item it = { 0 };
	enum err e = store_get(w->store, NULL, ids.b, WANT_BODY, &it);
	if (e == ERR_OK)
		EXPECT(w, it.body.n == it.size && it.size > 5000 && it.body.p[it.size - 1] == '\n');
	item_fini(&it);
	return e;
}

static enum err child(struct world *w)
{
	struct item it = { 0 };
	enum err e = store_child(
		w->store, NULL, ids.q, CLASS_KEYED, SPAN_LIT("r07"), WANT_SMALL_BODY, &it);
	if (e == ERR_OK)
		EXPECT(w, it.kind == ITEM_ROW && span_is(it.body, "{\"A\":1}\n"));
	item_fini(&it);
	if (e != ERR_OK)
		return e;
	e = store_child(w->store, NULL, ids.q, CLASS_KEYED, SPAN_LIT("none"), WANT_ATTRS, &it);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static bool count(void *arg, const struct item *it)
{
	*(unsigned *)arg += 1 + (unsigned)it->body.n * 1000;
	return true;
}

static enum err list(struct world *w)
{
	unsigned n = 0, all = 0;
	enum err e =
		store_list(w->store, NULL, ids.q, CLASS_KEYED, none, false, WANT_KEYS, count, &n);
	if (e == ERR_OK)
		e = store_list(w->store, NULL, ids.p, CLASS_KEYED, SPAN_LIT("a"), true, WANT_BODY,
			count, &all);
	if (e == ERR_OK)
		EXPECT(w, n == 40 && all / 1000 > 5000);
	return e;
}

static enum err file_read(struct world *w)
{
	char bytes[64];
	size_t n = 0;
	enum err e = store_file_read(w->store, NULL, ids.g, 16384 - 20, bytes, sizeof(bytes), &n);
	if (e == ERR_OK)
		EXPECT(w,
			n == 64 && bytes[0] == 'a' + (16384 - 20) % 23 &&
				bytes[40] == 'a' + (16384 + 20) % 23);
	if (e == ERR_OK)
		e = store_file_read(w->store, NULL, ids.f, 4, bytes, sizeof(bytes), &n);
	if (e == ERR_OK)
		EXPECT(w, n == 4 && memcmp(bytes, "efgh", 4) == 0);
	return e;
}

static enum err look_through(struct world *w, bool held)
{
	struct store_view *v;
	struct item it = { 0 };
	enum err e = held ? store_view_hold(w->store, &v) : store_view_open(w->store, &v);
	if (e != ERR_OK)
		return e;
	e = store_child(w->store, v, ids.p, CLASS_KEYED, SPAN_LIT("a"), WANT_BODY, &it);
	if (e == ERR_OK)
		EXPECT(w, it.id == ids.a && span_is(it.body, "{\"A\":1}\n"));
	item_fini(&it);
	store_view_close(w->store, v);
	return e;
}

static enum err view(struct world *w)
{
	return look_through(w, false);
}

static enum err view_held(struct world *w)
{
	return look_through(w, true);
}

static enum err check(struct world *w)
{
	char finding[256] = "";
	enum err e = store_check(w->store, NULL, NULL, finding);
	/* A page that cannot be read is a finding. */
	return e == ERR_CORRUPT ? ERR_IO : e;
}

static enum err info(struct world *w)
{
	struct store_info i;
	store_info(w->store, &i);
	EXPECT(w, i.abilities & STORE_CAN_VIEW && i.file_bytes == 40108);
	return ERR_OK;
}

static enum err room(struct world *w)
{
	return store_room(w->store, 1000, NULL);
}

static enum err copy(struct world *w)
{
	struct store_view *v;
	int fd = memfd_create("copy", MFD_CLOEXEC);
	enum err e = fd < 0 ? ERR_NO_MEMORY : store_view_open(w->store, &v);
	if (e == ERR_OK) {
		e = store_copy(w->store, v, fd, NULL, NULL);
		store_view_close(w->store, v);
	}
	if (e == ERR_OK)
		EXPECT(w, lseek(fd, 0, SEEK_END) > 40000);
	if (fd >= 0)
		(void)close(fd);
	return e;
}

/* A change that waits in the log. */
static void change_first(struct world *w)
{
	struct change c = { .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.version = 300,
		.at = { .parent = ids.p, .key = SPAN_LIT("first") },
		.attrs = ATTRS_UNSET,
		.body = SPAN_LIT("{\"B\":2}\n") };
	MUST_DO(sweep_apply(w, c, false));
}

static enum err sync_now(struct world *w)
{
	return store_sync(w->store);
}

/* A view was held while 2 MiB were written: its end copies them into the store. */
static void hold_and_write(struct world *w)
{
	static char bytes[1 << 16];
	struct store_view *v;
	memset(bytes, 'x', sizeof(bytes));
	MUST_DO(store_view_hold(w->store, &v));
	for (unsigned i = 0; i < 32; i++) {
		struct change c = {
			.op = CHANGE_WRITE, .at = { .id = ids.g }, .version = 400 + (int)i
		};
		c.offset = (uint64_t)i << 16;
		c.body = span_make(bytes, sizeof(bytes));
		MUST_DO(sweep_apply(w, c, false));
	}
	w->own = v;
}

static enum err let_go(struct world *w)
{
	struct store_view *v = w->own;
	w->own = NULL;
	store_view_close(w->store, v);
	return ERR_OK;
}

/* For dumps of the state before. */
static void let_go_at_last(struct world *w)
{
	if (w->own)
		(void)let_go(w);
}

/* clang-format off */
const struct sweep_case sweep_reads[] = {
	{ "get a directory", 0, NULL, get_dir, NULL },
	{ "get a row with its document", 0, NULL, get_body, NULL },
	{ "child", 0, NULL, child, NULL },
	{ "list", 0, NULL, list, NULL },
	{ "read a file", 0, NULL, file_read, NULL },
	{ "view", 0, NULL, view, NULL },
	{ "view that is held", 0, NULL, view_held, NULL },
	{ "check", 0, NULL, check, NULL },
	{ "copy", 0, NULL, copy, NULL },
	{ "info", 0, NULL, info, NULL },
	{ "room", 0, NULL, room, NULL },
	{ "sync", 0, change_first, sync_now, NULL },
	{ "checkpoint when a held view ends", SWEEP_LARGE, hold_and_write, let_go, let_go_at_last },
	{ NULL, 0, NULL, NULL, NULL },
};
/* clang-format on */

/* ---- making, opening, closing ---- */

static enum err create(struct world *w)
{
	return store_create(w->path, &w->detail);
}

static enum err open_it(struct world *w)
{
	enum err e = store_open(w->path, 0, &w->store, NULL, &w->detail);
	if (e != ERR_OK)
		w->store = NULL;
	return e;
}

static enum err open_read_only(struct world *w)
{
	struct item it = { 0 };
	struct store *s;
	enum err e = store_open(w->path, STORE_OPEN_READ_ONLY, &s, NULL, &w->detail);
	if (e != ERR_OK)
		return e;
	e = store_get(s, NULL, ids.a, WANT_BODY, &it);
	if (e == ERR_OK)
		EXPECT(w, span_is(it.body, "{\"A\":1}\n"));
	else
		(void)err_set(&w->detail, e, "reading");
	item_fini(&it);
	store_close(s);
	return e;
}

static void copy_file(const char *from, const char *to)
{
	char bytes[65536];
	ssize_t n;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	MUST_DO(in >= 0 && out >= 0 ? ERR_OK : ERR_IO);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		MUST_DO(write(out, bytes, (size_t)n) == n ? ERR_OK : ERR_IO);
	(void)close(in);
	(void)close(out);
}

/* What a kill leaves: the log with a change in it. */
static void be_killed(struct world *w)
{
	char log[140], copy[140], copy_log[140];
	(void)snprintf(log, sizeof(log), "%s-wal", w->path);
	(void)snprintf(copy, sizeof(copy), "%s.c", w->path);
	(void)snprintf(copy_log, sizeof(copy_log), "%s.c-wal", w->path);
	MUST_DO(store_open(w->path, 0, &w->store, NULL, NULL));
	change_first(w);
	copy_file(w->path, copy);
	copy_file(log, copy_log);
	store_close(w->store);
	w->store = NULL;
	MUST_DO(rename(copy, w->path) == 0 && rename(copy_log, log) == 0 ? ERR_OK : ERR_IO);
}

/* All content in pieces, the sum in meta; an open for writing upgrades it, and keeps a copy. */
static void make_version_1(struct world *w)
{
	static const char text[] =
		"PRAGMA user_version=1;"
		"INSERT INTO meta VALUES('file_bytes',40108); UPDATE item SET name=NULL WHERE id=3;"
		"INSERT INTO chunk SELECT id,0,(SELECT body FROM obj o WHERE o.id=i.id) FROM item i"
		" WHERE kind=5 AND flags=256; UPDATE item SET flags=NULL WHERE kind=5;"
		"UPDATE obj SET body=NULL WHERE id IN (SELECT id FROM item WHERE kind=5);"
		"PRAGMA wal_checkpoint(TRUNCATE)";
	struct sql_conn *c;
	MUST_DO(sql_conn_open(w->path, SQL_MODE_WRITER, &c));
	MUST_DO(sql_exec(c, text));
	sql_conn_close(c);
}

static enum err close_it(struct world *w)
{
	store_close(w->store);
	w->store = NULL;
	return ERR_OK;
}

/* clang-format off */
const struct sweep_case sweep_opens[] = {
	{ "create", SWEEP_CREATES, NULL, create, NULL },
	{ "open", SWEEP_OPENS, NULL, open_it, NULL },
	{ "open after a kill", SWEEP_OPENS, be_killed, open_it, NULL },
	{ "open to read", SWEEP_OPENS, NULL, open_read_only, NULL },
	{ "open version 1", SWEEP_OPENS, make_version_1, open_it, NULL },
	{ "close", SWEEP_CLOSES, change_first, close_it, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};
/* clang-format on */
