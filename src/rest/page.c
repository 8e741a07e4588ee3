/* SPDX-License-Identifier: MIT */
#include "rest/page.h"

#include "base/clock.h"
#include "base/text.h"

#define PAGE_SECONDS 5
#define TIMEOUT_SECONDS_MAX 30

static enum err refuse_options(struct call *c)
{
	static const char *const unknown[] = { "$orderby", "$skip", "$skiptoken", "$expand",
		"$inlinecount", "$count", "$apply", "$search" };
	struct span value;
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
		if (call_param(c, unknown[i], &value))
			return err_set(&c->detail, ERR_NOT_SUPPORTED, "%s (%s)",
				err_text(ERR_NOT_SUPPORTED), unknown[i]);
	return ERR_OK;
}

static enum err read_top(struct call *c, size_t *ret)
{
	struct span text;
	int64_t top = PAGE_ROWS;
	if (call_param(c, "$top", &text) &&
		(!text_to_i64(text, &top) || top < 0 || top > PAGE_ROWS))
		return err_set(&c->detail, ERR_INVALID_INPUT, "%s", err_text(ERR_INVALID_INPUT));
	*ret = (size_t)top;
	return ERR_OK;
}

static enum err read_timeout(struct call *c, uint64_t *ret_us)
{
	struct span text;
	int64_t seconds = PAGE_SECONDS;
	if (call_param(c, "timeout", &text) && (!text_to_i64(text, &seconds) || seconds < 1))
		return err_set(&c->detail, ERR_QUERY_VALUE,
			"'timeout' is a number of seconds, 1 to %d.", TIMEOUT_SECONDS_MAX);
	if (seconds > PAGE_SECONDS)
		seconds = PAGE_SECONDS;
	*ret_us = clock_mono_us() + (uint64_t)seconds * 1000000;
	return ERR_OK;
}

enum err page_options(struct call *c, size_t *ret_top, uint64_t *ret_deadline_us)
{
	enum err e = refuse_options(c);
	if (e == ERR_OK)
		e = read_top(c, ret_top);
	return e == ERR_OK ? read_timeout(c, ret_deadline_us) : e;
}
