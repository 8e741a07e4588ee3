/* SPDX-License-Identifier: MIT
 * What is kept over a clean close: the store's note, the sizes of streams in it, and what the check of a
 * store says of them. */
#include "base/clock.h"
#include "check.h"
#include "service/change/entities.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/saved_sizes.h"
#include "service/core/tables.h"
#include "service/query/row_stream.h"
#include "service_table.h"
#include "store/engines.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))

struct world {
	char path[40];
	struct store *store;
	struct service *service;
	uint64_t account, table;
	char said[512]; /* the findings of a check */
};

static void open_it(struct world *w)
{
	MUST(store_open(w->path, 0, &w->store, NULL, NULL) == ERR_OK);
	MUST(service_new(w->store, &w->service) == ERR_OK);
}

static void reopen(struct world *w)
{
	service_free(w->service);
	open_it(w);
}

static void put(struct world *w, const char *pk, const char *rk, const char *json)
{
	service_put_document(w->service, w->table, pk, rk, json);
}

static struct world world_new(void)
{
	struct world w = { .path = "/tmp/rowfs-kept-XXXXXX" };
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	open_it(&w);
	service_table(w.service, &w.account, &w.table);
	return w;
}

static void world_fini(struct world *w)
{
	service_free(w->service);
	unlink(w->path);
}

static void note(struct world *w, int64_t later, const char *text)
{
	store_note_put(w->store, store_version_floor(w->store) + later, span_of(text));
}

/* "": there is none. */
static const char *note_of(struct world *w)
{
	static char text[100];
	struct buf got = BUF_INIT(STORE_NOTE_MAX);
	enum err e = store_note_get(w->store, &got);
	CHECK_ERR(e, got.len > 0 ? ERR_OK : ERR_NOT_FOUND);
	(void)snprintf(text, sizeof(text), "%s", got.len > 0 ? got.data : "");
	buf_fini(&got);
	return text;
}

/* ---- the note ---- */

TEST(a_note_is_there_from_the_next_opening_to_the_next_change)
{
	struct world w = world_new();
	CHECK_EQ_STR(note_of(&w), "");
	note(&w, 0, "one");
	CHECK_EQ_STR(note_of(&w), "");
	reopen(&w);
	CHECK_EQ_STR(note_of(&w), "one");
	reopen(&w); /* nothing was changed */
	CHECK_EQ_STR(note_of(&w), "one");
	put(&w, "p", "r", "{}");
	CHECK_EQ_STR(note_of(&w), "");
	reopen(&w);
	CHECK_EQ_STR(note_of(&w), "");
	note(&w, 0, "two");
	note(&w, 0, "three");
	reopen(&w);
	CHECK_EQ_STR(note_of(&w), "three");
	world_fini(&w);
}

TEST(a_note_of_another_version_is_not_kept)
{
	struct world w = world_new();
	for (int later = -1; later <= 1; later += 2) {
		note(&w, later, "wrong");
		reopen(&w);
		CHECK_EQ_STR(note_of(&w), "");
	}
	note(&w, 0, "of before the change");
	put(&w, "p", "r", "{}");
	reopen(&w);
	CHECK_EQ_STR(note_of(&w), "");
	world_fini(&w);
}

TEST(a_note_has_a_limit)
{
	char long_note[STORE_NOTE_MAX + 1];
	struct world w = world_new();
	memset(long_note, 'x', sizeof(long_note));
	for (int over = 0; over < 2; over++) {
		struct buf got = BUF_INIT(STORE_NOTE_MAX);
		put(&w, "p", "r", "{}");
		store_note_put(w.store, store_version_floor(w.store),
			span_make(long_note, STORE_NOTE_MAX + (size_t)over));
		reopen(&w);
		CHECK_ERR(store_note_get(w.store, &got), over ? ERR_NOT_FOUND : ERR_OK);
		CHECK_EQ_INT(got.len, over ? 0 : STORE_NOTE_MAX);
		buf_fini(&got);
	}
	world_fini(&w);
}

/* Neither the note of the killed process, nor an earlier one if that process changed something. */
TEST(a_kill_keeps_a_note_only_if_nothing_was_changed)
{
	for (int changes = 0; changes < 2; changes++) {
		int status;
		struct world w = world_new();
		note(&w, 0, "old");
		service_free(w.service);
		pid_t pid = fork();
		if (pid == 0) {
			open_it(&w);
			if (changes)
				put(&w, "p", "r", "{}");
			note(&w, 0, "new");
			(void)raise(SIGKILL);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		open_it(&w);
		CHECK_EQ_STR(note_of(&w), changes ? "" : "old");
		world_fini(&w);
	}
}

TEST(an_engine_without_notes_has_none)
{
	struct store *memory;
	struct buf got = BUF_INIT(STORE_NOTE_MAX);
	MUST(store_open_memory(&memory) == ERR_OK);
	store_note_put(memory, store_version_floor(memory), SPAN_LIT("x"));
	CHECK_ERR(store_note_get(memory, &got), ERR_NOT_FOUND);
	store_close(memory);
}

/* ---- sizes ---- */

static uint64_t stream_bytes(struct world *w, const struct span *partition)
{
	struct row_query q;
	struct row_stream *s;
	uint64_t bytes = 0;
	MUST(row_query_parse(SPAN_LIT(".ndjson"), &q, NULL) == ERR_OK);
	MUST(row_stream_open(w->service, w->table, partition, &q, SPAN_LIT("a test"), &s, NULL) ==
		ERR_OK);
	CHECK_ERR(row_stream_size(s, NULL, NULL, &bytes, NULL), ERR_OK);
	row_stream_close(s);
	return bytes;
}

static bool on_finding(void *arg, const char *finding)
{
	struct world *w = arg;
	size_t n = strlen(w->said);
	(void)snprintf(w->said + n, sizeof(w->said) - n, "%s\n", finding);
	return true;
}

static const char *verify(struct world *w)
{
	struct verify_counts counts;
	w->said[0] = '\0';
	enum err e = service_verify(w->service, on_finding, NULL, w, &counts);
	CHECK_ERR(e, counts.findings > 0 ? ERR_CORRUPT : ERR_OK);
	return w->said;
}

/* Keeps the sizes of the table and of p, so many bytes too large. */
static void keep(struct world *w, uint64_t table_by, uint64_t p_by)
{
	struct item it = { 0 };
	struct span p = SPAN_LIT("p");
	MUST(store_child(w->store, NULL, w->table, CLASS_KEYED, p, WANT_ATTRS, &it) == ERR_OK);
	const struct saved_size sizes[] = {
		{ w->table, w->table, stream_bytes(w, NULL) + table_by },
		{ w->table, it.id, stream_bytes(w, &p) + p_by },
	};
	item_fini(&it);
	saved_sizes_write(w->service, saved_sizes_version(w->service), sizes, 2);
	reopen(w);
}

TEST(the_check_compares_saved_sizes_with_the_rows)
{
	struct saved_size sizes[SAVED_SIZES_MAX];
	struct world w = world_new();
	put(&w, "p", "a", "{\"N\":1}\n");
	put(&w, "p", "b", " { \"N\" : 1.50,\n \"B\":true }"); /* not as it is in a stream */
	put(&w, "p", "empty", "");
	put(&w, "q", "a", "{}");
	keep(&w, 0, 0);
	CHECK_EQ_INT(saved_sizes_read(w.service, sizes), 2);
	CHECK_EQ_STR(verify(&w), "");
	keep(&w, 1, 0);
	CHECK(strstr(verify(&w), "acct/Tab: its rows are") != NULL);
	keep(&w, 0, 1);
	CHECK(strstr(verify(&w), "acct/Tab/p: its rows are") != NULL);
	put(&w, "q", "b", "{}"); /* the sizes are not used any more */
	CHECK_EQ_STR(verify(&w), "");
	CHECK_EQ_INT(saved_sizes_read(w.service, sizes), 0);
	world_fini(&w);
}

/* clang-format off */
RUN_TESTS(
	T(a_note_is_there_from_the_next_opening_to_the_next_change),
	T(a_note_of_another_version_is_not_kept),
	T(a_note_has_a_limit),
	T(a_kill_keeps_a_note_only_if_nothing_was_changed),
	T(an_engine_without_notes_has_none),
	T(the_check_compares_saved_sizes_with_the_rows))
/* clang-format on */
