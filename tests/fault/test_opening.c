/* SPDX-License-Identifier: MIT
 * Making a store and opening it: with a log, without memory, while somebody else has it. */
#include "one_store.h"
#include "store/sqlite/store.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/file.h>

static int flock_error, flock_from; /* from so many calls on; 0: none fails */
static int busy_ms = -1;            /* how long SQLite waits for a lock; -1: as it is told */

int flock(int fd, int operation)
{
	static int (*real)(int, int);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "flock");
	if (flock_from == 0 || --flock_from > 0)
		return real(fd, operation);
	errno = flock_error;
	return -1;
}

int sqlite3_busy_timeout(sqlite3 *db, int ms)
{
	static int (*real)(sqlite3 *, int);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "sqlite3_busy_timeout");
	return real(db, busy_ms >= 0 ? busy_ms : ms);
}

TEST(a_log_that_another_process_has_is_not_taken)
{
	begin();
	CHECK_ERR(put_row("a"), ERR_OK);
	close_store();
	flock_error = EWOULDBLOCK;
	flock_from = 2; /* the first is of the store itself */
	CHECK_ERR(open_store(0), ERR_BUSY);
	flock_error = EIO;
	flock_from = 2;
	CHECK_ERR(open_store(0), ERR_IO);
	flock_from = 0;
	CHECK_ERR(open_store(0), ERR_OK);
	CHECK(has_row("a"));
	end();
}

TEST(a_store_that_another_program_has_open_says_so)
{
	sqlite3 *other = NULL;
	begin();
	close_store();
	CHECK(sqlite3_open(path, &other) == SQLITE_OK);
	CHECK(sqlite3_exec(other, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", NULL, NULL,
		      NULL) == SQLITE_OK);
	busy_ms = 20;
	CHECK_ERR(open_store(0), ERR_THROTTLED);
	busy_ms = -1;
	CHECK(strstr(detail.text, "another program") != NULL);
	CHECK(sqlite3_close(other) == SQLITE_OK);
	CHECK_ERR(open_store(0), ERR_OK);
	end();
}

TEST(without_memory_a_store_opens_or_says_so)
{
	unsigned n = 0, refused = 0;
	bool struck;
	begin();
	CHECK_ERR(put_row("a"), ERR_OK);
	do {
		close_store();
		calls_strike(CALLS_FAIL, CALLS_MEMORY, true, ++n, ENOMEM);
		enum err e = open_store(0);
		if (e == ERR_OK) /* its first write to the log */
			e = put_row("b");
		struck = calls_now()->struck > 0;
		(void)calls_stop();
		CHECK(e == ERR_OK || e == ERR_NO_MEMORY);
		refused += e != ERR_OK;
	} while (struck && n < 5000);
	CHECK(refused > 20);
	CHECK(has_row("a") && has_row("b"));
	CHECK_ERR(store_check(store, NULL, NULL, NULL), ERR_OK);
	end();
}

TEST(a_store_is_made_however_often_it_is_interrupted)
{
	char other[100];
	bool struck = true;
	begin_with_rows();
	(void)snprintf(other, sizeof(other), "%s.other", path);
	for (unsigned n = 1; struck; n++) {
		calls_strike(CALLS_FAIL, CALLS_OPEN, true, n, EINTR);
		enum err e = store_create(other, NULL);
		struck = calls_now()->struck > 0;
		(void)calls_stop();
		CHECK_ERR(e, ERR_OK);
		CHECK(unlink(other) == 0);
	}
	end();
}

/* Without a reason too: who opens need not ask for one. */
TEST(a_store_with_a_log_is_read_or_the_reason_is_told)
{
	static const int codes[] = { SQLITE_NOMEM, SQLITE_CORRUPT, SQLITE_BUSY };
	static const enum err want[] = { ERR_NO_MEMORY, ERR_CORRUPT, ERR_READ_ONLY };
	struct store *s = NULL;
	begin_with_rows();
	be_killed();
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		for (unsigned n = 1; n <= 20; n++) {
			memset(&detail, 0, sizeof(detail));
			calls_strike(CALLS_FAIL, CALLS_STATEMENT, true, n, codes[i]);
			enum err e = store_open(
				path, STORE_OPEN_READ_ONLY, &s, NULL, n % 2 ? &detail : NULL);
			(void)calls_stop();
			CHECK(e == ERR_OK || e == want[i]);
			CHECK(e == ERR_OK || n % 2 == 0 || detail.text[0] != 0);
			if (e == ERR_OK)
				store_close(s);
		}
	}
	CHECK_ERR(store_open(path, STORE_OPEN_READ_ONLY, &s, NULL, NULL), ERR_OK);
	store_close(s);
	CHECK_ERR(open_store(0), ERR_OK);
	end();
}

TEST(a_store_that_cannot_be_opened_to_write_says_why_or_is_not_asked)
{
	static const int codes[] = { SQLITE_NOMEM, SQLITE_CORRUPT, SQLITE_BUSY };
	struct store *s = NULL;
	begin_with_rows();
	close_store();
	for (size_t i = 0; i < 2 * ARRAY_LEN(codes); i++) {
		memset(&detail, 0, sizeof(detail));
		calls_strike(CALLS_FAIL, CALLS_STATEMENT, true, 4, codes[i / 2]);
		enum err e = store_open(path, 0, &s, NULL, i % 2 ? &detail : NULL);
		(void)calls_stop();
		CHECK(e != ERR_OK);
		CHECK(i % 2 == 0 || detail.text[0] != 0);
	}
	CHECK_ERR(open_store(0), ERR_OK);
	end();
}

/* clang-format off */
RUN_TESTS(
	T(a_log_that_another_process_has_is_not_taken),
	T(a_store_that_another_program_has_open_says_so),
	T(without_memory_a_store_opens_or_says_so),
	T(a_store_is_made_however_often_it_is_interrupted),
	T(a_store_with_a_log_is_read_or_the_reason_is_told),
	T(a_store_that_cannot_be_opened_to_write_says_why_or_is_not_asked))
/* clang-format on */
