/* SPDX-License-Identifier: MIT
 * The key of a table's item is its name in lower case, so names are case-insensitive.  The item
 * also has the name in its own case. */
#include "service/core/tables.h"

#include "model/names.h"
#include "service/core/accounts.h"
#include "service/core/lookup_cache.h"

enum err table_find_in(struct service *s, uint64_t account_id, struct span table, struct item *ret)
{
	char key[LIMIT_TABLE_NAME_MAX];
	if (table.n > sizeof(key))
		return ERR_TABLE_NOT_FOUND;
	table_name_fold(table, key);
	enum err e = store_child(service_store(s), NULL, account_id, CLASS_KEYED,
		span_make(key, table.n), WANT_ATTRS, ret);
	return e == ERR_NOT_FOUND ? ERR_TABLE_NOT_FOUND : e;
}

enum err table_find(struct service *s, struct span account, struct span table, struct item *ret)
{
	struct item owner = { 0 };
	enum err e = account_find(s, account, &owner);
	if (e != ERR_OK)
		return e;
	e = table_find_in(s, owner.id, table, ret);
	item_fini(&owner);
	return e;
}

enum err table_id(struct service *s, uint64_t account_id, struct span table, uint64_t *ret)
{
	char key[LIMIT_TABLE_NAME_MAX];
	uint64_t moment;
	struct item it = { 0 };
	if (table.n > sizeof(key))
		return ERR_TABLE_NOT_FOUND;
	table_name_fold(table, key);
	struct span folded = span_make(key, table.n);
	if (lookup_cache_child(service_lookup_cache(s), account_id, folded, ret, &moment))
		return ERR_OK;
	enum err e = table_find_in(s, account_id, table, &it);
	if (e == ERR_OK) {
		*ret = it.id;
		lookup_cache_child_is(service_lookup_cache(s), account_id, folded, it.id, moment);
	}
	item_fini(&it);
	return e;
}

enum err table_create(struct service *s, enum origin origin, uint64_t account_id, struct span name,
	struct item *ret, struct err_detail *detail)
{
	enum err e = table_name_check(name, detail);
	if (e != ERR_OK)
		return e;
	char key[LIMIT_TABLE_NAME_MAX];
	table_name_fold(name, key);
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = account_id, .class = CLASS_KEYED, .key = span_make(key, name.n) },
		.cond = COND_ABSENT,
		.kind = ITEM_TABLE,
		.item_flags = ITEM_MADE,
		.name = name,
		.attrs = ATTRS_UNSET };
	e = service_apply(s, origin, &c, 1, true, detail);
	if (e == ERR_OK && ret != NULL) {
		*ret = c.now; /* moved, not copied: nothing may fail after the commit */
		c.now = (struct item){ 0 };
	}
	changes_fini(&c, 1);
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_ACCOUNT_NOT_FOUND : e;
}

enum err table_delete(
	struct service *s, enum origin origin, uint64_t table_id, struct err_detail *detail)
{
	struct change c = { .op = CHANGE_DELETE,
		.flags = CHANGE_RECURSIVE,
		.at = { .id = table_id },
		.attrs = ATTRS_UNSET };
	enum err e = service_apply(s, origin, &c, 1, true, detail);
	changes_fini(&c, 1);
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_TABLE_NOT_FOUND : e;
}

enum err table_policies_get(struct service *s, uint64_t table_id, struct buf *out)
{
	struct item it = { 0 };
	enum err e = store_get(service_store(s), NULL, table_id, WANT_BODY, &it);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && it.kind != ITEM_TABLE)) {
		item_fini(&it);
		return ERR_TABLE_NOT_FOUND;
	}
	if (e != ERR_OK)
		return e;
	buf_add_span(out, it.body);
	item_fini(&it);
	return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
}

enum err table_policies_set(struct service *s, enum origin origin, uint64_t table_id,
	struct span xml, struct err_detail *detail)
{
	struct change c = { .op = CHANGE_PUT,
		.at = { .id = table_id },
		.kind = ITEM_TABLE,
		.body = xml,
		.attrs = ATTRS_UNSET };
	enum err e = service_apply(s, origin, &c, 1, true, detail);
	changes_fini(&c, 1);
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_TABLE_NOT_FOUND : e;
}
