/* SPDX-License-Identifier: MIT
 * A store with an account, a table Tab and in it a partition p, for one test, between begin() and
 * end(); and what is done to it.  Included by one file of a program: check.h counts per file. */
#ifndef FAULT_ONE_STORE_H
#define FAULT_ONE_STORE_H

#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], path[80];
static struct store *store; /* NULL: it is closed */
static uint64_t table, partition;
static _Atomic int64_t version;
static struct err_detail detail; /* of open_store() */

/* ---- changes ---- */

static inline struct item_ref row_at(const char *pk, const char *key)
{
	return (struct item_ref){
		.parent = table, .has_pk = true, .pk = span_of(pk), .key = span_of(key)
	};
}

static inline struct item_ref named(uint64_t parent, const char *key)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_NAMED, .key = span_of(key) };
}

static inline struct change put(enum item_kind kind, struct item_ref at, struct span body)
{
	return (struct change){ .op = CHANGE_PUT,
		.at = at,
		.kind = kind,
		.version = ++version,
		.name = SPAN_LIT("Tab"),
		.attrs = ATTRS_UNSET,
		.body = body };
}

static inline struct change row(const char *pk, const char *key)
{
	return put(ITEM_ROW, row_at(pk, key), SPAN_LIT("{}"));
}

static inline struct change move(struct item_ref from, struct item_ref to)
{
	return (struct change){ .op = CHANGE_MOVE, .at = from, .to = to, .version = ++version };
}

static inline struct change removal(struct item_ref at, unsigned flags)
{
	return (struct change){
		.op = CHANGE_DELETE, .at = at, .flags = flags, .version = ++version
	};
}

static inline enum err apply_set(struct change *c, size_t n)
{
	enum err e = store_apply(store, c, n, false, NULL);
	changes_fini(c, n);
	return e;
}

static inline enum err apply(struct change c)
{
	return apply_set(&c, 1);
}

/* In the partition p. */
static inline enum err put_row(const char *key)
{
	return apply(row("p", key));
}

static inline enum err remove_row(const char *key)
{
	return apply(removal(row_at("p", key), CHANGE_KEEP_DIR));
}

static inline bool has_row(const char *key)
{
	struct item it = { 0 };
	enum err e =
		store_child(store, NULL, partition, CLASS_KEYED, span_of(key), WANT_ATTRS, &it);
	item_fini(&it);
	CHECK(e == ERR_OK || e == ERR_NOT_FOUND);
	return e == ERR_OK;
}

/* The id of what is new. */
static inline uint64_t make(enum item_kind kind, struct item_ref at)
{
	struct change c = put(kind, at, SPAN_LIT("{}"));
	CHECK_ERR(store_apply(store, &c, 1, false, NULL), ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

/* ---- its files ---- */

static inline void copy(const char *from_tail, const char *to_tail)
{
	char from[100], to[100], bytes[65536];
	(void)snprintf(from, sizeof(from), "%s%s", path, from_tail);
	(void)snprintf(to, sizeof(to), "%s%s", path, to_tail);
	FILE *in = fopen(from, "rbe"), *out = fopen(to, "wbe");
	REQUIRE(in != NULL && out != NULL);
	for (size_t n; (n = fread(bytes, 1, sizeof(bytes), in)) > 0;)
		CHECK(fwrite(bytes, 1, n, out) == n);
	CHECK(fclose(in) == 0 && fclose(out) == 0);
}

static inline void remove_tail(const char *tail)
{
	char name[100];
	(void)snprintf(name, sizeof(name), "%s%s", path, tail);
	CHECK(unlink(name) == 0);
}

static inline enum err open_store(unsigned flags)
{
	memset(&detail, 0, sizeof(detail));
	store = NULL;
	return store_open(path, flags, &store, NULL, &detail);
}

static inline void close_store(void)
{
	store_close(store);
	store = NULL;
}

/* Statements are made anew. */
static inline void open_again(void)
{
	close_store();
	CHECK_ERR(open_store(0), ERR_OK);
}

/* With the log as it is now: closed, and as a process that was killed leaves it. */
static inline void be_killed(void)
{
	copy("", ".c");
	copy("-wal", ".c-wal");
	close_store();
	copy(".c", "");
	copy(".c-wal", "-wal");
	remove_tail(".c");
	remove_tail(".c-wal");
}

static inline void begin(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/%s.XXXXXX", program_invocation_short_name);
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
	calls_watch(path);
	CHECK_ERR(open_store(0), ERR_OK);
	version = 1000;
	uint64_t account =
		make(ITEM_ACCOUNT, (struct item_ref){ .parent = STORE_ROOT, .key = SPAN_LIT("a") });
	table = make(ITEM_TABLE, (struct item_ref){ .parent = account, .key = SPAN_LIT("tab") });
	partition =
		make(ITEM_PARTITION, (struct item_ref){ .parent = table, .key = SPAN_LIT("p") });
}

static inline void begin_with_rows(void)
{
	begin();
	CHECK_ERR(put_row("a"), ERR_OK);
	CHECK_ERR(put_row("b"), ERR_OK);
}

/* Nothing else than the store may be left. */
static inline void end(void)
{
	(void)calls_stop();
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	close_store();
	CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

#endif
