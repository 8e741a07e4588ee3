/* SPDX-License-Identifier: MIT
 * One line of the access log as text, without the file and without HTTP. */
#ifndef REST_HTTP_ACCESS_LINE_H
#define REST_HTTP_ACCESS_LINE_H

#include "base/buf.h"
#include "base/span.h"
#include "rest/core/request.h"
#include "rest/core/response.h"

#include <stdbool.h>
#include <stdint.h>

#define ACCESS_TARGET_MAX 1024
#define ACCESS_TEXT_MAX 256

/* An answered request.  Texts are cleaned (access_clean()). */
struct access_line {
	struct request_facts facts; /* the service sets them while it handles the request */
	const char *service;
	bool answered;
	int64_t began_ticks;
	uint64_t began_us, complete_us, answered_us; /* clock_mono_us() */
	int status;
	uint64_t received, sent; /* bytes of the bodies */
	char ip[sizeof(((struct peer *)0)->ip)];
	char method[24], version[12], request_id[40];
	char target[ACCESS_TARGET_MAX];
	char referer[ACCESS_TEXT_MAX], agent[ACCESS_TEXT_MAX], client_id[ACCESS_TEXT_MAX];
};

/* Sets all that stays the same until the response is sent. */
void access_line_response(struct access_line *a, const struct request *q, const struct response *r);
/* Appends the line with its end, of at most 4,096 bytes.  us: since the request line came.
 * whole: the client got all of the response. */
void access_line_combined(const struct access_line *a, uint64_t us, struct buf *out);
void access_line_json(const struct access_line *a, uint64_t us, bool whole, struct buf *out);

/* Writes printable ASCII without quotes and backslashes, and every other byte as %HH; cut at cap - 1
 * bytes.  The values of the parameters "sig" and "link" become "***", up to the next '&': they are
 * credentials.  Their names, and the characters around them, may be percent-encoded. */
void access_clean(struct span text, char *out, size_t cap);

#endif
