/* SPDX-License-Identifier: MIT
 * Mutexes and rwlocks with a rank (base/lock_ranks.h).  A build with -Dlock_checks=true, or with a
 * sanitizer, aborts if a thread takes a lock against the order, takes it twice, or releases one
 * that it does not hold.  It also aborts if a thread calls a function without the lock that it
 * needs.  In other builds a lock is one of pthread's. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/lock_ranks.h"
#include "base/may_block.h"

#include <pthread.h>
#include <time.h>

#ifdef LOCK_CHECKS

/* lock.c keeps the list of the locks that the calling thread holds.  These functions abort. */
void lock_takes(const void *lock, enum lock_rank rank);
void lock_releases(const void *lock, enum lock_rank rank);
void lock_needs(const void *lock, enum lock_rank rank);
void lock_may_take(enum lock_rank rank);

#define LOCK_RANK enum lock_rank rank;
#define LOCK_SET_RANK(lock_, rank_) ((lock_)->rank = (rank_))
#define LOCK_TAKES(lock_) lock_takes(lock_, (lock_)->rank)
#define LOCK_RELEASES(lock_) lock_releases(lock_, (lock_)->rank)
#define MUTEX_INIT(rank_) \
	{ \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (rank_) \
	}
/* Asserts that the calling thread holds the lock; an rwlock at least for reading. */
#define lock_assert_held(lock_) lock_needs(lock_, (lock_)->rank)
/* Asserts that the calling thread could take a lock of this rank. */
#define lock_assert_above(rank_) lock_may_take(rank_)

#else

#define LOCK_RANK
#define LOCK_SET_RANK(lock_, rank_) ((void)(rank_))
#define LOCK_TAKES(lock_) ((void)0)
#define LOCK_RELEASES(lock_) ((void)0)
#define MUTEX_INIT(rank_) \
	{ \
		.mutex = PTHREAD_MUTEX_INITIALIZER \
	}
#define lock_assert_held(lock_) ((void)0)
#define lock_assert_above(rank_) ((void)0)

#endif

struct mutex {
	pthread_mutex_t mutex;
	LOCK_RANK
};

struct rwlock {
	pthread_rwlock_t rwlock;
	LOCK_RANK
};

/* Each returns the result of pthread's function; 0: success. */
static inline int mutex_init(struct mutex *m, enum lock_rank rank)
{
	LOCK_SET_RANK(m, rank);
	return pthread_mutex_init(&m->mutex, NULL);
}

static inline void mutex_destroy(struct mutex *m)
{
	pthread_mutex_destroy(&m->mutex);
}

static inline void mutex_lock(struct mutex *m)
{
	LOCK_TAKES(m);
	if (pthread_mutex_trylock(&m->mutex) != 0) {
		may_block(BLOCK_SURE);
		pthread_mutex_lock(&m->mutex);
	}
}

static inline int mutex_trylock(struct mutex *m)
{
	int code = pthread_mutex_trylock(&m->mutex);
	if (code == 0)
		LOCK_TAKES(m);
	return code;
}

static inline void mutex_unlock(struct mutex *m)
{
	LOCK_RELEASES(m);
	pthread_mutex_unlock(&m->mutex);
}

/* A wait releases the mutex and takes it again.  So the caller must hold no lock of a later
 * rank. */
static inline void cond_wait(pthread_cond_t *c, struct mutex *m)
{
	LOCK_RELEASES(m);
	LOCK_TAKES(m);
	may_block(BLOCK_SURE);
	pthread_cond_wait(c, &m->mutex);
}

/* `until` is a time of CLOCK_MONOTONIC.  Returns ETIMEDOUT after it. */
static inline int cond_wait_until(pthread_cond_t *c, struct mutex *m, const struct timespec *until)
{
	LOCK_RELEASES(m);
	LOCK_TAKES(m);
	may_block(BLOCK_SURE);
	return pthread_cond_clockwait(c, &m->mutex, CLOCK_MONOTONIC, until);
}

static inline int rwlock_init(struct rwlock *l, enum lock_rank rank)
{
	LOCK_SET_RANK(l, rank);
	return pthread_rwlock_init(&l->rwlock, NULL);
}

static inline void rwlock_destroy(struct rwlock *l)
{
	pthread_rwlock_destroy(&l->rwlock);
}

static inline void rwlock_rdlock(struct rwlock *l)
{
	LOCK_TAKES(l);
	if (pthread_rwlock_tryrdlock(&l->rwlock) != 0) {
		may_block(BLOCK_SURE);
		pthread_rwlock_rdlock(&l->rwlock);
	}
}

static inline void rwlock_wrlock(struct rwlock *l)
{
	LOCK_TAKES(l);
	if (pthread_rwlock_trywrlock(&l->rwlock) != 0) {
		may_block(BLOCK_SURE);
		pthread_rwlock_wrlock(&l->rwlock);
	}
}

static inline void rwlock_unlock(struct rwlock *l)
{
	LOCK_RELEASES(l);
	pthread_rwlock_unlock(&l->rwlock);
}

#endif
