/* SPDX-License-Identifier: MIT
 * The CRC-64 of Azure Storage (x-ms-content-crc64): the reflected polynomial 0x9A6C9329AC4BC9B5. */
#ifndef BASE_CRC64_H
#define BASE_CRC64_H

#include "base/span.h"

#include <stdint.h>

#define CRC64_BYTES 8

/* Returns the sum of all bytes so far and s; so_far is 0 at the start. */
uint64_t crc64_add(uint64_t so_far, struct span s);
/* Writes the sum as the protocol sends it: little-endian. */
void crc64_write(uint64_t sum, uint8_t out[CRC64_BYTES]);

#endif
