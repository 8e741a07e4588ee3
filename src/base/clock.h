/* SPDX-License-Identifier: MIT
 * Time.  One unit for the service's times: ticks of 100 ns since 1601-01-01T00:00:00Z
 * (the first instant an Edm.DateTime may name), always in UTC. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define TICKS_PER_SECOND INT64_C(10000000)
#define TICKS_UNIX_EPOCH INT64_C(116444736000000000) /* 1970-01-01 */
#define TICKS_MAX INT64_C(2650467743999999999)       /* 9999-12-31T23:59:59.9999999 */
#define TICKS_YEAR_1 (-INT64_C(504911232000000000))  /* 0001-01-01 */

/* The present, from the wall clock (or the test's source). */
int64_t clock_ticks(void);
/* Monotonic microseconds, for latencies and deadlines. */
uint64_t clock_mono_us(void);
/* The same as of the last tick of the system's clock, up to 10 ms ago: a fifth of the cost. */
uint64_t clock_mono_coarse_us(void);
/* Tests: replaces the wall clock; NULL puts the real one back. */
void clock_set_source(int64_t (*source)(void));

struct timespec ticks_to_timespec(int64_t ticks);
int64_t timespec_to_ticks(struct timespec t); /* clamped to 0..TICKS_MAX */
/* Nanoseconds since 1970; clamped to what int64 holds (1677 to 2262). */
int64_t ticks_to_unix_ns(int64_t ticks);

/* Midnight UTC of a day of the Gregorian calendar, year 1 to 9999; negative before 1601.
 * false if there is no such day. */
bool clock_date(int year, int month, int day, int64_t *ret_ticks);

#define CLOCK_TEXT_MAX 32
/* "2026-11-20T12:29:19.0030000Z" without the zeros that end the fraction; no dot when
 * the fraction is zero.  Clamped to the years 1 to 9999.  Returns the length. */
int clock_format(int64_t ticks, char out[CLOCK_TEXT_MAX]);
/* The same, always 7 fraction digits. */
int clock_format_full(int64_t ticks, char out[CLOCK_TEXT_MAX]);

#endif
