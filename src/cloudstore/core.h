/* SPDX-License-Identifier: MIT
 * The state of the engine.  Private to cloudstore/. */
#ifndef CLOUDSTORE_CORE_H
#define CLOUDSTORE_CORE_H

#include "cloudstore/clients.h"
#include "cloudstore/cloudstore.h"
#include "cloudstore/confirmed.h"

#define CLOUDSTORE_STRIPES 64

struct cloudstore {
	struct store base;
	struct store *shadow;
	struct clients clients;
	struct confirmed *confirmed;
	uint64_t account; /* its id in the shadow */
	/* By the directory's id: one refresh of a directory at a time, also while the service
	 * answers, so that an older answer never replaces a newer one. */
	struct mutex directories[CLOUDSTORE_STRIPES];
};

static inline struct mutex *cloudstore_lock_of(struct cloudstore *s, uint64_t directory)
{
	return &s->directories[directory % CLOUDSTORE_STRIPES];
}

#endif
