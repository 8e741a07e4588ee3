/* SPDX-License-Identifier: MIT */
#include "cloud/group_response.h"

#include "base/text.h"
#include "cloud/service_error.h"

#include <string.h>
#include <strings.h>

static const struct span mark = SPAN_LIT("HTTP/1.1 ");

/* "1:The specified entity already exists." */
static void take_index(struct err_detail *detail)
{
	const char *colon = detail != NULL ? strchr(detail->text, ':') : NULL;
	uint64_t index;
	if (colon == NULL ||
		!text_to_u64(span_make(detail->text, (size_t)(colon - detail->text)), &index))
		return;
	detail->op = (size_t)index;
	memmove(detail->text, colon + 1, strlen(colon + 1) + 1);
}

enum err group_response(struct span body, struct err_detail *detail)
{
	size_t parts = 0;
	for (;;) {
		size_t at = span_find(body, mark);
		if (at == body.n)
			break;
		body = span_make(body.p + at + mark.n, body.n - at - mark.n);
		uint64_t status;
		if (body.n < 3 || !text_to_u64(span_make(body.p, 3), &status))
			break;
		parts++;
		enum err e = service_error_of((int)status, body, detail);
		if (e != ERR_OK) {
			take_index(detail);
			return e;
		}
	}
	return parts > 0 ? ERR_OK
			 : err_set(detail, ERR_INVALID_INPUT,
				   "the service's answer to a transaction has no parts");
}

static void take_etag(struct span head, char ret[CLOUD_ETAG_MAX])
{
	static const struct span name = SPAN_LIT("ETag: ");
	ret[0] = 0;
	while (head.n > 0) {
		struct span line = span_take(&head, '\n');
		if (span_ends(line, SPAN_LIT("\r")))
			line.n--;
		if (line.n <= name.n || line.n - name.n >= CLOUD_ETAG_MAX ||
			strncasecmp(line.p, name.p, name.n) != 0)
			continue;
		memcpy(ret, line.p + name.n, line.n - name.n);
		ret[line.n - name.n] = 0;
	}
}

void group_response_etags(struct span body, char (*etags)[CLOUD_ETAG_MAX], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = span_find(body, mark), start = at < body.n ? at + mark.n : body.n;
		body = span_make(body.p + start, body.n - start);
		take_etag(span_make(body.p, span_find(body, SPAN_LIT("\r\n\r\n"))), etags[i]);
	}
}
