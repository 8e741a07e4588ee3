/* SPDX-License-Identifier: MIT
 * An HTTP client: one connection that is kept alive, one request at a time.  Only http.c includes
 * curl; a build without it refuses http_new(). */
#ifndef CLOUD_HTTP_H
#define CLOUD_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>

#define HTTP_HEADERS_MAX 16
#define HTTP_BODY_MAX ((size_t)16 << 20) /* of a response */

struct http;

struct http_options {
	const char *ca_file; /* certificates to trust instead of the system's; NULL: the system's */
	unsigned connect_ms, response_ms;
	/* Asked a few times a second; may be NULL. */
	bool (*cancelled)(void *arg);
	void *arg;
};

struct http_request {
	const char *method, *url;
	const char *headers[HTTP_HEADERS_MAX + 1]; /* "Name: value"; NULL ends them */
	struct span body;
	bool finishes; /* cancelled() does not end it */
};

struct http_response {
	int status;
	struct buf head; /* "name: value" lines, as they came */
	struct buf body;
};

/* Keeps a copy of the options.  ERR_NOT_SUPPORTED: built without libcurl, or it is not
 * installed.  ERR_NO_MEMORY. */
enum err http_new(const struct http_options *o, struct http **ret, struct err_detail *detail);
void http_free(struct http *h); /* accepts NULL */

/* Sends a request and waits for the response, of any status.  Call http_response_fini() also after an
 * error.  Follows no redirection.
 *
 * ERR_IO: nothing reached the server; the detail says why.  ERR_OUTCOME_UNKNOWN: the request was
 * sent, and no whole response came.  ERR_ACCESS: the certificate is not trusted.  ERR_BODY_TOO_LARGE, ERR_CANCELLED, ERR_NO_MEMORY.  Only one
 * thread may use a client at a time. */
enum err http_send(struct http *h, const struct http_request *r, struct http_response *ret,
	struct err_detail *detail);
void http_response_fini(struct http_response *r);
/* Returns the value of the last header with this name, whatever its case; p is NULL without one. */
struct span http_response_header(const struct http_response *r, const char *name);

#endif
