/* SPDX-License-Identifier: MIT */
#include "daemon/core/user.h"

#include "daemon/core/command.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *user_text(uid_t uid, char out[USER_TEXT_MAX])
{
	char text[1024];
	struct passwd entry, *found = NULL;
	bool named = getpwuid_r(uid, &entry, text, sizeof(text), &found) == 0 && found != NULL;
	(void)snprintf(out, USER_TEXT_MAX, named ? "%.40s (%u)" : "%s%u",
		named ? entry.pw_name : "", (unsigned)uid);
	return out;
}

int user_refused(const char *command, const char *path, const struct ucred *server)
{
	char user[USER_TEXT_MAX];
	return command_fail(stderr, command,
		"'%s' is served by process %d of user %s, which takes commands of that user and of "
		"root only: %s",
		path, (int)server->pid, user_text(server->uid, user), strerrordesc_np(EPERM));
}
