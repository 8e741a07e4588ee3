/* SPDX-License-Identifier: MIT
 * The options of a query: what parses has limits that hold, and parses to the same with its
 * suffix changed and every byte spelt as %XX; what does not is refused with one line. */
#include "base/text.h"
#include "fuzz.h"
#include "service/query/row_query.h"

#include <inttypes.h>

/* What a path can hold. */
#define TEXT_MAX 4096

static void print(const struct row_query *q, struct buf *out)
{
	filter_print(&q->filter, out);
	buf_addf(out, "\n%" PRIu64 " %d", q->top, q->select.all);
	for (size_t i = 0; i < q->select.n; i++) {
		buf_add_char(out, '\n');
		buf_add_span(out, q->select.names[i]);
	}
	MUST(buf_ok(out));
}

/* But for the '&' that divide; what is spelt so already stays. */
static void spell_out(struct span text, struct buf *out)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '%') {
			buf_add(out, text.p + i, 3);
			i += 2;
		} else if (text.p[i] == '&') {
			buf_add_char(out, '&');
		} else {
			buf_addf(out, "%%%02x", (unsigned char)text.p[i]);
		}
	}
}

static void check_same(struct span text, const struct row_query *q)
{
	struct buf spelt = BUF_INIT(4 * TEXT_MAX), a = BUF_INIT(64u << 20), b = BUF_INIT(64u << 20);
	struct row_query again;
	spell_out(text, &spelt);
	buf_add_str(&spelt, ".count");
	MUST(buf_ok(&spelt));
	MUST(row_query_parse(buf_span(&spelt), &again, NULL) == ERR_OK);
	MUST(again.form == ROW_FORM_COUNT);
	print(q, &a);
	print(&again, &b);
	MUST(span_eq(buf_span(&a), buf_span(&b)));
	row_query_fini(&again);
	buf_fini(&spelt);
	buf_fini(&a);
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);
	struct err_detail detail = { 0 };
	struct row_query q;
	if (size > TEXT_MAX)
		return 0;
	enum err e = row_query_parse(text, &q, &detail);
	if (e == ERR_OK) {
		MUST(q.select.all == (q.select.n == 0) && q.select.n <= 255);
		if (q.form == ROW_FORM_NONE)
			check_same(text, &q);
	} else {
		MUST(e == ERR_INVALID_INPUT && detail.text[0] != '\0');
		MUST(utf8_valid(span_of(detail.text)));
	}
	row_query_fini(&q);
	return 0;
}
