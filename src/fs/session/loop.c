/* SPDX-License-Identifier: MIT
 * The request loop.  Its threads are all there from the start, each with its memory for requests.
 * A thread that gets none at first naps and tries again, and the others serve.  No request is lost
 * by that: libfuse takes the memory before it reads (without FUSE_CAP_SPLICE_READ, which op_init()
 * leaves out).
 *
 * Usually one thread reads all requests and answers them, since changing threads costs more than a
 * request.  It has a token.  Before it blocks it puts the token back, and a thread that waits for
 * one goes on (base/may_block.h).  The other threads park.
 *
 * One token more is made while requests queue up, and one is taken out where a reader waits for them
 * again.  A thread may also block at a place that says nothing of it.  So a watchdog looks every
 * WATCH_MS while requests come: if no thread reads, it takes the token of one that is at the same
 * request as before. */
#include "fs/session/loop.h"

#include "base/may_block.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* A commit blocks the thread that asked for it: more than there are CPUs. */
#define LOOP_THREADS 10
/* Without memory, until the next try. */
#define NAP_NS 20000000
#define WATCH_MS 2
/* The watchdog sleeps after as many looks without a request. */
#define WATCH_IDLE 100
/* A reader looks after so many requests whether another one waits, and counts.  After so many more
 * looks with one than without, one thread more reads; after so many without, one less. */
#define SAMPLE 8
#define PRESSURE 8

struct loop;

struct worker {
	struct loop *loop;
	pthread_t thread;
	atomic_bool waits; /* for a request */
	atomic_bool token;
	unsigned received;
	int pressure;           /* looks at which a request waited, less the others */
	atomic_uint_fast64_t n; /* requests that it began and ended: odd while it is at one */
	uint64_t seen;          /* by the watchdog */
	struct fuse_buf buf;
};

struct loop {
	struct fuse_session *session;
	loop_take_fn take_first;
	void *arg;
	sem_t ready, go;    /* no request is taken before all threads run */
	sem_t tokens;       /* those that nobody has */
	atomic_int readers; /* how many tokens there are */
	int most_readers;   /* one for each CPU */
	sem_t *ended;       /* posted by each thread that has */
	atomic_int code;    /* negative: why the first of them did */
	atomic_bool asleep; /* the watchdog */
	atomic_uint_fast64_t *overdue;
	size_t n;
	struct worker workers[LOOP_THREADS];
};

static _Thread_local struct worker *self;

static void wait_for(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

/* ---- the token ---- */

static void put_back(struct worker *w)
{
	if (atomic_exchange(&w->token, false))
		sem_post(&w->loop->tokens);
}

/* A may_block_hook. */
static void before_blocking(enum block how)
{
	struct worker *w = self;
	if (!atomic_load_explicit(&w->token, memory_order_relaxed))
		return;
	struct pollfd device = { .fd = fuse_session_fd(w->loop->session), .events = POLLIN };
	if (how == BLOCK_SURE || poll(&device, 1, 0) != 0)
		put_back(w);
}

static void add_reader(struct loop *l)
{
	if (atomic_fetch_add(&l->readers, 1) < l->most_readers)
		sem_post(&l->tokens);
	else
		atomic_fetch_sub(&l->readers, 1);
}

/* False: it is the last one, and stays. */
static bool take_out_reader(struct loop *l)
{
	int n = atomic_load(&l->readers);
	while (n > 1)
		if (atomic_compare_exchange_weak(&l->readers, &n, n - 1))
			return true;
	return false;
}

/* Looks at every SAMPLE-th request of a reader whether another one waits already. */
static void adapt(struct worker *w)
{
	struct pollfd device = { .fd = fuse_session_fd(w->loop->session), .events = POLLIN };
	if (w->loop->most_readers == 1 || ++w->received % SAMPLE != 0)
		return;
	w->pressure += poll(&device, 1, 0) != 0 ? 1 : -1;
	if (w->pressure == PRESSURE) {
		w->pressure = 0;
		add_reader(w->loop);
	} else if (w->pressure == -PRESSURE) {
		w->pressure = 0;
		if (take_out_reader(w->loop))
			atomic_store(&w->token, false);
	}
}

/* ---- a thread ---- */

static int receive(struct worker *w)
{
	atomic_store(&w->waits, true);
	int got = fuse_session_receive_buf(w->loop->session, &w->buf);
	atomic_store(&w->waits, false);
	if (got > 0)
		adapt(w);
	return got;
}

static void serve(struct worker *w)
{
	struct loop *l = w->loop;
	atomic_fetch_add(&w->n, 1);
	if (atomic_load_explicit(&l->asleep, memory_order_relaxed) &&
		atomic_exchange(&l->asleep, false))
		sem_post(l->ended);
	if (!l->take_first(l->arg, w->buf.mem, w->buf.size))
		fuse_session_process_buf(l->session, &w->buf);
	atomic_fetch_add(&w->n, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct loop *l = w->loop;
	const struct timespec nap = { .tv_nsec = NAP_NS };
	int got = 1;
	self = w;
	may_block_hook = before_blocking;
	sem_post(&l->ready);
	wait_for(&l->go);
	while (!fuse_session_exited(l->session)) {
		if (!atomic_load(&w->token)) {
			wait_for(&l->tokens);
			atomic_store(&w->token, true);
			continue;
		}
		got = receive(w);
		if (got == -ENOMEM) {
			put_back(w);
			nanosleep(&nap, NULL);
		}
		if (got == -ENOMEM || got == -EINTR)
			continue;
		if (got <= 0)
			break;
		serve(w);
	}
	/* ECONNABORTED: it was unmounted while a request was on its way here. */
	int none = 0;
	if (got < 0 && got != -EINTR && got != -ENOMEM && got != -ECONNABORTED)
		atomic_compare_exchange_strong(&l->code, &none, got);
	fuse_session_exit(l->session);
	sem_post(&l->tokens);
	sem_post(l->ended);
	return NULL;
}

/* All or none: two of them may wait in the kernel for a client whose next request another has to
 * take (fs/cache/notify.c). */
static enum err start_workers(struct loop *l)
{
	int code = 0;
	while (l->n < LOOP_THREADS && code == 0) {
		struct worker *w = &l->workers[l->n];
		w->loop = l;
		code = pthread_create(&w->thread, NULL, work, w);
		l->n += code == 0;
	}
	for (size_t i = 0; i < l->n; i++)
		wait_for(&l->ready);
	if (code != 0)
		fuse_session_exit(l->session);
	for (size_t i = 0; i < l->n; i++)
		sem_post(&l->go);
	return code == 0 ? ERR_OK : ERR_NO_MEMORY;
}

/* The session is over: those that wait for requests are woken, the others finish theirs.  No
 * thread is cancelled: sanitizers do not know its frames as left. */
static void end_workers(struct loop *l)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	sem_post(&l->tokens); /* each thread that ends wakes another one */
	for (size_t i = 0; i < l->n; i++) {
		struct worker *w = &l->workers[i];
		while (pthread_tryjoin_np(w->thread, NULL) != 0) {
			if (atomic_load(&w->waits))
				(void)pthread_kill(w->thread, LOOP_WAKE);
			nanosleep(&step, NULL);
		}
		free(w->buf.mem);
	}
}

/* ---- the watchdog ---- */

/* Looks at each thread.  Returns whether requests came since the last look. */
static bool look(struct loop *l)
{
	bool came = false, read = false;
	struct worker *late = NULL;
	for (size_t i = 0; i < l->n; i++) {
		struct worker *w = &l->workers[i];
		uint64_t n = atomic_load(&w->n);
		bool token = atomic_load(&w->token);
		came |= n != w->seen || n % 2 != 0;
		read |= token && n % 2 == 0;
		if (token && n % 2 != 0 && n == w->seen)
			late = w;
		w->seen = n;
	}
	if (!read && late != NULL && atomic_exchange(&late->token, false)) {
		sem_post(&l->tokens);
		atomic_fetch_add(l->overdue, 1);
	}
	return came;
}

static void watch(struct loop *l)
{
	unsigned idle = 0;
	while (!fuse_session_exited(l->session)) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += WATCH_MS * 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (idle < WATCH_IDLE) {
			(void)sem_clockwait(l->ended, CLOCK_MONOTONIC, &until);
			idle = look(l) ? 0 : idle + 1;
			continue;
		}
		atomic_store(&l->asleep, true);
		if (!look(l))
			wait_for(l->ended);
		atomic_store(&l->asleep, false);
		idle = 0;
	}
}

static int cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < LOOP_THREADS ? n : LOOP_THREADS;
}

enum err loop_run(struct fuse_session *session, sem_t *ended, loop_take_fn take_first, void *arg,
	atomic_uint_fast64_t *overdue)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return ERR_NO_MEMORY;
	l->session = session;
	l->take_first = take_first;
	l->arg = arg;
	l->ended = ended;
	l->overdue = overdue;
	sem_init(&l->ready, 0, 0);
	sem_init(&l->go, 0, 0);
	sem_init(&l->tokens, 0, 1);
	atomic_init(&l->readers, 1);
	l->most_readers = cpus();
	enum err e = start_workers(l);
	watch(l);
	end_workers(l);
	int code = atomic_load(&l->code);
	sem_destroy(&l->ready);
	sem_destroy(&l->go);
	sem_destroy(&l->tokens);
	free(l);
	return e == ERR_OK && code < 0 ? err_from_errno(-code) : e;
}
