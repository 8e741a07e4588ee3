/* SPDX-License-Identifier: MIT
 * Eight bytes at a time ("slicing by 8"): each of the tables tells what a byte adds so many bytes later.
 * Their 16 KiB are made at the first use.
 *
 * A processor with PCLMULQDQ folds long spans before: 64 bytes become what they add to the next 64, as a
 * product without carries.  The last 16 bytes of that go through the tables. */
#include "base/crc64.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define POLYNOMIAL UINT64_C(0x9A6C9329AC4BC9B5)
#define AT_ONCE 8

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t tables[AT_ONCE][256];

#ifdef __x86_64__
#define LANE 16u
#define LANES 4u
#define FOLD (LANES * LANE)

static bool can_fold;
static __m128i over_lane, over_all; /* move a lane by 16 bytes, and by 64 */

/* Returns x to the n, modulo the polynomial. */
static uint64_t power(unsigned n)
{
	uint64_t v = UINT64_C(1) << 63;
	while (n-- > 0)
		v = v >> 1 ^ ((v & 1) != 0 ? POLYNOMIAL : 0);
	return v;
}

/* One power less: the product of two reflected words is shifted by one bit. */
static __m128i factors(unsigned bytes)
{
	return _mm_set_epi64x((int64_t)power(8 * bytes - 1), (int64_t)power(8 * bytes + 63));
}

static void make_factors(void)
{
	can_fold = __builtin_cpu_supports("pclmul") != 0;
	over_lane = factors(LANE);
	over_all = factors(FOLD);
}

__attribute__((target("pclmul"))) static __m128i move(__m128i lane, __m128i by)
{
	return _mm_xor_si128(
		_mm_clmulepi64_si128(lane, by, 0x00), _mm_clmulepi64_si128(lane, by, 0x11));
}

static __m128i load(const char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Takes whole blocks of FOLD bytes from the front of *s.  Returns their sum as 16 bytes that follow a
 * state of 0. */
__attribute__((target("pclmul"))) static __m128i fold(uint64_t v, struct span *s)
{
	__m128i lanes[LANES], sum;
	for (unsigned i = 0; i < LANES; i++)
		lanes[i] = load(s->p + LANE * i);
	lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi64_si128((int64_t)v));
	*s = span_make(s->p + FOLD, s->n - FOLD);
	for (; s->n >= FOLD; *s = span_make(s->p + FOLD, s->n - FOLD))
		for (unsigned i = 0; i < LANES; i++)
			lanes[i] = _mm_xor_si128(move(lanes[i], over_all), load(s->p + LANE * i));
	sum = lanes[0];
	for (unsigned i = 1; i < LANES; i++)
		sum = _mm_xor_si128(move(sum, over_lane), lanes[i]);
	return sum;
}
#else
static void make_factors(void)
{
}
#endif

static void make_tables(void)
{
	make_factors();
	for (unsigned n = 0; n < 256; n++) {
		uint64_t v = n;
		for (int bit = 0; bit < 8; bit++)
			v = v >> 1 ^ ((v & 1) != 0 ? POLYNOMIAL : 0);
		tables[0][n] = v;
	}
	for (unsigned k = 1; k < AT_ONCE; k++)
		for (unsigned n = 0; n < 256; n++) {
			uint64_t v = tables[k - 1][n];
			tables[k][n] = v >> 8 ^ tables[0][v & 0xff];
		}
}

static uint64_t add(uint64_t v, struct span s)
{
	uint64_t next;
	for (; s.n >= AT_ONCE; s = span_make(s.p + AT_ONCE, s.n - AT_ONCE)) {
		memcpy(&next, s.p, sizeof(next));
		next = v ^ le64toh(next);
		v = 0;
		for (int k = 0; k < AT_ONCE; k++)
			v ^= tables[AT_ONCE - 1 - k][next >> 8 * k & 0xff];
	}
	for (size_t i = 0; i < s.n; i++)
		v = v >> 8 ^ tables[0][(v ^ (unsigned char)s.p[i]) & 0xff];
	return v;
}

uint64_t crc64_add(uint64_t so_far, struct span s)
{
	uint64_t v = ~so_far;
	(void)pthread_once(&once, make_tables);
#ifdef __x86_64__
	if (can_fold && s.n >= FOLD) {
		char sum[LANE];
		_mm_storeu_si128((__m128i *)(void *)sum, fold(v, &s));
		v = add(0, span_make(sum, sizeof(sum)));
	}
#endif
	return ~add(v, s);
}

void crc64_write(uint64_t sum, uint8_t out[CRC64_BYTES])
{
	for (int i = 0; i < CRC64_BYTES; i++)
		out[i] = (uint8_t)(sum >> (8 * i));
}
