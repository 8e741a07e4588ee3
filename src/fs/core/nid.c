/* SPDX-License-Identifier: MIT
 * Far nodes: of rows that had two million versions and more.  An id and a generation do not fit into
 * one node id then, and a part of the generation alone would come again: the kernel took an old
 * version's pages for the new one's.  So a number stands for the id and the high bits, from the
 * first time that they are asked for until the process ends; each such number takes 2^21 commits of
 * one row, so that the table stays small. */
#include "fs/core/nid.h"

#include "base/lock.h"

#include <string.h>

static struct mutex far_lock = MUTEX_INIT(RANK_NID);
/* All zero at first, so that the file of the program does not carry it. */
static struct {
	size_t n;
	struct nid_far by_number[NID_FAR_MAX];
	uint32_t sorted[NID_FAR_MAX]; /* numbers, in the order of id and high */
} far;

static bool is_before(const struct nid_far *a, uint64_t id, uint64_t high)
{
	return a->id != id ? a->id < id : a->high < high;
}

/* Where it stands in the order, or would stand. */
static size_t place_of(uint64_t id, uint64_t high)
{
	size_t low = 0, end = far.n;
	while (low < end) {
		size_t mid = low + (end - low) / 2;
		if (is_before(&far.by_number[far.sorted[mid]], id, high))
			low = mid + 1;
		else
			end = mid;
	}
	return low;
}

uint64_t nid_far_number(uint64_t id, uint64_t high)
{
	mutex_lock(&far_lock);
	size_t at = place_of(id, high);
	bool found = at < far.n && far.by_number[far.sorted[at]].id == id &&
		far.by_number[far.sorted[at]].high == high;
	if (!found) {
		BUG_ON(far.n == NID_FAR_MAX);
		memmove(&far.sorted[at + 1], &far.sorted[at], (far.n - at) * sizeof(far.sorted[0]));
		far.by_number[far.n] = (struct nid_far){ id, high };
		far.sorted[at] = (uint32_t)far.n++;
	}
	uint64_t number = far.sorted[at];
	mutex_unlock(&far_lock);
	return number;
}

struct nid_far nid_far_of(uint64_t number)
{
	struct nid_far ret = { 0 };
	mutex_lock(&far_lock);
	if (number < far.n)
		ret = far.by_number[number];
	mutex_unlock(&far_lock);
	return ret;
}
