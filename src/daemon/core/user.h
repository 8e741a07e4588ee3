/* SPDX-License-Identifier: MIT
 * Users, as messages name them, and the message for who is not the right one. */
#ifndef DAEMON_CORE_USER_H
#define DAEMON_CORE_USER_H

#include <sys/socket.h>
#include <sys/types.h>

#define USER_TEXT_MAX 64

/* "alice (1000)"; "1000" where it has no name. */
const char *user_text(uid_t uid, char out[USER_TEXT_MAX]);

/* Says that the process which serves the store at path takes no command of this user.  Returns the
 * exit code. */
int user_refused(const char *command, const char *path, const struct ucred *server);

#endif
