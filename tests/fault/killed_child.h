/* SPDX-License-Identifier: MIT
 * A process that reports what it does through a pipe, and is killed.  Included by one file of a
 * program: check.h counts per file. */
#ifndef FAULT_KILLED_CHILD_H
#define FAULT_KILLED_CHILD_H

#include "unit/check.h"

#include <err.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_BYTES_MAX 64

/* Forks a process that calls run(to) and writes reports of `bytes` bytes to the pipe `to`.  Kills it after n
 * of them, and gives hear() each one: what is in the pipe was reported before the end. */
static inline void run_and_kill(
	void (*run)(int to), size_t bytes, void (*hear)(const void *report), unsigned n)
{
	int pipes[2];
	char report[REPORT_BYTES_MAX];
	if (bytes > sizeof(report) || pipe(pipes) != 0)
		err(2, "pipe");
	pid_t pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (pid == 0) {
		(void)close(pipes[0]);
		run(pipes[1]);
		_exit(2);
	}
	(void)close(pipes[1]);
	for (unsigned i = 0; read(pipes[0], report, bytes) == (ssize_t)bytes; i++) {
		if (i == n)
			(void)kill(pid, SIGKILL);
		hear(report);
	}
	(void)close(pipes[0]);
	int status = 0;
	(void)waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Removes a store with its log. */
static inline void remove_store(const char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm" };
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		char name[80];
		(void)snprintf(name, sizeof(name), "%s%s", path, tails[i]);
		(void)unlink(name);
	}
}

#endif
