/* SPDX-License-Identifier: MIT
 * The only file that includes curl. */
#include "cloud/http.h"

#include "base/library.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEAD_MAX ((size_t)64 << 10)

void http_response_fini(struct http_response *r)
{
	buf_fini(&r->head);
	buf_fini(&r->body);
}

struct span http_response_header(const struct http_response *r, const char *name)
{
	struct span rest = buf_span(&r->head), found = { 0 };
	size_t n = strlen(name);
	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		size_t line = end != NULL ? (size_t)(end - rest.p) + 1 : rest.n;
		if (line > n && rest.p[n] == ':' && strncasecmp(rest.p, name, n) == 0)
			found = text_trim(span_make(rest.p + n + 1, line - n - 1), " \t\r\n");
		rest = span_make(rest.p + line, rest.n - line);
	}
	return found;
}

#ifdef HAVE_CURL

#include <curl/curl.h>
#include <pthread.h>
#include <stddef.h>

/* libcurl is loaded for the first client: with its dependencies it costs each start of the program
 * 2 ms and 3 MiB. */
/* clang-format off */
#define LIBCURL_FUNCTIONS \
	X(easy_cleanup) X(easy_getinfo) X(easy_init) X(easy_perform) X(easy_setopt) \
	X(easy_strerror) X(slist_append) X(slist_free_all)
/* clang-format on */

static struct {
#define X(name_) __typeof__(curl_##name_) *name_;
	LIBCURL_FUNCTIONS
#undef X
} libcurl;

static struct library library;

static void load(void)
{
	static const struct library_function functions[] = {
#define X(name_) { "curl_" #name_, offsetof(__typeof__(libcurl), name_) },
		LIBCURL_FUNCTIONS
#undef X
	};
	library_load(&library, "libcurl.so.4", "libcurl4", functions,
		sizeof(functions) / sizeof(functions[0]), &libcurl);
}

static enum err libcurl_load(struct err_detail *detail)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, load);
	return library_result(&library, detail);
}

struct http {
	CURL *curl;
	struct http_options options;
	char error[CURL_ERROR_SIZE];
	unsigned requests; /* that libcurl began for this call */
	bool finishes;     /* this call is not cancelled */
};

static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
	struct http_response *r = arg;
	/* Another answer begins, behind "100 Continue". */
	if (span_starts(span_make(p, size * n), SPAN_LIT("HTTP/")))
		buf_clear(&r->head);
	buf_add(&r->head, p, size * n);
	return buf_ok(&r->head) ? size * n : 0;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct http_response *r = arg;
	buf_add(&r->body, p, size * n);
	return buf_ok(&r->body) ? size * n : 0;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct http *h = arg;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return !h->finishes && h->options.cancelled(h->options.arg) ? 1 : 0;
}

/* libcurl by itself sends a request again if a connection that it had used before was closed without an
 * answer.  The request may have been done by then, so the caller decides. */
static int on_request(void *arg, char *to_ip, char *from_ip, int to_port, int from_port)
{
	struct http *h = arg;
	(void)to_ip;
	(void)from_ip;
	(void)to_port;
	(void)from_port;
	return h->requests++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void set_up(struct http *h)
{
	const struct http_options *o = &h->options;
	libcurl.easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	libcurl.easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	libcurl.easy_setopt(h->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	libcurl.easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)o->connect_ms);
	libcurl.easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)o->response_ms);
	libcurl.easy_setopt(h->curl, CURLOPT_PATH_AS_IS, 1L);
	libcurl.easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->error);
	libcurl.easy_setopt(h->curl, CURLOPT_PREREQFUNCTION, on_request);
	libcurl.easy_setopt(h->curl, CURLOPT_PREREQDATA, h);
	libcurl.easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, on_head);
	libcurl.easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_body);
	if (o->ca_file != NULL)
		libcurl.easy_setopt(h->curl, CURLOPT_CAINFO, o->ca_file);
	if (o->cancelled == NULL)
		return;
	libcurl.easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
	libcurl.easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	libcurl.easy_setopt(h->curl, CURLOPT_XFERINFODATA, h);
}

enum err http_new(const struct http_options *o, struct http **ret, struct err_detail *detail)
{
	*ret = NULL;
	enum err e = libcurl_load(detail);
	if (e != ERR_OK)
		return e;
	struct http *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return ERR_NO_MEMORY;
	h->options = *o;
	h->curl = libcurl.easy_init();
	if (h->curl == NULL) {
		free(h);
		return ERR_NO_MEMORY;
	}
	set_up(h);
	*ret = h;
	return ERR_OK;
}

void http_free(struct http *h)
{
	if (h == NULL)
		return;
	libcurl.easy_cleanup(h->curl);
	free(h);
}

/* Whether bytes of the request may have reached the server. */
static bool was_sent(const struct http *h)
{
	long bytes = 0;
	libcurl.easy_getinfo(h->curl, CURLINFO_REQUEST_SIZE, &bytes);
	return bytes > 0;
}

static enum err error_of(
	struct http *h, CURLcode code, const struct http_response *r, struct err_detail *detail)
{
	if (code == CURLE_OK)
		return ERR_OK;
	if (code == CURLE_ABORTED_BY_CALLBACK && h->requests > 1)
		return err_set(detail, ERR_OUTCOME_UNKNOWN,
			"the server closed the connection without a response");
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return ERR_CANCELLED;
	if (code == CURLE_OUT_OF_MEMORY)
		return ERR_NO_MEMORY;
	if (code == CURLE_WRITE_ERROR && !buf_ok(&r->body))
		return buf_full(&r->body);
	/* A certificate that is not trusted will not be at the next try. */
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return err_set(detail, ERR_ACCESS, "%s", h->error);
	const char *why = h->error[0] != 0 ? h->error : libcurl.easy_strerror(code);
	return err_set(detail, was_sent(h) ? ERR_OUTCOME_UNKNOWN : ERR_IO, "%s", why);
}

static struct curl_slist *header_list(const struct http_request *r)
{
	struct curl_slist *list = libcurl.slist_append(NULL, "Expect:");
	for (size_t i = 0; list != NULL && r->headers[i] != NULL; i++) {
		struct curl_slist *longer = libcurl.slist_append(list, r->headers[i]);
		if (longer == NULL)
			libcurl.slist_free_all(list);
		list = longer;
	}
	return list;
}

/* A body makes curl send POST; the method is set beside it. */
static void set_body(struct http *h, const struct http_request *r)
{
	bool body = r->body.p != NULL;
	libcurl.easy_setopt(h->curl, CURLOPT_HTTPGET, 1L);
	if (body) {
		libcurl.easy_setopt(h->curl, CURLOPT_POST, 1L);
		libcurl.easy_setopt(h->curl, CURLOPT_POSTFIELDS, r->body.p);
		libcurl.easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
	}
	libcurl.easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, r->method);
}

enum err http_send(struct http *h, const struct http_request *r, struct http_response *ret,
	struct err_detail *detail)
{
	long status = 0;
	*ret = (struct http_response){ .head = BUF_INIT(HEAD_MAX),
		.body = BUF_INIT(HTTP_BODY_MAX) };
	struct curl_slist *headers = header_list(r);
	if (headers == NULL)
		return ERR_NO_MEMORY;
	h->error[0] = 0;
	h->requests = 0;
	h->finishes = r->finishes;
	set_body(h, r);
	libcurl.easy_setopt(h->curl, CURLOPT_URL, r->url);
	libcurl.easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
	libcurl.easy_setopt(h->curl, CURLOPT_HEADERDATA, ret);
	libcurl.easy_setopt(h->curl, CURLOPT_WRITEDATA, ret);
	enum err e = error_of(h, libcurl.easy_perform(h->curl), ret, detail);
	libcurl.easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	libcurl.easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	libcurl.slist_free_all(headers);
	ret->status = (int)status;
	return e;
}

#else

enum err http_new(const struct http_options *o, struct http **ret, struct err_detail *detail)
{
	(void)o;
	*ret = NULL;
	return err_set(detail, ERR_NOT_SUPPORTED,
		"this rowfs was built without libcurl (-Dcloud=enabled)");
}

void http_free(struct http *h)
{
	(void)h;
}

enum err http_send(struct http *h, const struct http_request *r, struct http_response *ret,
	struct err_detail *detail)
{
	(void)h;
	(void)r;
	(void)detail;
	*ret = (struct http_response){ 0 };
	return ERR_NOT_SUPPORTED;
}

#endif
