/* SPDX-License-Identifier: MIT
 * Threads for work that may block.  Jobs are part of what they work on (no memory is taken
 * to queue one), and run in the order in which they came. */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct workers;

struct job {
	struct job *next;
	void (*run)(struct job *job); /* may free the job */
};

enum err workers_start(size_t threads, struct workers **ret);
/* The job is the workers' until its run() is called.  False, and nothing is done: they were
 * stopped. */
bool workers_submit(struct workers *w, struct job *job);
/* Whether a job waits for a thread. */
bool workers_wanted(struct workers *w);
/* Takes no more jobs, finishes those that were taken, ends the threads; submitting is still
 * allowed. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w); /* after workers_stop(); NULL is fine */

#endif
