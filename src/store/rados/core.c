/* SPDX-License-Identifier: MIT
 * What all files of the engine use. */
#include "store/rados/core.h"

#include "base/clock.h"
#include "base/may_block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

void rstore_set_token(struct rstore *s, unsigned writer, char out[TOKEN_LEN + 1])
{
	uint64_t nr = atomic_fetch_add(&s->tokens, 1);
	(void)snprintf(out, TOKEN_LEN + 1, "%s%x%015llx", s->instance, writer % WRITERS,
		(unsigned long long)nr);
}

void rstore_pause(unsigned i)
{
	if (i == 0)
		return;
	uint64_t us = UINT64_C(500) << (i < 7 ? i : 7);
	us = us / 2 + clock_mono_us() % us; /* not all at the same moment */
	const struct timespec pause = { .tv_nsec = (long)us * 1000 };
	may_block(BLOCK_SURE);
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

void rstore_set_above(struct rio_edit *e, int64_t version)
{
	char text[17];
	(void)snprintf(text, sizeof(text), "%llx", (unsigned long long)version);
	rio_edit_set(e, SPAN_LIT(KEY_ABOVE), span_of(text));
}

void rstore_saw(struct rstore *s, int64_t version)
{
	mutex_lock(&s->lock);
	if (version > s->version_high)
		s->version_high = version;
	mutex_unlock(&s->lock);
}
