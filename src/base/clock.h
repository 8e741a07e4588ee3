/* SPDX-License-Identifier: MIT
 * Time.  The unit of every stored time is the tick: 100 ns, counted from 1601-01-01T00:00:00Z.
 * That is the first instant that an Edm.DateTime can name.  All times are UTC. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define TICKS_PER_SECOND INT64_C(10000000)
#define TICKS_UNIX_EPOCH INT64_C(116444736000000000) /* 1970-01-01 */
#define TICKS_MAX INT64_C(2650467743999999999)       /* 9999-12-31T23:59:59.9999999 */
#define TICKS_YEAR_1 (-INT64_C(504911232000000000))  /* 0001-01-01 */

/* Returns the time of the wall clock, in ticks.  A source set by a test takes its place. */
int64_t clock_ticks(void);
/* Returns monotonic microseconds, for latencies and deadlines. */
uint64_t clock_mono_us(void);
/* Returns the same time as of the last kernel tick, up to 10 ms ago.  It costs a fifth. */
uint64_t clock_mono_coarse_us(void);
/* For tests: replaces the wall clock.  NULL restores it. */
void clock_set_source(int64_t (*source)(void));

/* Converts to the time since 1970. */
struct timespec ticks_to_timespec(int64_t ticks);
int64_t timespec_to_ticks(struct timespec t); /* Clamps the result to 0..TICKS_MAX. */
/* Converts to nanoseconds since 1970, clamped to the range of int64_t (1677 to 2262). */
int64_t ticks_to_unix_ns(int64_t ticks);

/* Sets *ret_ticks to midnight UTC of a Gregorian date; the value is negative before 1601.  Accepts
 * the years 1 to 9999.  Returns false if the date does not exist. */
bool clock_date(int year, int month, int day, int64_t *ret_ticks);

#define CLOCK_TEXT_MAX 32
/* Writes a time like "2026-11-20T12:29:19.003Z", without trailing zeros in the fraction.  A
 * fraction of zero is left out with its dot.  Times are clamped to the years 1 to 9999.  Returns
 * the length. */
int clock_format(int64_t ticks, char out[CLOCK_TEXT_MAX]);
/* Writes the same with all 7 digits of the fraction. */
int clock_format_full(int64_t ticks, char out[CLOCK_TEXT_MAX]);

#endif
