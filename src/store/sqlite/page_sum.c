/* SPDX-License-Identifier: MIT
 * Eight sums, each over every eighth word.  A step multiplies by an odd number and lays the upper
 * half over the lower one, so one changed word always changes its sum.  Several changed words leave
 * it as it was with a chance of about 2^-64.  There are eight since every page that is read goes
 * through here, and a processor multiplies several words at a time. */
#include "store/sqlite/page_sum.h"

#include <endian.h>
#include <string.h>

#define BLOCK 64
#define LANES 8
#define PRIME UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t step(uint64_t lane, const unsigned char *word)
{
	uint64_t x;
	memcpy(&x, word, sizeof(x));
	x = (lane ^ le64toh(x)) * PRIME;
	return x ^ x >> 32;
}

static inline void add_block(uint64_t lanes[LANES], const unsigned char *p)
{
	/* Not a loop: compilers keep the lanes in registers only so. */
	lanes[0] = step(lanes[0], p);
	lanes[1] = step(lanes[1], p + 8);
	lanes[2] = step(lanes[2], p + 16);
	lanes[3] = step(lanes[3], p + 24);
	lanes[4] = step(lanes[4], p + 32);
	lanes[5] = step(lanes[5], p + 40);
	lanes[6] = step(lanes[6], p + 48);
	lanes[7] = step(lanes[7], p + 56);
}

static uint64_t sum_of(const unsigned char *page, uint32_t number)
{
	unsigned char last[BLOCK];
	const uint64_t n = htole64(number);
	uint64_t lanes[LANES] = { 1, 2, 3, 4, 5, 6, 7, 8 }, ret = 0;

	for (unsigned at = 0; at < PAGE_BYTES - BLOCK; at += BLOCK)
		add_block(lanes, page + at);
	memcpy(last, page + PAGE_BYTES - BLOCK, sizeof(last));
	memcpy(last + BLOCK - PAGE_SUM_BYTES, &n, sizeof(n));
	add_block(lanes, last);
	for (unsigned i = 0; i < LANES; i++) {
		ret = (ret ^ lanes[i]) * PRIME;
		ret ^= ret >> 29;
	}
	return htole64(ret);
}

void page_seal(unsigned char page[PAGE_BYTES], uint32_t number)
{
	uint64_t sum = sum_of(page, number);
	memcpy(page + PAGE_BYTES - PAGE_SUM_BYTES, &sum, sizeof(sum));
}

bool page_is_whole(const unsigned char page[PAGE_BYTES], uint32_t number)
{
	uint64_t sum = sum_of(page, number);
	return memcmp(page + PAGE_BYTES - PAGE_SUM_BYTES, &sum, sizeof(sum)) == 0;
}
