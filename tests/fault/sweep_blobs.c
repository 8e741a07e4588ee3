/* SPDX-License-Identifier: MIT
 * Sweeps over blobs: each operation of blob_cycle.h, behind those before it. */
#include "blob_cycle.h"
#include "sweep.h"

static enum err operation(struct world *w)
{
	return blob_cycle_do(w->service, ids.account, 0, w->number, &w->detail);
}

static void with_those_before(struct world *w)
{
	for (unsigned i = 1; i < w->number; i++)
		MUST_DO(blob_cycle_do(w->service, ids.account, 0, i, &w->detail));
}

/* Items of blobs hold times, so texts of the states are compared. */
static void tell(struct world *w, struct buf *out)
{
	char state[BLOB_CYCLE_STATE];
	MUST_DO(blob_cycle_tell(w->service, ids.account, 0, state));
	buf_clear(out);
	buf_add_span(out, span_of(state));
}

#define OPERATION(name_, number_) \
	{ \
		name_ " of blobs", SWEEP_SERVICE, with_those_before, operation, NULL, tell, \
			number_ \
	}
/* clang-format off */
const struct sweep_case sweep_blobs[] = {
	OPERATION("container", 1),
	OPERATION("metadata of a container", 2),
	OPERATION("small put", 3),
	OPERATION("first block", 4),
	OPERATION("second block", 5),
	OPERATION("list of blocks", 6),
	OPERATION("append blob", 7),
	OPERATION("append", 8),
	OPERATION("large append", 9),
	OPERATION("page blob", 10),
	OPERATION("pages", 11),
	OPERATION("clear of pages", 12),
	OPERATION("snapshot of pages", 13),
	OPERATION("snapshot of blocks", 14),
	OPERATION("copy", 15),
	OPERATION("lease", 16),
	OPERATION("metadata", 17),
	OPERATION("large put", 18),
	OPERATION("move", 19),
	OPERATION("end", 20),
	OPERATION("end of a container", BLOB_STEPS + 2),
	{ NULL, 0, NULL, NULL, NULL, NULL, 0 },
};
/* clang-format on */
