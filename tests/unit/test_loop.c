/* SPDX-License-Identifier: MIT
 * How the request loop ends, and who reads the next request.  A device of the test's own says what each
 * read of it gives; after that, reads wait for what the test writes into a pipe. */
#include "base/lock.h"
#include "check.h"
#include "fs/session/loop.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

struct device {
	struct fuse_session *session;
	const int *errors; /* of the first reads */
	int n;
	atomic_int reads;
	int pipe[2];
	sem_t waiting; /* posted by each read that is going to wait */
	sem_t ended;
	atomic_uint_fast64_t overdue;
};

static void on_wake(int number)
{
	(void)number;
}

static ssize_t read_device(int fd, void *bytes, size_t n, void *arg)
{
	struct device *d = arg;
	int i = atomic_fetch_add(&d->reads, 1);
	if (i < d->n) {
		errno = d->errors[i];
		return -1;
	}
	sem_post(&d->waiting);
	return read(fd, bytes, n);
}

static ssize_t write_device(int fd, struct iovec *parts, int n, void *arg)
{
	(void)fd;
	(void)parts;
	(void)n;
	(void)arg;
	errno = ENODEV;
	return -1;
}

static bool open_device(struct device *d, const int *errors, int n)
{
	static const struct fuse_custom_io io = { .read = read_device, .writev = write_device };
	static const struct fuse_lowlevel_ops ops = { 0 };
	static char program[] = "test";
	char *argv[] = { program, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	const struct sigaction wake = { .sa_handler = on_wake };
	*d = (struct device){ .errors = errors, .n = n };
	sem_init(&d->waiting, 0, 0);
	sem_init(&d->ended, 0, 0);
	if (sigaction(LOOP_WAKE, &wake, NULL) != 0 || pipe2(d->pipe, O_DIRECT) != 0)
		return false;
	d->session = fuse_session_new(&args, &ops, sizeof(ops), d);
	fuse_opt_free_args(&args);
	return d->session != NULL && fuse_session_custom_io(d->session, &io, d->pipe[0]) == 0;
}

static void close_device(struct device *d)
{
	fuse_session_destroy(d->session); /* and what is read from */
	close(d->pipe[1]);
	sem_destroy(&d->waiting);
	sem_destroy(&d->ended);
}

static bool take_none(void *arg, const void *request, size_t n)
{
	(void)arg, (void)request, (void)n;
	return false;
}

#define ENDS_WITH(want_, ...) \
	do { \
		static const int errors[] = { __VA_ARGS__ }; \
		struct device d; \
		REQUIRE(open_device(&d, errors, sizeof(errors) / sizeof(errors[0]))); \
		CHECK_ERR(loop_run(d.session, &d.ended, take_none, NULL, &d.overdue), want_); \
		CHECK(atomic_load(&d.reads) >= d.n); \
		close_device(&d); \
	} while (0)

TEST(an_unmount_is_no_error)
{
	ENDS_WITH(ERR_OK, ENODEV);
}

TEST(nor_is_one_while_a_request_is_being_read)
{
	ENDS_WITH(ERR_OK, ECONNABORTED);
}

TEST(a_device_that_cannot_be_read_is_an_error)
{
	ENDS_WITH(ERR_IO, EIO);
}

TEST(interruptions_and_requests_that_were_given_up_end_nothing)
{
	ENDS_WITH(ERR_IO, EINTR, ENOENT, EINTR, EINTR, ENOENT, EIO);
	ENDS_WITH(ERR_OK, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR, EINTR,
		EINTR, ENODEV);
}

static void *end_it(void *arg)
{
	struct device *d = arg;
	while (sem_wait(&d->waiting) != 0)
		;
	fuse_session_exit(d->session);
	sem_post(&d->ended);
	return NULL;
}

TEST(it_can_be_ended_while_one_thread_waits_for_requests_and_the_others_for_their_turn)
{
	struct device d;
	pthread_t other;
	REQUIRE(open_device(&d, NULL, 0));
	REQUIRE(pthread_create(&other, NULL, end_it, &d) == 0);
	CHECK_ERR(loop_run(d.session, &d.ended, take_none, NULL, &d.overdue), ERR_OK);
	CHECK_EQ_INT(atomic_load(&d.reads), 1);
	pthread_join(other, NULL);
	close_device(&d);
}

TEST(it_can_be_ended_before_it_begins)
{
	struct device d;
	REQUIRE(open_device(&d, NULL, 0));
	fuse_session_exit(d.session);
	sem_post(&d.ended);
	CHECK_ERR(loop_run(d.session, &d.ended, take_none, NULL, &d.overdue), ERR_OK);
	CHECK_EQ_INT(atomic_load(&d.reads), 0);
	close_device(&d);
}

/* ---- one thread reads ---- */

enum ask {
	ASK_RELEASE, /* what the request before waits for */
	ASK_MUTEX,
	ASK_RWLOCK,
	ASK_WRITE_RWLOCK,
	ASK_COND,
	ASK_TIMED_COND,
	ASK_SURE,
	ASK_IF_BUSY,
	ASK_FORGOTTEN, /* does not say that it blocks */
	ASK_END,
};

/* What the kernel would send: libfuse wants a header at least. */
struct request {
	enum ask ask;
	char rest[60];
};

struct scene {
	struct device device;
	struct mutex mutex, cond_mutex;
	struct rwlock rwlock;
	pthread_cond_t cond;
	sem_t released;
	pthread_t reader, blocked; /* of the two requests */
	bool released_cond;        /* guarded by cond_mutex */
};

static void wait_for_cond(struct scene *s, bool timed)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 100;
	mutex_lock(&s->cond_mutex);
	while (!s->released_cond)
		if (timed)
			(void)cond_wait_until(&s->cond, &s->cond_mutex, &until);
		else
			cond_wait(&s->cond, &s->cond_mutex);
	mutex_unlock(&s->cond_mutex);
}

static void wait_for_release(struct scene *s)
{
	while (sem_wait(&s->released) != 0)
		;
}

/* The test's thread holds the mutex and the rwlock until it sees the release. */
static void block(struct scene *s, enum ask ask)
{
	s->blocked = pthread_self();
	if (ask == ASK_MUTEX) {
		mutex_lock(&s->mutex);
		mutex_unlock(&s->mutex);
	} else if (ask == ASK_RWLOCK || ask == ASK_WRITE_RWLOCK) {
		if (ask == ASK_RWLOCK)
			rwlock_rdlock(&s->rwlock);
		else
			rwlock_wrlock(&s->rwlock);
		rwlock_unlock(&s->rwlock);
	} else if (ask == ASK_COND || ask == ASK_TIMED_COND) {
		wait_for_cond(s, ask == ASK_TIMED_COND);
	} else {
		if (ask != ASK_FORGOTTEN)
			may_block(ask == ASK_SURE ? BLOCK_SURE : BLOCK_IF_BUSY);
		wait_for_release(s);
	}
}

static bool take(void *arg, const void *bytes, size_t n)
{
	struct scene *s = arg;
	enum ask ask = ((const struct request *)bytes)->ask;
	(void)n;
	if (ask == ASK_END) {
		fuse_session_exit(s->device.session);
		sem_post(&s->device.ended);
	} else if (ask == ASK_RELEASE) {
		s->reader = pthread_self();
		mutex_lock(&s->cond_mutex);
		s->released_cond = true;
		pthread_cond_signal(&s->cond);
		mutex_unlock(&s->cond_mutex);
		sem_post(&s->released); /* of the request */
		sem_post(&s->released); /* of the test's thread */
	} else {
		block(s, ask);
	}
	return true;
}

static void send_request(struct scene *s, enum ask ask)
{
	const struct request request = { .ask = ask };
	CHECK(write(s->device.pipe[1], &request, sizeof(request)) == sizeof(request));
}

static void *serve(void *arg)
{
	struct scene *s = arg;
	CHECK_ERR(
		loop_run(s->device.session, &s->device.ended, take, s, &s->device.overdue), ERR_OK);
	return NULL;
}

/* The first request blocks until the second was served.  Returns how often the watchdog had to help:
 * on a busy machine it may also help where it did not have to. */
static uint64_t overdue_after(enum ask ask)
{
	struct scene s = { .released_cond = false };
	pthread_t server;
	if (!open_device(&s.device, NULL, 0))
		return UINT64_MAX;
	mutex_init(&s.mutex, RANK_RETRIES);
	mutex_init(&s.cond_mutex, RANK_RETRIES);
	rwlock_init(&s.rwlock, RANK_IDSET);
	pthread_cond_init(&s.cond, NULL);
	sem_init(&s.released, 0, 0);
	mutex_lock(&s.mutex);
	rwlock_wrlock(&s.rwlock);
	send_request(&s, ask);
	CHECK(pthread_create(&server, NULL, serve, &s) == 0);
	send_request(&s, ASK_RELEASE);
	wait_for_release(&s);
	rwlock_unlock(&s.rwlock);
	mutex_unlock(&s.mutex);
	send_request(&s, ASK_END);
	pthread_join(server, NULL);
	CHECK(!pthread_equal(s.reader, s.blocked));
	close_device(&s.device);
	pthread_cond_destroy(&s.cond);
	sem_destroy(&s.released);
	mutex_destroy(&s.mutex);
	mutex_destroy(&s.cond_mutex);
	rwlock_destroy(&s.rwlock);
	return atomic_load(&s.device.overdue);
}

TEST(a_thread_that_blocks_hands_over_before)
{
	static const enum ask asks[] = { ASK_MUTEX, ASK_RWLOCK, ASK_WRITE_RWLOCK, ASK_COND,
		ASK_TIMED_COND, ASK_SURE, ASK_IF_BUSY };
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		uint64_t overdue = UINT64_MAX;
		for (unsigned round = 0; round < 100 && overdue != 0; round++)
			overdue = overdue_after(asks[i]);
		CHECK_EQ_INT(overdue, 0);
	}
}

TEST(a_watchdog_sees_a_request_that_blocks_without_a_word)
{
	CHECK_EQ_INT(overdue_after(ASK_FORGOTTEN), 1);
}

RUN_TESTS(T(an_unmount_is_no_error), T(nor_is_one_while_a_request_is_being_read),
	T(a_device_that_cannot_be_read_is_an_error),
	T(interruptions_and_requests_that_were_given_up_end_nothing),
	T(it_can_be_ended_while_one_thread_waits_for_requests_and_the_others_for_their_turn),
	T(it_can_be_ended_before_it_begins), T(a_thread_that_blocks_hands_over_before),
	T(a_watchdog_sees_a_request_that_blocks_without_a_word))
