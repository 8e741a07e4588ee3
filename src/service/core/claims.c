/* SPDX-License-Identifier: MIT */
#include "service/core/claims.h"

#include "base/compiler.h"
#include "base/lock.h"

#include <stdlib.h>

#define BUCKETS 256

struct claims {
	struct mutex lock; /* guards the buckets and the links of the claims */
	struct claim *buckets[BUCKETS];
};

struct claims *claims_new(void)
{
	struct claims *c = calloc(1, sizeof(*c));
	if (c != NULL)
		mutex_init(&c->lock, RANK_CLAIMS);
	return c;
}

void claims_free(struct claims *c)
{
	if (c == NULL)
		return;
	mutex_destroy(&c->lock);
	free(c);
}

bool claims_take(struct claims *c, struct claim *claim)
{
	mutex_lock(&c->lock);
	struct claim **first = &c->buckets[claim->id % BUCKETS], *there = *first;
	while (there != NULL && there->id != claim->id)
		there = there->next;
	if (there == NULL) {
		claim->next = *first;
		*first = claim;
	}
	mutex_unlock(&c->lock);
	return there == NULL;
}

void claims_release(struct claims *c, struct claim *claim)
{
	mutex_lock(&c->lock);
	struct claim **at = &c->buckets[claim->id % BUCKETS];
	while (*at != claim) {
		BUG_ON(*at == NULL);
		at = &(*at)->next;
	}
	*at = claim->next;
	mutex_unlock(&c->lock);
}
