/* SPDX-License-Identifier: MIT
 * Listings of the open store, in pieces. */
#include "daemon/core/place.h"
#include "daemon/rows/row_ops.h"
#include "model/etag.h"

#include <string.h>

struct list {
	struct rows_listing *to;
	char last[LIMIT_KEY_BYTES + 1]; /* the key that was listed last */
	size_t last_n;
	bool full;
};

static bool add(struct rows_listing *to, const struct item *it, struct span name)
{
	char etag[ETAG_MAX];
	bool row = it->kind == ITEM_ROW && !item_is_empty_row(it);
	if (row)
		(void)etag_format(it->version, etag);
	const struct rows_entry entry = { .kind = it->kind,
		.name = name,
		.has_size = true,
		.has_time = true,
		.size = it->size,
		.changed = it->version,
		.etag = row ? etag : NULL };
	return to->add(to, &entry);
}

static bool on_item(void *arg, const struct item *it)
{
	struct list *l = arg;
	char component[COMPONENT_MAX];
	l->full = !add(l->to, it, span_make(component, item_component(it, component)));
	l->last_n = it->key.n;
	memcpy(l->last, it->key.p, it->key.n);
	return !l->full;
}

static enum err list_class(struct cmd_env *env, struct rows_listing *to, uint64_t dir,
	enum item_class class, struct err_detail *why)
{
	struct list l = { .to = to };
	struct span after = { 0 };
	char key[LIMIT_KEY_BYTES + 1];
	enum err e;
	do {
		l.full = false;
		e = store_list(service_store(env->service), NULL, dir, class, after, false,
			WANT_ATTRS, on_item, &l);
		memcpy(key, l.last, l.last_n);
		after = span_make(key, l.last_n);
		if (e == ERR_OK && l.full)
			e = to->flush(to, why);
		if (e == ERR_OK && env->cancelled(env->cancel_arg))
			e = ERR_CANCELLED;
	} while (e == ERR_OK && l.full);
	return e;
}

enum err store_path_list(
	struct cmd_env *env, const char *path, struct rows_listing *l, struct err_detail *why)
{
	struct place p;
	enum err e = place_find(env->service, path, false, &p, why);
	if (e == ERR_OK && !item_is_dir(p.item.kind) && p.item.id != STORE_ROOT) {
		(void)add(l, &p.item, p.name.name);
	} else if (e == ERR_OK) {
		e = list_class(env, l, p.item.id, CLASS_KEYED, why);
		if (e == ERR_OK && p.item.id != STORE_ROOT)
			e = list_class(env, l, p.item.id, CLASS_NAMED, why);
	}
	place_fini(&p);
	return e;
}
