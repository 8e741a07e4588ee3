/* SPDX-License-Identifier: MIT
 * futex(2): a wake-up by an address at which nobody sleeps any more does nothing, or wakes a sleeper
 * there for nothing; every sleeper looks again. */
#include "base/wake.h"

#include "base/may_block.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t wake_wait(struct wake *w)
{
	uint32_t word = atomic_exchange(&w->word, 0);
	if (word == 0)
		may_block(BLOCK_SURE);
	while (word == 0) {
		(void)syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, 0, NULL);
		word = atomic_exchange(&w->word, 0);
	}
	return word;
}

void wake_tell(struct wake *w, uint32_t word)
{
	atomic_store(&w->word, word);
	(void)syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1);
}
