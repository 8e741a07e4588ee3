/* SPDX-License-Identifier: MIT
 * A queue and its threads.  A commit blocks the thread that asked for it, and all who wait
 * together share one: so there are more threads than CPUs, and who is idle costs nothing. */
#include "base/workers.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

struct workers {
	pthread_mutex_t lock;
	/* One for each job, and for each thread at the end.  Not a condition: where many wait for one,
	 * glibc before 2.41 can lose a signal (its bug 25847), and a job would wait for the next. */
	sem_t wanted;
	struct job *first, *last;
	bool closed;
	size_t n;
	pthread_t threads[];
};

/* NULL: stopped, and the queue is empty. */
static struct job *take(struct workers *w)
{
	while (sem_wait(&w->wanted) != 0)
		;
	pthread_mutex_lock(&w->lock);
	struct job *job = w->first;
	if (job != NULL)
		w->first = job->next;
	if (w->first == NULL)
		w->last = NULL;
	pthread_mutex_unlock(&w->lock);
	return job;
}

static void *work(void *arg)
{
	struct workers *w = arg;
	for (struct job *job = take(w); job != NULL; job = take(w))
		job->run(job);
	return NULL;
}

enum err workers_start(size_t threads, struct workers **ret)
{
	struct workers *w = calloc(1, sizeof(*w) + threads * sizeof(w->threads[0]));
	if (w == NULL)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&w->lock, NULL);
	sem_init(&w->wanted, 0, 0);
	while (w->n < threads && pthread_create(&w->threads[w->n], NULL, work, w) == 0)
		w->n++;
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
	pthread_mutex_lock(&w->lock);
	bool taken = !w->closed;
	if (taken && w->last != NULL)
		w->last->next = job;
	else if (taken)
		w->first = job;
	if (taken)
		w->last = job;
	pthread_mutex_unlock(&w->lock);
	if (taken)
		sem_post(&w->wanted);
	return taken;
}

bool workers_wanted(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	bool wanted = w->first != NULL;
	pthread_mutex_unlock(&w->lock);
	return wanted;
}

void workers_stop(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < w->n; i++)
		sem_post(&w->wanted);
	for (size_t i = 0; i < w->n; i++)
		pthread_join(w->threads[i], NULL);
	w->n = 0;
}

void workers_free(struct workers *w)
{
	if (w == NULL)
		return;
	sem_destroy(&w->wanted);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
