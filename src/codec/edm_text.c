/* SPDX-License-Identifier: MIT
 * Typed values from text and back.  Numbers use the C locale, whatever locale the process has.  A
 * double is written with the fewest digits that parse to the same value, in the service's form
 * (1.5E+24). */
#include "codec/edm_text.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define DOUBLE_TEXT_MAX 40

static locale_t enter_c_locale(void)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	/* glibc returns a static object here: nothing to free, and it cannot fail. */
	BUG_ON(c == (locale_t)0);
	return uselocale(c);
}

static double read_double(const char *text)
{
	locale_t old = enter_c_locale();
	double d = strtod(text, NULL);

	(void)uselocale(old);
	return d;
}

/* strtod(3) would also accept hex, blanks and words. */
static bool is_decimal(struct span s)
{
	size_t i = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
	size_t digits = text_count_digits(s, i);

	i += digits;
	if (i < s.n && s.p[i] == '.') {
		size_t fraction = text_count_digits(s, i + 1);
		digits += fraction;
		i += 1 + fraction;
	}
	if (digits == 0)
		return false;
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		i += i < s.n && (s.p[i] == '-' || s.p[i] == '+');
		digits = text_count_digits(s, i);
		if (digits == 0)
			return false;
		i += digits;
	}
	return i == s.n;
}

static bool parse_special(struct span s, double *ret)
{
	if (span_is(s, "NaN"))
		*ret = (double)NAN;
	else if (span_is(s, "Infinity") || span_is(s, "INF"))
		*ret = (double)INFINITY;
	else if (span_is(s, "-Infinity") || span_is(s, "-INF"))
		*ret = -(double)INFINITY;
	else
		return false;
	return true;
}

static enum err parse_double(struct span s, double *ret)
{
	char small[64], *copy = small;

	if (parse_special(s, ret))
		return ERR_OK;
	if (!is_decimal(s))
		return ERR_VALUE_INVALID;
	if (s.n >= sizeof(small))
		copy = malloc(s.n + 1);
	if (copy == NULL)
		return ERR_NO_MEMORY;
	memcpy(copy, s.p, s.n);
	copy[s.n] = '\0';
	*ret = read_double(copy);
	if (copy != small)
		free(copy);
	return isfinite(*ret) ? ERR_OK : ERR_VALUE_INVALID;
}

static bool is_any_case(struct span s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* .NET writes "True", spreadsheets write "TRUE". */
static bool parse_boolean(struct span s, bool *ret)
{
	*ret = is_any_case(s, "true") || span_is(s, "1");
	return *ret || is_any_case(s, "false") || span_is(s, "0");
}

static bool parse_int32(struct span s, int32_t *ret)
{
	int64_t v;

	if (!text_to_i64(s, &v) || v < INT32_MIN || v > INT32_MAX)
		return false;
	*ret = (int32_t)v;
	return true;
}

static bool take_number(struct span *s, size_t digits, int *ret)
{
	int v = 0;

	if (text_count_digits(*s, 0) < digits)
		return false;
	for (size_t i = 0; i < digits; i++)
		v = v * 10 + (s->p[i] - '0');
	*ret = v;
	*s = span_make(s->p + digits, s->n - digits);
	return true;
}

static bool take(struct span *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = span_make(s->p + 1, s->n - 1);
	return true;
}

/* The text begins behind the point.  Takes one or more digits; the first 7 count. */
static bool take_fraction(struct span *s, int *ret)
{
	size_t n = text_count_digits(*s, 0);
	int v = 0;

	for (size_t i = 0; i < 7; i++)
		v = v * 10 + (i < n ? s->p[i] - '0' : 0);
	*ret = v;
	*s = span_make(s->p + n, s->n - n);
	return n > 0;
}

/* *ret is the seconds to subtract for UTC. */
static bool take_zone(struct span *s, int *ret)
{
	bool east = take(s, '+');
	int hours, minutes;

	*ret = 0;
	if (!east && !take(s, '-')) {
		take(s, 'Z');
		return true;
	}
	if (!take_number(s, 2, &hours) || !take(s, ':') || !take_number(s, 2, &minutes))
		return false;
	if (minutes > 59 || hours * 60 + minutes > 14 * 60)
		return false;
	*ret = (hours * 60 + minutes) * (east ? 60 : -60);
	return true;
}

static bool take_date(struct span *s, int64_t *ret)
{
	int year, month, day;

	return take_number(s, 4, &year) && take(s, '-') && take_number(s, 2, &month) &&
		take(s, '-') && take_number(s, 2, &day) && clock_date(year, month, day, ret);
}

static bool take_time(struct span *s, int64_t *ret)
{
	int hour, minute, second = 0, fraction = 0;

	if (!take_number(s, 2, &hour) || !take(s, ':') || !take_number(s, 2, &minute))
		return false;
	if (take(s, ':')) {
		if (!take_number(s, 2, &second))
			return false;
		if (take(s, '.') && !take_fraction(s, &fraction))
			return false;
	}
	*ret = (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction;
	return hour < 24 && minute < 60 && second < 60;
}

static enum err parse_datetime(struct span s, int64_t *ret)
{
	int64_t date, time, ticks;
	int zone;

	if (!take_date(&s, &date) || !take(&s, 'T') || !take_time(&s, &time) ||
		!take_zone(&s, &zone) || s.n != 0)
		return ERR_VALUE_INVALID;
	ticks = date + time - zone * TICKS_PER_SECOND;
	if (ticks < 0 || ticks > TICKS_MAX)
		return ERR_OUT_OF_RANGE;
	*ret = ticks;
	return ERR_OK;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_dash_place(size_t i)
{
	return i == 8 || i == 13 || i == 18 || i == 23;
}

static bool parse_guid(struct span s, uint8_t out[16])
{
	size_t nibbles = 0;
	bool dashes;

	if (s.n == 38 && s.p[0] == '{' && s.p[37] == '}')
		s = span_make(s.p + 1, 36);
	dashes = s.n == 36;
	if (!dashes && s.n != 32)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		int d = hex_value(s.p[i]);
		if (dashes && is_dash_place(i)) {
			if (s.p[i] != '-')
				return false;
			continue;
		}
		if (d < 0)
			return false;
		out[nibbles / 2] = (uint8_t)(nibbles % 2 == 0 ? d << 4 : out[nibbles / 2] | d);
		nibbles++;
	}
	return true;
}

static enum err parse_binary(struct span text, struct buf *out, struct span *ret)
{
	size_t start = out->len;

	if (!base64_decode(text, out))
		return buf_ok(out) ? ERR_VALUE_INVALID : ERR_NO_MEMORY;
	*ret = out->len == start ? SPAN_LIT("") : span_make(out->data + start, out->len - start);
	return ERR_OK;
}

static enum err parse(enum edm_type type, struct span text, struct value *v, struct buf *out)
{
	switch (type) {
	case EDM_STRING:
		v->bytes = text;
		return utf8_valid(text) ? ERR_OK : ERR_VALUE_INVALID;
	case EDM_BOOLEAN:
		return parse_boolean(text, &v->boolean) ? ERR_OK : ERR_VALUE_INVALID;
	case EDM_INT32:
		return parse_int32(text, &v->int32) ? ERR_OK : ERR_VALUE_INVALID;
	case EDM_INT64:
		return text_to_i64(text, &v->int64) ? ERR_OK : ERR_VALUE_INVALID;
	case EDM_DOUBLE:
		return parse_double(text, &v->dbl);
	case EDM_DATETIME:
		return parse_datetime(text, &v->ticks);
	case EDM_GUID:
		return parse_guid(text, v->guid) ? ERR_OK : ERR_VALUE_INVALID;
	case EDM_BINARY:
	case EDM_COUNT_: /* not a type */
		break;
	}
	return parse_binary(text, out, &v->bytes);
}

enum err edm_text_parse(enum edm_type type, struct span text, struct value *ret,
	struct buf *out_bytes, struct err_detail *detail)
{
	struct value v = { .type = type };
	enum err e = parse(type, text, &v, out_bytes);
	int shown = text.n < 60 ? (int)text.n : 60;

	if (e == ERR_OK) {
		*ret = v;
		return ERR_OK;
	}
	if (e == ERR_NO_MEMORY)
		return e;
	if (e == ERR_OUT_OF_RANGE)
		return err_set(detail, e, "the value '%.*s' is out of range", shown, text.p);
	return err_set(detail, e, "'%.*s' is not a value of %s", shown, shown > 0 ? text.p : "",
		edm_name(type));
}

/* Writes d with the fewest digits that parse to d.  15 digits suffice for a number that was given
 * with 15.  Below DBL_MIN much fewer can suffice. */
static void shortest(double d, char out[DOUBLE_TEXT_MAX])
{
	int digits = fabs(d) < DBL_MIN ? 1 : 15;

	do
		(void)snprintf(out, DOUBLE_TEXT_MAX, "%.*g", digits, d);
	while (digits++ < 17 && strtod(out, NULL) != d);
}

static void format_finite(double d, struct buf *out)
{
	char text[DOUBLE_TEXT_MAX];
	locale_t old = enter_c_locale();
	char *e;

	shortest(d, text);
	(void)uselocale(old);
	e = strchr(text, 'e');
	if (e != NULL)
		*e = 'E';
	buf_add_str(out, text);
	if (e == NULL && strchr(text, '.') == NULL)
		buf_add_str(out, ".0");
}

static void format_double(double d, struct buf *out)
{
	if (isnan(d))
		buf_add_str(out, "NaN");
	else if (isinf(d))
		buf_add_str(out, d > 0 ? "Infinity" : "-Infinity");
	else
		format_finite(d, out);
}

static void format_integer(int64_t v, struct buf *out)
{
	char text[20], *p = text + sizeof(text);
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do {
		*--p = (char)('0' + u % 10);
		u /= 10;
	} while (u != 0);
	if (v < 0)
		*--p = '-';
	buf_add(out, p, (size_t)(text + sizeof(text) - p));
}

static void format_guid(const uint8_t guid[16], struct buf *out)
{
	static const char hex[] = "0123456789abcdef";
	char text[36];
	size_t nibble = 0;

	for (size_t i = 0; i < sizeof(text); i++) {
		if (is_dash_place(i)) {
			text[i] = '-';
			continue;
		}
		text[i] = hex[guid[nibble / 2] >> (nibble % 2 == 0 ? 4 : 0) & 15];
		nibble++;
	}
	buf_add(out, text, sizeof(text));
}

static void format_datetime(int64_t ticks, struct buf *out)
{
	char text[CLOCK_TEXT_MAX];

	buf_add(out, text, (size_t)clock_format(ticks, text));
}

void edm_text_format(const struct value *v, struct buf *out)
{
	switch (v->type) {
	case EDM_STRING:
		buf_add_span(out, v->bytes);
		break;
	case EDM_BOOLEAN:
		buf_add_str(out, v->boolean ? "true" : "false");
		break;
	case EDM_INT32:
		format_integer(v->int32, out);
		break;
	case EDM_INT64:
		format_integer(v->int64, out);
		break;
	case EDM_DOUBLE:
		format_double(v->dbl, out);
		break;
	case EDM_DATETIME:
		format_datetime(v->ticks, out);
		break;
	case EDM_GUID:
		format_guid(v->guid, out);
		break;
	case EDM_BINARY:
	case EDM_COUNT_: /* not a type */
		base64_encode(v->bytes, out);
		break;
	}
}
