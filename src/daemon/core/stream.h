/* SPDX-License-Identifier: MIT
 * A FILE over a descriptor whose reads and writes end when the command is cancelled: a
 * command that waits for a terminal or a pipe of its caller must not hold up the process
 * that serves the store. */
#ifndef DAEMON_CORE_STREAM_H
#define DAEMON_CORE_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* mode "r" or "w".  Owns fd, also on failure (NULL).  A cancelled call fails with
 * ECANCELED. */
FILE *stream_open(int fd, const char *mode, bool (*cancelled)(void *arg), void *arg);

#endif
