/* SPDX-License-Identifier: MIT
 * ETags are compared as ticks, not as text.  So a client may keep trailing zeros or write the
 * colons unescaped. */
#include "model/etag.h"

#include "base/clock.h"

static const struct span head = { "W/\"datetime'", 12 };
static const struct span tail = { "'\"", 2 };

static int put_in(const char *time, int n, char out[ETAG_MAX])
{
	char *p = out;

	memcpy(p, head.p, head.n);
	p += head.n;
	for (int i = 0; i < n; i++) {
		if (time[i] == ':') {
			memcpy(p, "%3A", 3);
			p += 3;
		} else {
			*p++ = time[i];
		}
	}
	memcpy(p, tail.p, tail.n + 1);
	return (int)(p - out) + (int)tail.n;
}

int etag_format(int64_t ticks, char out[ETAG_MAX])
{
	char time[CLOCK_TEXT_MAX];
	return put_in(time, clock_format(ticks, time), out);
}

int etag_format_full(int64_t ticks, char out[ETAG_MAX])
{
	char time[CLOCK_TEXT_MAX];
	return put_in(time, clock_format_full(ticks, time), out);
}

static bool take(struct span *s, struct span word)
{
	if (!span_starts(*s, word))
		return false;
	*s = span_make(s->p + word.n, s->n - word.n);
	return true;
}

static bool take_colon(struct span *s)
{
	return take(s, SPAN_LIT("%3A")) || take(s, SPAN_LIT("%3a")) || take(s, SPAN_LIT(":"));
}

static bool take_number(struct span *s, size_t digits, int *ret)
{
	int v = 0;

	if (s->n < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return false;
		v = v * 10 + (s->p[i] - '0');
	}
	*ret = v;
	*s = span_make(s->p + digits, s->n - digits);
	return true;
}

/* Takes a dot and up to 7 digits, as ticks; or nothing. */
static bool take_fraction(struct span *s, int *ret)
{
	int digits = 0;

	*ret = 0;
	if (!take(s, SPAN_LIT(".")))
		return true;
	for (int d; digits < 7 && take_number(s, 1, &d); digits++)
		*ret = *ret * 10 + d;
	for (int i = digits; i < 7; i++)
		*ret *= 10;
	return digits > 0;
}

static bool parse_time(struct span s, int64_t *ret)
{
	int year, month, day, hour, minute, second, fraction;
	int64_t midnight;

	if (!take_number(&s, 4, &year) || !take(&s, SPAN_LIT("-")) || !take_number(&s, 2, &month) ||
		!take(&s, SPAN_LIT("-")) || !take_number(&s, 2, &day) || !take(&s, SPAN_LIT("T")))
		return false;
	if (!take_number(&s, 2, &hour) || !take_colon(&s) || !take_number(&s, 2, &minute) ||
		!take_colon(&s) || !take_number(&s, 2, &second) || !take_fraction(&s, &fraction))
		return false;
	if (!span_is(s, "Z") || hour > 23 || minute > 59 || second > 59)
		return false;
	if (!clock_date(year, month, day, &midnight) || midnight < 0)
		return false;
	*ret = midnight + (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction;
	return true;
}

/* Returns true for W/"..." without inner quotes and control characters. */
static bool is_weak_tag(struct span s)
{
	if (s.n < 4 || !span_starts(s, SPAN_LIT("W/\"")) || s.p[s.n - 1] != '"')
		return false;
	for (size_t i = 3; i < s.n - 1; i++) {
		if (s.p[i] == '"' || (unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	}
	return true;
}

enum err etag_parse(struct span text, bool *ret_any, int64_t *ret_ticks, struct err_detail *detail)
{
	if (span_is(text, "*")) {
		*ret_any = true;
		*ret_ticks = -1;
		return ERR_OK;
	}
	if (!is_weak_tag(text))
		return err_set(detail, ERR_INVALID_INPUT,
			"The etag value '%.*s' specified in one of the request headers is not valid. "
			"Please make sure only one etag value is specified and is valid.",
			text.n < 80 ? (int)text.n : 80, text.n > 0 ? text.p : "");
	*ret_any = false;
	if (text.n < head.n + tail.n || !span_starts(text, head) || !span_ends(text, tail) ||
		!parse_time(span_make(text.p + head.n, text.n - head.n - tail.n), ret_ticks))
		*ret_ticks = -1;
	return ERR_OK;
}
