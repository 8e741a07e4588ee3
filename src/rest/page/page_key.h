/* SPDX-License-Identifier: MIT
 * Keys in requests for data and in their answers.  A request goes on where the one before ended, so the
 * server keeps nothing between them. */
#ifndef REST_PAGE_PAGE_KEY_H
#define REST_PAGE_PAGE_KEY_H

#include "model/limits.h"
#include "rest/page/page_data.h"

struct page_key {
	bool given;
	size_t n;
	char order[LIMIT_KEY_BYTES]; /* the key in order form (model/key.h) */
};

/* Reads the key of a parameter; ret->given is false if there is none.  Errors of key_check(). */
enum err page_key_read(const struct page_ask *ask, const char *name, struct page_key *ret);
void page_key_set(struct page_key *k, struct span order);
/* Returns the key in order form; p is NULL if it is not given. */
struct span page_key_span(const struct page_key *k);
/* Adds a key that is in order form. */
void page_key_add(struct json_build *b, const char *name, struct span order);
/* Reads a number; leaves *ret as it is if there is no such parameter.  ERR_OUT_OF_RANGE. */
enum err page_number_read(
	const struct page_ask *ask, const char *name, uint64_t max, uint64_t *ret);

#endif
