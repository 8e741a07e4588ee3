/* SPDX-License-Identifier: MIT
 * Clocks and the calendar.
 * The calendar counts days in eras of 400 years that begin on 1 March.  gmtime(3) is not used: C
 * libraries differ in the years that they accept. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define DAYS_PER_ERA 146097            /* 400 years */
#define DAYS_0000_03_01_TO_1601 584694 /* from 0000-03-01 to 1601-01-01 */
#define TICKS_PER_DAY (TICKS_PER_SECOND * 86400)
#define NS_PER_TICK 100
#define SECONDS_TO_UNIX (TICKS_UNIX_EPOCH / TICKS_PER_SECOND)

static _Atomic(int64_t (*)(void)) test_source;

/* clock_gettime(2) cannot fail for the clocks below. */
int64_t clock_ticks(void)
{
	int64_t (*source)(void) = atomic_load(&test_source);
	struct timespec now;

	if (source != NULL)
		return source();
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return timespec_to_ticks(now);
}

static uint64_t microseconds(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_mono_us(void)
{
	return microseconds(CLOCK_MONOTONIC);
}

uint64_t clock_mono_coarse_us(void)
{
	return microseconds(CLOCK_MONOTONIC_COARSE);
}

void clock_set_source(int64_t (*source)(void))
{
	atomic_store(&test_source, source);
}

struct timespec ticks_to_timespec(int64_t ticks)
{
	int64_t seconds = ticks / TICKS_PER_SECOND;
	int64_t rest = ticks % TICKS_PER_SECOND;

	if (rest < 0) {
		rest += TICKS_PER_SECOND;
		seconds--;
	}
	return (struct timespec){
		.tv_sec = (time_t)(seconds - SECONDS_TO_UNIX),
		.tv_nsec = (long)(rest * NS_PER_TICK),
	};
}

int64_t timespec_to_ticks(struct timespec t)
{
	int64_t seconds;

	if (__builtin_add_overflow((int64_t)t.tv_sec, SECONDS_TO_UNIX, &seconds))
		return TICKS_MAX;
	if (seconds < 0)
		return 0;
	if (seconds > TICKS_MAX / TICKS_PER_SECOND)
		return TICKS_MAX;
	return seconds * TICKS_PER_SECOND + t.tv_nsec / NS_PER_TICK;
}

int64_t ticks_to_unix_ns(int64_t ticks)
{
	int64_t ns;

	if (__builtin_mul_overflow(ticks - TICKS_UNIX_EPOCH, (int64_t)NS_PER_TICK, &ns))
		return ticks < TICKS_UNIX_EPOCH ? INT64_MIN : INT64_MAX;
	return ns;
}

static bool is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && is_leap(year));
}

bool clock_date(int year, int month, int day, int64_t *ret_ticks)
{
	int era, year_of_era, day_of_year;
	int64_t days;

	if (year < 1 || year > 9999 || month < 1 || month > 12)
		return false;
	if (day < 1 || day > days_in_month(year, month))
		return false;
	year -= month <= 2;
	era = year / 400;
	year_of_era = year % 400;
	day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	days = (int64_t)era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 -
		year_of_era / 100 + day_of_year;
	*ret_ticks = (days - DAYS_0000_03_01_TO_1601) * TICKS_PER_DAY;
	return true;
}

struct civil {
	int year, month, day;
};

static struct civil civil_of(int64_t days_since_1601)
{
	int64_t days = days_since_1601 + DAYS_0000_03_01_TO_1601;
	int era = (int)(days / DAYS_PER_ERA);
	int doe = (int)(days % DAYS_PER_ERA); /* day of era */
	int yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int shifted = (5 * doy + 2) / 153; /* 0 is March */
	struct civil c = { .day = doy - (153 * shifted + 2) / 5 + 1 };

	c.month = shifted < 10 ? shifted + 3 : shifted - 9;
	c.year = era * 400 + yoe + (c.month <= 2);
	return c;
}

static int64_t clamp(int64_t ticks)
{
	return ticks < TICKS_YEAR_1 ? TICKS_YEAR_1 : ticks > TICKS_MAX ? TICKS_MAX : ticks;
}

static char *put(char *p, int value, int digits)
{
	for (int i = digits - 1; i >= 0; i--, value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + digits;
}

/* Writes the time up to the seconds.  Returns where the fraction goes. */
static char *put_seconds(char *p, int64_t ticks)
{
	int64_t since_year_1 = ticks - TICKS_YEAR_1;
	struct civil c = civil_of(since_year_1 / TICKS_PER_DAY + TICKS_YEAR_1 / TICKS_PER_DAY);
	int second = (int)(since_year_1 % TICKS_PER_DAY / TICKS_PER_SECOND);

	p = put(p, c.year, 4);
	*p++ = '-';
	p = put(p, c.month, 2);
	*p++ = '-';
	p = put(p, c.day, 2);
	*p++ = 'T';
	p = put(p, second / 3600, 2);
	*p++ = ':';
	p = put(p, second / 60 % 60, 2);
	*p++ = ':';
	return put(p, second % 60, 2);
}

static int format(int64_t ticks, bool trim, char *out)
{
	int fraction = (int)((ticks - TICKS_YEAR_1) % TICKS_PER_SECOND);
	char *p = put_seconds(out, ticks);
	int digits = 7;

	for (; trim && digits > 0 && fraction % 10 == 0; digits--)
		fraction /= 10;
	if (digits > 0) {
		*p++ = '.';
		p = put(p, fraction, digits);
	}
	*p++ = 'Z';
	*p = '\0';
	return (int)(p - out);
}

int clock_format(int64_t ticks, char out[CLOCK_TEXT_MAX])
{
	return format(clamp(ticks), true, out);
}

int clock_format_full(int64_t ticks, char out[CLOCK_TEXT_MAX])
{
	return format(clamp(ticks), false, out);
}
