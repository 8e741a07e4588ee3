/* SPDX-License-Identifier: MIT
 * Checksums of pages: no bit of a page can change unseen, nor can a page stand in another's place;
 * stores without them are read as they are, and are not taken for those with. */
#include "base/buf.h"
#include "check.h"
#include "store/engines.h"
#include "store/sqlite/page_file.h"
#include "store/sqlite/page_sum.h"

#include <sqlite3.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64], path[80];

static void fill(unsigned char page[PAGE_BYTES])
{
	for (unsigned i = 0; i < PAGE_BYTES; i++)
		page[i] = (unsigned char)(i * 31 + i / 256);
}

TEST(every_changed_bit_is_seen)
{
	unsigned char page[PAGE_BYTES];
	unsigned seen = 0;
	fill(page);
	page_seal(page, 7);
	CHECK(page_is_whole(page, 7));
	for (unsigned bit = 0; bit < 8 * PAGE_BYTES; bit++) {
		page[bit / 8] ^= (unsigned char)(1 << bit % 8);
		seen += !page_is_whole(page, 7);
		page[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	CHECK_EQ_INT(seen, 8 * PAGE_BYTES);
}

/* Each bit of a word together with the same bit of every later one: sums that are merely added up
 * lose the highest ones. */
TEST(two_changed_bits_are_seen)
{
	unsigned char page[PAGE_BYTES];
	unsigned unseen = 0;
	fill(page);
	page_seal(page, 7);
	for (unsigned first = 0; first < 200; first += 25) {
		for (unsigned bit = 64; bit < 8 * PAGE_BYTES - 64 - 64 * first; bit++) {
			unsigned char *p = page + 8 * first + bit % 64 / 8, *q = p + bit / 64 * 8;
			unsigned char mask = (unsigned char)(1 << bit % 8);
			*p ^= mask;
			*q ^= mask;
			unseen += page_is_whole(page, 7);
			*p ^= mask;
			*q ^= mask;
		}
	}
	CHECK(page_is_whole(page, 7));
	CHECK_EQ_INT(unseen, 0);
}

TEST(a_page_belongs_to_its_place)
{
	unsigned char page[PAGE_BYTES], empty[PAGE_BYTES] = { 0 };
	fill(page);
	page_seal(page, 7);
	CHECK(!page_is_whole(page, 8));
	CHECK(!page_is_whole(empty, 7));
	memmove(page + 64, page, 1024);
	CHECK(!page_is_whole(page, 7));
}

/* ---- stores ---- */

static void make_store(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/test_page_file.XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	CHECK_ERR(store_create(path, NULL), ERR_OK);
}

static void remove_store(void)
{
	CHECK(unlink(path) == 0 && rmdir(dir) == 0);
}

static void poke(off_t at, unsigned char value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, &value, 1, at) == 1);
	(void)close(fd);
}

static enum err open_and_list(unsigned flags)
{
	struct store *s = NULL;
	struct item it = { 0 };
	enum err e = store_open(path, flags, &s, NULL, NULL);
	if (e == ERR_OK)
		e = store_get(s, NULL, STORE_TRASH, WANT_BODY, &it);
	item_fini(&it);
	store_close(s);
	return e;
}

TEST(a_changed_page_is_refused_however_it_is_opened)
{
	make_store();
	for (off_t page = 1; page < 5; page++) {
		unsigned char was = 0;
		off_t at = page * PAGE_BYTES + 4000;
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && pread(fd, &was, 1, at) == 1);
		(void)close(fd);
		poke(at, was ^ 4);
		struct store *s = NULL;
		enum err e = store_open(path, STORE_OPEN_READ_ONLY, &s, NULL, NULL);
		if (e == ERR_OK)
			e = store_check(s, NULL, NULL, NULL);
		CHECK_ERR(e, ERR_CORRUPT);
		store_close(s);
		poke(at, was);
		CHECK_ERR(open_and_list(STORE_OPEN_READ_ONLY), ERR_OK);
	}
	CHECK_ERR(open_and_list(0), ERR_OK);
	remove_store();
}

/* As SQLite reads a long value's pages, from 3.45 on. */
TEST(a_part_of_a_changed_page_is_refused_too)
{
	unsigned char part[PAGE_BYTES] = { 0 }, was[PAGE_BYTES] = { 0 };
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MAIN_DB;
	make_store();
	sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");
	sqlite3_file *file = calloc(1, (size_t)(sql_page_file_size + unix_vfs->szOsFile));
	CHECK(file != NULL);
	CHECK_EQ_INT(sql_page_file_open(unix_vfs, path, file, flags, &flags), SQLITE_OK);
	const struct sqlite3_io_methods *f = file->pMethods;
	CHECK_EQ_INT(f->xRead(file, was, PAGE_BYTES, 2 * PAGE_BYTES), SQLITE_OK);
	int all = PAGE_BYTES - PAGE_SUM_BYTES;
	CHECK_EQ_INT(f->xRead(file, part, all, 2 * PAGE_BYTES), SQLITE_OK);
	CHECK(memcmp(part, was, (size_t)all) == 0);
	CHECK_EQ_INT(f->xRead(file, part, 5, 2 * PAGE_BYTES + 100), SQLITE_OK);
	CHECK(memcmp(part, was + 100, 5) == 0);
	poke(2 * PAGE_BYTES + 4000, was[4000] ^ 4);
	CHECK_EQ_INT(f->xRead(file, part, all, 2 * PAGE_BYTES), SQLITE_IOERR_DATA);
	CHECK_EQ_INT(f->xRead(file, part, 5, 2 * PAGE_BYTES + 100), SQLITE_IOERR_DATA);
	CHECK_EQ_INT(f->xRead(file, part, all, 3 * PAGE_BYTES), SQLITE_OK);
	CHECK_EQ_INT(f->xClose(file), SQLITE_OK);
	free(file);
	remove_store();
}

TEST(a_header_that_knows_no_checksums_is_damaged)
{
	make_store();
	poke(PAGE_RESERVED_AT, 0);
	CHECK_ERR(open_and_list(STORE_OPEN_READ_ONLY), ERR_CORRUPT);
	CHECK_ERR(open_and_list(0), ERR_CORRUPT);
	poke(PAGE_RESERVED_AT, PAGE_SUM_BYTES);
	CHECK_ERR(open_and_list(0), ERR_OK);
	remove_store();
}

/* ---- stores of version 2: without room for sums ---- */

static int add_text(void *arg, int n, char **columns, char **names)
{
	(void)n;
	(void)names;
	buf_add_str(arg, columns[0]);
	buf_add_char(arg, ';');
	return 0;
}

/* Row by row into a new file: what SQLite copies as a whole keeps the room in its pages. */
static void make_version_2(void)
{
	char from[100], made[100];
	struct buf sql = BUF_INIT(1 << 16);
	sqlite3 *db = NULL;
	make_store();
	(void)snprintf(made, sizeof(made), "%s.2", path);
	(void)snprintf(from, sizeof(from), "ATTACH '%s' AS old", path);
	CHECK(sqlite3_open(made, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, from, NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "SELECT sql FROM old.sqlite_schema WHERE type='table'", add_text,
		      &sql, NULL) == SQLITE_OK);
	CHECK(sqlite3_exec(db, sql.data, NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_exec(db,
		      "INSERT INTO item SELECT * FROM old.item;"
		      "INSERT INTO obj SELECT * FROM old.obj;"
		      "INSERT INTO meta SELECT * FROM old.meta; DETACH old;"
		      "PRAGMA application_id=0x726F7766; PRAGMA user_version=2;"
		      "PRAGMA journal_mode=WAL",
		      NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_close(db) == SQLITE_OK);
	CHECK(rename(made, path) == 0);
	buf_fini(&sql);
}

static bool is_version(const char *file, unsigned char version)
{
	unsigned char head[100] = { 0 };
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head));
	(void)close(fd);
	return head[63] == version && head[PAGE_RESERVED_AT] == 0;
}

/* Of a file that has pages of its own. */
static char content[3 * PAGE_BYTES];

static uint64_t put_file(struct store *s)
{
	struct change c = { .op = CHANGE_PUT,
		.kind = ITEM_FILE,
		.version = 500,
		.at = { .parent = STORE_REJECTED, .class = CLASS_NAMED, .key = SPAN_LIT("f") },
		.attrs = ATTRS_UNSET };
	struct change w = { .op = CHANGE_WRITE, .version = 501 };
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (char)(i * 7 + i / 256);
	CHECK_ERR(store_apply(s, &c, 1, true, NULL), ERR_OK);
	uint64_t id = c.now.id;
	w.at.id = id;
	w.body = span_make(content, sizeof(content));
	CHECK_ERR(store_apply(s, &w, 1, true, NULL), ERR_OK);
	changes_fini(&c, 1);
	changes_fini(&w, 1);
	return id;
}

static void check_content(const char *file, unsigned flags, uint64_t id)
{
	static char got[sizeof(content) + 1];
	struct store *s = NULL;
	size_t n = 0;
	CHECK_ERR(store_open(file, flags, &s, NULL, NULL), ERR_OK);
	REQUIRE(s);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	CHECK_ERR(store_file_read(s, NULL, id, 0, got, sizeof(got), &n), ERR_OK);
	CHECK(n == sizeof(content) && memcmp(got, content, n) == 0);
	store_close(s);
	CHECK(is_version(file, 6));
}

static void copy_to(struct store *s, const char *file)
{
	struct store_view *v = NULL;
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0);
	CHECK_ERR(store_view_hold(s, &v), ERR_OK);
	CHECK_ERR(store_copy(s, v, fd, NULL, NULL), ERR_OK);
	store_view_close(s, v);
	(void)close(fd);
}

TEST(a_store_without_room_for_checksums_is_served_and_stays_so)
{
	char copy[100], kept[100];
	struct store *s = NULL;
	make_version_2();
	(void)snprintf(copy, sizeof(copy), "%s.copy", path);
	(void)snprintf(kept, sizeof(kept), "%s.v2", path);
	CHECK(is_version(path, 2));
	CHECK_ERR(open_and_list(STORE_OPEN_READ_ONLY), ERR_OK);
	CHECK_ERR(store_open(path, 0, &s, NULL, NULL), ERR_OK);
	REQUIRE(s);
	uint64_t id = put_file(s);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	copy_to(s, copy);
	store_close(s);
	check_content(path, STORE_OPEN_READ_ONLY, id);
	check_content(path, 0, id);
	check_content(copy, STORE_OPEN_READ_ONLY, id);
	check_content(copy, 0, id);
	CHECK(is_version(kept, 2));
	CHECK(unlink(copy) == 0 && unlink(kept) == 0);
	remove_store();
}

/* clang-format off */
RUN_TESTS(
	T(every_changed_bit_is_seen),
	T(two_changed_bits_are_seen),
	T(a_page_belongs_to_its_place),
	T(a_changed_page_is_refused_however_it_is_opened),
	T(a_part_of_a_changed_page_is_refused_too),
	T(a_header_that_knows_no_checksums_is_damaged),
	T(a_store_without_room_for_checksums_is_served_and_stays_so))
/* clang-format on */
