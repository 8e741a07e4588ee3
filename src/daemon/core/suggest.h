/* SPDX-License-Identifier: MIT
 * "Did you mean": the word of a list that is closest to one that was mistyped. */
#ifndef DAEMON_CORE_SUGGEST_H
#define DAEMON_CORE_SUGGEST_H

#include "base/span.h"

struct suggest {
	struct span word;
	const char *best; /* NULL: none is close */
	size_t distance;
};

#define SUGGEST_INIT(word_) ((struct suggest){ .word = (word_), .distance = 3 })

/* Offers one of the words.  Of equally close ones the first stays. */
void suggest_offer(struct suggest *s, const char *candidate);

#endif
