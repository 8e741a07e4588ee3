/* SPDX-License-Identifier: MIT */
#include "service/check/estimate.h"

#include "base/compiler.h"
#include "service/check/walk.h"

static bool add_size(void *arg, const struct item *it)
{
	struct estimate *e = arg;
	e->items += it->size;
	return ++e->directories < ESTIMATE_PARTITIONS;
}

static enum err add_table(
	struct store *s, struct store_view *v, const struct item *table, struct estimate *sum)
{
	struct estimate seen = { 0 };
	enum err e = store_list(s, v, table->id, CLASS_KEYED, (struct span){ 0 }, false, WANT_ATTRS,
		add_size, &seen);
	if (e != ERR_OK)
		return e;
	if (seen.directories == ESTIMATE_PARTITIONS && table->size > seen.directories) {
		double mean = (double)seen.items / (double)seen.directories;
		seen = (struct estimate){ (uint64_t)(mean * (double)table->size), table->size };
	}
	sum->items += seen.items;
	sum->directories += seen.directories;
	return ERR_OK;
}

enum err estimate_table(struct store *s, struct store_view *v, uint64_t table, struct estimate *sum)
{
	struct item it = { 0 };
	enum err e = store_get(s, v, table, WANT_ATTRS, &it);
	if (e == ERR_OK)
		e = add_table(s, v, &it, sum);
	item_fini(&it);
	return e;
}

static enum err add_account(
	struct store *s, struct store_view *v, uint64_t account, struct estimate *sum)
{
	static const enum item_class flat[] = { CLASS_QUEUE, CLASS_BLOB };
	struct item table = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK) {
		e = walk_next(s, v, account, CLASS_KEYED, WANT_ATTRS, &table);
		if (e == ERR_OK)
			e = add_table(s, v, &table, sum);
		if (e == ERR_OK)
			sum->directories++;
	}
	item_fini(&table);
	for (size_t i = 0; i < ARRAY_LEN(flat) && e == ERR_NOT_FOUND; i++) {
		struct estimate seen = { 0 };
		enum err read = store_list(s, v, account, flat[i], (struct span){ 0 }, false,
			WANT_ATTRS, add_size, &seen);
		if (read != ERR_OK)
			return read;
		sum->items += seen.items;
		sum->directories += seen.directories;
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err estimate_store(struct store *s, struct store_view *v, struct estimate *sum)
{
	struct item account = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK) {
		e = walk_next(s, v, STORE_ROOT, CLASS_KEYED, WANT_ATTRS, &account);
		if (e == ERR_OK)
			e = add_account(s, v, account.id, sum);
	}
	item_fini(&account);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}
