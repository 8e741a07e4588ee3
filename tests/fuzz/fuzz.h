/* SPDX-License-Identifier: MIT
 * What a fuzz target shares with its driver: libFuzzer, or replay.c. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The property under test; the driver reports the stop. */
#define MUST(cond_) BUG_ON(!(cond_))

#endif
