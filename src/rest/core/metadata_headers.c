/* SPDX-License-Identifier: MIT */
#include "rest/core/metadata_headers.h"

#include "codec/xml.h"
#include "model/limits.h"
#include "model/metadata.h"

#include <stdio.h>
#include <strings.h>

#define META_PREFIX "x-ms-meta-"

enum err metadata_from_headers(struct request_context *c, struct buf *ret)
{
	static const struct span prefix = SPAN_LIT(META_PREFIX);
	enum err e = ERR_OK;
	for (size_t i = 0; i < c->request->nheaders && e == ERR_OK; i++) {
		struct span name = c->request->headers[i].name;
		if (name.n < prefix.n || strncasecmp(name.p, prefix.p, prefix.n) != 0)
			continue;
		e = metadata_add(ret, span_make(name.p + prefix.n, name.n - prefix.n),
			c->request->headers[i].value, &c->detail);
	}
	return e;
}

void metadata_to_headers(struct span metadata, struct response *r)
{
	struct metadata_pair pair;
	while (metadata_next(&metadata, &pair)) {
		char name[sizeof(META_PREFIX) + LIMIT_METADATA_BYTES];
		(void)snprintf(
			name, sizeof(name), META_PREFIX "%.*s", (int)pair.name.n, pair.name.p);
		response_header(r, name, pair.value);
	}
}

void metadata_to_xml(struct span metadata, struct buf *out)
{
	struct metadata_pair pair;
	buf_add_str(out, "<Metadata>");
	while (metadata_next(&metadata, &pair)) {
		buf_addf(out, "<%.*s>", (int)pair.name.n, pair.name.p);
		xml_add_message(out, pair.value);
		buf_addf(out, "</%.*s>", (int)pair.name.n, pair.name.p);
	}
	buf_add_str(out, "</Metadata>");
}
