/* SPDX-License-Identifier: MIT
 * Runs the conformance suite over the RADOS engine, and tests what is its own: the owner, large
 * bodies, what a dead daemon leaves.  tests/ceph/cluster.py starts the cluster. */
#include "base/clock.h"
#include "check.h"
#include "rados_waits.h"
#include "store/engines.h"
#include "store_contract.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static char path[128]; /* of the store at work */
static struct err_detail detail;

static void new_path(void)
{
	static unsigned nr;
	const char *pool = getenv("ROWFS_POOL");
	(void)snprintf(path, sizeof(path), "rados:%s/test-%ld-%u", pool ? pool : "rowfs",
		(long)getpid(), ++nr);
}

static struct store *open_place(const char *place)
{
	struct store *s = NULL;
	memset(&detail, 0, sizeof(detail));
	CHECK_ERR(store_open(place, 0, &s, NULL, &detail), ERR_OK);
	if (!s)
		printf("# %s\n", detail.text);
	return s;
}

static struct store *open_path(void)
{
	return open_place(path);
}

static const char *exclusive(void)
{
	static char place[sizeof(path) + 16];
	(void)snprintf(place, sizeof(place), "%s?mode=exclusive", path);
	return place;
}

static struct store *open_new(void)
{
	new_path();
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	return open_path();
}

static struct store *reopen(struct store *s)
{
	store_close(s);
	return open_path();
}

static const struct contract_engine engine = { "rados", open_new, reopen, store_set_file_limits };

/* ---- helpers ---- */

/* Runs the program rados on this store's objects; its output goes to `out`. */
static void rados(const char *arguments, char *out, size_t cap)
{
	char command[512];
	const char *pool = path + strlen("rados:"), *name = strchr(pool, '/');
	(void)snprintf(command, sizeof(command), "rados -p %.*s -N %s %s 2>&1", (int)(name - pool),
		pool, name + 1, arguments);
	FILE *f = popen(command, "r");
	REQUIRE(f);
	size_t n = fread(out, 1, cap - 1, f);
	out[n] = 0;
	(void)pclose(f);
}

static unsigned objects(void)
{
	char out[10000];
	unsigned n = 0;
	rados("ls", out, sizeof(out));
	for (const char *p = out; *p; p += strcspn(p, "\n") + 1)
		n += strncmp(p, "ids.", 4) != 0;
	return n;
}

static uint64_t make(struct store *s, enum item_kind kind, struct item_ref at, struct span body)
{
	static int64_t clock = 1000;
	struct change c = { .op = CHANGE_PUT, .kind = kind, .at = at, .version = ++clock };
	c.attrs = ATTRS_UNSET;
	c.name = SPAN_LIT("Table");
	c.body = body;
	enum err e = store_apply(s, &c, 1, false, &detail);
	CHECK_ERR(e, ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

static struct item_ref in(uint64_t parent, const char *key)
{
	return (struct item_ref){ .parent = parent, .key = span_of(key) };
}

static struct item_ref row_in(uint64_t table, const char *pk, const char *rk)
{
	struct item_ref at = in(table, rk);
	at.has_pk = true;
	at.pk = span_of(pk);
	return at;
}

static uint64_t make_table(struct store *s)
{
	uint64_t account = make(s, ITEM_ACCOUNT, in(STORE_ROOT, "account"), SPAN_LIT("keys"));
	return make(s, ITEM_TABLE, in(account, "table"), SPAN_LIT(""));
}

static enum err put_row(struct store *s, uint64_t table, const char *rk, int64_t version)
{
	struct change c = { .op = CHANGE_PUT, .kind = ITEM_ROW, .version = version };
	c.at = row_in(table, "p", rk);
	c.cond = COND_ABSENT;
	c.attrs = ATTRS_UNSET;
	c.body = SPAN_LIT("{}");
	enum err e = store_apply(s, &c, 1, false, &detail);
	changes_fini(&c, 1);
	return e;
}

/* ---- its own ---- */

TEST(a_store_is_made_once_and_found_or_not)
{
	struct store *s;
	new_path();
	CHECK_ERR(store_open(path, 0, &s, NULL, &detail), ERR_NOT_FOUND);
	CHECK_ERR(store_create(path, &detail), ERR_OK);
	CHECK_ERR(store_create(path, &detail), ERR_NAME_EXISTS);
	CHECK_ERR(store_create("rados:no-such-pool/x", &detail), ERR_NOT_FOUND);
	CHECK_ERR(store_create("rados:pool-without-name", &detail), ERR_INVALID_INPUT);
	CHECK_ERR(store_create("rados:rowfs/x?colour=red", &detail), ERR_INVALID_INPUT);
	CHECK_ERR(store_create("rados:rowfs/x/y", &detail), ERR_INVALID_INPUT);
}

TEST(a_second_daemon_is_told_who_serves_the_store)
{
	struct store *other;
	char pid[32];
	(void)snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	store_close(open_new());
	for (unsigned alone = 0; alone < 2; alone++) {
		struct store *first = open_place(alone ? exclusive() : path);
		REQUIRE(first);
		CHECK_ERR(
			store_open(alone ? path : exclusive(), 0, &other, NULL, &detail), ERR_BUSY);
		CHECK(strstr(detail.text, pid) != NULL);
		store_close(first);
	}
	struct store *s;
	s = open_path();
	REQUIRE(s);
	store_close(s);
}

/* The lock is broken as the cluster does when it lapses. */
TEST(the_owner_before_can_change_and_read_nothing)
{
	char out[1000], command[200], client[64];
	store_close(open_new());
	struct store *before = open_place(exclusive());
	REQUIRE(before);
	uint64_t table = make_table(before);
	CHECK_ERR(put_row(before, table, "a", 5000), ERR_OK);
	rados("lock info store owner", out, sizeof(out));
	const char *at = strstr(out, "client.");
	REQUIRE(at && sscanf(at, "%63[a-z.0-9]", client) == 1);
	const char *cookie = strstr(out, "\"cookie\":\"");
	REQUIRE(cookie);
	(void)snprintf(command, sizeof(command), "lock break store owner %s --lock-cookie %.16s",
		client, cookie + 10);
	rados(command, out, sizeof(out));
	struct store *s = open_path();
	REQUIRE(s);
	CHECK_ERR(put_row(s, table, "b", 6000), ERR_OK);
	CHECK_ERR(put_row(before, table, "c", 7000), ERR_IO);
	CHECK_ERR(store_room(before, 1, &detail), ERR_IO);
	struct item it;
	CHECK_ERR(store_get(before, NULL, table, WANT_ATTRS, &it), ERR_IO);
	store_close(before);
	CHECK_ERR(store_get(s, NULL, table, WANT_ATTRS, &it), ERR_OK);
	CHECK(it.size == 1);
	item_fini(&it);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	store_close(s);
}

/* ---- several daemons ---- */

struct pair {
	struct store *s[2];
	uint64_t table;
};

static struct pair open_two(void)
{
	struct pair p = { .s = { open_new() } };
	p.s[1] = open_path();
	p.table = make_table(p.s[0]);
	return p;
}

static void close_two(struct pair *p)
{
	CHECK_ERR(store_check(p->s[0], NULL, NULL, NULL), ERR_OK);
	store_close(p->s[0]);
	store_close(p->s[1]);
}

static enum err delete_row(struct store *s, uint64_t table, const char *rk, int64_t version)
{
	struct change c = { .op = CHANGE_DELETE, .version = version };
	c.at = row_in(table, "p", rk);
	enum err e = store_apply(s, &c, 1, false, &detail);
	changes_fini(&c, 1);
	return e;
}

static uint64_t rows_in(struct store *s, uint64_t table)
{
	struct item it = { 0 };
	enum err e = store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), WANT_ATTRS, &it);
	uint64_t n = e == ERR_OK ? it.size : 0;
	item_fini(&it);
	return n;
}

TEST(two_daemons_see_each_others_changes_and_refuse_what_is_stale)
{
	struct pair p = open_two();
	CHECK_ERR(put_row(p.s[0], p.table, "a", 5000), ERR_OK);
	CHECK_EQ_INT(rows_in(p.s[1], p.table), 1);
	CHECK_ERR(put_row(p.s[1], p.table, "a", 6000), ERR_ENTITY_EXISTS);
	CHECK_ERR(put_row(p.s[1], p.table, "b", 6000), ERR_OK);
	CHECK_ERR(delete_row(p.s[0], p.table, "b", 5999), ERR_STALE_VERSION);
	CHECK(store_version_floor(p.s[0]) >= 6000);
	CHECK_ERR(delete_row(p.s[0], p.table, "b", 7000), ERR_OK);
	CHECK_EQ_INT(rows_in(p.s[1], p.table), 1);
	close_two(&p);
}

/* The clock of the second one is behind. */
TEST(a_row_that_comes_back_is_later_than_it_was)
{
	struct pair p = open_two();
	CHECK_ERR(put_row(p.s[0], p.table, "a", 5000), ERR_OK);
	CHECK_ERR(put_row(p.s[0], p.table, "b", 5001), ERR_OK);
	CHECK_ERR(delete_row(p.s[0], p.table, "a", 6000), ERR_OK);
	CHECK_ERR(put_row(p.s[1], p.table, "a", 6000), ERR_STALE_VERSION);
	CHECK_ERR(put_row(p.s[1], p.table, "a", 6001), ERR_OK);
	/* Also where its partition went with it. */
	CHECK_ERR(delete_row(p.s[0], p.table, "a", 7000), ERR_OK);
	CHECK_ERR(delete_row(p.s[0], p.table, "b", 7001), ERR_OK);
	CHECK_ERR(put_row(p.s[1], p.table, "c", 7001), ERR_STALE_VERSION);
	CHECK_ERR(put_row(p.s[0], p.table, "c", 7002), ERR_OK);
	CHECK_ERR(put_row(p.s[1], p.table, "a", 6500), ERR_STALE_VERSION);
	close_two(&p);
}

static bool note_finding(void *arg, const char *finding)
{
	(void)snprintf(arg, 300, "%s", finding);
	return true;
}

static int64_t clock_off;
static int64_t shifted_clock(void)
{
	return timespec_to_ticks((struct timespec){ .tv_sec = time(NULL) }) +
		clock_off * TICKS_PER_SECOND;
}

TEST(a_machine_whose_clock_is_off_is_refused)
{
	static const struct {
		int64_t off;
		const char *says;
	} cases[] = { { 55, NULL }, { -50, NULL }, { 70, "ahead of" }, { -70, "behind" } };
	struct store *first = open_new(), *second;
	REQUIRE(first);
	clock_set_source(shifted_clock);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		clock_off = cases[i].off;
		memset(&detail, 0, sizeof(detail));
		enum err e = store_open(path, 0, &second, NULL, &detail);
		CHECK_ERR(e, cases[i].says ? ERR_NOT_SUPPORTED : ERR_OK);
		CHECK(!cases[i].says || strstr(detail.text, cases[i].says) != NULL);
		if (e == ERR_OK)
			store_close(second);
	}
	clock_set_source(NULL);
	store_close(first);
}

struct worker {
	struct store *s;
	uint64_t table;
	atomic_long *clock;
	unsigned nr, failed;
};

/* Each worker's row goes with its partition as often as the others let it. */
static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	char key[16];
	(void)snprintf(key, sizeof(key), "r%u", w->nr);
	for (unsigned i = 0; i < 60; i++) {
		struct item it = { 0 };
		enum err e;
		do
			e = i % 2 ? delete_row(w->s, w->table, key, atomic_fetch_add(w->clock, 1))
				  : put_row(w->s, w->table, key, atomic_fetch_add(w->clock, 1));
		while (e == ERR_STALE_VERSION || e == ERR_THROTTLED);
		w->failed += e != ERR_OK;
		if (store_child(w->s, NULL, w->table, CLASS_KEYED, SPAN_LIT("p"), 0, &it) ==
			ERR_OK) {
			uint64_t p = it.id;
			item_fini(&it);
			e = store_child(w->s, NULL, p, CLASS_KEYED, span_of(key), 0, &it);
			w->failed += (e == ERR_OK) != (i % 2 == 0);
		} else {
			w->failed += i % 2 == 0;
		}
		item_fini(&it);
	}
	return NULL;
}

TEST(no_row_is_lost_where_partitions_come_and_go)
{
	struct pair p = open_two();
	pthread_t threads[4];
	struct worker w[4];
	atomic_long clock = 10000;
	for (unsigned i = 0; i < 4; i++) {
		w[i] = (struct worker){ p.s[i % 2], p.table, &clock, i, 0 };
		CHECK(pthread_create(&threads[i], NULL, come_and_go, &w[i]) == 0);
	}
	/* A check finds nothing wrong meanwhile. */
	for (unsigned i = 0; i < 5; i++) {
		char finding[300] = "";
		CHECK_ERR(store_check(p.s[i % 2], note_finding, NULL, finding), ERR_OK);
		if (*finding)
			printf("# %s\n", finding);
	}
	for (unsigned i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK_EQ_INT(w[i].failed, 0);
	}
	CHECK_EQ_INT(rows_in(p.s[1], p.table), 0);
	close_two(&p);
}

TEST(a_partition_takes_no_more_rows_than_its_limit)
{
	struct store *s = open_new();
	REQUIRE(s);
	uint64_t table = make_table(s);
	store_set_row_limit(s, 3);
	CHECK_ERR(put_row(s, table, "a", 5000), ERR_OK);
	CHECK_ERR(put_row(s, table, "b", 5001), ERR_OK);
	CHECK_ERR(put_row(s, table, "c", 5002), ERR_OK);
	CHECK_ERR(put_row(s, table, "d", 5003), ERR_PARTITION_TOO_LARGE);
	CHECK_EQ_INT(rows_in(s, table), 3);
	/* One that is above a limit can be made smaller. */
	store_set_row_limit(s, 1);
	CHECK_ERR(delete_row(s, table, "c", 5004), ERR_OK);
	CHECK_ERR(put_row(s, table, "c", 5005), ERR_PARTITION_TOO_LARGE);
	CHECK_EQ_INT(rows_in(s, table), 2);
	store_close(s);
}

/* A daemon died between the end of a partition and the removal of its entry. */
TEST(a_dead_directory_is_not_there_and_its_entry_goes)
{
	char out[1000], command[200];
	struct store *s = open_new();
	REQUIRE(s);
	uint64_t table = make_table(s);
	unsigned without = objects();
	CHECK_ERR(put_row(s, table, "r", 5000), ERR_OK);
	struct item it;
	CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), 0, &it), ERR_OK);
	(void)snprintf(command, sizeof(command), "setomapval d.%010" PRIx64 " t x%031d", it.id, 0);
	item_fini(&it);
	rados(command, out, sizeof(out));
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	CHECK_ERR(store_get(s, NULL, table, 0, &it), ERR_OK);
	CHECK_EQ_INT(it.size, 0);
	item_fini(&it);
	CHECK_EQ_INT(objects(), without);
	store_close(s);
}

TEST(what_is_removed_leaves_no_object)
{
	static char large[100000];
	struct store *s = open_new();
	REQUIRE(s);
	unsigned empty = objects();
	memset(large, 'x', sizeof(large));
	struct span body = span_make(large, sizeof(large));
	uint64_t table = make_table(s), id = make(s, ITEM_ROW, row_in(table, "p", "r"), body);
	struct item it;
	CHECK_ERR(store_get(s, NULL, id, WANT_BODY, &it), ERR_OK);
	CHECK(span_eq(it.body, body));
	item_fini(&it);
	struct item_ref at = in(STORE_TRASH, "file");
	at.class = CLASS_NAMED;
	struct change c = { .op = CHANGE_WRITE, .version = 9000, .offset = 1 << 20, .body = body };
	c.at.id = make(s, ITEM_FILE, at, SPAN_LIT(""));
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_OK);
	CHECK_EQ_INT(objects(), empty + 3 + 1 + 1); /* directories, body, stripe */
	changes_fini(&c, 1);
	c = (struct change){ .op = CHANGE_DELETE, .version = 9001, .at = c.at };
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_OK);
	changes_fini(&c, 1);
	c = (struct change){ .op = CHANGE_DELETE, .version = 9002, .flags = CHANGE_RECURSIVE };
	c.at = in(STORE_ROOT, "account");
	CHECK_ERR(store_apply(s, &c, 1, false, &detail), ERR_OK);
	changes_fini(&c, 1);
	CHECK_EQ_INT(objects(), empty);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	store_close(s);
}

TEST(check_leaves_what_a_daemon_that_lives_has_not_named_yet)
{
	char out[10000], command[200];
	struct pair p = open_two();
	rados("lock info store owner", out, sizeof(out));
	char owners[2][17] = { "", "" };
	const char *at = out;
	for (unsigned i = 0; i < 2; i++) {
		at = strstr(at, "\"cookie\":\"");
		REQUIRE(at);
		at += 10;
		memcpy(owners[i], at, 16);
	}
	unsigned all = objects();
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(command, sizeof(command), "put b.0000001010.%s%016d /dev/null",
			i < 2 ? owners[i] : "0123456789abcdef", 7);
		rados(command, out, sizeof(out));
	}
	CHECK_EQ_INT(objects(), all + 3);
	CHECK_ERR(store_check(p.s[0], NULL, NULL, NULL), ERR_OK);
	/* Its own, and that of a dead one. */
	CHECK_EQ_INT(objects(), all + 1);
	store_close(p.s[1]);
	CHECK_ERR(store_check(p.s[0], NULL, NULL, NULL), ERR_OK);
	CHECK_EQ_INT(objects(), all);
	store_close(p.s[0]);
}

TEST(check_removes_what_nobody_names_and_tells_what_is_wrong)
{
	static const char *const strays[] = { "d.00000f0000",
		"b.0000001010.00000000000000000000000000000007",
		"c.0000001010.00000000.00000000000000000000000000000007" };
	char out[1000], command[200], finding[300] = "";
	struct store *s = open_new();
	REQUIRE(s);
	uint64_t id = make(s, ITEM_ROW, row_in(make_table(s), "p", "r"), SPAN_LIT("{}"));
	unsigned all = objects();
	for (size_t i = 0; i < ARRAY_LEN(strays); i++) {
		(void)snprintf(command, sizeof(command), "put %s /dev/null", strays[i]);
		rados(command, out, sizeof(out));
	}
	CHECK_EQ_INT(objects(), all + 3);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	CHECK_EQ_INT(objects(), all);
	struct item it;
	CHECK_ERR(store_get(s, NULL, id, WANT_ATTRS, &it), ERR_OK);
	(void)snprintf(
		command, sizeof(command), "rmomapkey d.%010" PRIx64 " i%010" PRIx64, it.parent, id);
	item_fini(&it);
	rados(command, out, sizeof(out));
	CHECK_ERR(store_check(s, note_finding, NULL, finding), ERR_CORRUPT);
	CHECK(strstr(finding, "1 items and 0 ids") != NULL);
	store_close(s);
}

/* The OSD answers nothing for longer than a request waits. */
static void *stop_osd(void *arg)
{
	pid_t osd = *(pid_t *)arg;
	for (unsigned i = 0; i < 2; i++) {
		(void)usleep(100000);
		(void)kill(osd, SIGSTOP);
		(void)usleep(2500000);
		(void)kill(osd, SIGCONT);
	}
	return NULL;
}

TEST(a_lost_answer_is_found_out_and_nothing_is_done_twice)
{
	const char *osd = getenv("ROWFS_OSD");
	pthread_t thread;
	struct store *s = open_new();
	REQUIRE(s && osd);
	uint64_t table = make_table(s);
	pid_t pid = (pid_t)strtol(osd, NULL, 10);
	char key[16];
	unsigned n = 0;
	enum err e;
	CHECK_ERR(put_row(s, table, "first", 5000), ERR_OK);
	CHECK(pthread_create(&thread, NULL, stop_osd, &pid) == 0);
	for (; n < 1000; n++) {
		(void)snprintf(key, sizeof(key), "%u", n);
		do /* what was not sent may be asked for again, and was not done */
			e = put_row(s, table, key, 6000 + n);
		while (e == ERR_THROTTLED);
		CHECK_ERR(e, ERR_OK);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	struct item it;
	CHECK_ERR(store_child(s, NULL, table, CLASS_KEYED, SPAN_LIT("p"), WANT_ATTRS, &it), ERR_OK);
	CHECK_EQ_INT(it.size, n + 1);
	item_fini(&it);
	CHECK_ERR(store_check(s, NULL, NULL, NULL), ERR_OK);
	store_close(s);
}

static const struct check_test own[] = {
	T(a_store_is_made_once_and_found_or_not),
	T(a_second_daemon_is_told_who_serves_the_store),
	T(the_owner_before_can_change_and_read_nothing),
	T(two_daemons_see_each_others_changes_and_refuse_what_is_stale),
	T(a_row_that_comes_back_is_later_than_it_was),
	T(a_machine_whose_clock_is_off_is_refused),
	T(no_row_is_lost_where_partitions_come_and_go),
	T(a_partition_takes_no_more_rows_than_its_limit),
	T(a_dead_directory_is_not_there_and_its_entry_goes),
	T(what_is_removed_leaves_no_object),
	T(check_leaves_what_a_daemon_that_lives_has_not_named_yet),
	T(check_removes_what_nobody_names_and_tells_what_is_wrong),
	T(a_lost_answer_is_found_out_and_nothing_is_done_twice),
};

static const unsigned seeds[] = { 1, 2 };

static unsigned line, failed;

static void tell(unsigned failures, const char *who, const char *what)
{
	printf("%s %u - %s: %s\n", failures ? "not ok" : "ok", ++line, who, what);
	failed += failures != 0;
}

int main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", contract_count() + ARRAY_LEN(own) + ARRAY_LEN(seeds) + 1);
	bool watched = rados_waits_watch();
	for (unsigned i = 0; i < contract_count(); i++)
		tell(contract_run(i, &engine), engine.name, contract_name(i));
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		check_failures = 0;
		own[i].run();
		tell(check_failures, "rados", own[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(seeds); i++)
		tell(contract_random(&engine, seeds[i], 300), "rados",
			"does what memory does, whatever comes");
	printf("# %u of %u requests\n", rados_waits_unsaid(), rados_waits_seen());
	tell(!watched || rados_waits_seen() == 0 || rados_waits_unsaid() != 0, "rados",
		"says of each request that it may block");
	return failed == 0 ? 0 : 1;
}
