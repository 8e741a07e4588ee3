/* SPDX-License-Identifier: MIT
 * Indirect node ids: of rows with two million versions and more.  Such an id and generation do not
 * fit into one node id.  Without the high bits a node id would come again, and the kernel would show
 * an old version's pages for the new one.  So a number stands for the id and the high bits, from
 * their first use until the process ends.  Each number takes 2^21 commits of one row, so the table
 * stays small. */
#include "fs/core/nid.h"

#include "base/lock.h"

#include <string.h>
#include <sys/mman.h>

static struct mutex nodes_lock = MUTEX_INIT(RANK_NID);
/* Address space until it is used.  As a static variable it would cost each start of a build with ASan
 * 10 ms, since LeakSanitizer reads those. */
struct node_table {
	size_t n;
	struct nid_indirect by_number[NID_INDIRECT_MAX];
	uint32_t sorted[NID_INDIRECT_MAX]; /* numbers, in the order of id and high */
};
static struct node_table *nodes; /* NULL: no number was given */

static struct node_table *made_nodes(void)
{
	void *p = nodes;
	if (p == NULL)
		p = mmap(NULL, sizeof(*nodes), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	BUG_ON(p == MAP_FAILED);
	return p;
}

static bool is_before(const struct nid_indirect *a, uint64_t id, uint64_t high)
{
	return a->id != id ? a->id < id : a->high < high;
}

/* Returns its index in `sorted`, or where to insert it. */
static size_t index_of(uint64_t id, uint64_t high)
{
	size_t low = 0, end = nodes->n;
	while (low < end) {
		size_t mid = low + (end - low) / 2;
		if (is_before(&nodes->by_number[nodes->sorted[mid]], id, high))
			low = mid + 1;
		else
			end = mid;
	}
	return low;
}

uint64_t nid_indirect_number(uint64_t id, uint64_t high)
{
	mutex_lock(&nodes_lock);
	nodes = made_nodes();
	size_t at = index_of(id, high);
	bool found = at < nodes->n && nodes->by_number[nodes->sorted[at]].id == id &&
		nodes->by_number[nodes->sorted[at]].high == high;
	if (!found) {
		BUG_ON(nodes->n == NID_INDIRECT_MAX);
		memmove(&nodes->sorted[at + 1], &nodes->sorted[at],
			(nodes->n - at) * sizeof(nodes->sorted[0]));
		nodes->by_number[nodes->n] = (struct nid_indirect){ id, high };
		nodes->sorted[at] = (uint32_t)nodes->n++;
	}
	uint64_t number = nodes->sorted[at];
	mutex_unlock(&nodes_lock);
	return number;
}

struct nid_indirect nid_indirect_of(uint64_t number)
{
	struct nid_indirect ret = { 0 };
	mutex_lock(&nodes_lock);
	if (nodes != NULL && number < nodes->n)
		ret = nodes->by_number[number];
	mutex_unlock(&nodes_lock);
	return ret;
}
