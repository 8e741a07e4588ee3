/* SPDX-License-Identifier: MIT
 * Preloaded into a mount: its wall clock is a minute ahead, for test_mount_changes.py. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
	int code = (int)syscall(SYS_clock_gettime, id, t);
	if (code == 0 && id == CLOCK_REALTIME)
		t->tv_sec += 60;
	return code;
}
