/* SPDX-License-Identifier: MIT
 * Finds out if the client of a thread's request was interrupted (base/interrupted.h).  The
 * kernel tells of each signal that has a handler.  Those that a program gets in its normal work, such as
 * SIGCHLD, end nothing: few programs expect that stat(2) fails with EINTR. */
#include "base/interrupted.h"
#include "fs/requests/ops.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libfuse's request is valid until the reply. */
static _Thread_local fuse_req_t served;
static _Thread_local struct fs *served_fs;
static _Thread_local pid_t served_tid;

static unsigned long long bit(int signal)
{
	return 1ull << (signal - 1);
}

/* Returns the signals that wait for a thread.  A fatal one is SIGKILL there.  All, if /proc does not show it. */
static unsigned long long pending(pid_t tid)
{
	unsigned long long set = 0;
	char path[64], line[256];
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	FILE *f = tid != 0 ? fopen(path, "re") : NULL;
	if (f == NULL)
		return ~0ull;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "SigPnd:", 7) == 0 || strncmp(line, "ShdPnd:", 7) == 0)
			set |= strtoull(line + 7, NULL, 16);
	(void)fclose(f);
	return set;
}

static bool is_interrupted(void)
{
	static const int ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL };
	unsigned long long wanted = 0;
	if (atomic_load(&served_fs->stopping))
		return true;
	if (!fuse_req_interrupted(served))
		return false;
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		wanted |= bit(ending[i]);
	return (pending(served_tid) & wanted) != 0;
}

void call_works(const struct fuse_call *c)
{
	served = c != NULL ? c->req : NULL;
	served_fs = c != NULL ? c->fs : NULL;
	served_tid = c != NULL ? c->tid : 0;
	interrupted_hook = served != NULL ? is_interrupted : NULL;
}
