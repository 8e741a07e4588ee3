/* SPDX-License-Identifier: MIT */
#include "rest/http/access_line.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#define HIDDEN "***"

/* ---- cleaning ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

/* Takes one character off, decoded if it is percent-encoded. */
static char take_char(struct span *s)
{
	bool encoded =
		s->n >= 3 && s->p[0] == '%' && hex_digit(s->p[1]) >= 0 && hex_digit(s->p[2]) >= 0;
	size_t n = encoded ? 3 : 1;
	char c = s->p[0];
	if (encoded)
		c = (char)(hex_digit(s->p[1]) << 4 | hex_digit(s->p[2]));
	*s = span_make(s->p + n, s->n - n);
	return c;
}

static bool is_separator(char c)
{
	return c == '?' || c == '&' || c == ';' || c == '#';
}

/* Returns how many bytes "name=" takes at the beginning, 0 if it is not there. */
static size_t length_of_name(struct span s, const char *name)
{
	struct span rest = s;
	for (; *name != '\0'; name++)
		if (rest.n == 0 || (take_char(&rest) | 0x20) != *name)
			return 0;
	return rest.n > 0 && take_char(&rest) == '=' ? s.n - rest.n : 0;
}

static size_t length_of_secret_name(struct span s)
{
	size_t n = length_of_name(s, "sig");
	return n != 0 ? n : length_of_name(s, "link");
}

static bool may_stand(char c)
{
	return c > 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Returns false if it does not fit. */
static bool put(char **out, const char *end, const char *text, size_t n)
{
	if ((size_t)(end - *out) <= n)
		return false;
	memcpy(*out, text, n);
	*out += n;
	return true;
}

static bool put_byte(char **out, const char *end, char c)
{
	char text[4];
	if (may_stand(c))
		return put(out, end, &c, 1);
	(void)snprintf(text, sizeof(text), "%%%02X", (unsigned)(unsigned char)c);
	return put(out, end, text, 3);
}

void access_clean(struct span text, char *out, size_t cap)
{
	const char *end = out + cap;
	bool begins = true, fits = true;
	while (text.n > 0 && fits) {
		size_t n = begins ? length_of_secret_name(text) : 0;
		begins = false;
		for (size_t i = 0; i < n && fits; i++)
			fits = put_byte(&out, end, text.p[i]);
		text = span_make(text.p + n, text.n - n);
		if (n > 0) {
			size_t value = span_find(text, SPAN_LIT("&"));
			fits = fits && put(&out, end, HIDDEN, strlen(HIDDEN));
			text = span_make(text.p + value, text.n - value);
			continue;
		}
		struct span rest = text;
		begins = is_separator(take_char(&rest));
		for (; text.n > rest.n && fits; text = span_make(text.p + 1, text.n - 1))
			fits = put_byte(&out, end, text.p[0]);
	}
	*out = '\0';
}

/* ---- the line ---- */

static void keep_header(const struct request *q, const char *name, char *out, size_t cap)
{
	access_clean(request_header(q, name), out, cap);
}

void access_line_response(struct access_line *a, const struct request *q, const struct response *r)
{
	const char *id = response_header_get(r, "x-ms-request-id");
	char account[sizeof(a->facts.account)];
	a->answered = true;
	a->answered_us = clock_mono_us();
	a->complete_us = q->since_us;
	a->status = r->status;
	(void)snprintf(a->ip, sizeof(a->ip), "%s", q->peer->ip);
	(void)snprintf(a->request_id, sizeof(a->request_id), "%s", id != NULL ? id : "");
	memcpy(account, a->facts.account, sizeof(account));
	access_clean(span_of(account), a->facts.account, sizeof(a->facts.account));
	access_clean(q->method, a->method, sizeof(a->method));
	access_clean(q->target, a->target, sizeof(a->target));
	keep_header(q, "Referer", a->referer, sizeof(a->referer));
	keep_header(q, "User-Agent", a->agent, sizeof(a->agent));
	keep_header(q, "x-ms-client-request-id", a->client_id, sizeof(a->client_id));
}

static const char *credential_name(enum credential_kind c)
{
	static const char *const names[] = {
		[CREDENTIAL_UNKNOWN] = "-",
		[CREDENTIAL_NONE] = "anonymous",
		[CREDENTIAL_KEY] = "key",
		[CREDENTIAL_TOKEN] = "token",
		[CREDENTIAL_SAS] = "sas",
		[CREDENTIAL_TRUSTED] = "trusted",
		[CREDENTIAL_SESSION] = "session",
	};
	return names[c];
}

static const char *or_dash(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : "-";
}

static uint64_t server_us(const struct access_line *a)
{
	uint64_t since = a->complete_us != 0 ? a->complete_us : a->began_us;
	return a->answered_us > since ? a->answered_us - since : 0;
}

void access_line_combined(const struct access_line *a, uint64_t us, struct buf *out)
{
	char when[40];
	struct tm parts;
	time_t began = ticks_to_timespec(a->began_ticks).tv_sec;
	(void)gmtime_r(&began, &parts);
	(void)strftime(when, sizeof(when), "%d/%b/%Y:%H:%M:%S +0000", &parts);
	buf_addf(out, "%s - %s [%s] \"%s %s %s\" %d %" PRIu64 " \"%s\" \"%s\"",
		a->ip[0] != '\0' ? a->ip : "unix", or_dash(a->facts.account), when,
		or_dash(a->method), or_dash(a->target), or_dash(a->version), a->status, a->sent,
		or_dash(a->referer), or_dash(a->agent));
	buf_addf(out, " %s %s %s %s %" PRIu64 " %" PRIu64 ".%03u\n", or_dash(a->request_id),
		a->service, or_dash(a->facts.operation), credential_name(a->facts.credential),
		a->received, us / 1000, (unsigned)(us % 1000));
}

/* ---- as JSON ----
 *
 * By hand, since codec/json_build.h would take as long as a whole request does.  Every text here is
 * printable ASCII without quotes and backslashes. */

static void add_text(struct buf *out, const char *name, const char *text)
{
	if (text != NULL && text[0] != '\0')
		buf_addf(out, ",\"%s\":\"%s\"", name, text);
}

static void add_ms(struct buf *out, const char *name, uint64_t us)
{
	buf_addf(out, ",\"%s\":%" PRIu64 ".%03u", name, us / 1000, (unsigned)(us % 1000));
}

void access_line_json(const struct access_line *a, uint64_t us, bool whole, struct buf *out)
{
	char time[CLOCK_TEXT_MAX];
	(void)clock_format_full(a->began_ticks, time);
	buf_addf(out, "{\"time\":\"%s\"", time);
	add_text(out, "client", a->ip[0] != '\0' ? a->ip : "unix");
	add_text(out, "service", a->service);
	add_text(out, "operation", a->facts.operation);
	add_text(out, "account", a->facts.account);
	add_text(out, "auth", credential_name(a->facts.credential));
	add_text(out, "method", or_dash(a->method));
	add_text(out, "target", a->target);
	add_text(out, "protocol", a->version);
	buf_addf(out, ",\"status\":%d,\"received\":%" PRIu64 ",\"sent\":%" PRIu64, a->status,
		a->received, a->sent);
	add_ms(out, "ms", us);
	add_ms(out, "server_ms", server_us(a));
	buf_addf(out, ",\"complete\":%s", whole ? "true" : "false");
	add_text(out, "request_id", a->request_id);
	add_text(out, "client_request_id", a->client_id);
	add_text(out, "referer", a->referer);
	add_text(out, "user_agent", a->agent);
	buf_add_str(out, "}\n");
}
