/* SPDX-License-Identifier: MIT
 * Stored access policies of a table (protocol sections 2.11, 2.12, 4.5).  A table has up to five.
 * Each has an id and any of start, expiry and permission.
 *
 * Times are stored in UTC with seven digits of the fraction, whatever form the client sent:
 * 2026-01-01T00:00:00.0000000Z. */
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
	bool has_policy; /* the client sent an AccessPolicy element, maybe empty */
	struct span start, expiry, permission; /* p is NULL where the client sent none */
};

struct access_policies {
	const char *letters; /* that a permission may have, each once */
	struct access_policy all[LIMIT_POLICIES];
	size_t n;
	struct arena arena; /* owns the strings; a zeroed struct has no policies */
};

/* Parses a time of a policy or of a shared access signature.  The forms are YYYY-MM-DD,
 * YYYY-MM-DDThh:mmTZD and YYYY-MM-DDThh:mm:ssTZD.  Seconds may have 1 to 7 fraction digits; TZD is
 * Z, +hh:mm or -hh:mm.
 *
 * Sets *ret_ticks; an offset can move it outside of the range of a DateTime.  Returns false for
 * other forms. */
bool policy_time_parse(struct span text, int64_t *ret_ticks);

#endif
