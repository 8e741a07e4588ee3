/* SPDX-License-Identifier: MIT */
#include "daemon/core/suggest.h"

#define LETTERS_MAX 40

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to insert, remove or replace. */
static size_t distance(struct span a, struct span b)
{
	size_t row[LETTERS_MAX + 1];
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 0; i < a.n; i++) {
		size_t corner = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < b.n; j++) {
			size_t replaced = corner + (a.p[i] != b.p[j]);
			corner = row[j + 1];
			row[j + 1] = least(replaced, least(row[j], row[j + 1]) + 1);
		}
	}
	return row[b.n];
}

void suggest_offer(struct suggest *s, const char *candidate)
{
	struct span other = span_of(candidate);
	if (s->word.n > LETTERS_MAX || other.n > LETTERS_MAX)
		return;
	size_t d = distance(s->word, other);
	/* Of a short word too little would be left. */
	if (d >= s->distance || d * 2 > s->word.n)
		return;
	s->distance = d;
	s->best = candidate;
}
