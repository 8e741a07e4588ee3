/* SPDX-License-Identifier: MIT */
#include "model/access_policy.h"

#include "base/clock.h"

/* Takes n digits from the front of s. */
static bool take_number(struct span *s, size_t n, int *ret)
{
	if (s->n < n)
		return false;
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return false;
		*ret = *ret * 10 + (s->p[i] - '0');
	}
	*s = span_make(s->p + n, s->n - n);
	return true;
}

static bool take_char(struct span *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = span_make(s->p + 1, s->n - 1);
	return true;
}

static bool take_date(struct span *s, int64_t *ret_ticks)
{
	int year, month, day;

	return take_number(s, 4, &year) && take_char(s, '-') && take_number(s, 2, &month) &&
		take_char(s, '-') && take_number(s, 2, &day) &&
		clock_date(year, month, day, ret_ticks);
}

static bool take_fraction(struct span *s, int64_t *ret_ticks)
{
	int64_t unit = TICKS_PER_SECOND;
	int digit;

	*ret_ticks = 0;
	while (unit > 1 && take_number(s, 1, &digit)) {
		unit /= 10;
		*ret_ticks += digit * unit;
	}
	return unit < TICKS_PER_SECOND;
}

static bool take_zone(struct span *s, int64_t *ret_ticks)
{
	int hours, minutes, sign = 1;

	*ret_ticks = 0;
	if (take_char(s, 'Z'))
		return true;
	if (take_char(s, '-'))
		sign = -1;
	else if (!take_char(s, '+'))
		return false;
	if (!take_number(s, 2, &hours) || !take_char(s, ':') || !take_number(s, 2, &minutes) ||
		hours > 23 || minutes > 59)
		return false;
	*ret_ticks = sign * (hours * 60 + minutes) * 60 * TICKS_PER_SECOND;
	return true;
}

/* Takes ":ss", with or without a fraction; or nothing. */
static bool take_seconds(struct span *s, int64_t *ret_ticks)
{
	int seconds;
	int64_t fraction = 0;

	*ret_ticks = 0;
	if (!take_char(s, ':'))
		return true;
	if (!take_number(s, 2, &seconds) || seconds > 59)
		return false;
	if (take_char(s, '.') && !take_fraction(s, &fraction))
		return false;
	*ret_ticks = seconds * TICKS_PER_SECOND + fraction;
	return true;
}

static bool take_time(struct span *s, int64_t *ret_ticks)
{
	int hours, minutes;
	int64_t seconds, zone;

	if (!take_number(s, 2, &hours) || hours > 23 || !take_char(s, ':') ||
		!take_number(s, 2, &minutes) || minutes > 59)
		return false;
	if (!take_seconds(s, &seconds) || !take_zone(s, &zone))
		return false;
	*ret_ticks = (hours * 60 + minutes) * 60 * TICKS_PER_SECOND + seconds - zone;
	return true;
}

bool policy_time_parse(struct span text, int64_t *ret_ticks)
{
	int64_t date, time = 0;

	if (!take_date(&text, &date))
		return false;
	if (text.n > 0 && (!take_char(&text, 'T') || !take_time(&text, &time)))
		return false;
	*ret_ticks = date + time;
	return text.n == 0;
}
