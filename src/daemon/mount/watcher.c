/* SPDX-License-Identifier: MIT */
#include "daemon/mount/watcher.h"

#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without the program's name: `pkill -9 rowfs` is to find the server alone. */
#define WATCHER_NAME "fuse-watch"

/* Of the caller's descriptors only this one stays, as the first: neither the mount's connection,
 * which the death of the server has to close, nor a pipe on whose end somebody waits. */
static void leave_server(int fd)
{
	(void)prctl(PR_SET_NAME, WATCHER_NAME);
	(void)setsid();
	(void)!chdir("/");
	if (fd != 0)
		(void)dup2(fd, 0);
	(void)close_range(1, ~0u, 0);
}

/* The kernel sends the signal when the thread that started us has died, whatever the other threads
 * of its process wait for.  From anybody else it means nothing. */
static void wait_for_death(pid_t server)
{
	siginfo_t info;
	sigset_t death;
	sigemptyset(&death);
	sigaddset(&death, SIGUSR1);
	while (getppid() == server)
		if (sigwaitinfo(&death, &info) == SIGUSR1 && info.si_pid == server)
			return;
}

static NORETURN void watch(pid_t server, int fd)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0)
		_exit(1);
	leave_server(fd);
	wait_for_death(server);
	_exit(write(0, "1", 1) == 1 ? 0 : 1);
}

/* Forks, and returns when the child would hear of our death: it then closes the pipe. */
static pid_t fork_watcher(int fd)
{
	int armed[2];
	char none;
	if (pipe2(armed, O_CLOEXEC) != 0)
		return -1;
	pid_t server = getpid();
	pid_t watcher = fork();
	if (watcher == 0)
		watch(server, fd);
	int code = errno;
	close(armed[1]);
	while (watcher > 0 && read(armed[0], &none, 1) < 0 && errno == EINTR)
		;
	close(armed[0]);
	errno = code;
	return watcher;
}

pid_t watcher_start(int connection)
{
	return connection >= 0 ? fork_watcher(connection) : -1;
}

void watcher_stop(pid_t watcher)
{
	if (watcher <= 0)
		return;
	(void)kill(watcher, SIGKILL);
	while (waitpid(watcher, NULL, 0) < 0 && errno == EINTR)
		;
}
