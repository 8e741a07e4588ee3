/* SPDX-License-Identifier: MIT
 * Of the query only comp is signed, and of the headers only three. */
#include "codec/table_signature.h"

static void add_line(struct buf *out, struct span value)
{
	buf_add_span(out, value);
	buf_add_char(out, '\n');
}

void table_signature_head(const struct table_signature *s, struct buf *out)
{
	if (!s->lite) {
		add_line(out, s->method);
		add_line(out, s->content_md5);
		add_line(out, s->content_type);
	}
	add_line(out, s->date);
}

void table_signature_query(struct span comp, struct buf *out)
{
	if (comp.p == NULL)
		return;
	buf_add_str(out, "?comp=");
	buf_add_span(out, comp);
}
