/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

_Thread_local void (*may_block_hook)(enum block how);

#ifdef LOCK_CHECKS

#include "base/compiler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
	const char *name, *file, *guards;
} ranks[] = { [RANK_NONE] = { "NONE", "nowhere", "nothing" },
#define X(rank_, file_, guards_) [RANK_##rank_] = { #rank_, file_, guards_ },
	LOCK_RANKS(X)
#undef X
};

static _Thread_local struct {
	const void *lock;
	enum lock_rank rank;
} held[LOCK_RANKS_]; /* in increasing order of their ranks */
static _Thread_local size_t nheld;

/* Does not use the log, which takes a lock. */
NORETURN static void stop(enum lock_rank rank, const char *why, enum lock_rank other)
{
	(void)dprintf(STDERR_FILENO, "%s: internal error: lock %s (%s: %s) %s %s (%s: %s)\n",
		program_invocation_short_name, ranks[rank].name, ranks[rank].file,
		ranks[rank].guards, why, ranks[other].name, ranks[other].file, ranks[other].guards);
	abort();
}

static enum lock_rank innermost(void)
{
	return nheld > 0 ? held[nheld - 1].rank : RANK_NONE;
}

void lock_may_take(enum lock_rank rank)
{
	for (size_t i = 0; i < nheld; i++)
		if (held[i].rank >= rank)
			stop(rank, "is taken under", held[i].rank);
}

void lock_takes(const void *lock, enum lock_rank rank)
{
	if (rank == RANK_NONE)
		stop(rank, "was never initialized; the innermost lock that is held:", innermost());
	lock_may_take(rank);
	held[nheld].lock = lock;
	held[nheld++].rank = rank;
}

static size_t place_of(const void *lock, enum lock_rank rank)
{
	size_t i = 0;
	while (i < nheld && held[i].lock != lock)
		i++;
	if (i == nheld)
		stop(rank, "is not held; the innermost lock that is:", innermost());
	return i;
}

void lock_releases(const void *lock, enum lock_rank rank)
{
	size_t i = place_of(lock, rank);
	for (nheld--; i < nheld; i++)
		held[i] = held[i + 1];
}

void lock_needs(const void *lock, enum lock_rank rank)
{
	(void)place_of(lock, rank);
}

#endif
