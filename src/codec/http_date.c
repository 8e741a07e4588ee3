/* SPDX-License-Identifier: MIT */
#include "codec/http_date.h"

#include "base/clock.h"

#include <string.h>
#include <time.h>

void http_date_add(struct buf *out, int64_t ticks)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec" };
	struct timespec t = ticks_to_timespec(ticks);
	struct tm tm;
	if (gmtime_r(&t.tv_sec, &tm) == NULL)
		return; /* the year is out of range: leave the element empty */
	buf_addf(out, "%s, %02d %s %d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
		months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* Takes min to max digits. */
static bool take_number(struct span *s, size_t min, size_t max, int *ret)
{
	size_t n = 0;

	*ret = 0;
	for (; n < max && n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++)
		*ret = *ret * 10 + (s->p[n] - '0');
	*s = span_make(s->p + n, s->n - n);
	return n >= min;
}

static bool take(struct span *s, const char *text)
{
	struct span t = span_of(text);

	if (!span_starts(*s, t))
		return false;
	*s = span_make(s->p + t.n, s->n - t.n);
	return true;
}

/* Takes one of the names of three letters; *ret counts from 0. */
static bool take_name(struct span *s, const char *names, int *ret)
{
	for (*ret = 0; *names != '\0'; names += 3, ++*ret) {
		if (s->n >= 3 && memcmp(s->p, names, 3) == 0) {
			*s = span_make(s->p + 3, s->n - 3);
			return true;
		}
	}
	return false;
}

bool http_date_parse(struct span s, int64_t *ret_ticks)
{
	int weekday, day, month, year, hours, minutes, seconds;

	if (!take_name(&s, "SunMonTueWedThuFriSat", &weekday) || !take(&s, ", ") ||
		!take_number(&s, 1, 2, &day) || !take(&s, " ") ||
		!take_name(&s, "JanFebMarAprMayJunJulAugSepOctNovDec", &month) || !take(&s, " ") ||
		!take_number(&s, 4, 4, &year) || !take(&s, " "))
		return false;
	if (!take_number(&s, 2, 2, &hours) || !take(&s, ":") || !take_number(&s, 2, 2, &minutes) ||
		!take(&s, ":") || !take_number(&s, 2, 2, &seconds) || !take(&s, " GMT"))
		return false;
	if (s.n > 0 || hours > 23 || minutes > 59 || seconds > 60)
		return false;
	if (!clock_date(year, month + 1, day, ret_ticks))
		return false;
	*ret_ticks += ((hours * 60 + minutes) * 60 + seconds) * TICKS_PER_SECOND;
	return true;
}
