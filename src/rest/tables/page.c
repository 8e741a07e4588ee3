/* SPDX-License-Identifier: MIT */
#include "rest/tables/page.h"

#include "base/clock.h"
#include "base/text.h"

#define PAGE_SECONDS 5

static enum err read_top(struct request_context *c, size_t *ret)
{
	struct span text;
	int64_t top = PAGE_ROWS;
	if (context_param(c, "$top", &text) &&
		(!text_to_i64(text, &top) || top < 0 || top > PAGE_ROWS))
		return err_set(&c->detail, ERR_INVALID_INPUT, "%s", err_text(ERR_INVALID_INPUT));
	*ret = (size_t)top;
	return ERR_OK;
}

enum err page_options(struct request_context *c, size_t *ret_top, uint64_t *ret_deadline_us)
{
	unsigned seconds = c->seconds > 0 && c->seconds < PAGE_SECONDS ? c->seconds : PAGE_SECONDS;
	*ret_deadline_us = clock_mono_us() + (uint64_t)seconds * 1000000;
	return read_top(c, ret_top);
}
