/* SPDX-License-Identifier: MIT
 * Of the query only comp is signed, and of the headers only three. */
#include "rest/tables/shared_key.h"

static void add_line(struct buf *out, struct span value)
{
	buf_add_span(out, value);
	buf_add_char(out, '\n');
}

void table_sign_head(const struct request *r, bool lite, struct buf *out)
{
	if (!lite) {
		add_line(out, r->method);
		add_line(out, request_header(r, "Content-MD5"));
		add_line(out, request_header(r, "Content-Type"));
	}
	add_line(out, request_date(r));
}

void table_sign_query(const struct request_url *url, bool lite, struct buf *out)
{
	(void)lite;
	if (url->comp.p != NULL) {
		buf_add_str(out, "?comp=");
		buf_add_span(out, url->comp);
	}
}
