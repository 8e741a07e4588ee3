/* SPDX-License-Identifier: MIT
 * The messages that threads of this process are taking right now.  A thread claims a message before
 * it commits, so that other threads skip it instead of losing the race for it.  Any number of
 * threads may use it.  The memory of a claim is its holder's. */
#ifndef SERVICE_CORE_CLAIMS_H
#define SERVICE_CORE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

struct claims;

struct claim {
	uint64_t id; /* of the message's item */
	struct claim *next;
};

struct claims *claims_new(void); /* NULL when memory is out */
void claims_free(struct claims *c);

/* Claims the item claim->id.  Returns false if another claim has it.  Store callbacks may call it. */
bool claims_take(struct claims *c, struct claim *claim);
void claims_release(struct claims *c, struct claim *claim);

#endif
