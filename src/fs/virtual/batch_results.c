/* SPDX-License-Identifier: MIT */
#include "fs/virtual/batch_results.h"

#include "base/lock.h"

#include <stdlib.h>

#define KEPT 256
#define KEPT_BYTES ((size_t)8 << 20)

struct kept {
	uint64_t nid; /* 0: free */
	uint64_t age; /* when it was put: the higher, the younger */
	char *text;
	size_t n;
};

struct batch_results {
	struct mutex lock; /* for all below */
	struct kept kept[KEPT];
	uint64_t clock;
	size_t bytes;
};

struct batch_results *batch_results_new(void)
{
	struct batch_results *r = calloc(1, sizeof(*r));
	if (r != NULL && mutex_init(&r->lock, RANK_BATCH_RESULTS) != 0) {
		free(r);
		return NULL;
	}
	return r;
}

static void drop(struct batch_results *r, struct kept *k)
{
	r->bytes -= k->n;
	free(k->text);
	*k = (struct kept){ 0 };
}

void batch_results_free(struct batch_results *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < KEPT; i++)
		drop(r, &r->kept[i]);
	mutex_destroy(&r->lock);
	free(r);
}

static struct kept *find(struct batch_results *r, uint64_t nid)
{
	lock_assert_held(&r->lock);
	for (size_t i = 0; i < KEPT; i++)
		if (r->kept[i].nid == nid)
			return &r->kept[i];
	return NULL;
}

static struct kept *oldest(struct batch_results *r)
{
	lock_assert_held(&r->lock);
	struct kept *found = NULL;
	for (size_t i = 0; i < KEPT; i++)
		if (r->kept[i].nid != 0 && (found == NULL || r->kept[i].age < found->age))
			found = &r->kept[i];
	return found;
}

static struct kept *make_room(struct batch_results *r, uint64_t nid, size_t n)
{
	struct kept *k = find(r, nid);
	if (k != NULL)
		drop(r, k);
	while ((k = find(r, 0)) == NULL || (r->bytes > 0 && r->bytes + n > KEPT_BYTES))
		drop(r, oldest(r));
	return k;
}

void batch_results_put(struct batch_results *r, uint64_t nid, struct span result)
{
	char *text = malloc(result.n + 1);
	mutex_lock(&r->lock);
	struct kept *k = make_room(r, nid, result.n);
	if (text != NULL) {
		memcpy(text, result.p, result.n);
		*k = (struct kept){ nid, ++r->clock, text, result.n };
		r->bytes += result.n;
	}
	mutex_unlock(&r->lock);
}

void batch_results_get(struct batch_results *r, uint64_t nid, struct buf *out)
{
	mutex_lock(&r->lock);
	const struct kept *k = find(r, nid);
	if (k != NULL)
		buf_add(out, k->text, k->n);
	mutex_unlock(&r->lock);
}
