/* SPDX-License-Identifier: MIT
 * The signals belong to the process, hence the globals. */
#include "daemon/core/signals.h"

#include "base/clock.h"
#include "base/lock.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define TICK_MS 100
#define TELL_US 3000000 /* then it is said for whom it waits */
#define END_US 3000000  /* so long may others take to end */
#define STOP SIGUSR1    /* ends the thread */
#define WAKE SIGUSR2    /* interrupts the call in which the caller waits */

static atomic_bool cancelled;

static struct {
	struct mutex lock; /* guards the rest */
	const char *command;
	bool waits, at_work; /* somebody is waited for; who is at work */
	int fd;              /* the answer comes here; -1: nobody knows */
	char whom[512];
	uint64_t since_us, signal_us;
	bool told;
	void (*at_end)(void *arg);
	void *arg;
	/* Set before the thread is there. */
	bool runs;
	pthread_t caller, thread;
	sigset_t caught, before;
} state = { .lock = MUTEX_INIT(RANK_SIGNALS) };

static void on_wake(int number)
{
	(void)number;
}

/* Another signal kills, in case that this waits as well. */
static NORETURN void end(void)
{
	pthread_sigmask(SIG_UNBLOCK, &state.caught, NULL);
	if (state.at_end != NULL)
		state.at_end(state.arg);
	fprintf(stderr,
		state.waits ? "rowfs %s: cancelled; %s does not answer\n" : "rowfs %s: cancelled\n",
		state.command, state.whom);
	_exit(1);
}

/* The caller may not have come to read it. */
static bool has_answered(void)
{
	struct pollfd p = { .fd = state.fd, .events = POLLIN };
	return state.at_work || (state.fd >= 0 && poll(&p, 1, 0) > 0);
}

static void take(int number, uint64_t now)
{
	if (number > 0 && atomic_exchange(&cancelled, true))
		end();
	if (number > 0)
		state.signal_us = now;
	if (!state.waits)
		return;
	if (atomic_load(&cancelled)) {
		if (!has_answered() || now - state.signal_us >= END_US)
			end();
		/* Again and again: it may just not have been in the call. */
		pthread_kill(state.caller, WAKE);
	} else if (!state.at_work && !state.told && now - state.since_us >= TELL_US) {
		state.told = true;
		fprintf(stderr, "rowfs %s: waiting for %s to answer ...\n", state.command,
			state.whom);
	}
}

static void *watch(void *arg)
{
	const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
	sigset_t set = state.caught;
	(void)arg;
	sigaddset(&set, STOP);
	for (;;) {
		int number = sigtimedwait(&set, NULL, &tick);
		if (number == STOP)
			return NULL;
		mutex_lock(&state.lock);
		take(number, clock_mono_us());
		if (number > 0)
			pthread_kill(state.caller, WAKE);
		mutex_unlock(&state.lock);
	}
}

void signals_catch(const char *command)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction wake = { .sa_handler = on_wake }; /* no SA_RESTART */
	sigset_t blocked;
	state.command = command;
	state.caller = pthread_self();
	sigemptyset(&state.caught);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction old;
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&state.caught, numbers[i]);
	}
	(void)sigaction(WAKE, &wake, NULL);
	blocked = state.caught;
	sigaddset(&blocked, STOP);
	pthread_sigmask(SIG_BLOCK, &blocked, &state.before);
	state.runs = pthread_create(&state.thread, NULL, watch, NULL) == 0;
	if (!state.runs) /* they kill, then */
		pthread_sigmask(SIG_SETMASK, &state.before, NULL);
}

void signals_release(void)
{
	if (!state.runs)
		return;
	pthread_kill(state.thread, STOP);
	pthread_join(state.thread, NULL);
	state.runs = false;
	pthread_sigmask(SIG_SETMASK, &state.before, NULL);
}

bool signals_cancelled(void *unused)
{
	(void)unused;
	return atomic_load(&cancelled);
}

static void PRINTF_LIKE(3, 0) wait_for(int fd, bool at_work, const char *fmt, va_list args)
{
	mutex_lock(&state.lock);
	(void)vsnprintf(state.whom, sizeof(state.whom), fmt, args);
	/* Several waits for the same process in a row count as one. */
	if (!state.waits || state.at_work != at_work)
		state.since_us = clock_mono_us();
	state.waits = true;
	state.fd = fd;
	state.at_work = at_work;
	mutex_unlock(&state.lock);
}

void signals_wait_answer(int fd, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	wait_for(fd, false, fmt, args);
	va_end(args);
}

void signals_wait_file(const char *path)
{
	signals_wait_answer(-1, "'%s'", path);
}

void signals_wait_end(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	wait_for(-1, true, fmt, args);
	va_end(args);
}

void signals_go_on(void)
{
	mutex_lock(&state.lock);
	state.waits = false;
	mutex_unlock(&state.lock);
}

void signals_at_end(void (*fn)(void *arg), void *arg)
{
	mutex_lock(&state.lock);
	state.at_end = fn;
	state.arg = arg;
	mutex_unlock(&state.lock);
}
