/* SPDX-License-Identifier: MIT
 * How the request loop ends: a device of the test's own says what each read of it gives; once that
 * is used up, reads wait for ever. */
#include "check.h"
#include "fs/session/loop.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#define THREADS 10 /* as in loop.c */

struct device {
	struct fuse_session *session;
	const int *errors; /* of the first reads */
	int n;
	atomic_int reads;
	int pipe[2];
	sem_t waiting; /* posted by each read that is going to wait */
	sem_t ended;
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
	if (sigaction(LOOP_WAKE, &wake, NULL) != 0 || pipe(d->pipe) != 0)
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
		CHECK_ERR(loop_run(d.session, &d.ended, take_none, NULL), want_); \
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
	for (int i = 0; i < THREADS; i++)
		while (sem_wait(&d->waiting) != 0)
			;
	fuse_session_exit(d->session);
	sem_post(&d->ended);
	return NULL;
}

TEST(it_can_be_ended_while_all_wait_for_requests)
{
	struct device d;
	pthread_t other;
	REQUIRE(open_device(&d, NULL, 0));
	REQUIRE(pthread_create(&other, NULL, end_it, &d) == 0);
	CHECK_ERR(loop_run(d.session, &d.ended, take_none, NULL), ERR_OK);
	CHECK_EQ_INT(atomic_load(&d.reads), THREADS);
	pthread_join(other, NULL);
	close_device(&d);
}

TEST(it_can_be_ended_before_it_begins)
{
	struct device d;
	REQUIRE(open_device(&d, NULL, 0));
	fuse_session_exit(d.session);
	sem_post(&d.ended);
	CHECK_ERR(loop_run(d.session, &d.ended, take_none, NULL), ERR_OK);
	CHECK_EQ_INT(atomic_load(&d.reads), 0);
	close_device(&d);
}

RUN_TESTS(T(an_unmount_is_no_error), T(nor_is_one_while_a_request_is_being_read),
	T(a_device_that_cannot_be_read_is_an_error),
	T(interruptions_and_requests_that_were_given_up_end_nothing),
	T(it_can_be_ended_while_all_wait_for_requests), T(it_can_be_ended_before_it_begins))
