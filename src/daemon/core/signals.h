/* SPDX-License-Identifier: MIT
 * Ctrl-C and SIGTERM in a process that runs a command, and the one place that knows whether it
 * waits for another process.  A thread takes the signals, because nothing else runs while a call
 * waits in the kernel for a server that does not answer. */
#ifndef DAEMON_CORE_SIGNALS_H
#define DAEMON_CORE_SIGNALS_H

#include "base/compiler.h"

#include <stdbool.h>

/* From now on the first SIGINT, SIGTERM or SIGHUP sets the flag, and interrupts the call in which
 * this thread waits; a second one ends the process.  Signals that are ignored stay so (nohup).
 * command: for messages.  Only the thread that called it may call the others here. */
void signals_catch(const char *command);
/* Signals do again what they did before. */
void signals_release(void);
/* Whether the flag is set; the argument makes it fit struct cmd_env. */
bool signals_cancelled(void *unused);

/* Until signals_go_on() this thread waits for somebody, whom the text names: "process 12".  A
 * signal ends the process at once, with exit code 1.  After three seconds a message says for whom
 * it waits.  fd: the answer comes there; once it is there, a signal does what signals_wait_end() says.
 * -1: nobody can tell.  Without signals_catch() nothing happens. */
void signals_wait_answer(int fd, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a file, which may be in a mount. */
void signals_wait_file(const char *path);
/* As signals_wait_answer(), for somebody who is at work and ends soon after a signal: the process
 * is ended only where that takes longer than three seconds.  Says nothing before. */
void signals_wait_end(const char *fmt, ...) PRINTF_LIKE(1, 2);
void signals_go_on(void);

/* Is called before the process is ended so, by another thread, while this one waits.  NULL: nothing
 * any more. */
void signals_at_end(void (*fn)(void *arg), void *arg);

#endif
