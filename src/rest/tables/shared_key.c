/* SPDX-License-Identifier: MIT */
#include "rest/tables/shared_key.h"

#include "codec/table_signature.h"

void table_sign_head(const struct request *r, bool lite, struct buf *out)
{
	const struct table_signature s = { .method = r->method,
		.content_md5 = request_header(r, "Content-MD5"),
		.content_type = request_header(r, "Content-Type"),
		.date = request_date(r),
		.lite = lite };
	table_signature_head(&s, out);
}

void table_sign_query(const struct request_url *url, bool lite, struct buf *out)
{
	(void)lite;
	table_signature_query(url->comp, out);
}
