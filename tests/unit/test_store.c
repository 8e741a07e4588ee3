/* SPDX-License-Identifier: MIT
 * Runs the conformance suite against every engine, and tests what is SQLite's own: files,
 * holding, crashes, a full disk, shared commits. */
#include "check.h"
#include "store/engines.h"
#include "store/sqlite/page_sum.h"
#include "store/sqlite/rows.h"
#include "store_contract.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPAN_NONE ((struct span){ NULL, 0 })

static char directory[64];
static char path[128]; /* of the store at work */
static struct err_detail detail;

static void new_path(void)
{
	static unsigned nr;
	(void)snprintf(path, sizeof(path), "%s/%u %%20#?.db", directory, ++nr);
}

static struct store *open_path(void)
{
	struct store *s = NULL;
	memset(&detail, 0, sizeof(detail));
	CHECK_ERR(store_open(path, 0, &s, NULL, &detail), ERR_OK);
	if (!s)
		printf("# %s\n", detail.text);
	return s;
}

static struct store *open_sqlite(void)
{
	new_path();
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	return open_path();
}

static struct store *reopen_sqlite(struct store *s)
{
	store_close(s);
	return open_path();
}

static struct store *open_memory(void)
{
	struct store *s;
	return store_open_memory(&s) == ERR_OK ? s : NULL;
}

static struct store *open_again(struct store *s)
{
	struct store *other;
	return store_open_memory_again(s, &other) == ERR_OK ? other : NULL;
}

/* As an engine over a network: each ability off by itself, and all of them. */
static struct store *open_without(unsigned abilities)
{
	struct store *s;
	return store_open_memory_with(STORE_ABILITIES_MEMORY & ~abilities, &s) == ERR_OK ? s : NULL;
}

static struct store *open_without_views(void)
{
	return open_without(STORE_CAN_VIEW);
}

static struct store *open_without_moves(void)
{
	return open_without(STORE_CAN_MOVE_DIRS);
}

static struct store *open_without_spans(void)
{
	return open_without(STORE_CAN_SPAN);
}

static struct store *open_without_counts(void)
{
	return open_without(STORE_COUNTS_EXACT);
}

static struct store *open_bare(void)
{
	return open_without(STORE_ABILITIES_MEMORY);
}

/* The engines under the fault layer, unarmed: it must be transparent. */
static struct store *fault_inner;

static struct store *wrap(struct store *inner)
{
	struct store *s;
	fault_inner = inner;
	return inner && store_open_fault(inner, &s) == ERR_OK ? s : NULL;
}

static struct store *open_fault_memory(void)
{
	return wrap(open_memory());
}

static struct store *open_fault_sqlite(void)
{
	return wrap(open_sqlite());
}

static void limits_inner(struct store *s, uint64_t one, uint64_t all)
{
	(void)s;
	store_set_file_limits(fault_inner, one, all);
}

static const struct contract_engine engines[] = {
	{ "memory", open_memory, NULL, store_set_file_limits, open_again },
	{ "sqlite", open_sqlite, reopen_sqlite, store_set_file_limits },
	{ "memory without views", open_without_views, NULL, store_set_file_limits, open_again },
	{ "memory without moves of directories", open_without_moves, NULL, store_set_file_limits,
		open_again },
	{ "memory without spans", open_without_spans, NULL, store_set_file_limits, open_again },
	{ "memory without counts", open_without_counts, NULL, store_set_file_limits, open_again },
	{ "memory without any ability", open_bare, NULL, store_set_file_limits, open_again },
	{ "fault over memory", open_fault_memory, NULL, limits_inner },
	{ "fault over sqlite", open_fault_sqlite, NULL, limits_inner },
};

/* ---- helpers ---- */

static struct change put_under(
	uint64_t parent, enum item_kind kind, const char *key, int64_t version)
{
	return (struct change){ .op = CHANGE_PUT,
		.kind = kind,
		.version = version,
		.at = { .parent = parent, .key = span_of(key) },
		.attrs = ATTRS_UNSET,
		.body = SPAN_LIT("{}"),
		.name = SPAN_LIT("Table") };
}

static struct change put_row(uint64_t table, const char *pk, const char *rk, int64_t version)
{
	struct change c = put_under(table, ITEM_ROW, rk, version);
	c.at.has_pk = true;
	c.at.pk = span_of(pk);
	return c;
}

static uint64_t make(struct store *s, struct change c)
{
	enum err e = store_apply(s, &c, 1, false, &detail);
	CHECK_ERR(e, ERR_OK);
	uint64_t id = e == ERR_OK ? c.now.id : 0;
	changes_fini(&c, 1);
	return id;
}

static uint64_t make_table(struct store *s)
{
	uint64_t account = make(s, put_under(STORE_ROOT, ITEM_ACCOUNT, "account", 100));
	return make(s, put_under(account, ITEM_TABLE, "table", 101));
}

static bool exists(const char *tail)
{
	char name[160];
	struct stat st;
	(void)snprintf(name, sizeof(name), "%s%s", path, tail);
	return stat(name, &st) == 0;
}

static void write_file(const char *text, size_t n)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	(void)close(fd);
}

static void patch_store(off_t at, const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n);
	(void)close(fd);
}

static enum err open_fails(unsigned flags)
{
	struct store *s;
	memset(&detail, 0, sizeof(detail));
	enum err e = store_open(path, flags, &s, NULL, &detail);
	if (e == ERR_OK)
		store_close(s);
	return e;
}

/* ---- files ---- */

TEST(a_store_is_made_private_and_never_over_anything)
{
	new_path();
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	struct stat st;
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK(!exists("-wal") && !exists("-shm"));
	CHECK_ERR(store_create(path, &detail), ERR_NAME_EXISTS);
	CHECK_ERR(store_create(directory, &detail), ERR_NAME_EXISTS);
	new_path();
	CHECK(symlink("/nowhere/at/all", path) == 0);
	CHECK_ERR(store_create(path, &detail), ERR_NAME_EXISTS);
	new_path();
	char log[160];
	(void)snprintf(log, sizeof(log), "%s-wal", path);
	int fd = open(log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	(void)close(fd);
	CHECK_ERR(store_create(path, &detail), ERR_NAME_EXISTS);
	CHECK(strstr(detail.text, "-wal") != NULL);
	CHECK_ERR(store_create("/nowhere/at/all", &detail), ERR_NOT_FOUND);
}

TEST(what_is_no_store_is_refused_with_a_reason)
{
	new_path();
	CHECK_ERR(open_fails(0), ERR_NOT_FOUND);
	write_file("", 0);
	CHECK_ERR(open_fails(0), ERR_NOT_A_STORE);
	CHECK(strstr(detail.text, "empty") != NULL);
	write_file("hello, this is text", 19);
	CHECK_ERR(open_fails(0), ERR_NOT_A_STORE);
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
	CHECK_ERR(open_fails(0), ERR_NOT_A_STORE);
	CHECK_ERR(open_fails(STORE_OPEN_READ_ONLY), ERR_NOT_A_STORE);
	new_path();
	CHECK(mkfifo(path, 0600) == 0);
	CHECK_ERR(open_fails(0), ERR_NOT_A_STORE);
	new_path();
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	patch_store(68, "abcd", 4);
	CHECK_ERR(open_fails(0), ERR_NOT_A_STORE);
	CHECK(strstr(detail.text, "SQLite") != NULL);
}

TEST(a_newer_schema_is_refused_with_both_versions)
{
	new_path();
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	patch_store(60, "\0\0\0\x09", 4);
	CHECK_ERR(open_fails(0), ERR_STORE_TOO_NEW);
	CHECK(strstr(detail.text, "version 9;") != NULL &&
		strstr(detail.text, "version 7") != NULL);
	CHECK_ERR(open_fails(STORE_OPEN_READ_ONLY), ERR_STORE_TOO_NEW);
}

TEST(a_held_store_tells_who_holds_it)
{
	struct store *s = open_sqlite(), *other;
	pid_t pid = 0;
	(void)prctl(PR_SET_NAME, "test_store"); /* under valgrind it has another */
	CHECK_ERR(store_open(path, 0, &other, &pid, &detail), ERR_BUSY);
	CHECK_EQ_INT(pid, getpid());
	CHECK(strstr(detail.text, "test_store") != NULL);
	CHECK_ERR(open_fails(STORE_OPEN_READ_ONLY), ERR_BUSY);
	store_close(s);
	CHECK_ERR(open_fails(0), ERR_OK);
}

TEST(a_clean_close_leaves_no_log)
{
	struct store *s = open_sqlite();
	make_table(s);
	CHECK(exists("-wal"));
	store_close(s);
	CHECK(!exists("-wal") && !exists("-shm"));
}

TEST(a_read_only_store_reads_and_refuses_changes)
{
	struct store *s = open_sqlite();
	uint64_t table = make_table(s);
	uint64_t id = make(s, put_row(table, "p", "r", 200));
	store_close(s);
	CHECK_ERR(store_open(path, STORE_OPEN_READ_ONLY, &s, NULL, &detail), ERR_OK);
	struct item it;
	CHECK_ERR(store_get(s, NULL, id, WANT_BODY, &it), ERR_OK);
	item_fini(&it);
	struct change c = put_row(table, "p", "s", 300);
	CHECK_ERR(store_apply(s, &c, 1, true, &detail), ERR_READ_ONLY);
	struct store_info info;
	store_info(s, &info);
	CHECK(info.abilities & STORE_READ_ONLY);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	CHECK_ERR(store_sync(s), ERR_OK);
	store_close(s);
	CHECK(!exists("-wal") && !exists("-shm"));
}

#define FINDINGS_MAX 1000
static bool note_finding(void *arg, const char *finding)
{
	char *all = arg;
	size_t n = strlen(all);
	(void)snprintf(all + n, FINDINGS_MAX - n, "%s\n", finding);
	return true;
}

/* So that what sqlite3 wrote looks like a mistake of ours, and not like a damaged disk. */
static void seal_pages(void)
{
	unsigned char page[PAGE_BYTES];
	int fd = open(path, O_RDWR);
	REQUIRE(fd >= 0);
	for (uint32_t i = 0; pread(fd, page, sizeof(page), (off_t)i * PAGE_BYTES) == PAGE_BYTES;
		i++) {
		page_seal(page, i + 1);
		CHECK(pwrite(fd, page, sizeof(page), (off_t)i * PAGE_BYTES) == PAGE_BYTES);
	}
	(void)close(fd);
}

/* False: there is no sqlite3 program. */
static bool run_sql(const char *sql)
{
	pid_t pid = fork();
	if (pid == 0) {
		execlp("sqlite3", "sqlite3", path, sql, (char *)NULL);
		_exit(77);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status == 0)
		seal_pages();
	return status == 0;
}

TEST(check_finds_what_does_not_agree)
{
	static const char *const damage[][2] = {
		{ "DELETE FROM obj WHERE id=1025", "1025" },
		{ "UPDATE item SET size=7 WHERE kind=2", "counts" },
		{ "UPDATE item SET size=7 WHERE kind=4", "bytes" },
		{ "DELETE FROM item WHERE kind=4", "no item" },
		{ "INSERT INTO chunk VALUES(99,0,x'00')", "no file" },
		{ "UPDATE item SET name=CAST('5' AS BLOB) WHERE id=3", "files" },
		{ "UPDATE item SET version=1 << 61 WHERE kind=4", "later" },
	};
	for (size_t i = 0; i < ARRAY_LEN(damage); i++) {
		char all[FINDINGS_MAX] = "";
		struct store *s = open_sqlite();
		make(s, put_row(make_table(s), "p", "r", 200));
		CHECK_ERR(store_check(s, note_finding, NULL, all), ERR_OK);
		store_close(s);
		if (!run_sql(damage[i][0])) {
			printf("# SKIP: no sqlite3 program to do damage with\n");
			return;
		}
		s = open_path();
		REQUIRE(s);
		CHECK_ERR(store_check(s, note_finding, NULL, all), ERR_CORRUPT);
		if (!strstr(all, damage[i][1])) {
			printf("# %s: %s\n", damage[i][0], all);
			CHECK(strstr(all, damage[i][1]) != NULL);
		}
		store_close(s);
	}
}

/* The row that has the sum is written in the middle of this set, and at its end the sum is the one
 * from before. */
TEST(the_sum_of_files_is_right_after_a_set_that_adds_and_removes_as_much)
{
	struct store *s = open_sqlite();
	uint64_t table = make_table(s);
	struct item partition = { 0 };
	struct store_info info;
	make(s, put_row(table, "p", "r", 200));
	CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), WANT_ATTRS, &partition),
		ERR_OK);
	struct change c = put_under(partition.id, ITEM_FOLDER, ".d", 201);
	c.at.class = CLASS_NAMED;
	uint64_t folder = make(s, c);
	c = put_under(folder, ITEM_FILE, "f", 202);
	c.at.class = CLASS_NAMED;
	uint64_t file = make(s, c);
	c = (struct change){ .op = CHANGE_WRITE, .at = { .id = file }, .version = 203 };
	c.body = SPAN_LIT("{}");
	make(s, c);
	struct change set[2] = {
		{ .op = CHANGE_DELETE, .version = 204, .flags = CHANGE_TO_FILE | CHANGE_KEEP_DIR },
		{ .op = CHANGE_DELETE, .version = 205, .flags = CHANGE_RECURSIVE },
	};
	set[0].at = put_row(table, "p", "r", 0).at;
	set[0].to = (struct item_ref){ .parent = STORE_TRASH, .class = CLASS_NAMED };
	set[0].to.key = SPAN_LIT("left");
	set[1].at.id = folder;
	CHECK_ERR(store_apply(s, set, 2, false, &detail), ERR_OK);
	changes_fini(set, 2);
	item_fini(&partition);
	s = reopen_sqlite(s);
	REQUIRE(s);
	store_info(s, &info);
	CHECK_EQ_INT(info.file_bytes, 2);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	store_close(s);
}

static uint64_t make_at(struct store *s, enum item_kind kind, uint64_t parent, const char *text)
{
	struct change c = { .op = CHANGE_PUT, .kind = kind, .version = 510 };
	c.at = (struct item_ref){ .parent = parent, .key = span_of("x") };
	c.at.class = CLASS_BLOB;
	c.attrs = ATTRS_UNSET;
	c.body = span_of(text);
	return make(s, c);
}

/* A blob with three bytes; stores of before have no sum of them. */
static void make_piece(struct store *s)
{
	uint64_t account = make(s, put_under(STORE_ROOT, ITEM_ACCOUNT, "account", 509));
	uint64_t blob = make_at(s, ITEM_BLOB, make_at(s, ITEM_CONTAINER, account, ""), "");
	make_at(s, ITEM_PIECE, make_at(s, ITEM_EXTENT, blob, ""), "123");
}

/* As version 1 kept them: all content in pieces, the sum in meta. */
TEST(a_store_of_version_1_is_read_copied_and_upgraded)
{
	static const char to_version_1[] =
		"PRAGMA user_version=1;"
		"INSERT INTO meta VALUES('file_bytes',5); UPDATE item SET name=NULL WHERE id=3;"
		"INSERT INTO chunk SELECT id,0,(SELECT body FROM obj o WHERE o.id=i.id) FROM item i"
		" WHERE kind=5; UPDATE item SET flags=NULL WHERE kind=5;"
		"UPDATE obj SET body=NULL WHERE id IN (SELECT id FROM item WHERE kind=5)";
	struct store *s = open_sqlite();
	struct store_info info;
	struct change c = { .op = CHANGE_PUT, .kind = ITEM_FILE, .version = 500 };
	c.at = (struct item_ref){ .parent = STORE_REJECTED, .class = CLASS_NAMED };
	c.at.key = SPAN_LIT("old");
	c.attrs = ATTRS_UNSET;
	uint64_t id = make(s, c);
	c = (struct change){ .op = CHANGE_WRITE, .at = { .id = id }, .version = 501 };
	c.body = SPAN_LIT("12345");
	make(s, c);
	make_piece(s);
	store_close(s);
	if (!run_sql(to_version_1)) {
		printf("# SKIP: no sqlite3 program\n");
		return;
	}
	char copy[sizeof(path) + 8];
	(void)snprintf(copy, sizeof(copy), "%s.v1", path);
	for (int round = 0; round < 3; round++) {
		char bytes[8];
		size_t n = 0;
		s = NULL;
		CHECK_ERR(store_open(path, round == 0 ? STORE_OPEN_READ_ONLY : 0, &s, NULL, NULL),
			ERR_OK);
		REQUIRE(s);
		CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
		store_info(s, &info);
		CHECK_EQ_INT(info.file_bytes, round < 2 ? 5 : 7);
		CHECK(round == 0 || info.piece_bytes == 3);
		CHECK_EQ_INT(info.upgraded_from, round == 1 ? 1 : 0);
		CHECK(round == 1 ? info.kept_copy && strcmp(info.kept_copy, copy) == 0
				 : !info.kept_copy);
		CHECK(exists(".v1") == (round > 0) && !exists(".v1.part"));
		CHECK_ERR(store_file_read(s, NULL, id, 0, bytes, sizeof(bytes), &n), ERR_OK);
		CHECK(n == (round < 2 ? 5 : 7) && memcmp(bytes, "1234567", n) == 0);
		if (round == 1) {
			c.version = 502;
			c.offset = 5;
			c.body = SPAN_LIT("67");
			make(s, c);
			CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
		}
		store_close(s);
	}
	unsigned char version[4] = { 0 };
	int fd = open(path, O_RDONLY);
	CHECK(pread(fd, version, sizeof(version), 60) == sizeof(version) && version[3] == 6);
	(void)close(fd);
	fd = open(copy, O_RDONLY);
	CHECK(pread(fd, version, sizeof(version), 60) == sizeof(version) && version[3] == 1);
	(void)close(fd);
	CHECK(unlink(copy) == 0);
}

/* ---- crashes ---- */

/* Applies sets of two rows until it is ended, telling each acknowledged one. */
NORETURN static void crash_child(uint64_t table, int fd, unsigned seed)
{
	struct store *s;
	if (store_open(path, 0, &s, NULL, NULL) != ERR_OK)
		_exit(1);
	int64_t version = store_version_floor(s);
	for (unsigned i = 0; i < 40 + seed * 13 % 97; i++) {
		char a[32], b[32];
		(void)snprintf(a, sizeof(a), "%u-%u-a", seed, i);
		(void)snprintf(b, sizeof(b), "%u-%u-b", seed, i);
		version++;
		struct change set[2] = { put_row(table, "p", a, version),
			put_row(table, "p", b, version) };
		if (store_apply(s, set, 2, i % 7 == 0, NULL) != ERR_OK)
			_exit(2);
		uint64_t told[2] = { set[0].now.id, (uint64_t)version };
		if (write(fd, told, sizeof(told)) != sizeof(told))
			_exit(3);
		changes_fini(set, 2);
	}
	for (;;)
		(void)raise(SIGKILL);
}

TEST(after_a_kill_every_acknowledged_set_is_there_and_no_half)
{
	struct store *s = open_sqlite();
	uint64_t table = make_table(s), last_id = 0, rows = 0;
	make(s, put_row(table, "p", "first", 200));
	rows++;
	store_close(s);
	for (unsigned seed = 1; seed <= 8; seed++) {
		int ends[2], status;
		uint64_t told[2], last[2] = { 0, 0 };
		REQUIRE(pipe(ends) == 0);
		pid_t pid = fork();
		if (pid == 0) {
			(void)close(ends[0]);
			crash_child(table, ends[1], seed);
		}
		(void)close(ends[1]);
		while (read(ends[0], told, sizeof(told)) == sizeof(told)) {
			CHECK(told[0] > last_id); /* ids are never used again */
			last_id = told[0] + 1;
			memcpy(last, told, sizeof(last));
			rows += 2;
		}
		(void)close(ends[0]);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		CHECK(exists("-wal"));
		s = open_path();
		REQUIRE(s);
		CHECK(store_version_floor(s) >= (int64_t)last[1]);
		CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
		struct item it;
		CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), 0, &it), ERR_OK);
		CHECK_EQ_INT(it.size, rows);
		item_fini(&it);
		CHECK_ERR(store_get(s, NULL, last[0] + 1, WANT_BODY, &it), ERR_OK);
		item_fini(&it);
		store_close(s);
	}
}

static enum err put_big(struct store *s, uint64_t table, const char *rk, int64_t version, size_t n)
{
	char *body = malloc(n);
	memset(body, 'x', n);
	struct change c = put_row(table, "p", rk, version);
	c.body = span_make(body, n);
	enum err e = store_apply(s, &c, 1, false, NULL);
	changes_fini(&c, 1);
	free(body);
	return e;
}

/* ---- a scan that finds nothing ---- */

struct shown {
	unsigned skipped, rows;
};

static bool skip_all(void *arg, const struct item *it)
{
	(void)it;
	((struct shown *)arg)->skipped++;
	return true;
}

static bool count_shown(void *arg, const struct item *it)
{
	(void)it;
	((struct shown *)arg)->rows++;
	return true;
}

TEST(a_scan_that_skips_every_row_reads_a_bounded_number_at_once)
{
	enum {
		ROWS = 5000
	};
	struct store *s = open_sqlite();
	uint64_t table = make_table(s);
	char key[16];
	for (int i = 0; i < ROWS; i++) {
		(void)snprintf(key, sizeof(key), "%05d", i);
		make(s, put_row(table, "p", key, 1000 + i));
	}
	struct item p;
	struct shown shown = { 0 };
	CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), 0, &p), ERR_OK);
	CHECK_ERR(store_scan(s, NULL, p.id, CLASS_KEYED, SPAN_NONE, false, skip_all, count_shown,
			  &shown),
		ERR_OK);
	CHECK_EQ_INT(shown.skipped + shown.rows, ROWS);
	CHECK_EQ_INT(shown.rows, ROWS / (SQL_LIST_MAX + 1)); /* each ends a read transaction */
	item_fini(&p);
	store_close(s);
}

/* ---- pages in memory ---- */

static uint64_t cached_bytes(struct store *s)
{
	struct store_info info;
	store_info(s, &info);
	return info.cached_bytes;
}

/* Reads the row in several views that are open at once: each has a connection, and its own pages. */
static void read_in_views(struct store *s, uint64_t table, size_t n)
{
	struct store_view *views[8];
	for (size_t i = 0; i < n; i++) {
		struct item partition, row;
		CHECK_ERR(store_view_open(s, &views[i]), ERR_OK);
		CHECK_ERR(
			store_child(s, views[i], table, CLASS_KEYED, SPAN_LIT("p"), 0, &partition),
			ERR_OK);
		CHECK_ERR(store_child(s, views[i], partition.id, CLASS_KEYED, SPAN_LIT("r"),
				  WANT_BODY, &row),
			ERR_OK);
		item_fini(&row);
		item_fini(&partition);
	}
	for (size_t i = 0; i < n; i++)
		store_view_close(s, views[i]);
}

TEST(pages_in_memory_are_counted_until_they_are_given_back)
{
	struct store *s = open_sqlite();
	uint64_t table = make_table(s), empty = cached_bytes(s);
	CHECK_ERR(put_big(s, table, "r", 1000, 200000), ERR_OK);
	uint64_t written = cached_bytes(s);
	CHECK(written > empty + 200000);
	read_in_views(s, table, 8);
	uint64_t read = cached_bytes(s);
	CHECK(read > written + 8 * UINT64_C(200000));
	read_in_views(s, table, 8);
	CHECK_EQ_INT(cached_bytes(s), read);
	store_give_back(s);
	CHECK(cached_bytes(s) < written + UINT64_C(200000));
	store_close(s);
}

/* ---- a full disk ---- */

static void fill_up(const char *mount_point)
{
	struct store *s = NULL;
	(void)snprintf(path, sizeof(path), "%s/store.db", mount_point);
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	s = open_path();
	REQUIRE(s);
	uint64_t table = make_table(s);
	make(s, put_row(table, "p", "small", 200));
	char key[16];
	enum err e = ERR_OK;
	int n = 0;
	for (; n < 200 && e == ERR_OK; n++) {
		(void)snprintf(key, sizeof(key), "%d", n);
		e = put_big(s, table, key, 1000 + n, 300000);
	}
	CHECK_ERR(e, ERR_NO_SPACE);
	struct item it;
	CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), 0, &it), ERR_OK);
	CHECK_EQ_INT(it.size, n); /* n - 1 large ones, a small one */
	item_fini(&it);
	char ballast[128];
	(void)snprintf(ballast, sizeof(ballast), "%s/ballast", mount_point);
	CHECK(unlink(ballast) == 0);
	CHECK_ERR(put_big(s, table, "later", 5000, 300000), ERR_OK);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	store_close(s);
}

TEST(a_full_disk_refuses_and_a_freed_one_goes_on)
{
	char mount_point[100], ballast[128];
	(void)snprintf(mount_point, sizeof(mount_point), "%s/small", directory);
	CHECK(mkdir(mount_point, 0700) == 0);
	if (mount("none", mount_point, "tmpfs", 0, "size=12m") != 0) {
		printf("# SKIP: may not mount a tmpfs here\n");
		return;
	}
	(void)snprintf(ballast, sizeof(ballast), "%s/ballast", mount_point);
	int fd = open(ballast, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && posix_fallocate(fd, 0, 6 << 20) == 0);
	(void)close(fd);
	fill_up(mount_point);
	CHECK(umount(mount_point) == 0);
}

/* ---- shared commits ---- */

struct worker {
	struct store *s;
	uint64_t table;
	int nr;
	bool durable;
	unsigned ok;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < 150; i++) {
		char key[32];
		(void)snprintf(key, sizeof(key), "%d-%d", w->nr, i);
		struct change c = put_row(w->table, "p", key, 10000 + i);
		w->ok += store_apply(w->s, &c, 1, w->durable, NULL) == ERR_OK;
		changes_fini(&c, 1);
	}
	return NULL;
}

static void run_workers(struct store *s, uint64_t table, bool durable, int first)
{
	struct worker workers[8];
	pthread_t threads[8];
	for (int i = 0; i < 8; i++) {
		workers[i] = (struct worker){ s, table, first + i, durable, 0 };
		CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
	}
	for (int i = 0; i < 8; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK_EQ_INT(workers[i].ok, 150);
	}
}

static bool on_one_cpu(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
}

TEST(writers_at_once_share_commits_and_syncs)
{
	struct store *s = open_sqlite();
	uint64_t table = make_table(s);
	struct store_info a, b;
	store_info(s, &a);
	run_workers(s, table, true, 0);
	store_info(s, &b);
	CHECK_EQ_INT(b.changes - a.changes, 1200);
	/* On one CPU nobody comes while another one commits, only while he syncs. */
	CHECK(b.commits - a.commits < 1200 + (uint64_t)on_one_cpu());
	CHECK_EQ_INT(b.change_sets - a.change_sets, 1200);
	uint64_t commits = 0, least = 0;
	for (unsigned i = 0; i < STORE_COMMIT_SIZES; i++) {
		commits += b.commit_sizes[i] - a.commit_sizes[i];
		least += (b.commit_sizes[i] - a.commit_sizes[i]) << i;
	}
	CHECK_EQ_INT(commits, b.commits - a.commits);
	CHECK(least + (uint64_t)on_one_cpu() > commits && least <= 1200);
	CHECK(b.syncs > a.syncs && b.syncs - a.syncs < 1200);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	store_close(s);
}

TEST(one_durable_set_is_one_sync)
{
	struct store *s = open_sqlite();
	uint64_t table = make_table(s);
	struct store_info a, b;
	CHECK_ERR(store_sync(s), ERR_OK);
	store_info(s, &a);
	struct change c = put_row(table, "p", "r", 500);
	CHECK_ERR(store_apply(s, &c, 1, true, NULL), ERR_OK);
	changes_fini(&c, 1);
	store_info(s, &b);
	CHECK_EQ_INT(b.syncs - a.syncs, 1);
	CHECK_ERR(store_sync(s), ERR_OK); /* nothing is left to do */
	store_info(s, &b);
	CHECK_EQ_INT(b.syncs - a.syncs, 1);
	store_close(s);
}

TEST(the_fault_layer_strikes_the_call_it_was_told)
{
	struct store *s = open_fault_memory();
	uint64_t table = make_table(s);
	struct change c = put_row(table, "p", "r", 500);
	struct item it;
	store_fault_arm(s, FAULT_APPLY_BEFORE, 1, ERR_IO);
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_IO);
	CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), 0, &it), ERR_NOT_FOUND);
	store_fault_arm(s, FAULT_APPLY_AFTER, 2, ERR_OUTCOME_UNKNOWN);
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_OK);
	changes_fini(&c, 1);
	c.version = 501;
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_OUTCOME_UNKNOWN);
	CHECK(!c.now.mem);
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_STALE_VERSION);
	store_fault_arm(s, FAULT_READS, 1, ERR_THROTTLED);
	CHECK_ERR(store_get(s, NULL, table, 0, &it), ERR_THROTTLED);
	CHECK_ERR(store_get(s, NULL, table, 0, &it), ERR_OK);
	item_fini(&it);
	store_close(s);
}

/* ---- all of it ---- */

static const struct check_test own[] = {
	T(a_scan_that_skips_every_row_reads_a_bounded_number_at_once),
	T(a_store_is_made_private_and_never_over_anything),
	T(what_is_no_store_is_refused_with_a_reason),
	T(a_newer_schema_is_refused_with_both_versions),
	T(a_held_store_tells_who_holds_it),
	T(a_clean_close_leaves_no_log),
	T(a_read_only_store_reads_and_refuses_changes),
	T(check_finds_what_does_not_agree),
	T(the_sum_of_files_is_right_after_a_set_that_adds_and_removes_as_much),
	T(a_store_of_version_1_is_read_copied_and_upgraded),
	T(after_a_kill_every_acknowledged_set_is_there_and_no_half),
	T(pages_in_memory_are_counted_until_they_are_given_back),
	T(a_full_disk_refuses_and_a_freed_one_goes_on),
	T(writers_at_once_share_commits_and_syncs),
	T(one_durable_set_is_one_sync),
	T(the_fault_layer_strikes_the_call_it_was_told),
};

static const unsigned seeds[] = { 1, 2, 3, 4, 5, 20261120 };

static unsigned line, failed;

static void tell(unsigned failures, const char *who, const char *what)
{
	printf("%s %u - %s: %s\n", failures ? "not ok" : "ok", ++line, who, what);
	failed += failures != 0;
}

static void remove_directory(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", directory, (char *)NULL);
		_exit(1);
	}
	(void)waitpid(pid, NULL, 0);
}

int main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)snprintf(directory, sizeof(directory), "/tmp/test_store.XXXXXX");
	if (!mkdtemp(directory))
		return 1;
	printf("1..%zu\n",
		ARRAY_LEN(engines) * contract_count() + ARRAY_LEN(own) + ARRAY_LEN(seeds));
	for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
		for (unsigned i = 0; i < contract_count(); i++)
			tell(contract_run(i, &engines[e]), engines[e].name, contract_name(i));
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		check_failures = 0;
		own[i].run();
		tell(check_failures, "store", own[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(seeds); i++)
		tell(contract_random(&engines[1], seeds[i], 1500), "sqlite",
			"does what memory does, whatever comes");
	remove_directory();
	return failed == 0 ? 0 : 1;
}
