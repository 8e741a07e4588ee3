/* SPDX-License-Identifier: MIT
 * The service's own text comes first, because clients compare it.  The specific cause follows. */
#include "rest/core/error_message.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/text.h"

#include <string.h>

/* Details that are complete texts of the service. */
static bool stands_alone(const char *text)
{
	static const char *const beginnings[] = { "Bad Request - Error in query syntax.",
		"If-None-Match HTTP header cannot be", "More than one If-Match is specified.",
		"Syntax error at position ", "The etag value '",
		"The 'PartitionKey' parameter of value", "The 'RowKey' parameter of value" };
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static void add_reason(enum err e, const struct err_detail *detail, struct buf *out)
{
	const char *own = err_text(e);
	const char *particular = detail != NULL ? detail->text : "";
	bool alone = stands_alone(particular) || e == ERR_OUT_OF_RANGE;
	if (particular[0] == '\0' || (!alone && strncmp(particular, own, strlen(own)) != 0))
		buf_add_str(out, own);
	if (particular[0] != '\0' && out->len > 0 && out->data[out->len - 1] != ':')
		buf_add_char(out, ' ');
	buf_add_str(out, particular);
	if (detail != NULL && detail->line > 0)
		buf_addf(out, " (line %u, column %u)", detail->line, detail->column);
}

void error_message(enum err e, const struct err_detail *detail, bool indexed,
	const char *request_id, struct buf *out)
{
	char time[CLOCK_TEXT_MAX];
	clock_format_full(clock_ticks(), time);
	if (indexed)
		buf_addf(out, "%zu:", detail->op);
	add_reason(e, detail, out);
	/* Details quote the client's input and may be cut inside a character. */
	out->len = utf8_valid_prefix(buf_span(out));
	buf_addf(out, "\nRequestId:%s\nTime:%s", request_id, time);
}
