/* SPDX-License-Identifier: MIT */
#include "daemon/core/self.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

NORETURN void self_exec(const char *const *argv)
{
	char *words[16] = { (char *)(uintptr_t) "rowfs" };
	sigset_t none;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; argv[i] != NULL && i + 2 < ARRAY_LEN(words); i++)
		words[i + 1] = (char *)(uintptr_t)argv[i];
	execv("/proc/self/exe", words);
	_exit(127);
}

static void become(int fd, int standard)
{
	int from = fd >= 0 ? fd : open("/dev/null", O_RDWR | O_CLOEXEC);
	if (from < 0 || dup2(from, standard) < 0)
		_exit(127);
}

pid_t self_start(const char *const *argv, int in, int out)
{
	(void)fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		become(in, STDIN_FILENO);
		become(out, STDOUT_FILENO);
		self_exec(argv);
	}
	return child;
}

int self_wait(pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int self_run(const char *const *argv, char *ret, size_t n)
{
	int out[2];
	if (pipe2(out, O_CLOEXEC) != 0)
		return 1;
	(void)fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		if (ret != NULL)
			(void)dup2(out[1], STDOUT_FILENO);
		self_exec(argv);
	}
	close(out[1]);
	size_t len = 0;
	ssize_t got = 0;
	while (ret != NULL && len + 1 < n && (got = read(out[0], ret + len, n - 1 - len)) > 0)
		len += (size_t)got;
	close(out[0]);
	if (ret != NULL)
		ret[len] = 0;
	return child < 0 ? 1 : self_wait(child);
}
