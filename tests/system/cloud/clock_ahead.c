/* SPDX-License-Identifier: MIT
 * Preloaded into a mount: its wall clock is ahead by CLOCK_AHEAD seconds, or a minute. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long ahead(void)
{
	const char *seconds = getenv("CLOCK_AHEAD");
	return seconds != NULL ? strtol(seconds, NULL, 10) : 60;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int code = (int)syscall(SYS_clock_gettime, id, t);
	if (code == 0 && id == CLOCK_REALTIME)
		t->tv_sec += ahead();
	return code;
}
