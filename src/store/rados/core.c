/* SPDX-License-Identifier: MIT
 * What all files of the engine use. */
#include "store/rados/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum err rstore_grow(void *array, size_t n, size_t *cap, size_t size)
{
	void *old;
	if (n < *cap)
		return ERR_OK;
	memcpy(&old, array, sizeof(old));
	size_t more = *cap ? *cap * 2 : 8;
	void *v = reallocarray(old, more, size);
	if (!v)
		return ERR_NO_MEMORY;
	memcpy(array, &v, sizeof(v));
	*cap = more;
	return ERR_OK;
}

void rstore_token(struct rstore *s, char out[TOKEN_LEN + 1])
{
	uint64_t nr = atomic_fetch_add(&s->tokens, 1);
	(void)snprintf(out, TOKEN_LEN + 1, "%s%016llx", s->instance, (unsigned long long)nr);
}
