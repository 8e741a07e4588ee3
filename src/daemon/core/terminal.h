/* SPDX-License-Identifier: MIT
 * The abilities of the caller's terminal.  A command may run in the process that serves the store, which
 * has another environment.  So the caller sends words before the command's own, as a shell writes
 * them: "TERM=dumb" or "NO_COLOR=1". */
#ifndef DAEMON_CORE_TERMINAL_H
#define DAEMON_CORE_TERMINAL_H

#include <stdbool.h>

struct terminal {
	bool dumb;      /* it knows no escape sequences */
	bool no_colour; /* also if the user wants none */
};

/* Escape sequences; all are "" without colour. */
struct palette {
	const char *bold, *good, *warning, *bad;
	const char *off; /* ends each of them */
};

/* Returns what TERM and NO_COLOR of this process say.  TERM=dumb has no colour, nor has a process
 * without TERM; NO_COLOR counts if it is not empty. */
struct terminal terminal_here(void);
/* Returns the word that tells this to the process that runs the command.  NULL: none is needed; as for timers
 * and pipes, where neither standard output nor standard error is a terminal. */
const char *terminal_word(const struct terminal *t);
/* Returns true if argv begins with such a word. */
bool terminal_describes(int argc, char *const *argv);
/* Takes such words off the front of argv. */
struct terminal terminal_take(int *argc, char *const **argv);

/* Returns true if fd is a terminal whose screen can be cleared. */
bool terminal_clears(const struct terminal *t, int fd);
/* Returns the colours for fd. */
struct palette terminal_palette(const struct terminal *t, int fd);

#endif
