/* SPDX-License-Identifier: MIT
 * flock(2) while requests are interrupted and given up: the library's part is played here, so that an
 * interruption comes at the moment that is meant. */
#include "check.h"
#include "fs/locks.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <sys/file.h>

#define ROW 77

struct fuse_req {
	fuse_interrupt_func_t on_interrupt;
	void *data;
	/* It is being interrupted when it is granted, and by then this owner has let go. */
	struct locks *interrupted_in;
	uint64_t lets_go;
	int answers, code;
};

int fuse_reply_err(fuse_req_t req, int code)
{
	req->answers++;
	req->code = code;
	return 0;
}

/* The library's waits for an interruption that is being handled. */
void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
	struct locks *l = req->interrupted_in;
	if (func == NULL && l != NULL) {
		req->interrupted_in = NULL;
		if (req->lets_go != 0)
			locks_release(l, req->lets_go);
		req->on_interrupt(req, req->data);
	}
	req->on_interrupt = func;
	req->data = data;
}

static struct lock_id same(const void *arg)
{
	uint64_t id = *(const uint64_t *)arg;
	return (struct lock_id){ id, id };
}

static void ask(struct locks *l, struct fuse_req *req, uint64_t id, uint64_t owner, int operation)
{
	locks_flock(l, req, same, &id, owner, operation);
}

static bool can_have(struct locks *l, uint64_t id, uint64_t owner)
{
	struct fuse_req req = { 0 };
	ask(l, &req, id, owner, LOCK_EX | LOCK_NB);
	bool can = req.answers == 1 && req.code == 0;
	locks_release(l, owner);
	return can;
}

/* The first owner has the lock, the second waits for it. */
static struct locks *one_waits(struct fuse_req *a, struct fuse_req *b)
{
	struct locks *l = locks_new();
	BUG_ON(l == NULL);
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
	locks_release(l, 1);
	CHECK_EQ_INT(b.answers, 1);
	CHECK(can_have(l, ROW, 3));
	locks_free(l);
}

TEST(an_interruption_that_comes_too_late_takes_nothing_back)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = one_waits(&a, &b);
	b.interrupted_in = l;
	locks_release(l, 1);
	CHECK_EQ_INT(b.answers, 1);
	CHECK_EQ_INT(b.code, 0);
	CHECK(!can_have(l, ROW, 3));
	locks_release(l, 2);
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
	locks_release(l, 1);
	CHECK_EQ_INT(b.answers, 1);
	CHECK_EQ_INT(b.code, 0);
	CHECK(can_have(l, ROW, 3));
	locks_free(l);
}

TEST(a_lock_goes_with_what_it_is_of)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = one_waits(&a, &b);
	locks_move(l, ROW, ROW + 1);
	CHECK(can_have(l, ROW, 3));
	CHECK(!can_have(l, ROW + 1, 3));
	locks_release(l, 1);
	CHECK_EQ_INT(b.answers, 1);
	CHECK(!can_have(l, ROW + 1, 3));
	locks_release(l, 2);
	CHECK(can_have(l, ROW + 1, 3));
	locks_free(l);
}

/* Who asks sees already that the empty file has become the row; nobody was told yet. */
static struct lock_id became_row(const void *arg)
{
	(void)arg;
	return (struct lock_id){ ROW + 1, ROW };
}

TEST(a_lock_goes_with_what_it_is_of_at_the_moment_at_which_that_becomes_another)
{
	struct fuse_req a = { 0 }, b = { 0 }, c = { 0 };
	struct locks *l = locks_new();
	REQUIRE(l != NULL);
	ask(l, &a, ROW, 1, LOCK_EX);
	locks_flock(l, &b, became_row, NULL, 2, LOCK_EX | LOCK_NB);
	CHECK_EQ_INT(b.code, EWOULDBLOCK);
	CHECK(!can_have(l, ROW + 1, 3));
	locks_move(l, ROW, ROW + 1);
	CHECK(!can_have(l, ROW + 1, 3));
	locks_release(l, 1);
	locks_flock(l, &c, became_row, NULL, 2, LOCK_EX);
	CHECK_EQ_INT(c.answers, 1);
	CHECK(!can_have(l, ROW + 1, 3));
	locks_release(l, 2);
	locks_free(l);
}

/* It becomes the row when the claim was refused and does not wait yet. */
static struct {
	unsigned asked;
} later;

static struct lock_id row_at_the_second_look(const void *arg)
{
	(void)arg;
	return (struct lock_id){ later.asked++ == 0 ? ROW : ROW + 1, ROW };
}

TEST(who_is_about_to_wait_waits_for_what_it_has_become)
{
	struct fuse_req a = { 0 }, b = { 0 };
	struct locks *l = locks_new();
	REQUIRE(l != NULL);
	ask(l, &a, ROW, 1, LOCK_EX);
	later.asked = 0;
	locks_flock(l, &b, row_at_the_second_look, NULL, 2, LOCK_EX);
	CHECK_EQ_INT(later.asked, 2);
	CHECK_EQ_INT(b.answers, 0);
	locks_move(l, ROW, ROW + 1);
	locks_release(l, 1);
	CHECK_EQ_INT(b.answers, 1);
	CHECK(!can_have(l, ROW + 1, 3));
	locks_release(l, 2);
	locks_free(l);
}

RUN_TESTS(T(who_waits_is_interrupted_and_nobody_else_is_kept_waiting),
	T(an_interruption_that_comes_too_late_takes_nothing_back),
	T(what_is_let_go_while_its_request_is_interrupted_is_there_until_that_is_over),
	T(a_lock_goes_with_what_it_is_of),
	T(a_lock_goes_with_what_it_is_of_at_the_moment_at_which_that_becomes_another),
	T(who_is_about_to_wait_waits_for_what_it_has_become))
