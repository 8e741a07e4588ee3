/* SPDX-License-Identifier: MIT
 * Tells threads that wait that something was committed.  Each change set raises it, so it costs an
 * addition while nobody waits.  Any number of threads may use it. */
#ifndef SERVICE_CORE_CHANGE_SIGNAL_H
#define SERVICE_CORE_CHANGE_SIGNAL_H

#include "base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct change_signal {
	struct mutex lock;
	pthread_cond_t raised;
	_Atomic uint64_t count;
	atomic_uint waiting; /* changed under the lock */
};

void change_signal_init(struct change_signal *s);
/* Call it when nobody waits. */
void change_signal_fini(struct change_signal *s);
void change_signal_raise(struct change_signal *s);
/* Returns a number that grows with each raise.  Ask for it before you look for changes. */
uint64_t change_signal_seen(struct change_signal *s);
/* Waits until it was raised since `seen`, but not beyond this time of clock_mono_us(). */
void change_signal_wait(struct change_signal *s, uint64_t seen, uint64_t until_us);

#endif
