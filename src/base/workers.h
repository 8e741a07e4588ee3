/* SPDX-License-Identifier: MIT
 * A pool of threads for work that may block.  A job is embedded in the object that it works on, so
 * submitting allocates no memory.  Threads take jobs in the order of submission. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct workers;

struct job {
	struct job *next;
	void (*run)(struct job *job); /* called by one of the threads; may free the job */
};

/* Starts the threads.  ERR_NO_MEMORY if one cannot be created. */
enum err workers_start(size_t threads, struct workers **ret);
/* Queues a job, from any thread.  The pool owns the job until it calls run().  Returns false and
 * leaves the job alone if the pool was stopped. */
bool workers_submit(struct workers *w, struct job *job);
/* Returns true if a job waits for a thread. */
bool workers_wanted(struct workers *w);
/* Finishes the queued jobs and ends the threads.  Other threads may still call workers_submit(),
 * which refuses. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w); /* call it after workers_stop(); accepts NULL */

#endif
