/* SPDX-License-Identifier: MIT
 * Contents that are given away are not lost for lack of memory: what cannot be kept is freed, and
 * the caller's item is empty whether it was kept or not. */
#include "calls.h"
#include "fs/cache/content.h"
#include "unit/check.h"

#include <errno.h>

static void give(struct item *ret)
{
	struct item it = { .id = 3000,
		.parent = 2000,
		.kind = ITEM_ROW,
		.class = CLASS_KEYED,
		.key = SPAN_LIT("r"),
		.body = SPAN_LIT("{}") };
	CHECK_ERR(item_copy(ret, &it), ERR_OK);
}

TEST(what_cannot_be_kept_is_freed)
{
	struct contents *b = contents_new(1 << 20, 100);
	const struct content *content = NULL;
	struct contents_info info;
	struct item it;
	give(&it);
	calls_strike(CALLS_FAIL, CALLS_MEMORY, true, 1, ENOMEM);
	CHECK_ERR(contents_put(b, &it, &content), ERR_NO_MEMORY);
	CHECK_EQ_INT(calls_now()->struck, 1);
	calls_stop();
	CHECK(it.mem == NULL);

	give(&it);
	calls_strike(CALLS_FAIL, CALLS_MEMORY, true, 1, ENOMEM);
	contents_add(b, &it);
	CHECK_EQ_INT(calls_now()->struck, 1);
	calls_stop();
	CHECK(it.mem == NULL);

	contents_info(b, &info);
	CHECK_EQ_INT(info.pinned, 0);
	contents_free(b);
}

RUN_TESTS(T(what_cannot_be_kept_is_freed))
