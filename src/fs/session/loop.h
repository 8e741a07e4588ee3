/* SPDX-License-Identifier: MIT
 * The threads that take requests from the kernel.  Not libfuse's fuse_session_loop_mt(): it ends
 * the mount where one more thread gets no memory; here those that are there go on. */
#ifndef FS_SESSION_LOOP_H
#define FS_SESSION_LOOP_H

#include "base/err.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Has a handler, without SA_RESTART: what threads of the loop wait in ends. */
#define LOOP_WAKE SIGUSR2

struct fuse_session;

/* Answers a request of n bytes that libfuse does not know; false: it is libfuse's. */
typedef bool (*loop_take_fn)(void *arg, const void *request, size_t n);

/* Serves until the mount has gone or fuse_session_exit() was called; who calls that posts `ended`
 * then, before or after this begins.  ERR_NO_MEMORY, and nothing was served: there is no room for
 * all of the threads.
 *
 * overdue counts requests that blocked the only reader, without may_block() before. */
enum err loop_run(struct fuse_session *session, sem_t *ended, loop_take_fn take_first, void *arg,
	atomic_uint_fast64_t *overdue);

#endif
