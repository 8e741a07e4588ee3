/* SPDX-License-Identifier: MIT
 * Four bits at a time: the table of 16 words is made by the compiler. */
#include "base/crc64.h"

#define POLYNOMIAL UINT64_C(0x9A6C9329AC4BC9B5)
#define STEP(v_) (((v_) >> 1) ^ (((v_)&1) != 0 ? POLYNOMIAL : 0))
#define NIBBLE(n_) STEP(STEP(STEP(STEP(UINT64_C(n_)))))

static const uint64_t table[16] = { NIBBLE(0), NIBBLE(1), NIBBLE(2), NIBBLE(3), NIBBLE(4),
	NIBBLE(5), NIBBLE(6), NIBBLE(7), NIBBLE(8), NIBBLE(9), NIBBLE(10), NIBBLE(11), NIBBLE(12),
	NIBBLE(13), NIBBLE(14), NIBBLE(15) };

uint64_t crc64_add(uint64_t so_far, struct span s)
{
	uint64_t v = ~so_far;
	for (size_t i = 0; i < s.n; i++) {
		v ^= (unsigned char)s.p[i];
		v = v >> 4 ^ table[v & 15];
		v = v >> 4 ^ table[v & 15];
	}
	return ~v;
}

void crc64_write(uint64_t sum, uint8_t out[CRC64_BYTES])
{
	for (int i = 0; i < CRC64_BYTES; i++)
		out[i] = (uint8_t)(sum >> (8 * i));
}
