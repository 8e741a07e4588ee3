/* SPDX-License-Identifier: MIT
 * Eight bytes at a time ("slicing by 8"): each of the tables tells what a byte adds so many bytes later.
 * Their 16 KiB are made at the first use. */
#include "base/crc64.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL UINT64_C(0x9A6C9329AC4BC9B5)
#define AT_ONCE 8

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t tables[AT_ONCE][256];

static void make_tables(void)
{
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

uint64_t crc64_add(uint64_t so_far, struct span s)
{
	uint64_t v = ~so_far, next;
	(void)pthread_once(&once, make_tables);
	for (; s.n >= AT_ONCE; s = span_make(s.p + AT_ONCE, s.n - AT_ONCE)) {
		memcpy(&next, s.p, sizeof(next));
		next = v ^ le64toh(next);
		v = 0;
		for (int k = 0; k < AT_ONCE; k++)
			v ^= tables[AT_ONCE - 1 - k][next >> 8 * k & 0xff];
	}
	for (size_t i = 0; i < s.n; i++)
		v = v >> 8 ^ tables[0][(v ^ (unsigned char)s.p[i]) & 0xff];
	return ~v;
}

void crc64_write(uint64_t sum, uint8_t out[CRC64_BYTES])
{
	for (int i = 0; i < CRC64_BYTES; i++)
		out[i] = (uint8_t)(sum >> (8 * i));
}
