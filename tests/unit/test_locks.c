/* SPDX-License-Identifier: MIT
 * Locks while requests are interrupted and given up: the library's part is played here, so that an
 * interruption comes at the moment that is meant.  Circles, limits, and who holds what. */
#include "check.h"
#include "fs/tree/locks.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#define ROW 77
#define OWNERS 64

struct fuse_req {
	fuse_interrupt_func_t on_interrupt;
	void *data;
	/* It is being interrupted when it is granted, and by then this owner has let go. */
	struct locks *interrupted_in;
	uint64_t lets_go;
	int answers, code;
	struct flock found;
};

/* Each owner locks through an open file of its own. */
static struct range *via[OWNERS];

int fuse_reply_err(fuse_req_t req, int code)
{
	req->answers++;
	req->code = code;
	return 0;
}

int fuse_reply_lock(fuse_req_t req, const struct flock *found)
{
	req->answers++;
	req->found = *found;
	return 0;
}

/* The library's waits for an interruption that is being handled. */
void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
	struct locks *l = req->interrupted_in;
	if (func == NULL && l != NULL) {
		req->interrupted_in = NULL;
		if (req->lets_go != 0)
			locks_release(l, &via[req->lets_go]);
		req->on_interrupt(req, req->data);
	}
	req->on_interrupt = func;
	req->data = data;
}

static struct lock_ask ask_of(uint64_t id, uint64_t owner)
{
	return (struct lock_ask){ .id = id, .via = &via[owner], .owner = owner };
}

static void ask(struct locks *l, struct fuse_req *req, uint64_t id, uint64_t owner, int operation)
{
	struct lock_ask ask = ask_of(id, owner);
	locks_flock(l, req, &ask, operation);
}

static bool can_have(struct locks *l, uint64_t id, uint64_t owner)
{
	struct fuse_req req = { 0 };
	ask(l, &req, id, owner, LOCK_EX | LOCK_NB);
	bool can = req.answers == 1 && req.code == 0;
	locks_release(l, &via[owner]);
	return can;
}

static struct locks *new_locks(size_t max_ranges)
{
	struct locks *l = locks_new(max_ranges);
	BUG_ON(l == NULL);
	memset(via, 0, sizeof(via));
	return l;
}

/* The first owner has the lock, the second waits for it. */
static struct locks *one_waits(struct fuse_req *a, struct fuse_req *b)
{
	struct locks *l = new_locks(100);
	ask(l, a, ROW, 1, LOCK_EX);
	ask(l, b, ROW, 2, LOCK_EX);
	return l;
}

TEST(who_waits_is_interrupted_and_nobody_else_is_kept_waiting)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = one_waits(&a, &b);
	CHECK_EQ_INT(b.answers, 0);
	b.on_interrupt(&b, b.data);
	CHECK_EQ_INT(b.answers, 1);
	CHECK_EQ_INT(b.code, EINTR);
	locks_release(l, &via[1]);
	CHECK_EQ_INT(b.answers, 1);
	CHECK(can_have(l, ROW, 3));
	locks_free(l);
}

TEST(an_interruption_that_comes_too_late_takes_nothing_back)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = one_waits(&a, &b);
	b.interrupted_in = l;
	locks_release(l, &via[1]);
	CHECK_EQ_INT(b.answers, 1);
	CHECK_EQ_INT(b.code, 0);
	CHECK(!can_have(l, ROW, 3));
	locks_release(l, &via[2]);
	CHECK(can_have(l, ROW, 3));
	locks_free(l);
}

/* Two processes share the open file: one waits, and is sent a signal; the other lets go. */
TEST(what_is_let_go_while_its_request_is_interrupted_is_there_until_that_is_over)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = one_waits(&a, &b);
	b.interrupted_in = l;
	b.lets_go = 2;
	locks_release(l, &via[1]);
	CHECK_EQ_INT(b.answers, 1);
	CHECK_EQ_INT(b.code, 0);
	CHECK(can_have(l, ROW, 3));
	locks_free(l);
}

/* ---- fcntl ---- */

/* Of the byte at begin, and of n; l_len 0: to the end. */
static void set(struct locks *l, struct fuse_req *req, uint64_t id, uint64_t owner, short type,
	off_t begin, bool waits)
{
	struct lock_ask ask = ask_of(id, owner);
	ask.uid = (uid_t)owner;
	ask.first = owner == 1;
	locks_set(l, req, &ask,
		&(struct flock){ .l_type = type,
			.l_start = begin,
			.l_len = 1,
			.l_pid = (pid_t)(1000 + owner) },
		waits);
}

static int set_now(struct locks *l, uint64_t id, uint64_t owner, short type, off_t begin)
{
	struct fuse_req req = { 0 };
	set(l, &req, id, owner, type, begin, false);
	CHECK_EQ_INT(req.answers, 1);
	return req.code;
}

static void close_file(struct locks *l, uint64_t id, uint64_t owner)
{
	struct lock_ask ask = ask_of(id, owner);
	locks_close(l, &ask);
}

static pid_t holder(struct locks *l, uint64_t id, off_t begin)
{
	struct fuse_req req = { 0 };
	struct lock_ask ask = ask_of(id, OWNERS - 1);
	locks_get(
		l, &req, &ask, &(struct flock){ .l_type = F_WRLCK, .l_start = begin, .l_len = 1 });
	CHECK_EQ_INT(req.answers, 1);
	return req.found.l_type == F_UNLCK ? 0 : req.found.l_pid;
}

TEST(a_range_is_waited_for_until_its_holder_closes_the_file)
{
	struct fuse_req b = { 0 }, c = { 0 };
	struct locks *l = new_locks(100);
	CHECK(!locks_used(l));
	CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, 5), 0);
	CHECK(locks_used(l) && locks_any(l));
	CHECK_EQ_INT(set_now(l, ROW, 2, F_WRLCK, 5), EAGAIN);
	CHECK_EQ_INT(set_now(l, ROW, 2, F_WRLCK, 6), 0);
	set(l, &b, ROW, 2, F_RDLCK, 5, true);
	set(l, &c, ROW, 3, F_RDLCK, 5, true);
	CHECK_EQ_INT(b.answers + c.answers, 0);
	close_file(l, ROW, 1);
	CHECK(b.answers == 1 && b.code == 0 && c.answers == 1 && c.code == 0);
	CHECK_EQ_INT(holder(l, ROW, 6), 1002);
	close_file(l, ROW, 2);
	CHECK_EQ_INT(holder(l, ROW, 5), 1003);
	locks_release(l, &via[3]);
	CHECK_EQ_INT(holder(l, ROW, 5), 0);
	CHECK(!locks_any(l));
	locks_free(l);
}

TEST(a_close_releases_what_was_locked_under_another_number_too)
{
	struct locks *l = new_locks(100);
	CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, 5), 0);
	CHECK_EQ_INT(set_now(l, ROW + 1, 1, F_WRLCK, 5), 0);
	CHECK_EQ_INT(set_now(l, ROW + 2, 1, F_WRLCK, 5), 0);
	close_file(l, ROW + 3, 1);
	CHECK_EQ_INT(holder(l, ROW + 1, 5), 0);
	CHECK_EQ_INT(holder(l, ROW + 2, 5), 0);
	locks_free(l);
}

/* The kernel gives an owner's number to another while the release of the first is on its way. */
TEST(a_late_release_leaves_the_next_owner_of_the_number_what_it_locked)
{
	uint64_t id = ROW;
	struct fuse_req req = { 0 };
	struct locks *l = new_locks(100);
	struct lock_ask again = ask_of(id, 1);
	again.via = &via[2];
	for (off_t i = 0; i < 10; i++)
		CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, i), 0);
	locks_set(l, &req, &again, &(struct flock){ .l_type = F_WRLCK, .l_start = 5, .l_len = 1 },
		false);
	CHECK(req.answers == 1 && req.code == 0);
	locks_flock(l, &req, &again, LOCK_EX);
	locks_release(l, &via[1]);
	CHECK_EQ_INT(set_now(l, ROW, 3, F_WRLCK, 4), 0);
	CHECK_EQ_INT(set_now(l, ROW, 3, F_WRLCK, 5), EAGAIN);
	CHECK_EQ_INT(set_now(l, ROW, 3, F_WRLCK, 6), 0);
	CHECK(!can_have(l, ROW, 3));
	locks_release(l, &via[2]);
	CHECK(can_have(l, ROW, 3));
	locks_free(l);
}

TEST(a_wait_for_a_range_is_interrupted)
{
	struct fuse_req b = { 0 };
	struct locks *l = new_locks(100);
	CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, 5), 0);
	set(l, &b, ROW, 2, F_WRLCK, 5, true);
	b.on_interrupt(&b, b.data);
	CHECK(b.answers == 1 && b.code == EINTR);
	CHECK_EQ_INT(set_now(l, ROW, 1, F_UNLCK, 5), 0);
	CHECK_EQ_INT(b.answers, 1);
	CHECK_EQ_INT(holder(l, ROW, 5), 0);
	locks_free(l);
}

TEST(a_circle_of_any_length_is_refused_and_a_chain_is_not)
{
	struct fuse_req reqs[40] = { 0 };
	struct locks *l = new_locks(1000);
	for (uint64_t i = 0; i < 40; i++)
		CHECK_EQ_INT(set_now(l, ROW, i + 1, F_WRLCK, (off_t)i), 0);
	for (uint64_t i = 0; i < 39; i++)
		set(l, &reqs[i], ROW, i + 1, F_RDLCK, (off_t)i + 1, true);
	for (uint64_t i = 0; i < 39; i++)
		CHECK_EQ_INT(reqs[i].answers, 0);
	set(l, &reqs[39], ROW, 40, F_RDLCK, 0, true);
	CHECK(reqs[39].answers == 1 && reqs[39].code == EDEADLK);
	for (uint64_t i = 40; i > 1; i--) {
		close_file(l, ROW, i);
		CHECK(reqs[i - 2].answers == 1 && reqs[i - 2].code == 0);
	}
	close_file(l, ROW, 1);
	CHECK(!locks_any(l));
	locks_free(l);
}

TEST(flock_takes_part_in_no_circle)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = new_locks(100);
	ask(l, &a, ROW, 1, LOCK_EX);
	CHECK_EQ_INT(set_now(l, ROW, 2, F_WRLCK, 0), 0);
	ask(l, &b, ROW, 2, LOCK_EX);
	a = (struct fuse_req){ 0 };
	set(l, &a, ROW, 1, F_WRLCK, 0, true);
	CHECK_EQ_INT(a.answers + b.answers, 0);
	locks_release(l, &via[2]);
	CHECK(a.answers == 1 && a.code == 0);
	locks_free(l);
}

TEST(ranges_are_limited_by_user_and_together)
{
	struct fuse_req a = { 0 };
	struct locks *l = new_locks(16);
	for (uint64_t owner = 2; owner <= 4; owner++)
		for (off_t i = 0; i < 8; i += 2)
			CHECK_EQ_INT(set_now(l, ROW + owner, owner, F_WRLCK, i), 0);
	CHECK_EQ_INT(set_now(l, ROW + 2, 2, F_WRLCK, 100), ENOLCK);
	CHECK_EQ_INT(set_now(l, ROW + 2, 2, F_WRLCK, 1), 0); /* it joins two */
	CHECK_EQ_INT(set_now(l, ROW + 2, 2, F_WRLCK, 100), 0);
	CHECK_EQ_INT(set_now(l, ROW + 2, 2, F_UNLCK, 1), ENOLCK); /* it would part two */
	CHECK_EQ_INT(set_now(l, ROW, 5, F_WRLCK, 0), ENOLCK);
	for (off_t i = 0; i < 8; i += 2)
		CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, i), 0);
	CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, 100), ENOLCK);
	set(l, &a, ROW + 2, 1, F_WRLCK, 0, true); /* a wait counts, too */
	CHECK(a.answers == 1 && a.code == ENOLCK);
	locks_release(l, &via[2]);
	CHECK_EQ_INT(set_now(l, ROW, 1, F_WRLCK, 101), 0);
	locks_release(l, &via[1]);
	CHECK_EQ_INT(set_now(l, ROW, 5, F_WRLCK, 100), 0);
	locks_free(l);
}

RUN_TESTS(T(who_waits_is_interrupted_and_nobody_else_is_kept_waiting),
	T(an_interruption_that_comes_too_late_takes_nothing_back),
	T(what_is_let_go_while_its_request_is_interrupted_is_there_until_that_is_over),
	T(a_range_is_waited_for_until_its_holder_closes_the_file),
	T(a_close_releases_what_was_locked_under_another_number_too),
	T(a_late_release_leaves_the_next_owner_of_the_number_what_it_locked),
	T(a_wait_for_a_range_is_interrupted),
	T(a_circle_of_any_length_is_refused_and_a_chain_is_not), T(flock_takes_part_in_no_circle),
	T(ranges_are_limited_by_user_and_together))
