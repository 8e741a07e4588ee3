/* SPDX-License-Identifier: MIT
 * The body is {"odata.error":{"code":"C","message":{"lang":"en-US","value":"V"}}}, or XML where the
 * service refused before it knew the format. */
#include "cloud/service_error.h"

#include "base/clock.h"
#include "codec/http_date.h"
#include "codec/json_scan.h"
#include "codec/xml.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SKEW_SECONDS 300
#define MESSAGE_MAX 200

/* ---- JSON ---- */

/* A string member of a flat object at the start of text; n 0 without one. */
static struct span member(struct span text, const char *name, enum json_token token)
{
	struct json_scan s = { .part = true, .objects = true };
	struct json_member m;
	while (json_scan_next(&s, text, &m) == JSON_SCAN_MEMBER)
		if (span_is(m.name, name) && m.token == token)
			return m.value;
	return (struct span){ 0 };
}

static bool read_json(struct span body, struct span *ret_code, struct span *ret_message)
{
	size_t at = span_find(body, SPAN_LIT("\"odata.error\""));
	const char *brace = at < body.n ? memchr(body.p + at, '{', body.n - at) : NULL;
	if (brace == NULL)
		return false;
	struct span inner = span_make(brace, body.n - (size_t)(brace - body.p));
	*ret_code = member(inner, "code", JSON_TOKEN_STRING);
	*ret_message =
		member(member(inner, "message", JSON_TOKEN_OBJECT), "value", JSON_TOKEN_STRING);
	return ret_code->n > 0;
}

/* ---- XML ---- */

static struct span child(const struct xml_node *root, const char *name)
{
	for (const struct xml_node *n = root->first; n != NULL; n = n->next)
		if (n->name.n == strlen(name) && strncasecmp(n->name.p, name, n->name.n) == 0)
			return n->text;
	return (struct span){ 0 };
}

/* The tables' elements have small letters, those of the other services capitals.  Both spans are n 0 if
 * the body is something else. */
static void read_error(
	struct span body, struct arena *arena, struct span *ret_code, struct span *ret_message)
{
	struct xml_node *root;
	*ret_code = *ret_message = (struct span){ 0 };
	if (read_json(body, ret_code, ret_message) || xml_parse(body, arena, &root, NULL) != ERR_OK)
		return;
	*ret_code = child(root, "code");
	*ret_message = child(root, "message");
}

/* The first line: RequestId and Time follow. */
static struct span first_line(struct span s)
{
	size_t n = 0;
	while (n < s.n && n < MESSAGE_MAX && s.p[n] != '\n' && s.p[n] != '\\')
		n++;
	return span_make(s.p, n);
}

static enum err kind_of(int status, struct span code)
{
	if (status == 429 || status == 503)
		return ERR_THROTTLED;
	if (status == 408 || status == 500 || status == 502 || status == 504)
		return ERR_OUTCOME_UNKNOWN;
	if (span_is(code, "EntityNotFound"))
		return ERR_NOT_FOUND;
	enum err e = err_from_code(status, code);
	if (e != ERR_COUNT_)
		return e;
	return status == 401 || status == 403 ? ERR_AUTH_FAILED
		: status == 404               ? ERR_NOT_FOUND
		: status == 412               ? ERR_CONDITION_NOT_MET
		: status == 501               ? ERR_NOT_SUPPORTED
					      : ERR_INVALID_INPUT;
}

enum err service_error_of(int status, struct span body, struct err_detail *detail)
{
	struct arena arena = { 0 };
	struct span code, message;
	if (status >= 200 && status < 300)
		return ERR_OK;
	read_error(body, &arena, &code, &message);
	enum err e = kind_of(status, code);
	message = first_line(message);
	if (message.n == 0)
		(void)err_set(detail, e, "the service answered with status %d%s%.*s", status,
			code.n > 0 ? ", " : "", (int)code.n, code.n > 0 ? code.p : "");
	else
		(void)err_set(detail, e, "%.*s", (int)message.n, message.p);
	arena_fini(&arena);
	return e;
}

/* The service refuses a date that is 15 minutes off; its message does not say so. */
static enum err blame_clock(const struct http_response *r, enum err e, struct err_detail *detail)
{
	int64_t theirs;
	if (e != ERR_AUTH_FAILED || !http_date_parse(http_response_header(r, "Date"), &theirs))
		return e;
	int64_t seconds = (clock_ticks() - theirs) / TICKS_PER_SECOND;
	if (llabs(seconds) < SKEW_SECONDS)
		return e;
	return err_set(detail, e,
		"this machine's clock is %lld minutes %s that of the service, which refuses such "
		"signatures; set the clock",
		(llabs(seconds) + 30) / 60, seconds < 0 ? "behind" : "ahead of");
}

enum err service_error(const struct http_response *r, struct err_detail *detail)
{
	enum err e = service_error_of(r->status, buf_span(&r->body), detail);
	return blame_clock(r, e, detail);
}
