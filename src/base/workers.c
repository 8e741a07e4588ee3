/* SPDX-License-Identifier: MIT
 * A queue and its threads.  A commit blocks its thread, and waiting threads share one commit.  So
 * there are more threads than CPUs; an idle thread costs almost nothing. */
#include "base/workers.h"

#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

/* A new thread replaces a thread that has worked and was then idle for this long.  glibc caches up
 * to 230 KiB of freed blocks for each thread until the thread ends. */
#define IDLE_S 1

struct worker {
	struct workers *workers;
	pthread_t thread;
};

struct workers {
	struct mutex lock;
	/* Counts the jobs, and one more for each thread at the end.  A condition variable would not
	 * do: before 2.41, glibc can lose a signal when several threads wait (bug 25847). */
	sem_t wanted;
	struct job *first, *last;
	bool closed;
	size_t n;
	struct worker threads[];
};

/* Returns false after IDLE_S without a job. */
static bool wait_for_job(struct workers *w, bool has_worked)
{
	struct timespec until;
	int code;
	if (has_worked) {
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += IDLE_S;
	}
	do
		code = has_worked ? sem_timedwait(&w->wanted, &until) : sem_wait(&w->wanted);
	while (code != 0 && errno == EINTR);
	return code == 0;
}

/* Returns NULL when the pool is stopped and the queue is empty. */
static struct job *take(struct workers *w)
{
	mutex_lock(&w->lock);
	struct job *job = w->first;
	if (job != NULL)
		w->first = job->next;
	if (w->first == NULL)
		w->last = NULL;
	mutex_unlock(&w->lock);
	return job;
}

static void *work(void *arg);

/* Starts a thread in place of the caller.  Returns false if the caller must continue. */
static bool hand_over(struct worker *self)
{
	struct workers *w = self->workers;
	mutex_lock(&w->lock);
	bool done = !w->closed && pthread_create(&self->thread, NULL, work, self) == 0;
	if (done)
		(void)pthread_detach(pthread_self());
	else
		self->thread = pthread_self(); /* pthread_create() may have overwritten it */
	mutex_unlock(&w->lock);
	return done;
}

static void *work(void *arg)
{
	struct worker *self = arg;
	struct workers *w = self->workers;
	bool has_worked = false;
	for (;;) {
		if (!wait_for_job(w, has_worked)) {
			if (hand_over(self))
				return NULL;
			has_worked = false;
			continue;
		}
		struct job *job = take(w);
		if (job == NULL)
			return NULL;
		job->run(job);
		has_worked = true;
	}
}

enum err workers_start(size_t threads, struct workers **ret)
{
	struct workers *w = calloc(1, sizeof(*w) + threads * sizeof(w->threads[0]));
	if (w == NULL)
		return ERR_NO_MEMORY;
	mutex_init(&w->lock, RANK_WORKERS);
	sem_init(&w->wanted, 0, 0);
	for (; w->n < threads; w->n++) {
		struct worker *self = &w->threads[w->n];
		self->workers = w;
		if (pthread_create(&self->thread, NULL, work, self) != 0)
			break;
	}
	if (w->n < threads) {
		workers_stop(w);
		workers_free(w);
		return ERR_NO_MEMORY;
	}
	*ret = w;
	return ERR_OK;
}

bool workers_submit(struct workers *w, struct job *job)
{
	job->next = NULL;
	mutex_lock(&w->lock);
	bool taken = !w->closed;
	if (taken && w->last != NULL)
		w->last->next = job;
	else if (taken)
		w->first = job;
	if (taken)
		w->last = job;
	mutex_unlock(&w->lock);
	if (taken)
		sem_post(&w->wanted);
	return taken;
}

bool workers_wanted(struct workers *w)
{
	mutex_lock(&w->lock);
	bool wanted = w->first != NULL;
	mutex_unlock(&w->lock);
	return wanted;
}

void workers_stop(struct workers *w)
{
	mutex_lock(&w->lock);
	w->closed = true;
	mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->n; i++)
		sem_post(&w->wanted);
	for (size_t i = 0; i < w->n; i++)
		pthread_join(w->threads[i].thread, NULL);
	w->n = 0;
}

void workers_free(struct workers *w)
{
	if (w == NULL)
		return;
	sem_destroy(&w->wanted);
	mutex_destroy(&w->lock);
	free(w);
}
