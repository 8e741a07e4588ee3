/* SPDX-License-Identifier: MIT
 * Stores that are not as they should be: what a check tells of them, what can still be read, and
 * that nothing is written on the strength of what is wrong. */
#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"
#include "store/rules.h"
#include "store/sqlite/check_place.h"
#include "store/sqlite/conn.h"
#include "store/sqlite/log_file.h"
#include "store/sqlite/page_sum.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[80];
static struct store *store;
static uint64_t table, partition;
static struct err_detail detail;

static struct change put(struct item_ref at, enum item_kind kind, int64_t version)
{
	return (struct change){ .op = CHANGE_PUT,
		.kind = kind,
		.version = version,
		.at = at,
		.name = SPAN_LIT("Tab"),
		.attrs = ATTRS_UNSET,
		.body = SPAN_LIT("{}") };
}

static struct item_ref keyed(uint64_t parent, struct span key)
{
	return (struct item_ref){ .parent = parent, .key = key };
}

static struct item_ref named(uint64_t parent, struct span key)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_NAMED, .key = key };
}

static enum err apply(struct change c)
{
	memset(&detail, 0, sizeof(detail));
	enum err e = store_apply(store, &c, 1, false, &detail);
	if (e == ERR_OK)
		changes_fini(&c, 1);
	return e;
}

static uint64_t make(struct item_ref at, enum item_kind kind, int64_t version)
{
	struct item it = { 0 };
	CHECK_ERR(apply(put(at, kind, version)), ERR_OK);
	CHECK_ERR(store_child(store, NULL, at.parent, at.class, at.key, WANT_ATTRS, &it), ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

static enum err open_again(unsigned flags)
{
	memset(&detail, 0, sizeof(detail));
	store = NULL;
	return store_open(path, flags, &store, NULL, &detail);
}

static void close_it(void)
{
	store_close(store);
	store = NULL;
}

/* An open store with an account, a table and a partition. */
static void begin(void)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/test_damage.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
	CHECK_ERR(open_again(0), ERR_OK);
	uint64_t account = make(keyed(STORE_ROOT, SPAN_LIT("acct")), ITEM_ACCOUNT, 100);
	table = make(keyed(account, SPAN_LIT("tab")), ITEM_TABLE, 101);
	partition = make(keyed(table, SPAN_LIT("p")), ITEM_PARTITION, 102);
}

static void end(void)
{
	static const char *const tails[] = { "", "-wal", "-shm", "-journal" };
	char name[100];
	close_it();
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, tails[i]);
		(void)unlink(name);
	}
	CHECK(rmdir(folder) == 0);
}

/* By rowfs's own layer, so the pages keep their sums: as if a mistake of ours had written it. */
static void meddle(const char *sql)
{
	struct sql_conn *c;
	close_it();
	CHECK_ERR(sql_conn_open(path, SQL_MODE_WRITER, &c), ERR_OK);
	CHECK_ERR(sql_exec(c, sql), ERR_OK);
	CHECK_ERR(sql_exec(c, "PRAGMA wal_checkpoint(TRUNCATE)"), ERR_OK);
	sql_conn_close(c);
}

/* From `from` to `to`, or to the end: with bytes of this value. */
static void overwrite(off_t from, off_t to, int value)
{
	unsigned char bytes[PAGE_BYTES];
	struct stat st;
	memset(bytes, value, sizeof(bytes));
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = from; at < (to ? to : st.st_size); at += PAGE_BYTES)
		CHECK(pwrite(fd, bytes, sizeof(bytes), at) == PAGE_BYTES);
	(void)close(fd);
}

struct findings {
	char text[8000];
	unsigned n, stop_at;
};

static bool find(void *arg, const char *finding)
{
	struct findings *f = arg;
	size_t n = strlen(f->text);
	(void)snprintf(f->text + n, sizeof(f->text) - n, "%s\n", finding);
	return ++f->n != f->stop_at;
}

static bool finds(const char *what)
{
	static struct findings f;
	memset(&f, 0, sizeof(f));
	CHECK_ERR(store_check(store, find, NULL, &f), ERR_CORRUPT);
	if (strstr(f.text, what) == NULL)
		printf("# %s: not in %s\n", what, f.text);
	return strstr(f.text, what) != NULL;
}

/* ---- SQLite itself ---- */

static __attribute__((noreturn)) void without_memory(int what)
{
	struct sql_conn *c;
	calls_strike_on(CALLS_FAIL, CALLS_MEMORY, true, 1, ENOMEM);
	bool refused = what == 0 ? sql_conn_open("/nowhere", SQL_MODE_READER, &c) == ERR_NO_MEMORY
				 : !sql_log_file_register();
	(void)calls_stop();
	exit(refused ? 0 : 1);
}

/* In processes of their own, for SQLite starts once.  This test is the first. */
TEST(sqlite_that_cannot_start_is_a_lack_of_memory)
{
	for (int what = 0; what < 2; what++) {
		int status = -1;
		(void)fflush(stdout);
		pid_t pid = fork();
		if (pid == 0)
			without_memory(what);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

/* ---- what a check tells ---- */

TEST(a_check_stops_where_it_is_told_to)
{
	struct findings f = { .stop_at = 1 };
	begin();
	meddle("UPDATE item SET size=7 WHERE kind=2; INSERT INTO chunk VALUES(99,0,x'00')");
	CHECK_ERR(open_again(0), ERR_OK);
	CHECK_ERR(store_check(store, find, NULL, &f), ERR_CORRUPT);
	CHECK_EQ_INT(f.n, 1);
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_CORRUPT);
	end();
}

/* As the last page of the file, whose header counts it. */
static void add_unused_page(void)
{
	unsigned char page[PAGE_BYTES];
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && pread(fd, page, sizeof(page), 0) == PAGE_BYTES);
	uint32_t n = ++page[31]; /* of fewer than 256 pages */
	page_seal(page, 1);
	CHECK(pwrite(fd, page, sizeof(page), 0) == PAGE_BYTES);
	memset(page, 0, sizeof(page));
	page_seal(page, n);
	CHECK(pwrite(fd, page, sizeof(page), (off_t)(n - 1) * PAGE_BYTES) == PAGE_BYTES);
	(void)close(fd);
}

TEST(a_check_stops_at_what_sqlite_tells_too)
{
	struct findings f = { .stop_at = 1 };
	begin();
	close_it();
	add_unused_page();
	CHECK_ERR(open_again(STORE_OPEN_READ_ONLY), ERR_OK);
	CHECK(finds("never used"));
	CHECK_ERR(store_check(store, find, NULL, &f), ERR_CORRUPT);
	CHECK_EQ_INT(f.n, 1);
	end();
}

TEST(a_check_names_some_of_many_damaged_pages)
{
	static char bytes[200000];
	begin();
	uint64_t file = make(named(partition, SPAN_LIT("f")), ITEM_FILE, 200);
	struct change c = { .op = CHANGE_WRITE, .at = { .id = file }, .version = 201 };
	c.body = span_make(bytes, sizeof(bytes));
	CHECK_ERR(apply(c), ERR_OK);
	close_it();
	calls_watch(path);
	CHECK_ERR(open_again(STORE_OPEN_READ_ONLY), ERR_OK);
	overwrite(10 * PAGE_BYTES, 0, 'y');
	CHECK(finds("their checksum is wrong"));
	/* Whatever of them cannot be read or found out. */
	for (unsigned n = 1; n <= 60; n++) {
		static struct findings f;
		memset(&f, 0, sizeof(f));
		bool look = n > 40;
		calls_strike_on(
			CALLS_FAIL, look ? CALLS_LOOK : CALLS_READ, true, look ? n - 40 : n, EIO);
		enum err e = store_check(store, find, NULL, &f);
		(void)calls_stop();
		CHECK_ERR(e, ERR_CORRUPT);
		CHECK(strstr(f.text, "only zeros") == NULL);
	}
	end();
}

TEST(a_check_names_the_pages_that_are_damaged)
{
	static char bytes[1 << 16];
	begin();
	uint64_t file = make(named(partition, SPAN_LIT("f")), ITEM_FILE, 200);
	struct change c = { .op = CHANGE_WRITE, .at = { .id = file }, .version = 201 };
	c.body = span_make(bytes, sizeof(bytes));
	memset(bytes, 'x', sizeof(bytes));
	CHECK_ERR(apply(c), ERR_OK);
	close_it();
	struct stat st;
	CHECK(stat(path, &st) == 0 && st.st_size > 20 * PAGE_BYTES);
	off_t at = (st.st_size / PAGE_BYTES - 4) * PAGE_BYTES;
	overwrite(at, at + PAGE_BYTES, 'y');
	overwrite(at + PAGE_BYTES, at + 2 * PAGE_BYTES, 0);
	CHECK_ERR(open_again(STORE_OPEN_READ_ONLY), ERR_OK);
	CHECK(finds("their checksum is wrong"));
	CHECK(finds("only zeros are there"));
	close_it();
	CHECK(truncate(path, st.st_size - 100) == 0);
	CHECK_ERR(open_again(STORE_OPEN_READ_ONLY), ERR_OK);
	CHECK(finds("the file was cut short: "));
	end();
}

/* Without a table that it does not look into it opens, and what needs it is refused. */
TEST(a_missing_table_is_told)
{
	begin();
	uint64_t file = make(named(partition, SPAN_LIT("f")), ITEM_FILE, 200);
	meddle("DROP TABLE chunk");
	CHECK_ERR(open_again(0), ERR_OK);
	CHECK(finds("the tables of the database are not rowfs's"));
	char byte;
	size_t n;
	CHECK_ERR(store_file_read(store, NULL, file, 0, &byte, 1, &n), ERR_CORRUPT);
	end();
}

/* Version 1 and 2 of the schema may have no sums. */
TEST(damage_of_pages_without_sums_is_told_by_sqlite)
{
	begin();
	close_it();
	CHECK(unlink(path) == 0);
	struct sql_conn plain = { 0 };
	CHECK(sqlite3_open(path, &plain.db) == SQLITE_OK);
	CHECK_ERR(sql_schema_create(&plain), ERR_OK);
	char version[40];
	(void)snprintf(version, sizeof(version), "PRAGMA user_version=%d", SQL_SCHEMA_UNSEALED);
	CHECK_ERR(sql_exec(&plain, version), ERR_OK);
	CHECK(sqlite3_close(plain.db) == SQLITE_OK);
	CHECK_ERR(open_again(0), ERR_OK);
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	make(keyed(STORE_ROOT, SPAN_LIT("acct")), ITEM_ACCOUNT, 100);
	close_it();
	CHECK_ERR(open_again(STORE_OPEN_READ_ONLY), ERR_OK);
	overwrite(PAGE_BYTES, 0, 0xff);
	CHECK(finds("SQLite cannot read all of it"));
	end();
}

/* Whose first pages are gone while it is served. */
TEST(what_cannot_be_read_at_all_is_told_too)
{
	begin();
	close_it();
	CHECK_ERR(open_again(0), ERR_OK);
	struct sql_conn *c;
	CHECK_ERR(sql_conn_open(path, SQL_MODE_READER, &c), ERR_OK);
	CHECK(sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
		SQLITE_OK);
	sql_conn_close(c);
	overwrite(PAGE_BYTES, 0, 'x');
	CHECK(finds("the file is damaged from byte 4096 on"));
	struct store_view *v = NULL;
	CHECK_ERR(store_view_hold(store, &v), ERR_CORRUPT);
	end();
}

TEST(a_damaged_beginning_is_told_when_it_is_opened)
{
	begin();
	close_it();
	overwrite(PAGE_BYTES, 0, 'x');
	CHECK_ERR(open_again(0), ERR_CORRUPT);
	CHECK(strstr(detail.text, "is damaged") != NULL);
	CHECK_ERR(store_create(path, NULL), ERR_NAME_EXISTS);
	end();
}

/* ---- what is told of places ---- */

TEST(a_place_is_told_as_far_as_the_way_up_goes)
{
	char place[SQL_PLACE_MAX], name[201], step[65];
	struct sql_conn *c;
	begin();
	CHECK_ERR(sql_conn_open(path, SQL_MODE_READER, &c), ERR_OK);
	CHECK_ERR(sql_do(c, SQL_BEGIN_READ), ERR_OK);
	sql_place_text(c, partition, CLASS_NAMED, SPAN_LIT("a\tb"), place);
	CHECK_EQ_STR(place, "acct/Tab/p/a?b");
	sql_place_text(c, partition, CLASS_KEYED, SPAN_LIT(""), place);
	CHECK_EQ_STR(place, "acct/Tab/p/%_");
	sql_place_text(c, STORE_TRASH, CLASS_NAMED, SPAN_LIT("x"), place);
	CHECK_EQ_STR(place, ".rowfs/trash/x");
	sql_place_text(c, 4711, CLASS_NAMED, SPAN_LIT("x"), place);
	CHECK_EQ_STR(place, "(in 4711)/x");
	memset(name, 'n', 200);
	name[200] = 0;
	sql_place_text(c, partition, CLASS_NAMED, span_of(name), place);
	CHECK(strlen(place) == strlen("acct/Tab/p/") + 80 + 3);
	CHECK(strcmp(place + strlen(place) - 4, "n...") == 0);
	CHECK_ERR(sql_end_reading(c), ERR_OK);
	/* Deeper than is told, and longer. */
	memset(step, 's', 64);
	step[64] = 0;
	uint64_t dir = partition;
	for (int i = 0; i < 20; i++) {
		dir = make(named(dir, span_of(step)), ITEM_FOLDER, 300 + i);
		CHECK_ERR(sql_do(c, SQL_BEGIN_READ), ERR_OK);
		sql_place_text(c, dir, CLASS_NAMED, SPAN_LIT("leaf"), place);
		CHECK((strncmp(place, "acct/Tab/p/s", 12) == 0) == (i < 13));
		CHECK_ERR(sql_end_reading(c), ERR_OK);
	}
	CHECK_ERR(sql_do(c, SQL_BEGIN_READ), ERR_OK);
	sql_place_text(c, dir, CLASS_NAMED, SPAN_LIT("leaf"), place);
	CHECK(strncmp(place, ".../sss", 7) == 0);
	CHECK_EQ_INT(strlen(place), SQL_PLACE_MAX - 1);
	CHECK(strstr(place, "leaf") == NULL);
	CHECK_ERR(sql_end_reading(c), ERR_OK);
	sql_conn_close(c);
	/* A table without a name has its key. */
	meddle("UPDATE item SET name=NULL WHERE kind=2");
	CHECK_ERR(sql_conn_open(path, SQL_MODE_READ_ONLY, &c), ERR_OK);
	sql_place_text(c, partition, CLASS_NAMED, SPAN_LIT("x"), place);
	CHECK_EQ_STR(place, "acct/tab/p/x");
	sql_conn_close(c);
	end();
}

/* ---- what is read and written all the same ---- */

TEST(attributes_that_cannot_be_read_are_unset)
{
	struct item it = { 0 };
	begin();
	meddle("UPDATE item SET attrs=x'0102' WHERE kind=3");
	CHECK_ERR(open_again(0), ERR_OK);
	CHECK_ERR(store_get(store, NULL, partition, WANT_ATTRS, &it), ERR_OK);
	CHECK(it.attrs.mode == MODE_UNSET && it.attrs.uid == OWNER_UNSET &&
		it.attrs.mtime_ns == TIME_UNSET);
	item_fini(&it);
	CHECK(finds("its mode, owner and times cannot be read"));
	end();
}

TEST(a_small_file_without_its_document_row_is_not_written_over)
{
	struct change c = { .op = CHANGE_WRITE };
	begin();
	uint64_t file = make(named(partition, SPAN_LIT("f")), ITEM_FILE, 200);
	c.at.id = file;
	c.version = 201;
	c.body = SPAN_LIT("12345678");
	CHECK_ERR(apply(c), ERR_OK);
	meddle("DELETE FROM obj WHERE id=(SELECT id FROM item WHERE kind=5)");
	CHECK_ERR(open_again(0), ERR_OK);
	c.at = named(partition, SPAN_LIT("f"));
	c.version = 202;
	c.offset = 4;
	c.body = SPAN_LIT("xy");
	CHECK_ERR(apply(c), ERR_CORRUPT);
	c.op = CHANGE_RESIZE;
	c.body = (struct span){ NULL, 0 };
	CHECK_ERR(apply(c), ERR_CORRUPT);
	end();
}

TEST(a_small_file_whose_document_row_is_empty_can_grow)
{
	struct change c = { .op = CHANGE_WRITE, .version = 201 };
	struct item it = { 0 };
	begin();
	c.at.id = make(named(partition, SPAN_LIT("f")), ITEM_FILE, 200);
	c.body = SPAN_LIT("12345678");
	CHECK_ERR(apply(c), ERR_OK);
	meddle("UPDATE obj SET body=x'' WHERE id=(SELECT id FROM item WHERE kind=5)");
	CHECK_ERR(open_again(0), ERR_OK);
	c.version = 202;
	c.offset = 20000;
	CHECK_ERR(apply(c), ERR_OK);
	CHECK_ERR(store_get(store, NULL, c.at.id, WANT_ATTRS, &it), ERR_OK);
	CHECK_EQ_INT(it.size, 20008);
	item_fini(&it);
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	end();
}

TEST(an_id_is_never_used_again_though_the_counter_went_back)
{
	begin();
	meddle("UPDATE meta SET value=1025 WHERE name='next_id'");
	CHECK_ERR(open_again(0), ERR_OK);
	CHECK(make(keyed(partition, SPAN_LIT("r")), ITEM_ROW, 200) > partition);
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	end();
}

TEST(without_ids_nothing_new_is_made)
{
	char sql[100];
	begin();
	(void)snprintf(sql, sizeof(sql), "UPDATE meta SET value=%llu WHERE name='next_id'",
		(unsigned long long)RULES_ID_LEFT);
	meddle(sql);
	CHECK_ERR(open_again(0), ERR_OK);
	CHECK_ERR(apply(put(keyed(partition, SPAN_LIT("r")), ITEM_ROW, 200)), ERR_NO_SPACE);
	end();
}

TEST(a_store_that_was_never_finished_is_none)
{
	begin();
	close_it();
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "\0\0\0\0", 4, 60) == 4);
	(void)close(fd);
	CHECK_ERR(open_again(0), ERR_NOT_A_STORE);
	CHECK(strstr(detail.text, "unfinished") != NULL);
	end();
}

TEST(a_store_is_not_made_below_a_file)
{
	char below[100];
	begin();
	(void)snprintf(below, sizeof(below), "%s/x", path);
	memset(&detail, 0, sizeof(detail));
	CHECK_ERR(store_create(below, &detail), ERR_NOT_A_DIRECTORY);
	CHECK(strcmp(detail.text, "Not a directory") == 0);
	end();
}

/* An engine that lists a key longer than there are. */
static enum err list_too_long(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	static char key[70000];
	struct item it = { .key = span_make(key, sizeof(key)) };
	(void)s, (void)v, (void)parent, (void)class, (void)after, (void)inclusive, (void)want;
	*ret_more = fn(arg, &it);
	return ERR_OK;
}

static bool go_on(void *arg, const struct item *it)
{
	(void)arg;
	(void)it;
	return true;
}

TEST(a_key_that_is_too_long_ends_a_listing)
{
	static const struct store_ops ops = { .list = list_too_long };
	struct store s = { &ops };
	CHECK_ERR(store_list(&s, NULL, 1, CLASS_KEYED, SPAN_LIT(""), false, WANT_KEYS, go_on, NULL),
		ERR_CORRUPT);
	item_fini(NULL); /* is nothing */
}

/* clang-format off */
RUN_TESTS(
	T(sqlite_that_cannot_start_is_a_lack_of_memory),
	T(a_check_stops_where_it_is_told_to),
	T(a_check_stops_at_what_sqlite_tells_too),
	T(a_check_names_some_of_many_damaged_pages),
	T(a_check_names_the_pages_that_are_damaged),
	T(a_missing_table_is_told),
	T(damage_of_pages_without_sums_is_told_by_sqlite),
	T(what_cannot_be_read_at_all_is_told_too),
	T(a_damaged_beginning_is_told_when_it_is_opened),
	T(a_place_is_told_as_far_as_the_way_up_goes),
	T(attributes_that_cannot_be_read_are_unset),
	T(a_small_file_without_its_document_row_is_not_written_over),
	T(a_small_file_whose_document_row_is_empty_can_grow),
	T(an_id_is_never_used_again_though_the_counter_went_back),
	T(without_ids_nothing_new_is_made),
	T(a_store_that_was_never_finished_is_none),
	T(a_store_is_not_made_below_a_file),
	T(a_key_that_is_too_long_ends_a_listing))
/* clang-format on */
