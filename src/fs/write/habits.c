/* SPDX-License-Identifier: MIT
 * One slot for several threads, by their numbers: the last one has it. */
#include "fs/write/habits.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define SLOTS 1024
#define ENOUGH 2 /* opens in a row that make a habit */

/* A slot: the thread's number, whether it was guessed about since its last open (or the thread was
 * that had the slot before), the count. */
#define TID_SHIFT 8
#define GUESSED UINT64_C(0x80)
#define COUNT UINT64_C(0x7f)

struct habits {
	_Atomic uint64_t slots[SLOTS];
};

struct habits *habits_new(void)
{
	return calloc(1, sizeof(struct habits));
}

void habits_free(struct habits *h)
{
	free(h);
}

static _Atomic uint64_t *slot(struct habits *h, pid_t tid)
{
	return &h->slots[(size_t)tid % SLOTS];
}

static bool is_of(uint64_t slot, pid_t tid)
{
	return slot >> TID_SHIFT == (uint64_t)(uint32_t)tid;
}

void habits_overwrote(struct habits *h, pid_t tid)
{
	uint64_t was = atomic_load(slot(h, tid)), now;
	do {
		uint64_t count = is_of(was, tid) ? was & COUNT : 0;
		count += count < ENOUGH;
		now = (uint64_t)(uint32_t)tid << TID_SHIFT | count;
		if (!is_of(was, tid))
			now |= was & GUESSED;
	} while (now != was && !atomic_compare_exchange_weak(slot(h, tid), &was, now));
}

void habits_forget(struct habits *h, pid_t tid)
{
	uint64_t was = atomic_load(slot(h, tid));
	while (is_of(was, tid) && (was & COUNT) != 0)
		if (atomic_compare_exchange_weak(slot(h, tid), &was, was & ~COUNT))
			break;
}

bool habits_forget_guess(struct habits *h, pid_t tid)
{
	habits_forget(h, tid);
	return (atomic_load(slot(h, tid)) & GUESSED) != 0 &&
		(atomic_fetch_and(slot(h, tid), ~GUESSED) & GUESSED) != 0;
}

bool habits_guess(struct habits *h, pid_t tid)
{
	uint64_t was = atomic_load(slot(h, tid));
	if (!is_of(was, tid) || (was & COUNT) < ENOUGH)
		return false;
	if ((was & GUESSED) == 0)
		atomic_fetch_or(slot(h, tid), GUESSED);
	return true;
}
