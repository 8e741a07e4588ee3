/* SPDX-License-Identifier: MIT */
#include "fs/tree/ranges.h"

#include <stdlib.h>

static bool overlaps(const struct range *a, const struct range *b)
{
	return a->begin <= b->last && b->begin <= a->last;
}

static bool touches(const struct range *a, const struct range *b)
{
	return a->begin <= b->last + 1 && b->begin <= a->last + 1;
}

bool range_forbids(const struct range *r, const struct range *wanted)
{
	return r->owner != wanted->owner && wanted->type != RANGE_FREE && overlaps(r, wanted) &&
		(r->type == RANGE_EXCLUSIVE || wanted->type == RANGE_EXCLUSIVE);
}

const struct range *ranges_conflict(const struct ranges *s, const struct range *wanted)
{
	const struct range *found = NULL;
	for (const struct range *r = s->first; r != NULL; r = r->next)
		if (range_forbids(r, wanted) && (found == NULL || r->begin < found->begin))
			found = r;
	return found;
}

/* ---- lists and counts ---- */

static void count(const struct range *r, int n)
{
	if (r->user == NULL)
		return;
	r->user->n += (size_t)n;
	*r->user->all += (size_t)n;
}

static void join(struct range *r, struct ranges *s)
{
	r->of = s;
	r->at = &s->first;
	r->next = s->first;
	if (r->next != NULL)
		r->next->at = &r->next;
	s->first = r;
}

static void leave(struct range *r)
{
	*r->at = r->next;
	if (r->next != NULL)
		r->next->at = r->at;
}

static void add(struct range *r, const struct range *like, struct ranges *s)
{
	*r = *like;
	join(r, s);
	r->via_at = r->via;
	r->via_next = *r->via;
	if (r->via_next != NULL)
		r->via_next->via_at = &r->via_next;
	*r->via = r;
	count(r, 1);
}

void range_drop(struct range *r)
{
	leave(r);
	*r->via_at = r->via_next;
	if (r->via_next != NULL)
		r->via_next->via_at = r->via_at;
	count(r, -1);
	free(r);
}

/* ---- setting ---- */

/* Not what was set through another open file, which may be about to go: the kernel gives the owner's
 * number to another as soon as it has closed, and the release may come later. */
static bool is_absorbed(const struct range *r, const struct range *wanted)
{
	return wanted->type != RANGE_FREE && r->type == wanted->type && r->via == wanted->via &&
		touches(r, wanted);
}

int ranges_growth(const struct ranges *s, const struct range *wanted)
{
	int n = wanted->type != RANGE_FREE;
	for (const struct range *r = s->first; r != NULL; r = r->next)
		if (r->owner == wanted->owner && is_absorbed(r, wanted))
			n--;
		else if (r->owner == wanted->owner && overlaps(r, wanted))
			n += (r->begin < wanted->begin) + (r->last > wanted->last) - 1;
	return n;
}

/* Takes the wanted bytes out of a range.  The spare one becomes its right part, where two are left. */
static void cut(struct range *r, const struct range *wanted, struct range *spare)
{
	bool left = r->begin<wanted->begin, right = r->last> wanted->last;
	struct range like = *r;
	like.begin = wanted->last + 1;
	if (left && right)
		add(spare, &like, r->of);
	if (left)
		r->last = wanted->begin - 1;
	else if (right)
		r->begin = wanted->last + 1;
	else
		range_drop(r);
}

static void widen(struct range *wanted, const struct range *r)
{
	if (r->begin < wanted->begin)
		wanted->begin = r->begin;
	if (r->last > wanted->last)
		wanted->last = r->last;
}

static bool splits(const struct ranges *s, const struct range *wanted)
{
	for (const struct range *r = s->first; r != NULL; r = r->next)
		if (r->owner == wanted->owner && r->begin < wanted->begin &&
			r->last > wanted->last && !is_absorbed(r, wanted))
			return true;
	return false;
}

static void apply(struct ranges *s, struct range *wanted, struct range *spare)
{
	const struct range asked = *wanted;
	for (struct range *r = s->first, *next; r != NULL; r = next) {
		next = r->next;
		if (r->owner == asked.owner && is_absorbed(r, &asked)) {
			widen(wanted, r);
			range_drop(r);
		} else if (r->owner == asked.owner && overlaps(r, &asked)) {
			cut(r, &asked, spare);
		}
	}
}

bool ranges_set(struct ranges *s, const struct range *wanted)
{
	bool locks = wanted->type != RANGE_FREE, halves = splits(s, wanted);
	struct range *new = locks ? calloc(1, sizeof(*new)) : NULL;
	struct range *spare = halves ? calloc(1, sizeof(*spare)) : NULL;
	struct range all = *wanted;
	if ((locks && new == NULL) || (halves && spare == NULL)) {
		free(new);
		free(spare);
		return false;
	}
	apply(s, &all, spare);
	if (locks)
		add(new, &all, s);
	return true;
}
