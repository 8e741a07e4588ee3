/* SPDX-License-Identifier: MIT
 * One slot for several threads, by their numbers: the last one has it. */
#include "fs/write/speculation.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define SLOTS 1024
#define ENOUGH 2 /* overwrites in a row, after which lookups are speculative */

/* A slot: the thread's number, whether a lookup of it was speculative since its last open (or the thread was
 * that had the slot before), the count. */
#define TID_SHIFT 8
#define SPECULATED UINT64_C(0x80)
#define COUNT UINT64_C(0x7f)

struct speculation {
	_Atomic uint64_t slots[SLOTS];
};

struct speculation *speculation_new(void)
{
	return calloc(1, sizeof(struct speculation));
}

void speculation_free(struct speculation *h)
{
	free(h);
}

static _Atomic uint64_t *slot(struct speculation *h, pid_t tid)
{
	return &h->slots[(size_t)tid % SLOTS];
}

static bool is_of(uint64_t slot, pid_t tid)
{
	return slot >> TID_SHIFT == (uint64_t)(uint32_t)tid;
}

void speculation_overwrote(struct speculation *h, pid_t tid)
{
	uint64_t was = atomic_load(slot(h, tid)), now;
	do {
		uint64_t count = is_of(was, tid) ? was & COUNT : 0;
		count += count < ENOUGH;
		now = (uint64_t)(uint32_t)tid << TID_SHIFT | count;
		if (!is_of(was, tid))
			now |= was & SPECULATED;
	} while (now != was && !atomic_compare_exchange_weak(slot(h, tid), &was, now));
}

void speculation_stop(struct speculation *h, pid_t tid)
{
	uint64_t was = atomic_load(slot(h, tid));
	while (is_of(was, tid) && (was & COUNT) != 0)
		if (atomic_compare_exchange_weak(slot(h, tid), &was, was & ~COUNT))
			break;
}

bool speculation_take(struct speculation *h, pid_t tid)
{
	speculation_stop(h, tid);
	return (atomic_load(slot(h, tid)) & SPECULATED) != 0 &&
		(atomic_fetch_and(slot(h, tid), ~SPECULATED) & SPECULATED) != 0;
}

bool speculation_is_due(struct speculation *h, pid_t tid)
{
	uint64_t was = atomic_load(slot(h, tid));
	if (!is_of(was, tid) || (was & COUNT) < ENOUGH)
		return false;
	if ((was & SPECULATED) == 0)
		atomic_fetch_or(slot(h, tid), SPECULATED);
	return true;
}
