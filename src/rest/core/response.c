/* SPDX-License-Identifier: MIT
 * The headers are a sequence of NUL-terminated strings, which the server passes to MHD
 * unchanged. */
#include "rest/core/response.h"

#include "base/compiler.h"

#include <strings.h>

void response_init(struct response *r)
{
	*r = (struct response){ .headers = BUF_INIT(RESPONSE_HEADERS_LIMIT),
		.body = BUF_INIT(RESPONSE_BODY_LIMIT) };
}

static void drop_source(struct response *r)
{
	if (r->source.arg != NULL)
		r->source.free(r->source.arg);
	r->source = (struct response_source){ 0 };
}

void response_fini(struct response *r)
{
	drop_source(r);
	buf_fini(&r->headers);
	buf_fini(&r->body);
	r->status = 0;
}

void response_clear(struct response *r)
{
	drop_source(r);
	buf_clear(&r->headers);
	buf_clear(&r->body);
	r->status = r->outcome = 0;
}

/* A line end in a value would start another header, and NUL would end it.  MHD does not send
 * tabs. */
static bool may_stand(unsigned char c)
{
	return c >= 0x20 && c != 0x7f;
}

void response_header(struct response *r, const char *name, struct span value)
{
	struct buf *all = &r->headers;
	size_t name_len = strlen(name) + 1, n = 0;

	/* Add it completely or not at all: a partial header would shift the following ones. */
	if (!buf_reserve(all, name_len + value.n + 1))
		return;
	char *out = all->data + all->len;
	memcpy(out, name, name_len);
	out += name_len;
	for (size_t i = 0; i < value.n; i++) {
		out[n] = value.p[i];
		n += may_stand((unsigned char)value.p[i]);
	}
	out[n] = '\0';
	if (n > 0)
		all->len += name_len + n + 1;
	all->data[all->len] = '\0';
}

void response_header_str(struct response *r, const char *name, const char *value)
{
	response_header(r, name, span_of(value));
}

bool response_header_next(
	const struct response *r, size_t *at, const char **ret_name, const char **ret_value)
{
	if (*at >= r->headers.len)
		return false;
	*ret_name = r->headers.data + *at;
	*at += strlen(*ret_name) + 1;
	*ret_value = r->headers.data + *at;
	*at += strlen(*ret_value) + 1;
	return true;
}

const char *response_header_get(const struct response *r, const char *name)
{
	const char *n, *value;

	for (size_t at = 0; response_header_next(r, &at, &n, &value);) {
		if (strcasecmp(n, name) == 0)
			return value;
	}
	return NULL;
}

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *http_reason(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "Unknown";
}
