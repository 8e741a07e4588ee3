/* SPDX-License-Identifier: MIT
 * The request loop: threads that are all there from the start, each with its memory for requests,
 * so that none is needed when there is none.  A thread that gets none at first naps and tries again,
 * and the others serve.  No request is lost by that: libfuse takes the memory before it reads
 * (without FUSE_CAP_SPLICE_READ, which op_init() leaves out). */
#include "fs/session/loop.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* A commit blocks the thread that asked for it: more than there are CPUs. */
#define LOOP_THREADS 10
/* Without memory, until the next try. */
#define NAP_NS 20000000

struct loop;

struct worker {
	struct loop *loop;
	pthread_t thread;
	atomic_bool waits; /* for a request */
	struct fuse_buf buf;
};

struct loop {
	struct fuse_session *session;
	loop_take_fn take_first;
	void *arg;
	sem_t ready, go; /* no request is taken before all threads run */
	sem_t *ended;    /* posted by each thread that has */
	atomic_int code; /* negative: why the first of them did */
	size_t n;
	struct worker workers[LOOP_THREADS];
};

static void wait_for(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct loop *l = w->loop;
	const struct timespec nap = { .tv_nsec = NAP_NS };
	int got = 1;
	sem_post(&l->ready);
	wait_for(&l->go);
	while (!fuse_session_exited(l->session)) {
		atomic_store(&w->waits, true);
		got = fuse_session_receive_buf(l->session, &w->buf);
		atomic_store(&w->waits, false);
		if (got == -ENOMEM)
			nanosleep(&nap, NULL);
		if (got == -ENOMEM || got == -EINTR)
			continue;
		if (got <= 0)
			break;
		if (!l->take_first(l->arg, w->buf.mem, w->buf.size))
			fuse_session_process_buf(l->session, &w->buf);
	}
	/* ECONNABORTED: it was unmounted while a request was on its way here. */
	int none = 0;
	if (got < 0 && got != -EINTR && got != -ENOMEM && got != -ECONNABORTED)
		atomic_compare_exchange_strong(&l->code, &none, got);
	fuse_session_exit(l->session);
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

enum err loop_run(struct fuse_session *session, sem_t *ended, loop_take_fn take_first, void *arg)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (l == NULL)
		return ERR_NO_MEMORY;
	l->session = session;
	l->take_first = take_first;
	l->arg = arg;
	l->ended = ended;
	sem_init(&l->ready, 0, 0);
	sem_init(&l->go, 0, 0);
	enum err e = start_workers(l);
	while (!fuse_session_exited(session))
		wait_for(ended);
	end_workers(l);
	int code = atomic_load(&l->code);
	sem_destroy(&l->ready);
	sem_destroy(&l->go);
	free(l);
	return e == ERR_OK && code < 0 ? err_from_errno(-code) : e;
}
