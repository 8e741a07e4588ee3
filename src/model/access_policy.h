/* SPDX-License-Identifier: MIT
 * Stored access policies of a table (protocol sections 2.11, 2.12, 4.5): up to five, each
 * with an id and any of start, expiry, permission.  Times are UTC with seven digits of the
 * fraction, whatever was sent: 2026-01-01T00:00:00.0000000Z. */
#ifndef MODEL_ACCESS_POLICY_H
#define MODEL_ACCESS_POLICY_H

#include "base/arena.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_POLICIES 5
#define LIMIT_POLICY_ID 64 /* UTF-16 units */

struct access_policy {
	struct span id;
	bool has_policy; /* an AccessPolicy element stood there, maybe an empty one */
	struct span start, expiry, permission; /* p == NULL: not given */
};

struct access_policies {
	struct access_policy all[LIMIT_POLICIES];
	size_t n;
	struct arena arena; /* zeroed: empty */
};

/* The times of policies and of shared access signatures: YYYY-MM-DD, YYYY-MM-DDThh:mmTZD,
 * ...:ssTZD, with 1 to 7 fraction digits; TZD is Z, +hh:mm or -hh:mm.  Ticks; an offset can
 * lead outside of what a DateTime may be. */
bool policy_time_parse(struct span text, int64_t *ret_ticks);

#endif
