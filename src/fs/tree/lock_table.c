/* SPDX-License-Identifier: MIT */
#include "fs/tree/lock_table.h"

#include <errno.h>
#include <stdlib.h>

/* The search for a circle of owners gives up after so many. */
#define SEARCH_STEPS 100000

/* ---- files and users ---- */

struct locked **lock_table_place(struct locks *l, uint64_t id, bool flock)
{
	lock_assert_held(&l->lock);
	struct locked **at = &l->files[(id ^ (id >> 10) ^ (id >> 20)) & (LOCK_BUCKETS - 1)];
	while (*at != NULL && ((*at)->id != id || (*at)->flock != flock))
		at = &(*at)->next;
	return at;
}

static void take_out(struct locks *l, const struct locked *f)
{
	*lock_table_place(l, f->id, f->flock) = f->next;
}

static void put_in(struct locks *l, struct locked *f)
{
	struct locked **at = lock_table_place(l, f->id, f->flock);
	f->next = NULL;
	*at = f;
}

struct locked *lock_table_file(struct locks *l, uint64_t id, bool flock)
{
	struct locked *f = *lock_table_place(l, id, flock);
	if (f == NULL && (f = calloc(1, sizeof(*f))) != NULL) {
		f->id = id;
		f->flock = flock;
		put_in(l, f);
	}
	return f;
}

void lock_table_tidy(struct locks *l, struct locked *f)
{
	if (f == NULL || f->held.first != NULL || f->waits != NULL)
		return;
	take_out(l, f);
	free(f);
}

static void add_wait(struct wait **last, struct wait *w)
{
	while (*last != NULL)
		last = &(*last)->next;
	w->at = last;
	w->next = NULL;
	*last = w;
}

static void take_wait(struct wait *w)
{
	*w->at = w->next;
	if (w->next != NULL)
		w->next->at = w->at;
}

/* Those that hold nothing any more are freed on the way. */
struct range_user *lock_table_user(struct locks *l, const struct lock_ask *ask)
{
	lock_assert_held(&l->lock);
	for (struct range_user **at = &l->users, *u; (u = *at) != NULL;) {
		if (u->uid == ask->uid)
			return u;
		if (u->n == 0) {
			*at = u->next;
			free(u);
		} else {
			at = &u->next;
		}
	}
	struct range_user *u = calloc(1, sizeof(*u));
	if (u != NULL) {
		*u = (struct range_user){ l->users, ask->uid, ask->first, 0, &l->ranges };
		l->users = u;
	}
	return u;
}

static bool may_have(const struct locks *l, const struct range_user *u, int more)
{
	size_t max = u->first ? l->max_ranges : l->max_ranges - l->max_ranges / 4;
	return more <= 0 ||
		(l->ranges + (size_t)more <= max &&
			(u->first || u->n + (size_t)more <= l->max_ranges / 4));
}

int lock_table_set(struct locks *l, struct locked *f, const struct range *wanted)
{
	lock_assert_held(&l->lock);
	if (ranges_conflict(&f->held, wanted) != NULL)
		return EAGAIN;
	if (wanted->user != NULL && !may_have(l, wanted->user, ranges_growth(&f->held, wanted)))
		return ENOLCK;
	return ranges_set(&f->held, wanted) ? 0 : ENOLCK;
}

/* ---- waiting ---- */

void lock_table_unqueue(struct wait *w)
{
	lock_assert_held(&w->locks->lock);
	take_wait(w);
	w->queued = false;
	if (w->wanted.user == NULL)
		return;
	w->wanted.user->n--;
	w->locks->ranges--;
	*w->all_at = w->all_next;
	if (w->all_next != NULL)
		w->all_next->all_at = w->all_at;
}

static void queue(struct locks *l, struct locked *f, struct wait *w)
{
	w->file = f;
	w->queued = true;
	add_wait(&f->waits, w);
	if (w->wanted.user == NULL)
		return;
	w->wanted.user->n++;
	l->ranges++;
	w->all_at = &l->waits;
	w->all_next = l->waits;
	if (w->all_next != NULL)
		w->all_next->all_at = &w->all_next;
	l->waits = w;
}

void lock_table_grant(struct locks *l, struct locked *f, struct wait **ready)
{
	lock_assert_held(&l->lock);
	for (struct wait *w = f->waits, *next; w != NULL; w = next) {
		next = w->next;
		if (ranges_conflict(&f->held, &w->wanted) != NULL)
			continue;
		lock_table_unqueue(w);
		w->code = lock_table_set(l, f, &w->wanted);
		w->next = *ready;
		*ready = w;
	}
}

/* The waits of the owner that this search has not seen. */
static size_t push_waits(struct locks *l, uint64_t owner, struct wait **stack)
{
	size_t steps = 0;
	for (struct wait *w = l->waits; w != NULL; w = w->all_next, steps++)
		if (w->wanted.owner == owner && w->seen != l->searches) {
			w->seen = l->searches;
			w->stack = *stack;
			*stack = w;
		}
	return steps;
}

static struct wait *pop(struct wait **stack)
{
	struct wait *w = *stack;
	if (w != NULL)
		*stack = w->stack;
	return w;
}

/* Whether one of those that it would wait for waits, at any remove, for its owner. */
static bool closes_circle(struct locks *l, struct wait *new)
{
	struct wait *stack = NULL;
	size_t steps = 0;
	l->searches++;
	for (const struct wait *w = new; w != NULL; w = pop(&stack))
		for (const struct range *r = w->file->held.first; r != NULL; r = r->next) {
			if (++steps > SEARCH_STEPS)
				return false;
			if (!range_forbids(r, &w->wanted))
				continue;
			if (r->owner == new->wanted.owner)
				return true;
			steps += push_waits(l, r->owner, &stack);
		}
	return false;
}

int lock_table_wait(struct locks *l, struct locked *f, struct wait *w)
{
	lock_assert_held(&l->lock);
	w->file = f;
	if (!f->flock && !may_have(l, w->wanted.user, 1))
		return ENOLCK;
	if (!f->flock && closes_circle(l, w))
		return EDEADLK;
	queue(l, f, w);
	return EAGAIN;
}
