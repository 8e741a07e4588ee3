/* SPDX-License-Identifier: MIT */
#include "daemon/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	(void)number;
	caught = 1;
}

void signals_catch(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old, new = { .sa_handler = on_signal };
		new.sa_flags = (int)SA_RESETHAND; /* and no SA_RESTART: a waiting call wakes up */
		/* nohup stays in force. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(numbers[i], &new, NULL);
	}
}

bool signals_cancelled(void *unused)
{
	(void)unused;
	return caught != 0;
}
