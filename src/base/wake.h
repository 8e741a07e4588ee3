/* SPDX-License-Identifier: MIT
 * One thread sleeps until another one tells it a word.
 *
 * The teller touches the sleeper's memory for the last time when it stores the word, so a sleeper that
 * is told the last one may free it at once.  A condition or a semaphore would have to outlive the
 * teller's call.  It also needs no lock that the sleepers would have to take one after the other. */
#ifndef BASE_WAKE_H
#define BASE_WAKE_H

#include <stdatomic.h>
#include <stdint.h>

/* A zeroed struct is the initial state: nothing was told. */
struct wake {
	_Atomic uint32_t word;
};

/* Returns the word that was told last and forgets it; sleeps until there is one.  Only one thread may
 * wait.  Hold no lock that the teller needs. */
uint32_t wake_wait(struct wake *w);
/* Tells a word, which is not 0, in place of one that the sleeper has not seen.  What the caller wrote
 * before is visible to the sleeper.  Any thread may call it. */
void wake_tell(struct wake *w, uint32_t word);

#endif
