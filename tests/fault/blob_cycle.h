/* SPDX-License-Identifier: MIT
 * A sequence of operations on blobs, and the state of the store after each.  One cycle has
 * BLOB_STEPS operations on a container of its own; the container of the cycle before goes in step 1.
 * Each operation leaves a state that no other operation of the sequence leaves. */
#ifndef FAULT_BLOB_CYCLE_H
#define FAULT_BLOB_CYCLE_H

#include "service/core/service.h"

#include <stdbool.h>
#include <stddef.h>

#define BLOB_STEPS 20u

/* Does operation `number` of a writer, from 1 on; those before it were done.  It is durable when
 * the call returns if blob_cycle_is_durable(). */
enum err blob_cycle_do(struct service *s, uint64_t account, unsigned writer, unsigned number,
	struct err_detail *detail);
bool blob_cycle_is_durable(unsigned number);
/* Returns the name of an operation. */
const char *blob_cycle_name(unsigned number);

/* Writes the state of a writer's containers as text; reads all contents.  account 0: there is none. */
#define BLOB_CYCLE_STATE 3000u
enum err blob_cycle_tell(
	struct service *s, uint64_t account, unsigned writer, char out[BLOB_CYCLE_STATE]);
/* Finds the operation, up to `last`, after which the state is as this text; 0: before the first one. */
bool blob_cycle_find(const char state[BLOB_CYCLE_STATE], unsigned last, unsigned *ret_number);

#endif
