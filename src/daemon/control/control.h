/* SPDX-License-Identifier: MIT
 * The control channel: how a command works through the process that serves a store.  That
 * process listens on an abstract socket named after the store file's device and inode (so
 * nothing is left behind); the caller sends the command's words and its own open files,
 * and gets the exit code.  Only the server's own user and root may call, and a caller
 * believes only a server of its own user, of the store's owner, or of root. */
#ifndef DAEMON_CONTROL_CONTROL_H
#define DAEMON_CONTROL_CONTROL_H

#include "daemon/core/served.h"
#include "service/core/service.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct command_table;
struct control;

/* table: the commands that it takes.  served: for the commands that run here; may be NULL; borrowed.
 * ERR_NAME_EXISTS where someone else has the name. */
enum err control_start(struct service *s, const struct stat *store,
	const struct command_table *table, const struct served *served, struct control **ret);
/* Takes no more commands, cancels those that run, returns when they have ended.  NULL is
 * fine. */
void control_stop(struct control *c);

/* Takes commands until none runs, and returns then: those that run may wait for one that has just
 * connected.  NULL is fine. */
void control_finish(struct control *c);

/* A connection to the process that serves this store, or -1.  path: as the user wrote it, for
 * messages.  *ret_server: whom it is connected to. */
int control_connect(const char *path, const struct stat *store, struct ucred *ret_server);
enum control_result {
	CONTROL_DONE,      /* *ret_code is the exit code */
	CONTROL_NOT_TAKEN, /* the server did not begin: nothing happened, try again */
	CONTROL_LOST,      /* it went away while it was at it */
	CONTROL_REFUSED,   /* it takes no command of this user */
};

/* Sends the command and waits for its end; closes sock.  A signal that signals.h catches ends the
 * command, and this process too where the server does not answer soon. */
enum control_result control_call(int sock, const struct ucred *server, const char *path, int argc,
	char *const *argv, const int *fds, size_t nfds, int *ret_code);

#endif
