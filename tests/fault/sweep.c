/* SPDX-License-Identifier: MIT
 * One point of a sweep: the operation under one fault, and all that must hold afterwards.  The
 * surprising one: what a failed operation left is compared by dumps in which ids and versions
 * that the small store did not have are blotted out, since a second try takes others. */
#include "sweep.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "calls.h"
#include "store/engines.h"
#include "sweep_store.h"

#include <sqlite3.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what fails ---- */

enum fault_answers {
	MAY_NO_MEMORY = 1,
	MAY_IO = 2,
	MAY_NO_SPACE = 4,
	MAY_UNKNOWN = 8,
	MAY_MOVED = 16,
};

struct fault {
	const char *name;
	enum calls_what what;
	unsigned mask;
	int error;
	bool on; /* the n-th and all that follow */
	unsigned answers;
	bool cheap; /* four times as many in the short form: there are few */
};

static const struct fault faults[] = {
	{ "no memory once", CALLS_FAIL, CALLS_MEMORY, ENOMEM, false, MAY_NO_MEMORY },
	{ "no memory from then on", CALLS_FAIL, CALLS_MEMORY, ENOMEM, true, MAY_NO_MEMORY },
	{ "EIO once", CALLS_FAIL, CALLS_FILES, EIO, false, MAY_IO | MAY_UNKNOWN },
	{ "EIO from then on", CALLS_FAIL, CALLS_FILES, EIO, true, MAY_IO | MAY_UNKNOWN },
	{ "ENOSPC once", CALLS_FAIL, CALLS_CHANGES, ENOSPC, false, MAY_NO_SPACE | MAY_UNKNOWN },
	{ "ENOSPC from then on", CALLS_FAIL, CALLS_CHANGES, ENOSPC, true,
		MAY_NO_SPACE | MAY_UNKNOWN },
	{ "EINTR once", CALLS_FAIL, CALLS_OPEN | CALLS_READ | CALLS_WRITE | CALLS_TRUNCATE, EINTR,
		false, 0 },
	{ "EINTR once, where few expect it", CALLS_FAIL,
		CALLS_SYNC | CALLS_NAME | CALLS_LOOK | CALLS_LOCK | CALLS_MAP, EINTR, false,
		MAY_IO | MAY_UNKNOWN | MAY_MOVED },
	{ "a statement fails", CALLS_FAIL, CALLS_STATEMENT, SQLITE_NOMEM, false, MAY_NO_MEMORY,
		true },
	{ "short once", CALLS_SHORT, CALLS_READ | CALLS_WRITE, 0, false, 0 },
	{ "short from then on", CALLS_SHORT, CALLS_READ | CALLS_WRITE, 0, true, 0 },
};

static bool may_answer(const struct fault *f, enum err e)
{
	/* Of a full disk a write speaks; of another call that says so SQLite forgets why. */
	if (e == ERR_IO && f->answers & MAY_NO_SPACE)
		return f->on || !strstr(calls_now()->call, "write");
	/* A file that cannot be looked at was moved, SQLite thinks, and refuses to write. */
	if (e == ERR_READ_ONLY && f->answers & MAY_MOVED)
		return strstr(calls_now()->call, "stat") != NULL;
	return e == ERR_OK || (e == ERR_NO_MEMORY && f->answers & MAY_NO_MEMORY) ||
		(e == ERR_IO && f->answers & MAY_IO) ||
		(e == ERR_NO_SPACE && f->answers & MAY_NO_SPACE) ||
		(e == ERR_OUTCOME_UNKNOWN && f->answers & MAY_UNKNOWN);
}

/* ---- the sweep at work ---- */

static const struct sweep_options *options;
static struct sweep_counts *counts;
static const struct sweep_case *the_case;
static const struct fault *the_fault;
static unsigned the_n;
static struct buf before, made; /* dumps: the small store's, and after the operation */

static void fail(const char *what, const char *why)
{
	counts->failures++;
	printf("# %s, %s %u (%s): %s%s%s\n", the_case->name, the_fault ? the_fault->name : "none",
		the_n, calls_now()->call, what, why ? ": " : "", why ? why : "");
}

void sweep_must(enum err e, const char *what)
{
	if (e == ERR_OK)
		return;
	(void)calls_stop();
	printf("Bail out! %s: %s gives %s\n", the_case ? the_case->name : "the small store", what,
		err_symbol(e));
	abort();
}

static void set_down(struct world *w, enum err e)
{
	if (w->service)
		service_free(w->service);
	else
		store_close(w->store);
	w->service = NULL;
	w->store = NULL;
	(void)e;
}

static enum err set_up(struct world *w)
{
	enum err e = store_open(w->path, 0, &w->store, NULL, &w->detail);
	if (e == ERR_OK && the_case->flags & SWEEP_SERVICE)
		e = service_new(w->store, &w->service);
	return e;
}

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->number = the_case->number;
	w->out = BUF_INIT((size_t)1 << 20);
	if (the_case->flags & SWEEP_TEXT)
		return;
	sweep_path(w->path, sizeof(w->path), !(the_case->flags & SWEEP_CREATES));
	if (!(the_case->flags & (SWEEP_OPENS | SWEEP_CREATES)))
		MUST_DO(set_up(w));
	if (the_case->prepare)
		the_case->prepare(w);
}

/* A store that is closed leaves its file and nothing else. */
static void check_folder(const struct world *w)
{
	char extra[300] = "";
	/* What fails from then on fails to remove, too. */
	bool kept = the_fault && the_fault->on && the_fault->mask & CALLS_NAME;
	if (!sweep_folder_has_only(w->path, extra, sizeof(extra)) && !kept)
		fail("a file is left behind", extra);
}

static void check_store(struct world *w, const char *when)
{
	char finding[256] = "";
	enum err e = store_check(w->store, sweep_note, NULL, finding);
	if (e != ERR_OK)
		fail(when, finding[0] ? finding : err_symbol(e));
}

static void dump(struct world *w, struct buf *out)
{
	if (the_case->dump)
		the_case->dump(w, out);
	else
		sweep_dump(w->store, out);
}

static bool same(const struct buf *a, const struct buf *b)
{
	return span_eq(buf_span(a), buf_span(b));
}

static void tell_difference(const struct buf *got, const struct buf *want)
{
	size_t at = 0;
	if (!options->loud)
		return;
	while (at < got->len && at < want->len && got->data[at] == want->data[at])
		at++;
	while (at > 0 && got->data[at - 1] != '\n')
		at--;
	printf("# got  %.300s\n# want %.300s\n", got->len ? got->data + at : "",
		want->len ? want->data + at : "");
}

/* Whether it is done; what is there must fit the answer. */
static bool judge_state(const struct buf *now, enum err e)
{
	bool is_old = same(now, &before), is_new = same(now, &made);
	if (is_old && is_new)
		return e == ERR_OK;
	if (!is_old && !is_new && the_case->flags & SWEEP_IN_PARTS && e != ERR_OK)
		return false;
	if (!is_old && !is_new) {
		fail("the store is neither as before nor as after", err_symbol(e));
		tell_difference(now, &made);
	} else if (e == ERR_OK && !is_new) {
		fail("acknowledged, but not there", NULL);
	} else if (e != ERR_OK && e != ERR_OUTCOME_UNKNOWN && is_new) {
		fail("refused, but done", err_symbol(e));
	}
	return is_new;
}

/* The operation once more, without a fault. */
static void try_again(struct world *w, struct buf *now)
{
	bool opens = the_case->flags & (SWEEP_OPENS | SWEEP_CREATES);
	w->detail = (struct err_detail){ 0 };
	enum err e = the_case->run(w);
	/* A log that could not be synced once is not trusted until it is opened anew. */
	if (e == ERR_OUTCOME_UNKNOWN || (e == ERR_IO && the_fault->answers & MAY_UNKNOWN)) {
		if (the_case->tidy)
			the_case->tidy(w);
		set_down(w, ERR_OK);
		MUST_DO(set_up(w));
		dump(w, now);
		if (same(now, &made))
			return;
		e = the_case->run(w);
	}
	if (e == ERR_NAME_EXISTS && the_fault->on && the_fault->mask & CALLS_NAME)
		return; /* it could not be removed */
	if (e != ERR_OK)
		fail("it does not work when the fault is over", err_symbol(e));
	if (w->wrong)
		fail("what is read when the fault is over is wrong", w->wrong);
	if (opens && !w->store)
		return;
	dump(w, now);
	if (e == ERR_OK && !same(now, &made) && !(the_case->flags & SWEEP_IN_PARTS)) {
		fail("done twice it is not what it should be", NULL);
		tell_difference(now, &made);
	}
}

/* All but the operation itself, which answered e. */
static void check_after(struct world *w, enum err e)
{
	struct buf now = BUF_INIT((size_t)64 << 20), later = BUF_INIT((size_t)64 << 20);
	bool done = e == ERR_OK;
	if (w->store) {
		dump(w, &now);
		done = judge_state(&now, e);
		check_store(w, "not clean after it");
	}
	if (!done && !(the_case->flags & SWEEP_CLOSES))
		try_again(w, &now);
	if (the_case->tidy)
		the_case->tidy(w);
	set_down(w, e);
	enum err again = set_up(w);
	if (again != ERR_OK) {
		fail("it cannot be opened again", err_symbol(again));
	} else {
		dump(w, &later);
		if (now.len > 0 ? !same(&now, &later) : !same(&made, &later)) {
			fail("it is not the same after it was closed and opened", NULL);
			tell_difference(&later, now.len > 0 ? &now : &made);
		}
		check_store(w, "not clean after it was closed and opened");
	}
	set_down(w, again);
	check_folder(w);
	buf_fini(&now);
	buf_fini(&later);
}

static void judge_answer(const struct world *w, enum err e)
{
	if (!may_answer(the_fault, e))
		fail("an answer that this fault cannot have", err_symbol(e));
	if (w->wrong && e == ERR_OK)
		fail("what is read is wrong", w->wrong);
	if (e != ERR_OK && e != ERR_NO_MEMORY && !w->detail.text[0] &&
		the_case->flags & (SWEEP_OPENS | SWEEP_CREATES))
		fail("an error without a reason", err_symbol(e));
}

static void end_text(struct world *w, enum err e)
{
	if (e == ERR_OK && !same(&w->out, &made))
		fail("another text than without a fault", NULL);
	if (the_case->tidy)
		the_case->tidy(w);
	buf_fini(&w->out);
}

/* False: there was no n-th call. */
static bool point(unsigned n)
{
	struct world w;
	the_n = n;
	begin(&w);
	if (options->loud) {
		printf("# %s, %s %u\n", the_case->name, the_fault->name, n);
		(void)fflush(stdout);
	}
	(the_fault->on ? calls_strike_on : calls_strike)(
		the_fault->what, the_fault->mask, true, n, the_fault->error);
	enum err e = the_case->run(&w);
	unsigned calls = calls_stop();
	judge_answer(&w, e);
	w.wrong = NULL;
	counts->points++;
	if (the_case->flags & SWEEP_TEXT)
		end_text(&w, e);
	else
		check_after(&w, e);
	return calls >= n;
}

/* How many calls there are to fail, and what the operation makes of the store. */
static unsigned measure(unsigned mask)
{
	struct world w;
	the_fault = NULL;
	begin(&w);
	calls_strike(CALLS_COUNT, mask, true, 0, 0);
	enum err e = the_case->run(&w);
	unsigned calls = calls_stop();
	MUST_DO(e);
	if (w.wrong)
		fail("without a fault", w.wrong);
	buf_clear(&made);
	if (the_case->flags & SWEEP_TEXT) {
		buf_add_span(&made, buf_span(&w.out));
		if (the_case->tidy)
			the_case->tidy(&w);
		buf_fini(&w.out);
		return calls;
	}
	if (!w.store)
		MUST_DO(set_up(&w));
	dump(&w, &made);
	if (the_case->tidy)
		the_case->tidy(&w);
	set_down(&w, ERR_OK);
	return calls;
}

/* The state from which the operation starts. */
static void dump_before(void)
{
	struct world w;
	buf_clear(&before);
	if (the_case->flags & (SWEEP_TEXT | SWEEP_CREATES))
		return;
	begin(&w);
	if (!w.store)
		MUST_DO(set_up(&w));
	dump(&w, &before);
	if (the_case->tidy)
		the_case->tidy(&w);
	set_down(&w, ERR_OK);
}

/* The next one to fail: all of the first half of `most`, then as far apart as spreads the other
 * half over the rest, shifted by the seed. */
static unsigned next_point(unsigned n, unsigned calls)
{
	bool large = the_case->flags & SWEEP_LARGE;
	unsigned most = the_fault->cheap ? 4 * options->most : options->most;
	unsigned half = (large && options->all ? most / 10 : most) / 2 + 1;
	bool text = the_case->flags & SWEEP_TEXT; /* no store: they take no time */
	bool all = calls <= most || text || (options->all && !large);
	if (all || n < half)
		return n + 1;
	unsigned step = (calls - half) / half + 1;
	return n + 1 + (n * 2654435761u + options->seed * 40503u) % (2 * step - 1);
}

static void sweep(const struct fault *f)
{
	if (the_case->flags & SWEEP_TEXT && f->mask != CALLS_MEMORY)
		return;
	unsigned calls = measure(f->mask);
	the_fault = f;
	unsigned n = 1;
	uint64_t failures = counts->failures;
	while (point(n) && counts->failures < failures + 50)
		n = next_point(n, calls);
}

void sweep_run(
	const struct sweep_case *cases, const struct sweep_options *how, struct sweep_counts *ret)
{
	options = how;
	counts = ret;
	before = made = BUF_INIT((size_t)64 << 20);
	for (the_case = cases; the_case->name; the_case++) {
		if (ret->seen++ % how->parts != how->part - 1 ||
			(how->only && !strstr(the_case->name, how->only)))
			continue;
		uint64_t failures = ret->failures, points = ret->points, start = clock_mono_us();
		dump_before();
		for (size_t i = 0; i < ARRAY_LEN(faults); i++)
			sweep(&faults[i]);
		ret->cases++;
		printf("%s %u - %s: %u points, %u ms\n",
			failures == ret->failures ? "ok" : "not ok", (unsigned)ret->cases,
			the_case->name, (unsigned)(ret->points - points),
			(unsigned)((clock_mono_us() - start) / 1000));
		(void)fflush(stdout);
	}
	buf_fini(&before);
	buf_fini(&made);
}

enum err sweep_apply(struct world *w, struct change c, bool durable)
{
	enum err e = store_apply(w->store, &c, 1, durable, &w->detail);
	changes_fini(&c, 1);
	return e;
}
