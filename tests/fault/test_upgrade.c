/* SPDX-License-Identifier: MIT
 * The copy that is kept of a store of an older schema: under which name, and what becomes of the
 * store where there is none, or no memory. */
#include "../unit/check.h"
#include "calls.h"
#include "store/engines.h"
#include "store/sqlite/conn.h"
#include "store/sqlite/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES 100 /* upgrade.c */

static char folder[64], path[80];
static char *old; /* the file of version 1 */
static size_t old_n;
static struct err_detail detail;

static void write_file(const char *name, const void *bytes, size_t n)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	(void)close(fd);
}

static const char *copy_name(int i)
{
	static char name[100];
	(void)snprintf(name, sizeof(name), i == 1 ? "%s.v1" : "%s.v1.%d", path, i);
	return name;
}

static void begin(void)
{
	static const char text[] =
		"PRAGMA user_version=1; INSERT INTO meta VALUES('file_bytes',0);"
		"UPDATE item SET name=NULL WHERE id=3; PRAGMA wal_checkpoint(TRUNCATE)";
	struct sql_conn *c;
	struct stat st;
	(void)snprintf(folder, sizeof(folder), "/tmp/test_upgrade.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
	CHECK_ERR(sql_conn_open(path, SQL_MODE_WRITER, &c), ERR_OK);
	CHECK_ERR(sql_exec(c, text), ERR_OK);
	sql_conn_close(c);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	old_n = (size_t)st.st_size;
	old = malloc(old_n);
	CHECK(old != NULL && read(fd, old, old_n) == (ssize_t)old_n);
	(void)close(fd);
	calls_watch(path);
}

static void end(void)
{
	(void)calls_stop();
	for (int i = 1; i <= NAMES; i++)
		(void)unlink(copy_name(i));
	CHECK(unlink(path) == 0 && rmdir(folder) == 0);
	free(old);
}

/* Of version 1 again. */
static enum err raise(struct store **ret)
{
	write_file(path, old, old_n);
	memset(&detail, 0, sizeof(detail));
	*ret = NULL;
	return store_open(path, 0, ret, NULL, &detail);
}

static bool is_copy(int i)
{
	char bytes[100];
	int fd = open(copy_name(i), O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && read(fd, bytes, sizeof(bytes)) == sizeof(bytes) && bytes[63] == 1;
	if (fd >= 0)
		(void)close(fd);
	return is;
}

static void kept_as(int i)
{
	struct store *s;
	struct store_info info = { 0 };
	CHECK_ERR(raise(&s), ERR_OK);
	REQUIRE(s);
	store_info(s, &info);
	CHECK_EQ_INT(info.upgraded_from, 1);
	CHECK_EQ_STR(info.kept_copy, copy_name(i));
	CHECK(is_copy(i));
	store_close(s);
}

/* ---- what waits for a document, as versions before 4 kept it ---- */

static uint64_t put(struct store *s, struct change c)
{
	static int64_t version = 500;
	c.op = CHANGE_PUT;
	c.version = version++;
	c.attrs = ATTRS_UNSET;
	CHECK_ERR(store_apply(s, &c, 1, false, NULL), ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

static uint64_t put_in(struct store *s, uint64_t dir, enum item_kind kind, const char *name)
{
	enum item_class class = kind == ITEM_FILE ? CLASS_NAMED
		: kind == ITEM_QUEUE              ? CLASS_QUEUE
						  : CLASS_KEYED;
	return put(s,
		(struct change){ .kind = kind,
			.name = span_of(name),
			.body = kind == ITEM_ROW ? SPAN_LIT("{}") : (struct span){ NULL, 0 },
			.at = { .parent = dir, .class = class, .key = span_of(name) } });
}

static struct item child(struct store *s, uint64_t dir, enum item_class class, const char *key)
{
	struct item it = { 0 };
	enum err e = store_child(s, NULL, dir, class, span_of(key), WANT_BODY, &it);
	CHECK(e == ERR_OK || e == ERR_NOT_FOUND);
	return it;
}

TEST(empty_files_under_the_names_of_rows_become_rows_without_a_document)
{
	static const char *const stay[] = { "note", ".x.json", "x%7.json" };
	struct store *s;
	struct sql_conn *c;
	struct store_info info = { 0 };
	char copy[100];
	begin();
	(void)calls_stop();
	write_file(path, old, old_n);
	CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
	uint64_t account = put_in(s, STORE_ROOT, ITEM_ACCOUNT, "acct");
	uint64_t table = put_in(s, account, ITEM_TABLE, "tab");
	uint64_t p = put_in(s, table, ITEM_PARTITION, "p");
	uint64_t row = put_in(s, p, ITEM_ROW, "r");
	uint64_t a = put_in(s, p, ITEM_FILE, "a.json"),
		 percent = put_in(s, p, ITEM_FILE, "%25.json");
	(void)put_in(s, p, ITEM_FILE, "r.json"); /* the row stands in front of it */
	for (size_t i = 0; i < ARRAY_LEN(stay); i++)
		(void)put_in(s, p, ITEM_FILE, stay[i]);
	store_close(s);
	CHECK_ERR(sql_conn_open(path, SQL_MODE_WRITER, &c), ERR_OK);
	CHECK_ERR(sql_exec(c, "PRAGMA user_version=3; PRAGMA wal_checkpoint(TRUNCATE)"), ERR_OK);
	sql_conn_close(c);
	CHECK_ERR(store_open(path, 0, &s, NULL, &detail), ERR_OK);
	REQUIRE(s);
	store_info(s, &info);
	(void)snprintf(copy, sizeof(copy), "%s.v3", path);
	CHECK_EQ_INT(info.upgraded_from, 3);
	CHECK_EQ_STR(info.kept_copy, copy);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	struct item it = child(s, p, CLASS_KEYED, "a");
	CHECK(it.id == a && item_is_empty_row(&it) && it.body.p != NULL);
	item_fini(&it);
	it = child(s, p, CLASS_KEYED, "%");
	CHECK(it.id == percent && item_is_empty_row(&it));
	item_fini(&it);
	it = child(s, p, CLASS_KEYED, "r");
	CHECK(it.id == row && span_is(it.body, "{}"));
	item_fini(&it);
	it = child(s, p, CLASS_NAMED, "r.json");
	CHECK_EQ_INT(it.kind, ITEM_NONE);
	for (size_t i = 0; i < ARRAY_LEN(stay); i++) {
		it = child(s, p, CLASS_NAMED, stay[i]);
		CHECK_EQ_INT(it.kind, ITEM_FILE);
		item_fini(&it);
	}
	it = child(s, table, CLASS_KEYED, "p");
	CHECK(it.size == 6 && it.flags & ITEM_HELD_EMPTY);
	item_fini(&it);
	store_close(s);
	CHECK(unlink(copy) == 0 && unlink(copy_name(1)) == 0);
	end();
}

/* ---- queues and containers, which versions before 6 did not have ---- */

TEST(a_store_from_before_queues_is_raised)
{
	static const struct {
		unsigned char from, to;
	} steps[] = { { 4, SQL_SCHEMA_UNSEALED }, { 5, SQL_SCHEMA_VERSION } };
	begin();
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct store *s;
		struct sql_conn *c;
		struct store_info info = { 0 };
		int version;
		char copy[100], pragma[40];
		write_file(path, old, old_n);
		CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
		uint64_t account = put_in(s, STORE_ROOT, ITEM_ACCOUNT, "acct");
		store_close(s);
		CHECK(unlink(copy_name(1)) == 0);
		(void)snprintf(pragma, sizeof(pragma), "PRAGMA user_version=%d", steps[i].from);
		CHECK_ERR(sql_conn_open(path, SQL_MODE_WRITER, &c), ERR_OK);
		CHECK_ERR(sql_exec(c, pragma), ERR_OK);
		CHECK_ERR(sql_exec(c, "PRAGMA wal_checkpoint(TRUNCATE)"), ERR_OK);
		sql_conn_close(c);
		CHECK_ERR(store_open(path, 0, &s, NULL, &detail), ERR_OK);
		REQUIRE(s);
		store_info(s, &info);
		(void)snprintf(copy, sizeof(copy), "%s.v%d", path, steps[i].from);
		CHECK_EQ_INT(info.upgraded_from, steps[i].from);
		CHECK_EQ_STR(info.kept_copy, copy);
		CHECK(put_in(s, account, ITEM_QUEUE, "jobs") != 0);
		CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
		store_close(s);
		CHECK_ERR(sql_conn_open(path, SQL_MODE_WRITER, &c), ERR_OK);
		CHECK_ERR(sql_schema_version(c, &version), ERR_OK);
		CHECK_EQ_INT(version, steps[i].to);
		sql_conn_close(c);
		CHECK(unlink(copy) == 0);
	}
	end();
}

/* ---- the copy ---- */

TEST(a_copy_takes_the_first_name_that_is_free_or_holds_the_same)
{
	begin();
	kept_as(1);
	kept_as(1); /* as after a kill between the copy and the rest */
	CHECK(access(copy_name(2), F_OK) != 0);
	write_file(copy_name(1), "another", 7);
	kept_as(2);
	/* As long, but not the same. */
	char *other = malloc(old_n);
	memcpy(other, old, old_n);
	other[old_n - 1] ^= 1;
	write_file(copy_name(2), other, old_n);
	kept_as(3);
	free(other);
	end();
}

TEST(without_a_free_name_nothing_is_raised)
{
	struct store *s;
	begin();
	for (int i = 1; i <= NAMES; i++)
		write_file(copy_name(i), "taken", 5);
	CHECK_ERR(raise(&s), ERR_NAME_EXISTS);
	CHECK(strstr(detail.text, "empty file to go without") != NULL);
	CHECK(unlink(copy_name(NAMES)) == 0);
	kept_as(NAMES);
	/* An empty one in its place says that none is wanted. */
	write_file(copy_name(1), "", 0);
	struct store_info info;
	CHECK_ERR(raise(&s), ERR_OK);
	REQUIRE(s);
	store_info(s, &info);
	CHECK(info.upgraded_from == 1 && info.kept_copy == NULL);
	store_close(s);
	end();
}

TEST(a_copy_that_cannot_be_made_leaves_the_store_as_it_is)
{
	static const struct {
		unsigned mask;
		int error;
	} faults[] = { { CALLS_MEMORY, ENOMEM }, { CALLS_WRITE, ENOSPC }, { CALLS_READ, EIO } };
	struct store *s;
	begin();
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		unsigned n = 0, refused = 0;
		bool struck;
		do {
			(void)unlink(copy_name(1));
			write_file(path, old, old_n);
			calls_strike(CALLS_FAIL, faults[i].mask, true, ++n, faults[i].error);
			memset(&detail, 0, sizeof(detail));
			enum err e = store_open(path, 0, &s, NULL, &detail);
			struck = calls_now()->struck > 0;
			(void)calls_stop();
			if (e == ERR_OK) {
				store_close(s);
				continue;
			}
			refused++;
			CHECK(e == ERR_NO_MEMORY || e == ERR_NO_SPACE || e == ERR_IO);
			CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
			CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
			store_close(s);
			CHECK(is_copy(1)); /* of the opening that upgraded it */
		} while (struck && n < 5000);
		CHECK(refused > 1);
		CHECK(access(copy_name(2), F_OK) != 0);
	}
	end();
}

/* Which is no file, or leads elsewhere. */
TEST(what_is_no_file_is_no_copy)
{
	begin();
	CHECK(symlink("nowhere", copy_name(1)) == 0);
	kept_as(2);
	CHECK(unlink(copy_name(1)) == 0 && mkdir(copy_name(1), 0700) == 0);
	kept_as(2);
	CHECK(rmdir(copy_name(1)) == 0);
	end();
}

/* With a copy that is there already, and has to be read. */
TEST(an_upgrade_that_is_interrupted_goes_on)
{
	static const unsigned masks[] = { CALLS_READ, CALLS_OPEN };
	struct store *s;
	begin();
	kept_as(1);
	for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
		bool struck = true;
		for (unsigned n = 1; struck; n++) {
			write_file(path, old, old_n);
			calls_strike(CALLS_FAIL, masks[i], true, n, EINTR);
			CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
			struck = calls_now()->struck > 0;
			(void)calls_stop();
			store_close(s);
			(void)unlink(copy_name(2)); /* the two could not be compared */
		}
	}
	end();
}

TEST(a_copy_that_cannot_be_read_is_another_one)
{
	struct store *s;
	bool another = false, struck = true;
	begin();
	kept_as(1);
	for (unsigned n = 1; struck; n++) {
		write_file(path, old, old_n);
		calls_strike(CALLS_FAIL, CALLS_READ, true, n, EIO);
		enum err e = store_open(path, 0, &s, NULL, NULL);
		struck = calls_now()->struck > 0;
		(void)calls_stop();
		if (e == ERR_OK)
			store_close(s);
		another |= access(copy_name(2), F_OK) == 0;
		CHECK(is_copy(1));
	}
	CHECK(another);
	end();
}

/* clang-format off */
RUN_TESTS(T(empty_files_under_the_names_of_rows_become_rows_without_a_document),
	T(a_store_from_before_queues_is_raised),
	T(a_copy_takes_the_first_name_that_is_free_or_holds_the_same),
	T(without_a_free_name_nothing_is_raised),
	T(a_copy_that_cannot_be_made_leaves_the_store_as_it_is),
	T(what_is_no_file_is_no_copy),
	T(an_upgrade_that_is_interrupted_goes_on),
	T(a_copy_that_cannot_be_read_is_another_one))
/* clang-format on */
