/* SPDX-License-Identifier: MIT */
#include "service/check/walk.h"

struct taken {
	struct item *to;
	enum err e;
};

static bool take(void *arg, const struct item *it)
{
	struct taken *t = arg;
	t->e = item_copy(t->to, it);
	return false;
}

enum err walk_next(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	unsigned want, struct item *at)
{
	struct item next = { 0 };
	struct taken t = { .to = &next, .e = ERR_NOT_FOUND };
	enum err e = store_list(s, v, parent, class, at->key, false, want, take, &t);
	item_fini(at);
	if (e == ERR_OK)
		e = t.e;
	if (e == ERR_OK)
		*at = next;
	return e;
}
